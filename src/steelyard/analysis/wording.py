"""Formatting of numbers, durations and counts in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.treatments import Treatment, label

MOST_NAMED = 3


def hours(seconds: float) -> str:
    """A duration with the precision of a forecast: `50 s`, `40 min`, `2 h 50`, `3 days`."""
    minutes = seconds / 60
    if minutes < 1:
        return f"{max(1, round(seconds))} s"
    if minutes < 59.5:
        return f"{round(minutes)} min"
    if minutes < 72 * 60:
        tens = round(minutes / 10)
        return f"{tens // 6} h" + (f" {10 * (tens % 6)}" if tens % 6 else "")
    return f"{round(minutes / 60 / 24)} days"


def blocks(starts: int, seconds: float | None) -> str:
    """`14 more blocks (about 2 h 50)`."""
    lasts = f" (about {hours(seconds)})" if seconds is not None else ""
    return f"{starts:,} more block{'' if starts == 1 else 's'}{lasts}"


def number(percent: float) -> str:
    """Per cent with two significant digits below 100: 0.41, 4.1, 41, 1,200."""
    size = abs(percent)
    return f"{percent:.2f}" if size < 1 else f"{percent:.1f}" if size < 10 else f"{percent:,.0f}"


def signed(percent: float) -> str:
    """As `number`, with sign; a true minus."""
    return ("-" if percent < 0 else "+").replace("-", "\N{MINUS SIGN}") + number(abs(percent))


def quantity(value: float, unit: str) -> str:
    """A value with three significant digits and a unit that suits its size: `4.1 s`, `830 ms`, `2,310 operations/s`."""
    if unit == "ms" and abs(value) >= 120_000:
        return f"{_digits(value / 60_000)} min"
    if unit == "ms" and abs(value) >= 1000:
        return f"{_digits(value / 1000)} s"
    return f"{_digits(value)} {unit}".strip()


def _digits(value: float) -> str:
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def counted(n: int, noun: str) -> str:
    """`1 trial`, `48 trials`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(items: Sequence[str]) -> str:
    """`a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def named(treatments: Sequence[Treatment]) -> str:
    """The first treatments by name, and how many more there are."""
    names = [label(treatment) for treatment in treatments]
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{'; '.join(names[:MOST_NAMED])}{rest}"


def p_words(p: float | None) -> str:
    """`= 0.012`, `< 0.0001`: after the letter p."""
    return "unknown" if p is None else "< 0.0001" if p < 0.0001 else f"= {p:.2g}"
