"""Estimates of dispersion: standard deviation, quartiles, extremes; an interval where n supports one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from steelyard.analysis.inference import estimates
from steelyard.format import confidence_text
from steelyard.heavy import np, stats
from steelyard.model.estimate import Estimate

WHISKER = 1.5
"""Whiskers end at the last point within so many interquartile ranges of the box (Tukey 1977)."""


def standard_deviation(values: Sequence[float], unit: str, confidence: float, over: str = "trials") -> Estimate | None:
    """With n - 1; interval (n - 1) s^2 / chi-squared quantiles, for normal values; None below two values.

    With heavier tails than the normal distribution the interval is too narrow.
    """
    n = len(values)
    if n < 2:
        return None
    value = estimates.deviation(values)
    tail = (1 - confidence) / 2
    low, high = (value * math.sqrt((n - 1) / float(stats.chi2.ppf(p, n - 1))) for p in (1 - tail, tail))
    return Estimate(
        value=value, low=low, high=high, confidence=confidence, n=n, unit=unit,
        method=f"standard deviation over {over} (n - 1), chi-squared interval of normal values",
    )  # fmt: skip


def quartile(values: Sequence[float], fraction: float, unit: str, confidence: float, over: str = "trials") -> Estimate:
    """A quantile with order statistics as its interval, whatever the distribution.

    Ends x(r) and x(s): the greatest r with P(Binomial(n, fraction) < r) <= tail and the least s with P(Binomial(n,
    fraction) >= s) <= tail (H. A. David, H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1); none where n is
    too small for either, for quartiles at 95% below 13.
    """
    n = len(values)
    ordered = sorted(float(value) for value in values)
    value = estimates.quantile(ordered, fraction)
    low, high = _ranks(n, fraction, confidence)
    name = f"{fraction:.0%} quantile over {over}"
    if low is None or high is None:
        method = f"{name}; {n} are too few for an interval at {confidence_text(confidence)}"
        return Estimate(value=value, confidence=confidence, n=n, unit=unit, method=method)
    return Estimate(
        value=value, low=ordered[low - 1], high=ordered[high - 1], confidence=confidence, n=n, unit=unit,
        method=f"{name}, order statistics {low} and {high} of {n} (binomial)",
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _ranks(n: int, fraction: float, confidence: float) -> tuple[int | None, int | None]:
    """(r, s) of the interval of a quantile of n values, from 1; None where n is too small."""
    tail, ranks = (1 - confidence) / 2, np.arange(1, n + 1)
    low = ranks[stats.binom.cdf(ranks - 1, n, fraction) <= tail]
    high = ranks[stats.binom.sf(ranks - 1, n, fraction) <= tail]
    return (int(low[-1]) if len(low) else None), (int(high[0]) if len(high) else None)


def extreme(value: float, n: int, unit: str, confidence: float, what: str, over: str = "trials") -> Estimate:
    """Least, greatest or range, as measured: no interval, because more trials only push it outwards."""
    method = f"{what} of {n} {over}, as measured; no interval: more of them only push it outwards"
    return Estimate(value=value, confidence=confidence, n=n, unit=unit, method=method)
