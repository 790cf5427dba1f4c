"""Effect sizes of two samples, each with an interval: the arithmetic behind `contrast`.

A sample is one number per unit (a start's mean, or a trial); what a unit is, the caller says (`over`). Paired samples
have one pair per unit, in the same order.

Cohen's d with its standardiser: J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed. 1988, p. 44
(srinadhuni2018 uses the same). Hedges' g: L. V. Hedges, Distribution theory for Glass's estimator of effect size,
Journal of Educational Statistics 6(2), 1981. Intervals by noncentral t: K. Kelley, Confidence intervals for
standardized effect sizes, Journal of Statistical Software 20(8), 2007; paired: J. Algina, H. J. Keselman, Approximate
confidence intervals for effect sizes, Educational and Psychological Measurement 63, 2003. Cliff's delta: N. Cliff,
Dominance statistics, Psychological Bulletin 114, 1993; its interval: D. Feng, N. Cliff, Monte Carlo evaluation of
ordinal d with improved confidence interval, Journal of Modern Applied Statistical Methods 3(2), 2004. Ratio of means:
E. C. Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16, 1954.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize, stats

from steelyard.analysis import estimates
from steelyard.model.estimate import Estimate

RESAMPLES = 2000
"""Draws of a bootstrap."""
WIDEST = 1e6
"""Noncentrality at which the search for an end of an interval gives up."""

Numbers = np.ndarray[Any, Any]


def cohens_d(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str, paired: bool = False
) -> Estimate | None:
    """(mean(level) - mean(baseline)) / sqrt((s_b^2 + s_l^2) / 2); None below two units each or without any spread."""
    if not _enough(baseline, level):
        return None
    sd = _average_sd(baseline, level)
    return _standardised(baseline, level, sd, 1.0, confidence, f"Cohen's d over {over}", paired)


def hedges_g(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str, paired: bool = False
) -> Estimate | None:
    """Difference of means over the pooled sd, times J(df) = G(df/2) / (sqrt(df/2) G((df - 1)/2)); None as Cohen's d.

    Pooled: s^2 = ((n_b - 1) s_b^2 + (n_l - 1) s_l^2) / (n_b + n_l - 2); pairs: the average, df = n - 1. The interval is
    that of the standardised difference in the population, which g estimates without bias.
    """
    if not _enough(baseline, level):
        return None
    n_b, n_l = len(baseline), len(level)
    degrees = n_b - 1 if paired else n_b + n_l - 2
    s_b, s_l = estimates.deviation(baseline), estimates.deviation(level)
    sd = math.sqrt(((n_b - 1) * s_b**2 + (n_l - 1) * s_l**2) / (n_b + n_l - 2))
    return _standardised(baseline, level, sd, correction(degrees), confidence, f"Hedges' g over {over}", paired)


def correction(degrees: float) -> float:
    """Hedges' exact J: what makes a standardised difference unbiased."""
    if degrees <= 1:
        return 0.0
    return math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)


def _enough(baseline: Sequence[float], level: Sequence[float]) -> bool:
    return min(len(baseline), len(level)) >= 2 and _average_sd(baseline, level) > 0


def _average_sd(baseline: Sequence[float], level: Sequence[float]) -> float:
    return math.sqrt((estimates.deviation(baseline) ** 2 + estimates.deviation(level) ** 2) / 2)


def _standardised(
    baseline: Sequence[float], level: Sequence[float], sd: float, factor: float, confidence: float, name: str,
    paired: bool,
) -> Estimate:  # fmt: skip
    """Difference of means over `sd`, times `factor`; limits of the population's by noncentral t."""
    n_b, n_l = len(baseline), len(level)
    difference = math.fsum(level) / n_l - math.fsum(baseline) / n_b
    if paired:
        spread = estimates.deviation([b - a for a, b in zip(baseline, level, strict=True)])
        degrees, scale, n = n_b - 1, spread / math.sqrt(n_b) / sd, n_b
    else:
        degrees, scale, n = n_b + n_l - 2, math.sqrt(1 / n_b + 1 / n_l), n_b + n_l
    value = difference / sd
    limits = noncentral_limits(value / scale, degrees, confidence) if scale > 0 else None
    method = f"{name}, noncentral t interval with {degrees} degrees of freedom{', paired' if paired else ''}"
    if limits is None:
        method = f"{name}; no interval: the difference is too far beyond the spread"
    low, high = (None, None) if limits is None else (limits[0] * scale, limits[1] * scale)
    return Estimate(value=factor * value, low=low, high=high, confidence=confidence, n=n, unit="", method=method)


def noncentral_limits(t: float, degrees: float, confidence: float) -> tuple[float, float] | None:
    """The noncentralities for which t is the upper and the lower quantile; None where they cannot be computed."""
    tail = (1 - confidence) / 2
    low = _crossing(lambda shift: float(stats.nct.cdf(t, degrees, shift)) - (1 - tail), t)
    high = _crossing(lambda shift: float(stats.nct.cdf(t, degrees, shift)) - tail, t)
    return None if low is None or high is None else (low, high)


