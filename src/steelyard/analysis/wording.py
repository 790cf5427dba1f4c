"""Formatting of numbers, durations and counts in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.treatments import Treatment, label
from steelyard.format import count, forecast, number

MOST_NAMED = 3


def blocks(starts: int, seconds: float | None) -> str:
    """`14 more blocks (about 2 h 50 min)`."""
    lasts = f" (about {forecast(seconds)})" if seconds is not None else ""
    return f"{count(starts, 'more block')}{lasts}"


def quantity(value: float, unit: str) -> str:
    """A value with three significant digits and a unit that suits its size: `4.1 s`, `830 ms`, `2,310 operations/s`."""
    if unit == "ms" and abs(value) >= 120_000:
        return f"{number(value / 60_000, digits=3, trim=False)} min"
    if unit == "ms" and abs(value) >= 1000:
        return f"{number(value / 1000, digits=3, trim=False)} s"
    return f"{number(value, digits=3, trim=False)} {unit}".strip()


def named(treatments: Sequence[Treatment]) -> str:
    """The first treatments by name, and how many more there are."""
    names = [label(treatment) for treatment in treatments]
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{'; '.join(names[:MOST_NAMED])}{rest}"
