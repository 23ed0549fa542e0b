# Completion of kubectl in bash: `source <(kubectl completion bash)`. It asks kubectl __complete what can follow.
__kubectl_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" words current answer directive told split suggestion
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]} - 1]}"
    # Evaluated, so that an alias of kubectl is one here, too.
    answer=$(eval "${words[0]} __complete $(printf '%q ' "${words[@]:1}")" 2>/dev/null) || return
    directive="${answer##*:}"
    COMPREPLY=()
    if ((directive & 8)); then
        while read -r told; do
            [[ -d $told || $told == *.json || $told == *.yaml || $told == *.yml ]] && COMPREPLY+=("$told")
        done < <(compgen -f -- "${current#-*=}")
        compopt -o filenames
        return
    fi
    # Behind --flag= it is the value that is completed; of what has a colon in it, bash completes what follows the last.
    [[ $current == -*=* ]] && current="${current#*=}"
    [[ $current == *:* ]] && split="${current%:*}:"
    while read -r told; do
        suggestion="${told%%$'\t'*}"
        [[ -n $suggestion && $suggestion == "$current"* ]] && COMPREPLY+=("${suggestion#"$split"}")
    done <<< "${answer%:*}"
    ((directive & 2)) && compopt -o nospace
    ((directive & 4)) && compopt +o default
    return 0
}

complete -o default -F __kubectl_complete kubectl
