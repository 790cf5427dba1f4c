"""Answer of a study on the terminal: the tables of the page as they are, a small chart, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steelyard.analysis.narrative import undecided
from steelyard.analysis.narrative.answer_display import SHOWN_CAVEATS
from steelyard.analysis.narrative.answer_table import AnswerTable
from steelyard.analysis.results import Results
from steelyard.cli.terminal.output import print_table, print_wrapped, say
from steelyard.report.tables import answers
from steelyard.report.tables.generic import Cell, ShownColumn
from steelyard.report.tables.generic import Table as Shown

STYLES: Final = {"faster": "green", "slower": "red", "equivalent": "cyan", "undecided": "yellow"}
WIDTH: Final = 80
COSTS: Final = (undecided.TO_DECIDE, undecided.WITHIN)
CHANGE: Final = "change from the baseline"
"""Term of the column that may wrap."""
PLACEHOLDER: Final = "\ue000"
"""Stands for a line's name while the table is laid out."""
MOST_ROWS: Final = 40
"""Rows on the screen; the report has all."""


def print_answer(table: AnswerTable, console: Console) -> None:
    """The page's table with its caption, and a chart."""
    shown = answers.answers(table)
    if shown is None:
        return
    _print(shown, console)
    chart = answers.bars(table.rows[:MOST_ROWS], min(WIDTH, console.width))
    if chart:
        say(console)
    for line in chart:
        say(console, line)
    say(console)


def say_limits(console: Console, limits: Sequence[str]) -> None:
    """Print what limits an answer: the first caveats, and how many more there are."""
    if limits:
        say(console)
        say(console, "What limits this answer:", style="bold")
    for text in limits[:SHOWN_CAVEATS]:
        print_wrapped(text, console, indent=2)
    if len(limits) > SHOWN_CAVEATS:
        say(console, f"  and {len(limits) - SHOWN_CAVEATS} more, in the report", style="dim")


def print_other_responses(results: Results, console: Console) -> None:
    """The page's table of the further responses, and those that it lacks in words."""
    shown = answers.other_responses(results)
    if shown is not None:
        say(console)
        _print(shown, console)
    for further in answers.uncompared(results):
        print_wrapped(further.answer[0], console)


def _print(shown: Shown, console: Console) -> None:
    shown = shown.without_empty_columns()
    print_wrapped(Text(shown.caption), console)
    rows = shown.rows[:MOST_ROWS]
    fits = _width(_grid(shown.columns, rows), console) <= console.width
    if not fits and shown.columns[0].name == "" and any(column.numeric for column in shown.columns):
        _print_in_groups(shown, console)
    else:
        print_table(_grid(shown.columns, rows, costs_wrap=not fits), console)
    if len(shown.rows) > MOST_ROWS:
        say(console, f"and {len(shown.rows) - MOST_ROWS} more rows, in the report", style="dim")


def _width(grid: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(max_width=10 * WIDTH), grid).maximum


def _print_in_groups(shown: Shown, console: Console) -> None:
    """Print the table with the names of its rows in lines of their own, for a narrow terminal."""
    names: list[str] = []
    rows: list[tuple[Cell, ...]] = []
    for name, *cells in shown.rows[:MOST_ROWS]:
        if name.text:
            rows.append((Cell(f"{PLACEHOLDER}{len(names)}"), *(Cell("") for _ in cells[1:])))
            names.append(name.text)
        rows.append(tuple(cells))
    for segments in console.render_lines(_grid(shown.columns[1:], rows, narrow=True), pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        before, _, place = line.plain.partition(PLACEHOLDER)
        say(console, Text(names[int(place)]) if place and not before.strip() else line)


def _grid(
    columns: Sequence[ShownColumn], rows: Sequence[Sequence[Cell]], *, narrow: bool = False, costs_wrap: bool = False
) -> Table:
    """`costs_wrap`: blocks and their time are on a line each, so that the other columns have room."""
    grid = Table(box=None, padding=(0, 1 if narrow else 2, 0, 0), header_style="dim", pad_edge=False)
    for column in columns:
        uncut = not costs_wrap if column.name in COSTS else column.numeric and column.term != CHANGE
        head = column.name.replace(" ", "\n", 1) if uncut and narrow else column.name
        grid.add_column(head, justify="right" if column.numeric else "left", no_wrap=uncut)
    for row in rows:
        grid.add_row(
            *(
                Text(cell.text.replace(", ", ",\n") if costs_wrap and name in COSTS else cell.text, style=_style(cell))
                for name, cell in zip((column.name for column in columns), row, strict=True)
            )
        )
    return grid


def _style(cell: Cell) -> str:
    return next((style for word, style in STYLES.items() if cell.text.startswith(word) or cell.tone.endswith(word)), "")
