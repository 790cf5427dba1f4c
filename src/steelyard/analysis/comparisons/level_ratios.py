"""Ratio of two levels with a confidence interval over start means, and a verdict in words.

Levels that were tried in the same blocks or starts are compared within them (`level_pairs.LevelPair`), so that what
hours and neighbours do to a whole block is in neither the ratio nor its interval. The interval was chosen by simulation
with few starts: t over trials, or a percentile bootstrap over starts, calls identical systems different in 12 to 33% of
studies; t on logarithms of start means stays near 5%, with and without differences between blocks
(docs/explanation/coverage.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from steelyard.analysis.comparisons.level_pairs import FEWEST_STARTS, NOTHING_VARIES, LevelPair, equivalence
from steelyard.analysis.inference import estimates
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.response import Direction

ComparisonVerdict = Literal["slower", "faster", "higher", "lower", "equivalent", "undecided", "descriptive"]
WAYS = {
    "block": "t on logarithms of start means paired by block",
    "start": "t on logarithms of start means paired by start",
    "": "Welch's t on logarithms of start means",
}


def centre(means: Sequence[float], unit: str, confidence: float | None) -> Estimate:
    """The value of a level: the geometric mean of its start means, t interval on logarithms from three starts on; none
    where `confidence` is None.

    Two such values over the starts that a comparison rests on have its ratio as their quotient.
    """
    return estimates.geometric_mean(means, unit, confidence, "start means", FEWEST_STARTS)


def ratio_of(pair: LevelPair, confidence: float) -> Estimate | None:
    """Ratio of the geometric means of start means, level over baseline; None where the baseline's mean is 0.

    Paired t on logarithms where the sides share starts or blocks, else Welch's t; no interval below three starts a
    side. Where a mean is not positive: the ratio of arithmetic means, without an interval.
    """
    n = len(pair.baseline) if pair.paired else len(pair.baseline) + len(pair.level)
    gap = pair.gap
    if gap is None:
        base = math.fsum(pair.baseline) / len(pair.baseline)
        if base == 0:
            return None
        value = math.fsum(pair.level) / len(pair.level) / base
        method = "ratio of means of start means; a mean is not above 0: no interval"
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)
    method, value = f"ratio of geometric means, {WAYS[pair.paired]}", math.exp(gap.value)
    if pair.lacks == NOTHING_VARIES:
        method = f"{method}; no interval: {NOTHING_VARIES}"
    elif pair.lacks:
        method = f"ratio of geometric means of start means; {pair.lacks}: no interval"
    if pair.lacks:
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)
    half, degrees = gap.half(confidence), gap.error()[1]
    shown = f"{degrees:.0f}" if degrees == round(degrees) else f"{degrees:.1f}"
    place = ", the place in the block taken out" if gap.place else ""
    return Estimate(
        value=value,
        low=math.exp(max(gap.value - half, -600.0)),
        high=math.exp(min(gap.value + half, 600.0)),
        confidence=confidence,
        n=n,
        unit="",
        method=f"{method}{place}, {shown} degrees of freedom",
    )


def percent(ratio: Estimate) -> Estimate:
    """A ratio as a change in per cent of the baseline."""
    return ratio.model_copy(
        update={
            "value": 100 * (ratio.value - 1),
            "low": None if ratio.low is None else 100 * (ratio.low - 1),
            "high": None if ratio.high is None else 100 * (ratio.high - 1),
            "unit": "%",
        }
    )


def judge(response: str, ratio: Estimate) -> ComparisonVerdict:
    """Slower or faster (higher or lower, where neither is better) only if the interval leaves 1 out."""
    if ratio.low is None or ratio.high is None:
        return "descriptive"
    if ratio.low <= 1 <= ratio.high:
        return "undecided"
    more = ratio.low > 1
    direction = responses.of(response).direction
    if direction is Direction.LESS_IS_FASTER:
        return "slower" if more else "faster"
    if direction is Direction.MORE_IS_FASTER:
        return "faster" if more else "slower"
    return "higher" if more else "lower"


def p_of_change(pair: LevelPair) -> float | None:
    """Two-sided p that the ratio is 1, by the test whose interval `ratio_of` gives: p is below 1 - confidence where
    that leaves 1 out. None where there is no interval."""
    gap = pair.gap
    return None if gap is None or pair.lacks else gap.p()


def verdict_of(
    response: str, ratio: Estimate, pair: LevelPair, margin_percent: float | None, confidence: float
) -> ComparisonVerdict:
    """The verdict on two levels: equivalent within a declared margin, else by the interval of their ratio.

    `pair`: the start means that the ratio rests on. Where the ratio has no interval, there is no equivalence either.
    """
    if equivalence(pair, margin_percent, confidence)[0] == "equivalent":
        return "equivalent"
    return judge(response, ratio)
