from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from steelyard.cli.terminal.output import say


@pytest.mark.parametrize("line", ["/tmp/[bold]a[/] 12 " + "x" * 100, Text("[red] 12 " + "y" * 100)])
def test_a_line_is_printed_as_it_is(line: str | Text) -> None:
    console = Console(file=io.StringIO(), width=40, force_terminal=True, color_system="truecolor")
    say(console, line)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == f"{line}\n"


def test_a_style_holds_for_the_whole_line() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    say(console, "12 of 30", style="red")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "\x1b[31m12 of 30\x1b[0m\n"


def test_a_message_longer_than_people_read_is_cut() -> None:
    console = Console(file=io.StringIO(), stderr=True, force_terminal=False, width=40)
    say(console, "x" * 200_000)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().strip("x") == "… and 180,000 more characters\n"
