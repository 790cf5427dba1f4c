"""Formatting of quantities, changes and counts in sentences and in the answer's table.

The one formatter of a change: page, terminal, `compare`, `status` and `--json` use `change_text`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from steelyard.analysis.treatments import Treatment, label
from steelyard.format import number, with_interval
from steelyard.model import responses
from steelyard.model.estimate import Estimate

MOST_NAMED = 3
LEAST_PERCENT: Final = 0.5
MOST_PERCENT: Final = 2.0
"""Ratios from half to double are shown as a change in percent, others as a ratio."""
TENFOLD: Final = 10.0
WIDEST: Final = 100.0
"""An interval whose upper end is more times its lower end than this says nothing that deserves digits."""
THOUSANDFOLD: Final = 1000.0
"""Beyond this, or its reciprocal, one of both values is next to nothing, and the digits of their ratio are noise."""
ROUNDING: Final = 1e-9
CLOSE: Final = 0.05
"""Half-width of an interval over its value below which a ratio deserves a third digit."""


def quantity(value: float, unit: str) -> str:
    """A value with three significant digits and a unit that suits its size: `4.1 s`, `830 ms`, `2,310 operations/s`."""
    return quantities([value], unit)[0]


def quantities(values: Sequence[float], unit: str, resolution: float = 0.0) -> list[str]:
    """Values with three significant digits, or as many as their resolution supports, all in one unit that suits them:
    `0.32 s`, `12.4 s`."""
    factor, shown = scale(values, unit)
    space, spread = "" if shown == "%" else " ", resolution * factor
    return [f"{number(one * factor, spread=spread, digits=3, trim=False)}{space}{shown}".strip() for one in values]


def scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    """Factor and unit in which to show all of these values: seconds or minutes where milliseconds are too many."""
    sizes = [abs(value) for value in values if value]
    if unit != "ms" or not sizes:
        return 1.0, unit
    if min(sizes) >= 120_000:
        return 1 / 60_000, "min"
    if min(sizes) >= 1000 or (max(sizes) >= 10_000 and min(sizes) >= 10):
        return 0.001, "s"
    return 1.0, unit


def change_text(ratio: Estimate, response: str) -> str:
    """A ratio as people read it, with its interval where it has one: `+18% [3, 35]`, `3.1 times as long [2.2, 4.4]`.

    A change in percent of the baseline from half to double, a ratio beyond, words beyond a thousandfold. An interval
    wider than a hundredfold has no ends, and an end of a change in percent that is beyond tenfold is said in words.
    """
    value = change_value(ratio, response)
    ends = interval_text(ratio)
    return f"{value} {ends}" if ends else value


def change_value(ratio: Estimate, response: str) -> str:
    """`+18%` or `3.1 times as long`: a ratio without its interval."""
    if in_percent(ratio):
        percent = 100 * (ratio.value - 1)
        return f"{signed_percent(percent, _percent_places(ratio))}%"
    if ratio.value > THOUSANDFOLD:
        return f"more than a thousand times as {times_as(response)}"
    if 0 < ratio.value < 1 / THOUSANDFOLD:
        return f"less than a thousandth as {times_as(response)}"
    return f"{_ratio_number(ratio.value, ratio)} times as {times_as(response)}"


def change_or_difference(change: Estimate, response: str) -> str:
    """The change of a comparison as people read it: a ratio by `change_text`, or a difference, which has a unit, with
    its interval where it has one: `+873 operations [813, 934]`."""
    if not change.unit:
        return change_text(change, response)
    value, bracket, ends = with_interval(change, responses.of(response).resolution).partition(" [")
    sign = "+" if change.value > 0 and value.strip("0.") else ""
    return f"{sign}{value} {change.unit}{bracket}{ends}"


def mean_of(response: str) -> str:
    """The mean of start means that is a level's value, as the response is compared."""
    return "geometric mean" if responses.of(response).compared == "ratio" else "mean"


