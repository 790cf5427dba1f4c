"""Terminal output: data go to standard output, messages to standard error; lines are printed as they are."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def data_console() -> Console:
    """The console of what was asked for: standard output."""
    return Console()


def message_console() -> Console:
    """The console of all else: standard error."""
    return Console(stderr=True)


def say(console: Console, line: str | Text = "", *, style: str | None = None) -> None:
    """Print a line as it is: brackets are no markup, numbers are not coloured, and the terminal breaks what is long.

    A line that was wrapped could not be searched, copied or read by a program.
    """
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
