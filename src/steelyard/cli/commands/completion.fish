function __steelyard_complete
    set -l line (commandline --cut-at-cursor --current-process | string collect)
    set -l answers (env VARIABLE=$line (commandline --tokenize --current-process)[1] 2>/dev/null)
    if test (count $answers) -gt 0
        printf '%s\n' $answers
    else
        __fish_complete_path (commandline --current-token)
    end
end
complete --command steelyard --no-files --arguments '(__steelyard_complete)'