def _crossing(falls: Callable[[float], float], near: float) -> float | None:
    """Where a falling function crosses 0, searched outwards from `near`; None if it cannot be computed there."""
    step = max(1.0, abs(near) / 8)
    low, high = near - step, near + step
    while falls(low) < 0 and step < WIDEST:
        low, step = low - step, 2 * step
    step = max(1.0, abs(near) / 8)
    while falls(high) > 0 and step < WIDEST:
        high, step = high + step, 2 * step
    ends = falls(low), falls(high)
    if any(math.isnan(end) for end in ends) or ends[0] < 0 or ends[1] > 0:
        return None
    return float(optimize.brentq(falls, low, high, xtol=1e-10))


def cliffs_delta(baseline: Sequence[float], level: Sequence[float], confidence: float, over: str) -> Estimate | None:
    """P(level > baseline) - P(level < baseline); None below two units each. Pairs are treated as independent samples.

    Interval (Feng and Cliff 2004): (d - d^3 +- t s sqrt((1 - d^2)^2 + t^2 s^2)) / (1 - d^2 + t^2 s^2) with the unbiased
    variance s^2 of d and t of n_b + n_l - 2 degrees of freedom; for d = +-1, where s is 0, the other end is
    +-(n - t^2) / (n + t^2), n the smaller sample.
    """
    n_b, n_l = len(baseline), len(level)
    if min(n_b, n_l) < 2:
        return None
    dominance = np.sign(np.subtract.outer(np.asarray(level, dtype=float), np.asarray(baseline, dtype=float)))
    delta = float(dominance.mean())
    t = estimates.t_quantile(confidence, n_b + n_l - 2)
    if abs(delta) == 1:
        fewest = min(n_b, n_l)
        bound = delta * (fewest - t**2) / (fewest + t**2)
        low, high = sorted((delta, bound))
    else:
        by_level = float(np.sum((dominance.mean(axis=1) - delta) ** 2))
        by_baseline = float(np.sum((dominance.mean(axis=0) - delta) ** 2))
        cells = float(np.sum((dominance - delta) ** 2))
        variance = (n_b**2 * by_level + n_l**2 * by_baseline - cells) / (n_b * n_l * (n_b - 1) * (n_l - 1))
        variance = max(variance, (1 - delta**2) / (n_b * n_l - 1))
        room = t**2 * variance
        half = math.sqrt(room) * math.sqrt((1 - delta**2) ** 2 + room)
        low, high = ((delta - delta**3 + sign * half) / (1 - delta**2 + room) for sign in (-1, 1))
    return Estimate(
        value=delta, low=max(low, -1.0), high=min(high, 1.0), confidence=confidence, n=n_b + n_l, unit="",
        method=f"Cliff's delta over {over}, interval of Feng and Cliff",
    )  # fmt: skip


def difference(
    baseline: Sequence[float], level: Sequence[float], unit: str, confidence: float, over: str, paired: bool = False
) -> Estimate | None:
    """Mean of level minus mean of baseline: scipy's t interval, Welch's or of pairs; None below two units each."""
    if min(len(baseline), len(level)) < 2:
        return None
    value = math.fsum(level) / len(level) - math.fsum(baseline) / len(baseline)
    n = len(baseline) if paired else len(baseline) + len(level)
    kind = "paired t interval" if paired else "Welch's t interval"
    method = f"difference of means over {over}, {kind}"
    spread = (
        estimates.deviation([b - a for a, b in zip(baseline, level, strict=True)])
        if paired
        else _average_sd(baseline, level)
    )
    if spread == 0:
        return Estimate(
            value=value, confidence=confidence, n=n, unit=unit, method=f"{method}; no interval: nothing varies"
        )
    test = stats.ttest_rel(level, baseline) if paired else stats.ttest_ind(level, baseline, equal_var=False)
    interval = test.confidence_interval(confidence)
    return Estimate(
        value=value, low=float(interval.low), high=float(interval.high), confidence=confidence, n=n, unit=unit,
        method=f"{method} with {float(test.df):.3g} degrees of freedom",
    )  # fmt: skip


