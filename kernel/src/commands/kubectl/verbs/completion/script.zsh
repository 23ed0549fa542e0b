#compdef kubectl
# Completion of kubectl in zsh: `source <(kubectl completion zsh)`. It asks kubectl __complete what can follow.
_kubectl() {
    local answer directive told text
    local -a asked lines offered
    asked=("${(@)words[2,CURRENT]}")
    # Evaluated, so that an alias of kubectl is one here, too.
    answer=$(eval "${words[1]} __complete ${(j: :)${(@qq)asked}}" 2>/dev/null) || return 1
    lines=("${(@f)answer}")
    directive=${lines[-1]#:}
    # Behind --flag= it is the value that is completed.
    compset -P '-*='
    if ((directive & 8)); then
        _files -g '*.(json|yaml|yml)'
        return
    fi
    for told in "${(@)lines[1,-2]}"; do
        text=${told%%$'\t'*}
        text=${text//:/\\:}
        [[ $told == *$'\t'* ]] && text+=":${told#*$'\t'}"
        [[ -n $text ]] && offered+=("$text")
    done
    if ((${#offered})); then
        ((directive & 2)) && _describe kubectl offered -S '' || _describe kubectl offered
    elif ! ((directive & 4)); then
        _files
    fi
}

compdef _kubectl kubectl
