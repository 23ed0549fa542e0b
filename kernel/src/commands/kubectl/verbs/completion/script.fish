# Completion of kubectl in fish: `kubectl completion fish | source`. It asks kubectl __complete what can follow.
function __kubectl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer (eval $words[1] __complete (string escape -- $words[2..-1]) (string escape -- "$current") 2>/dev/null)
    or return
    set -l directive (string replace : '' -- $answer[-1])
    # Behind --flag= it is the value that is completed.
    set -l before (string match --regex -- '^-[^=]*=' "$current")
    if test (math "bitand($directive, 8)") -ne 0
        set -l typed (string replace --regex -- '^-[^=]*=' '' "$current")
        for file in (string match --regex -- '.*/$|.*\.(?:json|yaml|yml)$' $typed*/ $typed*)
            echo $before$file
        end
        return
    end
    for told in $answer[1..-2]
        echo $before$told
    end
    if test (count $answer) -eq 1; and test (math "bitand($directive, 4)") -eq 0
        __fish_complete_path "$current"
    end
end

complete -c kubectl -f -a '(__kubectl_complete)'
