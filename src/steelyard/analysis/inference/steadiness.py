"""Steady-state verdict on a series, from its change points and trend, and the size of each change.

One rule for the seconds of a trial, the trials of a start and the starts of a study.

MSER-5, the cut that minimises the standard error of the rest: K. P. White, An effective truncation heuristic for bias
reduction in simulation output, Simulation 69(6), 1997, 323-334; over means of five: K. P. White, M. J. Cobb, S. C.
Spratt, A comparison of five steady-state truncation heuristics for simulation, Winter Simulation Conference 2000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from steelyard.analysis.inference import change_points, effect_sizes, estimates
from steelyard.format import count, p_equals, percent, signed
from steelyard.heavy import np
from steelyard.model.estimate import Estimate
from steelyard.model.value import Value

WarmUpVerdict = Literal["warm-up", "steady", "drifting", "none"]
BATCH = 5
"""Values of a batch of MSER-5."""
FEWEST_BATCHES = 4
"""With fewer batches a cut could only fall in the second half, which MSER forbids."""
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
    """Probability of so great a difference in a series without a change."""

    @property
    def size(self) -> str:
        """`+8.1% [5.2, 11.0]`."""
        change = self.change_percent
        if change is None:
            return "another level"
        ends = "" if change.low is None or change.high is None else f" [{signed(change.low)}, {signed(change.high)}]"
        return f"{signed(change.value)}%{ends}"


@dataclass(frozen=True)
class Steadiness:
    """Evidence of a steady state in a series."""

    cut: int | None
    """Values at the beginning that MSER-5 would drop; None below 20."""
    verdict: WarmUpVerdict
    detail: str
    """The sentence behind the verdict."""
    points: tuple[ChangePoint, ...] = ()
    likeness: float | None = None
    """Correlation of neighbours that the verdict allows for; None if it is too short."""

    @property
    def text(self) -> str:
        """Its change points in one line: `after 12 (3.4 h): +8.1% [5.2, 11.0] (p < 0.001)`."""
        return "; ".join(
            f"after {one.after}{'' if one.at_h is None else f' ({one.at_h:.1f} h)'}: {one.size} (p {p_equals(one.p)})"
            for one in self.points
        )


def mser5(series: Sequence[float]) -> int | None:
    """Values to drop at the beginning, by MSER-5; None below 20 values.

    With batch means z_1..z_k of 5 values each: d* = argmin over 0 <= d <= k/2 of sum_{j>d} (z_j - mean_{j>d})^2 / (k -
    d)^2; the cut is 5 d* values. Values behind the last whole batch are not used to find it.
    """
    batches = len(series) // BATCH
    if batches < FEWEST_BATCHES:
        return None
    z = np.asarray(series[: batches * BATCH], dtype=float).reshape(batches, BATCH).mean(axis=1)
    scores = [float(np.sum((z[d:] - z[d:].mean()) ** 2)) / (batches - d) ** 2 for d in range(batches // 2 + 1)]
    return int(np.argmin(scores)) * BATCH


def judged(
    series: Sequence[float], noun: str, over: str, confidence: float, *, fewest: int = change_points.FEWEST,
    at_h: Sequence[float] | None = None, correlated: bool = False,
) -> Steadiness:  # fmt: skip
    """The steady state of a series of `noun`s, from `fewest` on; `at_h`: when each began, hours.

    `correlated`: neighbours are; long series are then judged by means of several.
    """
    cut = mser5(series)
    if len(series) < fewest:
        short = f"{count(len(series), noun)}, too few to distinguish a change of level from chance; {fewest} are needed"
        return Steadiness(cut, "none", short)
    values, each, r = list(series), 1, 0.0
    if correlated:
        values, each = change_points.batch_means(series)
        r = change_points.likeness(values)
    changes = change_points.changes(values, r)
    verdict, detail = _verdict(values, changes, noun, r, each)
    return Steadiness(cut, verdict, detail, _points(values, changes, at_h, over, confidence, each), r)


def _verdict(
    values: Sequence[float], changes: Sequence[change_points.Change], noun: str, r: float = 0.0, each: int = 1
) -> tuple[WarmUpVerdict, str]:
    """(verdict, the sentence behind it) of a series of `each` units a value, given its changes of level.

    warm-up: the last change lies in the first half and no trend comes after it; drifting: a later change, or a trend;
    steady: neither, though a change of the first half by `STEADY_FACTOR` would be found; none: nor would that.
    """
    last = changes[-1].after if changes else 0
    rho, p = change_points.trend(values[last:], r)
    places = ", ".join(str(one.after * each) for one in changes)
    moves = _moving(values[last:], rho) if p < change_points.ALPHA else ""
    if not changes:
        if moves:
            return "drifting", f"the series {moves}"
        seen = all(change_points.changes(one, r) for one in _planted(values))
        return ("steady", "no change of level and no trend is shown") if seen else ("none", NOT_SEEN)
    text = f"the level changes after {noun} {places}"
    if moves:
        return "drifting", f"{text}, and the series {moves} after that"
    if last <= len(values) / 2:
        return "warm-up", f"{text}, and keeps its level from there"
    return "drifting", f"{text}, so late that no warm-up explains it"


def _moving(values: Sequence[float], rho: float) -> str:
    """`still falls: its last third is 12% below its first (Spearman's -0.60)`."""
    third = max(1, len(values) // 3)
    first, last = (math.fsum(part) / third for part in (values[:third], values[-third:]))
    share = relative_change(last, first)
    size = (
        ""
        if share is None
        else f": its last third is {percent(abs(share))} {'above' if share > 0 else 'below'} its first"
    )
    return f"still {'rises' if rho > 0 else 'falls'}{size} (Spearman's {rho:+.2f})"


def _planted(values: Sequence[float]) -> Iterator[list[float]]:
    """The series with its first half higher, and lower, by `STEADY_FACTOR`."""
    first = max(1, round(len(values) / 2))
    for factor in (STEADY_FACTOR, 1 / STEADY_FACTOR):
        yield [*(value * factor for value in values[:first]), *values[first:]]


def _points(
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
        ratio = effect_sizes.fieller(effect_sizes.TwoSamples(before, after, over), confidence)
        size = None
        if ratio is not None:
            method = f"{ratio.method}; the place was chosen by looking"
            size = estimates.percent(ratio).model_copy(update={"method": method})
        when = at_h[change.after] if at_h is not None else None
        points.append(ChangePoint(after=change.after * each, at_h=when, change_percent=size, p=change.p))
    return tuple(points)


def relative_change(value: float, base: float) -> float | None:
    """(value - base) / base; None for a base of 0."""
    return (value - base) / base if base else None
