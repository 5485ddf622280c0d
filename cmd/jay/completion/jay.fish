# Completion of jay for fish. Load it with
#
#     jay completion fish > ~/.config/fish/completions/jay.fish
function __jay_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    set -l lines ($program __complete --shell fish -- $words "$current" 2>/dev/null)
    set -l directive $lines[1]
    set -e lines[1]
    if test "$directive" = ":files"
        __fish_complete_path "$current"
    else
        printf '%s\n' $lines
    end
end
complete -c jay -f -a '(__jay_complete)'
