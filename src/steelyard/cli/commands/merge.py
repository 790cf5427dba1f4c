"""`steelyard merge STORE ... --into FOLDER`: the trials of several stores of one study in one store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli import completion
from steelyard.cli.terminal.output import message_console, say, warn_of_damages
from steelyard.store.merge import merge as merge_stores
from steelyard.store.read import study_folder

EXAMPLES = (
    ("steelyard merge mine/quickstart theirs/quickstart --into store/quickstart", "Two laboratories, one study."),
    ("steelyard merge theirs/quickstart --into store/quickstart", "Add what they measured since."),
)
EXIT_DONE, EXIT_LOST, EXIT_CONFLICT = 0, 1, 3


def merge(
    stores: Annotated[
        list[Path],
        typer.Argument(metavar="STORE", help="Folders of one study's results.", autocompletion=completion.stores),
    ],
    into: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="A new or empty folder, or a store of the same study.")
    ],
) -> int:
    """Merge, and say what was taken from where and what was left out. Returns 0, 1 if a planned trial was lost by
    damage, or 3 after conflicts, which are named: then nothing was written."""
    merged = merge_stores([study_folder(store) for store in stores], into)
    warn_of_damages(message_console(), merged.damages)
    for line in merged.sentences():
        say(message_console(), line)
    return EXIT_CONFLICT if merged.conflicts else EXIT_LOST if merged.lost else EXIT_DONE
