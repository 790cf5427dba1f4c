"""Answer of a study on the terminal: the table of `AnswerTable` as it is, a small chart, and its limitations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.narrative.answer_display import SHOWN_CAVEATS, Notes, both_sides, names_both_sides
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.cli.terminal.output import print_table, print_wrapped, say
from steelyard.format import count

STYLES: Final = {"faster": "green", "slower": "red", "equivalent": "cyan", "undecided": "yellow"}
WIDTH: Final = 80
BAR: Final = "█"
LEAST_BAR: Final = 8
"""Minimum width of the bars; below it nothing is drawn."""
MOST_ROWS: Final = 40
"""Rows on the screen; the report has all."""
MOST_NOTES: Final = 8
"""Notes below the table on the screen; the report has all."""


def print_answer(table: AnswerTable, console: Console) -> None:
    """Caption, table, chart, and the notes that explain or limit verdicts, by letters where they differ."""
    rows = table.rows[:MOST_ROWS]
    notes = Notes(rows)
    print_wrapped(Text(f"{table.caption}{f'; {table.same_n}' if table.same_n else ''}"), console)
    print_table(_table(table, rows, notes), console)
    if len(table.rows) > len(rows):
        say(console, f"and {len(table.rows) - len(rows)} more rows, in the report", style="dim")
    chart = bars(rows, min(WIDTH, console.width))
    if chart:
        say(console)
    for line in chart:
        say(console, line)
    for note in notes.sentences[:MOST_NOTES]:
        print_wrapped(Text(note, style="dim"), console)
    if len(notes.sentences) > MOST_NOTES:
        say(console, f"and {count(len(notes.sentences) - MOST_NOTES, 'more note')}, in the report", style="dim")


def say_limits(console: Console, limits: Sequence[str]) -> None:
    """Print what limits an answer: the first caveats, and how many more there are."""
    if limits:
        say(console)
        say(console, "What limits this answer:", style="bold")
    for text in limits[:SHOWN_CAVEATS]:
        print_wrapped(text, console, indent=2)
    if len(limits) > SHOWN_CAVEATS:
        say(console, f"  and {len(limits) - SHOWN_CAVEATS} more, in the report", style="dim")


def _table(table: AnswerTable, rows: Sequence[AnswerRow], notes: Notes) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    with_lines, with_values = any(row.line for row in rows), any(row.value_text for row in rows)
    with_n, both = not table.same_n, names_both_sides(table)
    if with_lines:
        grid.add_column("")
    grid.add_column("compared" if both else table.factor)
    if with_values:
        grid.add_column(table.response_label, justify="right", no_wrap=True)
    grid.add_column("change")
    grid.add_column("verdict")
    if with_n:
        grid.add_column("n")
    before = None
    for row in rows:
        level = both_sides(row) if both else row.level_text
        cells: list[str | Text] = [row.line if row.line != before else ""] if with_lines else []
        cells += [level, *([row.value_text or "-"] if with_values else []), row.change_text]
        cells += [Text(notes.verdict(row), style=STYLES.get(row.verdict, "")), *([row.n_text] if with_n else [])]
        grid.add_row(*cells)
        before = row.line
    return grid


def bars(rows: Sequence[AnswerRow], width: int) -> list[str]:
    """A bar from 0 per level, on one scale for all; nothing if values are missing or the lines have no room."""
    known = [row for row in rows if row.value is not None and row.value >= 0]
    greatest = max((row.value or 0.0 for row in known), default=0.0)
    names = [f"{row.line}, {row.level_text}" if row.line else row.level_text for row in known]
    name_room = max(map(len, names), default=0)
    value_room = max((len(row.value_text) for row in known), default=0)
    room = width - name_room - value_room - 3
    if len(known) < 2 or greatest <= 0 or room < LEAST_BAR:
        return []
    return [
        f"{name:<{name_room}} |{BAR * max(1, round(room * (row.value or 0.0) / greatest))} {row.value_text}"
        for name, row in zip(names, known, strict=True)
    ]
