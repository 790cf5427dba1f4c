"""`steelyard completion SHELL`: the script with which a shell completes commands, options, studies, stores, levels."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from steelyard.cli.completion import VARIABLE

EXAMPLES = (
    ("steelyard completion bash", 'For ~/.bashrc: eval "$(steelyard completion bash)".'),
    ("steelyard completion zsh", 'For ~/.zshrc, after compinit: eval "$(steelyard completion zsh)".'),
    ("steelyard completion fish", "Save it as ~/.config/fish/completions/steelyard.fish."),
)
EXIT_DONE = 0
BASH: Final = """\
_steelyard_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" word prefix candidate
    word="${line##*[[:space:]]}"
    # Bash splits words at = and :, and puts a candidate in place of what stands behind the last of them.
    [[ $current == [=:] ]] && current=""
    prefix="${word%"$current"}"
    COMPREPLY=()
    while IFS=$'\\t' read -r candidate _; do
        COMPREPLY+=("${candidate#"$prefix"}")
    done < <(VARIABLE="$line" "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _steelyard_complete steelyard
"""
ZSH: Final = """\
#compdef steelyard
_steelyard() {
    local -a answers described
    local each
    answers=("${(@f)$(VARIABLE="${(j: :)words[1,CURRENT]}" $words[1] 2>/dev/null)}")
    for each in $answers; do
        if [[ $each == *$'\t'* ]]; then
            described+=("${${each%%$'\t'*}//:/\\:}:${each#*$'\t'}")
        else
            described+=("${each//:/\\:}")
        fi
    done
    if (( $#described )); then
        _describe -V steelyard described
    else
        _files
    fi
}
compdef _steelyard steelyard
"""
FISH: Final = """\
function __steelyard_complete
    set -l line (commandline --cut-at-cursor --current-process | string collect)
    set -l answers (env VARIABLE=$line (commandline --tokenize --current-process)[1] 2>/dev/null)
    if test (count $answers) -gt 0
        printf '%s\\n' $answers
    else
        __fish_complete_path (commandline --current-token)
    end
end
complete --command steelyard --no-files --arguments '(__steelyard_complete)'
"""


class Shell(StrEnum):
    """Shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS: Final = {Shell.BASH: BASH, Shell.ZSH: ZSH, Shell.FISH: FISH}


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> int:
    """Print the script. Returns 0."""
    print(SCRIPTS[shell].replace("VARIABLE", VARIABLE), end="")
    return EXIT_DONE
