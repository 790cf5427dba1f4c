"""Terminal output: data go to standard output, messages to standard error; lines are printed as they are."""

from __future__ import annotations

import os
import re
import sys
import webbrowser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from steelyard.model.damage import DAMAGED, Damage, damage_lines
from steelyard.model.errors import SteelyardError
from steelyard.shown_text import visible

LEAST_WIDTH: Final = 20
LONGEST_MESSAGE: Final = 20_000
"""Characters of a message that are shown; the lists of problems that people read are shorter."""
NAMES_SHARE: Final = 0.6
"""Of the width of a terminal: what columns of single words take at most without being broken."""
COMMAND: Final = re.compile(r"`[^`\n]+`")
UNBROKEN: Final = "\ue000"
"""Stands for a blank at which no line ends."""
HANGING: Final = 2
"""Blanks before all lines of a sentence but the first."""


class Terminal(Console):
    """A console on which texts of others are only shown: brackets are not markup, and in the place of every character
    that a terminal would obey stands a sign."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"markup": False, **settings})

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # The last place where texts differ from Rich's own control codes.
        return super()._render_buffer(
            part if part.control else part._replace(text=_shown(part.text)) for part in buffer
        )


def _shown(text: str) -> str:
    # Names of files may have bytes that are not text.
    return visible(text, lines=True).encode("utf-8", errors="replace").decode("utf-8")


def data_console() -> Console:
    """The console for results: standard output."""
    return Terminal()


def message_console() -> Console:
    """The console of all else: standard error."""
    return Terminal(stderr=True)


def say(console: Console, line: str | Text = "", *, style: str | None = None) -> None:
    """Print a line as it is: brackets are not markup, numbers are not coloured, and the terminal breaks what is long.

    A line that was wrapped could not be searched, copied or read by a program. A message is cut where it is longer than
    anything that people read: a name in another user's store may have any length.
    """
    if console.stderr and len(line) > LONGEST_MESSAGE:
        line = f"{str(line)[:LONGEST_MESSAGE]}… and {len(line) - LONGEST_MESSAGE:,} more characters"
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def say_address(console: Console, before: str, path: Path) -> None:
    """Print the address of a page, which most terminals open with a click."""
    uri = path.resolve().as_uri()
    say(console, Text(before).append(uri, style=f"link {uri}"))


def open_page(path: Path, console: Console) -> None:
    """Show a page in the browser; where there is none, say what to do instead."""
    shown = os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} or sys.platform == "darwin"
    if not (shown and webbrowser.open(path.resolve().as_uri())):
        say(console, "no browser can be opened here: open the address above in one, or copy the file")


def print_wrapped(line: str | Text, console: Console, *, indent: int = 0) -> None:
    """Print a sentence for people in lines that fit the terminal; all but the first hang."""
    text = line.copy() if isinstance(line, Text) else Text(line)
    width = max(LEAST_WIDTH, console.width - indent - HANGING)
    # A command in backticks that fits a line is not broken: it is there to be copied.
    text.plain = COMMAND.sub(lambda found: _unbroken(found[0], width), text.plain)
    for place, row in enumerate(text.wrap(console, width)):
        row.plain = row.plain.replace(UNBROKEN, " ")
        row.rstrip()
        say(console, Text(" " * (indent if place == 0 else indent + HANGING)).append_text(row))


def _unbroken(command: str, width: int) -> str:
    return command.replace(" ", UNBROKEN) if len(command) <= width else command


def titled_table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    """A table without frame below its title; the columns `right` are flush right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def print_table(table: Table, console: Console) -> None:
    """Print a table, its title above and its caption below, without blanks at the ends of lines: they are ugly where it
    is pasted. Names are not broken, if there is room."""
    title, caption, table.title, table.caption = table.title, table.caption, None, None
    if title:
        print_wrapped(Text(str(title), style=table.title_style or ""), console)
    room = NAMES_SHARE * console.width
    for column in table.columns:
        texts = [str(text) for text in (column.header, *column.cells)]
        width = max(map(len, texts))
        if width <= room and all(len(text.split()) < 2 for text in texts):
            column.no_wrap, room = True, room - width
    for segments in console.render_lines(table, pad=False):
        row = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        row.rstrip()
        say(console, row)
    for line in str(caption or "").splitlines():
        print_wrapped(Text(line, style="dim italic"), console)


def complain(console: Console, error: SteelyardError) -> None:
    """An error, in the one style of all of them: `error: ` with file and line where it has them, then what to do,
    indented."""
    say(console, Text.assemble(("error: ", "bold red"), error.message))
    for hint in (error.hint, *error.notes):
        for line in hint.splitlines():
            say(console, f"  {line}")


def warn_of_damages(console: Console, damages: Sequence[Damage]) -> None:
    """Print the damages of a store; nothing if there are none."""
    for line in damage_lines(damages):
        say_marked(console, line)


def say_marked(console: Console, line: str) -> None:
    """Print a line as it is, a damage marked as such."""
    mark = DAMAGED if line.startswith(DAMAGED) else ""
    say(console, Text.assemble((mark, "bold yellow"), line.removeprefix(mark)))
