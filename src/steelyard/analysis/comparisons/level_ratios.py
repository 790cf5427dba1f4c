"""Ratio of two levels with a confidence interval over start means, and a verdict in words.

The interval was chosen by simulation with few starts (identical systems, start-to-start deviation 3%, trials 2%, three
trials per start; share called different at 95%): a percentile bootstrap over starts 33%, 20% and 12% of
the time with 2, 3 and 5 starts per level; Welch's t over trials 26%, 24% and 22%; Welch's t over logarithms of start
means 2%, 4% and 4%. The last is used: it needs no resampling, and its error stays near the nominal 5%.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from steelyard.analysis.inference import effect_sizes, estimates
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.response import Direction

ROUNDING = 1e-12
"""Logarithms that differ by less are of equal values."""
ComparisonVerdict = Literal["slower", "faster", "higher", "lower", "equivalent", "undecided", "descriptive"]
FEWEST_STARTS = estimates.FEWEST_STARTS
"""Starts a side below which there is no interval over starts."""
FEWEST_PAIRED = 2
"""From so many starts that served both sides on, a comparison rests on these alone."""
TOO_FEW = "fewer than three starts per level"
NOTHING_VARIES = "nothing varies between starts"


def welch(log_a: Sequence[float], log_b: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """(mean(b) - mean(a), half width, degrees of freedom): Welch 1947, degrees by `estimates.welch_degrees`."""
    n_a, n_b = len(log_a), len(log_b)
    part_a, part_b = estimates.deviation(log_a) ** 2 / n_a, estimates.deviation(log_b) ** 2 / n_b
    difference = math.fsum(log_b) / n_b - math.fsum(log_a) / n_a
    error = part_a + part_b
    if error == 0:
        return difference, 0.0, float(n_a + n_b - 2)
    degrees = estimates.welch_degrees(part_a, n_a, part_b, n_b)
    return difference, estimates.t_quantile(confidence, degrees) * math.sqrt(error), degrees


def paired(logs: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """(mean, half width, degrees of freedom) of differences of logarithms, one per start."""
    n = len(logs)
    half = estimates.t_quantile(confidence, n - 1) * estimates.deviation(logs) / math.sqrt(n)
    return math.fsum(logs) / n, half, float(n - 1)


def paired_starts(a: Mapping[str, float], b: Mapping[str, float], same_starts: bool) -> tuple[str, ...]:
    """The starts that served both sides, if the sides are paired by start and there are enough; else empty."""
    both = tuple(start for start in a if start in b) if same_starts else ()
    return both if len(both) >= FEWEST_PAIRED else ()


def units(
    a: Mapping[str, float], b: Mapping[str, float], both: Sequence[str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The start means that a comparison rests on: those of the paired starts (`both`), else all of each side."""
    if both:
        return tuple(a[start] for start in both), tuple(b[start] for start in both)
    return tuple(a.values()), tuple(b.values())


def centre(means: Sequence[float], unit: str, confidence: float) -> Estimate:
    """The value of a level: the geometric mean of its start means, t interval on logarithms from three starts on.

    Two such values over the starts that a comparison rests on (`units`) have its ratio as their quotient.
    """
    return estimates.geometric_mean(means, unit, confidence, "start means", FEWEST_STARTS)


def ratio_between(
    a: Mapping[str, float], b: Mapping[str, float], same_starts: bool, confidence: float
) -> Estimate | None:
    """Ratio b / a of the geometric means of start means, with its interval; None where the mean of a is 0.

    `same_starts`: equal names of starts are the same cluster, and the sides were tried within it. Paired t on
    logarithms where two starts or more served both, else Welch's t; no interval below three starts a side. Where a mean
    is not positive: the ratio of arithmetic means, without an interval.
    """
    both = paired_starts(a, b, same_starts)
    means_a, means_b = units(a, b, both)
    n = len(both) or len(a) + len(b)
    if min(*means_a, *means_b) <= 0:
        base = math.fsum(means_a) / len(means_a)
        if base == 0:
            return None
        value = math.fsum(means_b) / len(means_b) / base
        method = "ratio of means of start means; a mean is not above 0: no interval"
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)
    logs_a, logs_b = ([math.log(mean) for mean in means] for means in (means_a, means_b))
    gap = math.fsum(logs_b) / len(logs_b) - math.fsum(logs_a) / len(logs_a)
    if min(len(means_a), len(means_b)) < FEWEST_STARTS:
        method = f"ratio of geometric means of start means; {TOO_FEW}: no interval"
        return Estimate(value=math.exp(gap), confidence=confidence, n=n, unit="", method=method)
    if both:
        gaps = [y - x for x, y in zip(logs_a, logs_b, strict=True)]
        return _ratio(
            paired(gaps, confidence) if varies(gaps) else (gap, 0.0, len(gaps) - 1.0),
            n, confidence, "ratio of geometric means, t on logarithms of start means paired by start",
        )  # fmt: skip
    return _ratio(
        welch(logs_a, logs_b, confidence) if varies(logs_a, logs_b) else (gap, 0.0, 0.0),
        n, confidence, "ratio of geometric means, Welch's t on logarithms of start means",
    )  # fmt: skip


def _ratio(log_ratio: tuple[float, float, float], n: int, confidence: float, method: str) -> Estimate:
    centre, half, degrees = log_ratio
    if half == 0:  # Percentiles are steps of a histogram: equal values do not show that nothing varies.
        why = f"{method}; no interval: {NOTHING_VARIES}"
        return Estimate(value=math.exp(centre), confidence=confidence, n=n, unit="", method=why)
    shown = f"{degrees:.0f}" if degrees == round(degrees) else f"{degrees:.1f}"
    return Estimate(
        value=math.exp(centre),
        low=math.exp(max(centre - half, -600.0)),
        high=math.exp(min(centre + half, 600.0)),
        confidence=confidence,
        n=n,
        unit="",
        method=f"{method}, {shown} degrees of freedom",
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


def p_of_change(a: Sequence[float], b: Sequence[float], paired: bool) -> float | None:
    """Two-sided p that the ratio of geometric means is 1: t of pairs, else Welch's, on logarithms.

    The test whose interval `ratio_between` gives: p is below 1 - confidence where that leaves 1 out. None below
    three units a side, where a value is not above 0, or where nothing varies.
    """
    if min(len(a), len(b)) < FEWEST_STARTS or min(*a, *b) <= 0:
        return None
    logs = np.log(a), np.log(b)
    if not varies(*([logs[1] - logs[0]] if paired else logs)):
        return None
    return effect_sizes.p_of_difference([float(one) for one in logs[0]], [float(one) for one in logs[1]], paired)


def varies(*logs: Sequence[float] | np.ndarray) -> bool:
    """Whether any sample of logarithms varies by more than rounding."""
    return any(float(np.ptp(one)) > ROUNDING for one in logs)
