"""Steady-state verdict on a series, from its change points and trend, and the size of each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.analysis.inference import change_points, effect_sizes
from steelyard.model.estimate import Estimate
from steelyard.model.value import Value

WarmUpVerdict = Literal["warm-up", "steady", "drifting", "none"]
STEADY_FACTOR = 1.2
"""A series is called steady only if a change by this factor would be found in it."""
NOT_SEEN = (
    f"no change of level and no trend is shown, but a change by a factor of {STEADY_FACTOR:g} would not be either"
)


class ChangePoint(Value):
    """A change of level within a series."""

    after: int
    """Values of the series before it."""
    at_h: float | None = None
    """Hours since the study's first trial began, of the first value after it; None within a trial."""
    change_percent: Estimate | None = None
    """From the level before it (since the change before) to the level after it (until the next)."""
    p: float
    """How rare so great a difference is in a series without a change."""


def verdict_of(
    values: Sequence[float], changes: Sequence[change_points.Change], noun: str, r: float = 0.0, each: int = 1
) -> tuple[WarmUpVerdict, str]:
    """(verdict, the sentence behind it) of a series of `each` units a value, given its changes of level.

    warm-up: the last change lies in the first half and no trend comes after it; drifting: a later change, or a trend;
    steady: neither, though a change of the first half by `STEADY_FACTOR` would be found; none: nor would that.
    """
    last = changes[-1].after if changes else 0
    rho, p = change_points.trend(values[last:], r)
    places = ", ".join(str(one.after * each) for one in changes)
    moves = f"still {'rises' if rho > 0 else 'falls'} (Spearman's {rho:+.2f})" if p < change_points.ALPHA else ""
    if not changes:
        if moves:
            return "drifting", f"the series {moves}"
        seen = all(change_points.changes(one, r) for one in planted(values, 1 / 2))
        return ("steady", "no change of level and no trend is shown") if seen else ("none", NOT_SEEN)
    text = f"the level changes after {noun} {places}"
    if moves:
        return "drifting", f"{text}, and the series {moves} after that"
    if last <= len(values) / 2:
        return "warm-up", f"{text}, and keeps its level from there"
    return "drifting", f"{text}, so late that no warm-up explains it"


def planted(values: Sequence[float], part: float) -> tuple[list[float], list[float]]:
    """The series with its first part (a fraction) higher, and lower, by `STEADY_FACTOR`."""
    first = max(1, round(len(values) * part))
    return (
        [value * STEADY_FACTOR if place < first else value for place, value in enumerate(values)],
        [value / STEADY_FACTOR if place < first else value for place, value in enumerate(values)],
    )


def points_of(
    values: Sequence[float], changes: Sequence[change_points.Change], at_h: Sequence[float] | None, over: str,
    confidence: float, each: int = 1,
) -> tuple[ChangePoint, ...]:  # fmt: skip
    """The changes with their size: ratio of the levels on either side, Fieller's interval.

    The place was chosen from the same data, so the size is biased upwards; `method` says so.
    """
    bounds = [0, *(one.after for one in changes), len(values)]
    points = []
    for place, change in enumerate(changes, start=1):
        before, after = values[bounds[place - 1] : bounds[place]], values[bounds[place] : bounds[place + 1]]
        ratio = effect_sizes.fieller(before, after, confidence, over)
        percent = None
        if ratio is not None:
            low, high = (None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high))
            percent = ratio.model_copy(
                update={"value": 100 * (ratio.value - 1), "low": low, "high": high, "unit": "%",
                        "method": f"{ratio.method}; the place was chosen by looking"}
            )  # fmt: skip
        when = at_h[change.after] if at_h is not None else None
        points.append(ChangePoint(after=change.after * each, at_h=when, change_percent=percent, p=change.p))
    return tuple(points)


def changes_text(points: Sequence[ChangePoint]) -> str:
    """Change points in one line: `after 12: +8.1% (p 0.0005)`."""
    return "; ".join(
        f"after {one.after}: {'level' if one.change_percent is None else f'{one.change_percent.value:+.2g}%'} "
        f"(p {one.p:.2g})"
        for one in points
    )


def relative_change(value: float, base: float) -> float | None:
    """(value - base) / base; None for a base of 0."""
    return (value - base) / base if base else None
