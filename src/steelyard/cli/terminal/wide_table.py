"""Terminal tables whose numbers are never cut, and intervals drawn with characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steelyard.cli.terminal.output import Terminal, print_table
from steelyard.model.estimate import Estimate

MOST_COLUMNS: Final = 1_000
CELLS: Final = 31
"""Characters of a drawn interval."""
ROOM: Final = 0.06
LEAST_RATIO: Final = 1e-6
"""Ratios below are drawn there."""


def uncut(grid: Table, console: Console) -> None:
    """Print a table as wide as it needs, without blanks at the ends of its lines: an ellipsis is not a number."""
    needed = Measurement.get(console, console.options.update(max_width=MOST_COLUMNS), grid).maximum
    if needed > console.width:
        console = Terminal(file=console.file, width=needed, force_terminal=console.is_terminal)
    print_table(grid, console)


def forest_span(changes: Sequence[Estimate]) -> tuple[float, float]:
    """Ends, in percent, of the axis on which all intervals and 0 lie, with a little room. The axis is that of
    logarithms of ratios, so that twice and half are as far from 0."""
    ends = [0.0]
    for change in changes:
        ends += [_place(end) for end in (change.value, change.low, change.high) if end is not None]
    room = ROOM * (max(ends) - min(ends)) or 0.01
    return 100 * math.expm1(min(ends) - room), 100 * math.expm1(max(ends) + room)


def _place(percent: float) -> float:
    return math.log(max(1 + percent / 100, LEAST_RATIO))


def forest_line(change: Estimate, low: float, high: float) -> Text:
    """One interval as a line: `├──●──┤`, and `│` where nothing changes. `low` and `high`: see `forest_span`."""

    def cell(value: float) -> int:
        share = (_place(value) - _place(low)) / (_place(high) - _place(low))
        return min(CELLS - 1, max(0, round(share * (CELLS - 1))))

    line = [" "] * CELLS
    if change.low is not None and change.high is not None:
        first, last = cell(change.low), cell(change.high)
        line[first : last + 1] = "─" * (last - first + 1)
        line[first], line[last] = "├", "┤"
    zero = cell(0.0)
    line[zero] = "┼" if line[zero] == "─" else "│"
    line[cell(change.value)] = "●"
    return Text("".join(line))
