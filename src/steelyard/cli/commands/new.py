"""`steelyard new NAME`: a commented study file to begin with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.terminal.output import message_console, say
from steelyard.study import new as new_study

EXAMPLES = (
    ("steelyard new first", "At a terminal, it asks what you want to know."),
    ("steelyard new lz4 --question compare", "Two levels of a setting, on real Cassandra."),
    ("steelyard new demo --question search --system simulated", "Without Java: the highest rate within a limit."),
)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the study; the file is NAME.toml.")],
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            metavar="KIND",
            autocompletion=lambda incomplete: [kind for kind in new_study.QUESTIONS if kind.startswith(incomplete)],
            help="scale: cluster sizes. compare: two levels of a setting. search: the highest rate within a limit. "
            "gate: two builds. grow: nodes join. repeat: a published study. Asked for at a terminal, otherwise scale.",
        ),
    ] = None,
    system: Annotated[
        str, typer.Option("--system", metavar="NAME", help="cassandra, or simulated, which needs no Java.")
    ] = "cassandra",
) -> int:
    """Write the file into the current folder, never over another, and say which commands come next. Returns 0."""
    ask = question is None and sys.stdin.isatty() and sys.stderr.isatty()
    written = new_study.write(name, _asked() if ask else question or new_study.QUESTIONS[0], system, Path())
    print(written.path)
    for line in ("", "next:", *(f"  {command}" for command in written.commands)):
        say(message_console(), line)
    return 0


def _asked() -> str:
    """The kind of question that is chosen at the terminal, by number or by name."""
    numbers = {str(number): kind for number, kind in enumerate(new_study.QUESTIONS, 1)}
    for number, kind in numbers.items():
        say(message_console(), f"{number}  {kind:8} {new_study.about(kind)}")
    answer = str(typer.prompt("What do you want to know", default="1", err=True))
    return numbers.get(answer, answer)
