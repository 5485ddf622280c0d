#compdef jay
# Completion of jay for zsh. Load it in ~/.zshrc, after compinit, with
#
#     source <(jay completion zsh)
#
# or write it to a file _jay in a directory of $fpath.
_jay() {
    local -a lines
    lines=("${(@f)$("${words[1]}" __complete --shell zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    local directive=${lines[1]}
    shift lines
    case $directive in
    :files) _files ;;
    :nospace) compadd -S '' -a lines ;;
    *) compadd -a lines ;;
    esac
}
if [[ ${funcstack[1]} == _jay ]]; then
    _jay "$@"
else
    compdef _jay jay
fi
