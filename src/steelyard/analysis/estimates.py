"""The intervals that everything else is made of: means, medians, quartiles, with their n and method."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from steelyard.model.estimate import Estimate

FEWEST_FOR_MEDIAN = 6
"""Below six values no pair of order statistics covers the median with 95%: 2 x 0.5^5 = 6.25% is left out."""


def mean(values: Sequence[float], unit: str, confidence: float, over: str) -> Estimate:
    """Arithmetic mean with Student's t interval: mean +- t(n - 1) s / sqrt(n). `over` names the unit of replication.

    The ends are None for one value. Raises ValueError for none.
    """
    n = len(values)
    if not n:
        raise ValueError("the mean of no values")
    centre = math.fsum(values) / n
    if n < 2:
        return Estimate(value=centre, confidence=confidence, n=n, unit=unit, method=f"one of {over}: no interval")
    half = t_quantile(confidence, n - 1) * deviation(values) / math.sqrt(n)
    return Estimate(
        value=centre,
        low=centre - half,
        high=centre + half,
        confidence=confidence,
        n=n,
        unit=unit,
        method=f"mean over {over}, t interval with {n - 1} degrees of freedom",
    )


def mean_z(values: Sequence[float], unit: str, confidence: float, over: str) -> Estimate:
    """Arithmetic mean with the normal interval, mean +- z s / sqrt(n), z = 1.96 at 95%, as chekkilla2016 printed it.

    It takes s for known, so it is too narrow for few values: of five it covers 88%, not 95%. Otherwise as `mean`.
    """
    found = mean(values, unit, confidence, over)
    if found.low is None:
        return found
    z = float(stats.norm.ppf(0.5 + confidence / 2))
    half = z * deviation(values) / math.sqrt(found.n)
    method = f"mean over {over}, z interval ({z:.2f} standard errors)"
    return found.model_copy(update={"low": found.value - half, "high": found.value + half, "method": method})


def deviation(values: Sequence[float]) -> float:
    """Standard deviation with n - 1; 0 below two values."""
    return float(np.std(np.asarray(values, dtype=float), ddof=1)) if len(values) > 1 else 0.0


def t_quantile(confidence: float, degrees: float) -> float:
    """The two-sided quantile of Student's t."""
    return float(stats.t.ppf(0.5 + confidence / 2, degrees))


def median_rank(n: int, confidence: float) -> int | None:
    """The largest k for which [x(k), x(n + 1 - k)] covers the median with at least this confidence; None if none does.

    P(fewer than k values below the median) is binomial(n, 1/2), whatever the distribution: David and Nagaraja, Order
    Statistics, 3rd edition, section 7.1.
    """
    k = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))
    while k > 0 and 2 * float(stats.binom.cdf(k - 1, n, 0.5)) > 1 - confidence:
        k -= 1
    return k if k > 0 else None


def median(values: Sequence[float], unit: str, confidence: float) -> Estimate:
    """Median with the order-statistic interval over trials; the ends are None below six trials (at 95%)."""
    n = len(values)
    ordered = sorted(values)
    centre = quantile(ordered, 0.5)
    rank = median_rank(n, confidence) if n >= FEWEST_FOR_MEDIAN else None
    if rank is None:
        method = f"median; {n} trials are too few for an interval at {confidence:.0%}"
        return Estimate(value=centre, confidence=confidence, n=n, unit=unit, method=method)
    return Estimate(
        value=centre,
        low=ordered[rank - 1],
        high=ordered[n - rank],
        confidence=confidence,
        n=n,
        unit=unit,
        method=f"median, order statistics {rank} and {n + 1 - rank} of {n} trials (binomial)",
    )


def quantile(values: Sequence[float], fraction: float) -> float:
    """Quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan 1996)."""
    return float(np.quantile(np.asarray(values, dtype=float), fraction))