def fieller(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str, paired: bool = False
) -> Estimate | None:
    """Ratio of means, level over baseline, with Fieller's interval; None below two units each or for a mean of 0.

    All r for which (l - r b)^2 <= t^2 (v_l - 2 r c + r^2 v_b), v the variances of the means, c their covariance. No
    ends where the baseline's mean does not differ from 0 at this confidence: the set is then unbounded. Degrees of
    freedom: n - 1 for pairs, else Satterthwaite's of l - r b at the estimated ratio, because the spreads may differ.
    """
    n_b, n_l = len(baseline), len(level)
    mean_b = math.fsum(baseline) / n_b if n_b else 0.0
    if min(n_b, n_l) < 2 or mean_b == 0:
        return None
    mean_l = math.fsum(level) / n_l
    v_b, v_l = estimates.deviation(baseline) ** 2 / n_b, estimates.deviation(level) ** 2 / n_l
    c = float(np.cov(baseline, level)[0, 1]) / n_b if paired else 0.0
    degrees = float(n_b - 1) if paired else _satterthwaite(v_b * (mean_l / mean_b) ** 2, n_b, v_l, n_l)
    t2 = estimates.t_quantile(confidence, degrees) ** 2
    a = mean_b**2 - t2 * v_b
    half_b = mean_b * mean_l - t2 * c
    inside = half_b**2 - a * (mean_l**2 - t2 * v_l)
    n = n_b if paired else n_b + n_l
    method = f"ratio of means over {over}, Fieller's interval with {degrees:.3g} degrees of freedom"
    if a <= 0 or inside < 0:
        method = f"{method}: unbounded, the baseline's mean is not told from 0"
        return Estimate(value=mean_l / mean_b, confidence=confidence, n=n, unit="", method=method)
    ends = [(half_b + sign * math.sqrt(inside)) / a for sign in (-1, 1)]
    return Estimate(
        value=mean_l / mean_b, low=ends[0], high=ends[1], confidence=confidence, n=n, unit="", method=method
    )


def _satterthwaite(v_b: float, n_b: int, v_l: float, n_l: int) -> float:
    """Degrees of freedom of a difference of means with variances v_b and v_l; all of them where nothing varies."""
    if v_b + v_l == 0:
        return float(n_b + n_l - 2)
    return (v_b + v_l) ** 2 / (v_b**2 / (n_b - 1) + v_l**2 / (n_l - 1))


def bootstrap_ratio(
    baseline: Sequence[float], level: Sequence[float], rng: np.random.Generator, confidence: float, over: str,
    paired: bool = False, of: str = "mean",
) -> Estimate | None:  # fmt: skip
    """Ratio of means (or medians), level over baseline: scipy's percentile bootstrap; None below two units each.

    With two to five units a percentile interval is too narrow (`compare` has the figures): the method says how many.
    """
    n_b, n_l = len(baseline), len(level)
    if min(n_b, n_l) < 2:
        return None
    central = np.mean if of == "mean" else np.median
    value_b = float(central(baseline))
    if value_b == 0 or min(baseline) < 0 < max(baseline):
        return None

    def ratio(a: Numbers, b: Numbers, axis: int = -1) -> Numbers:
        return np.asarray(central(b, axis=axis) / central(a, axis=axis))

    found = stats.bootstrap(
        (np.asarray(baseline, dtype=float), np.asarray(level, dtype=float)), ratio, paired=paired, vectorized=True,
        n_resamples=RESAMPLES, confidence_level=confidence, method="percentile", rng=rng,
    )  # fmt: skip
    few = f"; {min(n_b, n_l)} units are few for it" if min(n_b, n_l) < 10 else ""
    return Estimate(
        value=float(central(level)) / value_b, low=float(found.confidence_interval.low),
        high=float(found.confidence_interval.high), confidence=confidence, n=n_b if paired else n_b + n_l, unit="",
        method=f"ratio of {of}s over {over}, percentile bootstrap of {RESAMPLES}{few}",
    )  # fmt: skip


def ratio_of_deviations(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str
) -> Estimate | None:
    """s_level / s_baseline with the interval of the F distribution (normal values); None without spread."""
    if not _enough(baseline, level) or estimates.deviation(baseline) == 0:
        return None
    value = estimates.deviation(level) / estimates.deviation(baseline)
    tail = (1 - confidence) / 2
    upper, lower = (float(stats.f.ppf(q, len(level) - 1, len(baseline) - 1)) for q in (1 - tail, tail))
    return Estimate(
        value=value, low=value / math.sqrt(upper), high=value / math.sqrt(lower), confidence=confidence,
        n=len(baseline) + len(level), unit="", method=f"ratio of standard deviations over {over}, F interval",
    )  # fmt: skip


def eta_squared(f: float, df: int, error_df: int, confidence: float, n: int) -> Estimate:
    """Partial eta squared df F / (df F + error df), with the noncentral F interval.

    Ends: L / (L + df + error df + 1), L the noncentralities for which F is the upper and the lower quantile (J. H.
    Steiger, Beyond the F test, Psychological Methods 9(2), 2004). Where both ends are 0 (a very small F), the upper is
    the value.
    """
    tail = (1 - confidence) / 2

    def limit(p: float) -> float | None:
        if not math.isfinite(f):
            return None
        if stats.f.cdf(f, df, error_df) <= p:
            return 0.0
        shift = _crossing(lambda at: float(stats.ncf.cdf(f, df, error_df, max(at, 0.0))) - p, df * f)
        return None if shift is None else max(shift, 0.0) / (max(shift, 0.0) + df + error_df + 1)

    low, high = limit(1 - tail), limit(tail)
    if low is None or high is None:
        low = high = None
    value = df * f / (df * f + error_df) if math.isfinite(f) else 1.0
    high = None if high is None else max(high, value)
    return Estimate(
        value=value, low=low, high=high, confidence=confidence, n=n, unit="",
        method="partial eta squared, noncentral F interval",
    )  # fmt: skip
