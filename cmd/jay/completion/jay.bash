# Completion of jay for bash. Load it in ~/.bashrc with
#
#     source <(jay completion bash)
_jay() {
    local line directive="" current="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $directive ]]; then
            directive=$line
        else
            COMPREPLY+=("$line")
        fi
    done < <("${COMP_WORDS[0]}" __complete --shell bash --breaks "$COMP_WORDBREAKS" -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $directive in
    :files)
        [[ $current == = ]] && current=""
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "$current")
        type compopt &>/dev/null && compopt -o filenames 2>/dev/null
        ;;
    :nospace)
        type compopt &>/dev/null && compopt -o nospace 2>/dev/null
        ;;
    esac
    return 0
}
complete -F _jay jay
