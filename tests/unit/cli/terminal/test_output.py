from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from steelyard.cli.terminal.output import print_table, print_wrapped, say, say_address, titled_table


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


def lines_of(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, force_terminal=False), out


def test_a_command_in_backticks_is_not_broken_over_lines() -> None:
    console, out = lines_of(40)
    print_wrapped("no noise floor was measured; `steelyard run a.toml` measures it", console)
    assert out.getvalue().splitlines() == ["no noise floor was measured;", "  `steelyard run a.toml` measures it"]
    console, out = lines_of(40)
    print_wrapped(f"it is long: `steelyard run {'x' * 60}`", console)
    assert "\ue000" not in out.getvalue()


def test_a_table_breaks_no_name_and_its_title_only_at_the_edge_of_the_terminal() -> None:
    console, out = lines_of(60)
    table = titled_table("2 treatments, full-factorial", "", "factor", "detects")
    table.add_row("1", "system.replication_factor", "26% and up, with a CV of 5.0% (assumed)")
    table.caption = "first line\nsecond line"
    print_table(table, console)
    lines = out.getvalue().splitlines()
    assert lines[0] == "2 treatments, full-factorial"
    assert "system.replication_factor" in lines[2]
    assert lines[-2:] == ["first line", "second line"]
    assert " ".join(" ".join(line[30:] for line in lines[2:-2]).split()) == "26% and up, with a CV of 5.0% (assumed)"


def test_the_address_of_a_page_is_a_uri(tmp_path: Path) -> None:
    console, out = lines_of(40)
    say_address(console, "report  ", tmp_path / "a b.html")
    assert out.getvalue() == f"report  file://{tmp_path}/a%20b.html\n"