def change_of(ratio: float, response: str) -> str:
    """`+18%` or `3.1 times as long`, of a ratio that has no interval."""
    return change_value(Estimate(value=ratio, n=1, unit="", method="as measured"), response)


def times_as(response: str) -> str:
    """`long` of an execution time, otherwise `high`."""
    known = responses.every()
    return known[response].times_as if response in known else "high"


def in_percent(ratio: Estimate) -> bool:
    """Whether a ratio is shown as a change in percent: from half to double."""
    return LEAST_PERCENT <= ratio.value <= MOST_PERCENT


def interval_text(ratio: Estimate) -> str:
    """`[3, 35]` in the form of the ratio's own text (percent, or times); empty if it has no interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    if ratio.low <= 0 or ratio.high > WIDEST * ratio.low:
        return "[wider than a hundredfold]"
    if in_percent(ratio):
        places = _percent_places(ratio)
        low, high = (_percent_end(end, places) for end in (ratio.low, ratio.high))
    else:
        low, high = (_ratio_end(end, ratio) for end in (ratio.low, ratio.high))
    return f"[{low}, {high}]" if low != high else f"[{low}]"


def bound_text(ratio: Estimate, response: str, *, upper: bool) -> str:
    """What an end of the interval says of a change in its direction: `by less than 44%`, `less than 2.4 times as long`.
    Empty if the interval leaves that direction out, or the end is beyond tenfold."""
    if ratio.low is None or ratio.high is None or ratio.high > WIDEST * max(ratio.low, 0.0):
        return ""
    end = ratio.high if upper else ratio.low
    if not (1 < end <= TENFOLD if upper else 1 / TENFOLD <= end < 1):
        return ""
    if end <= MOST_PERCENT:
        return f"by less than {_fixed(100 * abs(end - 1), _percent_places(ratio))}%"
    return f"less than {_ratio_number(end, ratio)} times as {times_as(response)}"


def _percent_end(end: float, places: int) -> str:
    if end > TENFOLD:
        return "more than tenfold"
    if end < 1 / TENFOLD:
        return "less than a tenth"
    return _fixed(100 * (end - 1), places)


def _ratio_end(end: float, of: Estimate) -> str:
    if end > THOUSANDFOLD:
        return "more than a thousandfold"
    if end < 1 / THOUSANDFOLD:
        return "less than a thousandth"
    return _ratio_number(end, of)


def signed_percent(percent: float, places: int) -> str:
    """A change in percent with its sign; nothing but zeros has none: `+18`, `−4.1`, `0.0`."""
    text = _fixed(percent, places)
    return f"+{text}" if percent > 0 and text.strip("0.") else text


def _percent_places(ratio: Estimate) -> int:
    """Places of a change in percent: two digits of the half-width, or of the change itself; at most two places."""
    low, high = ratio.low, ratio.high
    size = 100 * (abs(ratio.value - 1) if low is None or high is None else (high - low) / 2)
    return 0 if size == 0 else max(0, min(2, 1 - math.floor(math.log10(size) + ROUNDING)))


def _fixed(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "\N{MINUS SIGN}")


def _ratio_number(value: float, of: Estimate) -> str:
    """A ratio with two digits, three where its interval is narrow: without one it is no more exact."""
    close = of.low is not None and of.high is not None and (of.high - of.low) / 2 < CLOSE * of.value
    return number(value, digits=3 if close else 2, trim=False)


def named(treatments: Sequence[Treatment]) -> str:
    """The first treatments by name, and how many more there are."""
    names = [label(treatment) for treatment in treatments]
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{'; '.join(names[:MOST_NAMED])}{rest}"


def capital(sentence: str) -> str:
    """The sentence with a capital first letter; the name of a setting (`load.rate_per_s`) stays as it is."""
    first = sentence.split(" ", 1)[0].rstrip(".,:;")
    return sentence if "." in first or "_" in first else sentence[:1].upper() + sentence[1:]
