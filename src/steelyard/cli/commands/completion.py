"""`steelyard completion SHELL`: the script with which a shell completes commands, options, studies, stores, levels.

The scripts are `completion.SHELL` in this folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.completion import VARIABLE

EXAMPLES = (
    ("steelyard completion bash", 'For ~/.bashrc: eval "$(steelyard completion bash)".'),
    ("steelyard completion zsh", 'For ~/.zshrc, after compinit: eval "$(steelyard completion zsh)".'),
    ("steelyard completion fish", "Save it as ~/.config/fish/completions/steelyard.fish."),
)
EXIT_DONE = 0


class Shell(StrEnum):
    """Shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> int:
    """Print the script. Returns 0."""
    print(script_of(shell), end="")
    return EXIT_DONE


def script_of(shell: Shell) -> str:
    """The script of a shell."""
    text = Path(__file__).with_suffix(f".{shell}").read_text(encoding="utf-8")
    return text.replace("VARIABLE", VARIABLE)
