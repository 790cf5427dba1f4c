"""Effect sizes of two samples, each with an interval; plain numbers, no trials.

A sample is one number per unit (a start's mean, or a trial); the caller names the unit (`over`). Paired samples
have one pair per unit, in the same order.

The coverage of each interval was simulated: docs/explanation/coverage.md. With too few units for the nominal coverage
there are no ends, and `method` says why.

Cohen's d with its standardiser: J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed. 1988, p. 44
(srinadhuni2018 uses the same). Hedges' g: L. V. Hedges, Distribution theory for Glass's estimator of effect size,
Journal of Educational Statistics 6(2), 1981. Their intervals by noncentral t: K. Kelley, Confidence intervals for
standardized effect sizes, Journal of Statistical Software 20(8), 2007, with the error and the degrees of freedom of
spreads that differ: M. Delacre, D. Lakens, C. Ley, L. Liu, C. Leys, Why Hedges' g*s based on the non-pooled standard
deviation should be reported with Welch's t-test, 2021 (doi 10.31234/osf.io/tu6mp); paired: J. Algina, H. J. Keselman,
Approximate confidence intervals for effect sizes, Educational and Psychological Measurement 63, 2003. Cliff's delta: N.
Cliff, Dominance statistics, Psychological Bulletin 114, 1993; its interval: R. G. Newcombe, Confidence intervals for an
effect size measure based on the Mann-Whitney statistic, part 2, Statistics in Medicine 25, 2006, method 5. Ratio of
means: E. C. Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16, 1954;
bootstrap-t: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap, 1993, section 12.5. Ratio of medians: R. M.
Price, D. G. Bonett, Distribution-free confidence intervals for difference and ratio of medians, Journal of Statistical
Computation and Simulation 72, 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from steelyard.analysis.inference import estimates, gaps
from steelyard.analysis.inference.gaps import Gap
from steelyard.heavy import np, optimize, special, stats
from steelyard.model.estimate import Estimate

RESAMPLES = 2000
"""Draws of a bootstrap."""
FEWEST_FOR_BOOTSTRAP = 5
"""Units a side. Of four the bootstrap-t interval covers 94 to 96%, but is two or three times as wide as need be."""
FEWEST_PAIRS_FOR_D = 3
"""With two pairs the interval of a paired standardised difference covers 91%."""
FEWEST_FOR_DELTA = 4
"""Units a side. Of three the interval of Cliff's delta covers 90% of equal systems: there are 20 orders in all."""
FEWEST_FOR_MEDIANS = 4
"""Units a side of a ratio of medians."""
MOST_CV = 0.1
"""Above it times are too skew for the F interval of a ratio of standard deviations: at a coefficient of variation of
20% it covers 92% of lognormal values, at 30% 88%."""
STEP_ASIDE = 1e-9
WIDEST = 1e6
"""Noncentrality at which the search for an end of an interval gives up."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"
Places: TypeAlias = Sequence[Sequence[float]] | None
"""Of pairs: the places of both sides within their blocks, which leave the error as in `gaps.in_blocks`."""


def cohens_d(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str, paired: bool = False,
    places: Places = None,
) -> Estimate | None:  # fmt: skip
    """(mean(level) - mean(baseline)) / sqrt((s_b^2 + s_l^2) / 2); None below two units each or without any spread."""
    if not _enough(baseline, level):
        return None
    v_b, v_l = estimates.deviation(baseline) ** 2, estimates.deviation(level) ** 2
    degrees = (v_b + v_l) ** 2 / (v_b**2 / (len(baseline) - 1) + v_l**2 / (len(level) - 1))
    by = Standardiser(math.sqrt((v_b + v_l) / 2), degrees, 1.0, f"Cohen's d over {over}")
    return _standardised(baseline, level, by, confidence, paired, places)


def hedges_g(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str, paired: bool = False,
    places: Places = None,
) -> Estimate | None:  # fmt: skip
    """Difference of means over the pooled sd, times J(df) = G(df/2) / (sqrt(df/2) G((df - 1)/2)).

    None as Cohen's d, and of two pairs: J(1) is 0.

    Pooled: s^2 = ((n_b - 1) s_b^2 + (n_l - 1) s_l^2) / (n_b + n_l - 2); pairs: the average, df = n - 1. The interval is
    that of the standardised difference in the population, which g estimates without bias.
    """
    if not _enough(baseline, level) or (paired and len(baseline) < 3):
        return None
    n_b, n_l = len(baseline), len(level)
    v_b, v_l = estimates.deviation(baseline) ** 2, estimates.deviation(level) ** 2
    sums = (n_b - 1) * v_b, (n_l - 1) * v_l
    degrees = sum(sums) ** 2 / ((n_b - 1) * v_b**2 + (n_l - 1) * v_l**2)
    factor = correction(n_b - 1 if paired else n_b + n_l - 2)
    by = Standardiser(math.sqrt(sum(sums) / (n_b + n_l - 2)), degrees, factor, f"Hedges' g over {over}")
    return _standardised(baseline, level, by, confidence, paired, places)


@dataclass(frozen=True)
class Standardiser:
    """Denominator of a standardised difference, its degrees of freedom, and its bias correction."""

    sd: float
    degrees: float
    """Satterthwaite's degrees of freedom of the squared `sd`."""
    factor: float
    name: str


def correction(degrees: float) -> float:
    """Hedges' exact bias correction J of a standardised difference."""
    if degrees <= 1:
        return 0.0
    return math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)


def _enough(baseline: Sequence[float], level: Sequence[float]) -> bool:
    return min(len(baseline), len(level)) >= 2 and _average_sd(baseline, level) > 0


def _average_sd(baseline: Sequence[float], level: Sequence[float]) -> float:
    return math.sqrt((estimates.deviation(baseline) ** 2 + estimates.deviation(level) ** 2) / 2)


def _standardised(
    baseline: Sequence[float], level: Sequence[float], by: Standardiser, confidence: float, paired: bool, places: Places
) -> Estimate:
    """Difference of means over the standardiser; limits of the population's by noncentral t.

    Two samples: t = difference / sqrt(s_b^2 / n_b + s_l^2 / n_l), the standardiser's degrees of freedom; its error over
    the standardiser turns noncentralities into standard deviations. Spreads may differ; for equal ones and equal
    numbers it is Kelley's, except for the degrees of freedom, which are those of the observed spreads. Pairs: the
    error of the paired difference and its degrees of freedom; wide where pairs hardly agree and the effect is large.
    """
    n_b, n_l = len(baseline), len(level)
    value = (math.fsum(level) / n_l - math.fsum(baseline) / n_b) / by.sd
    error, degrees = error_of_difference(baseline, level, paired, places)
    if not paired:
        degrees = by.degrees
    scale, n = error / by.sd, n_b if paired else n_b + n_l
    limits = None
    if paired and n_b < FEWEST_PAIRS_FOR_D:
        method = f"{by.name}; {n_b} pairs are too few for an interval"
    else:
        limits = noncentral_limits(value / scale, degrees, confidence) if scale > 0 else None
        method = f"{by.name}, noncentral t interval with {degrees:.3g} degrees of freedom{', paired' if paired else ''}"
        if limits is None:
            method = f"{by.name}; no interval: the difference is too far beyond the spread"
    low, high = (None, None) if limits is None else (limits[0] * scale, limits[1] * scale)
    return Estimate(value=by.factor * value, low=low, high=high, confidence=confidence, n=n, unit="", method=method)


def noncentral_limits(t: float, degrees: float, confidence: float) -> tuple[float, float] | None:
    """The noncentralities for which t is the upper and the lower quantile; None where they cannot be computed."""
    if abs(t) > WIDEST:
        return None  # scipy would sum for minutes
    tail = (1 - confidence) / 2
    low = _crossing(lambda shift: _below(t, degrees, shift) - (1 - tail), t)
    high = _crossing(lambda shift: _below(t, degrees, shift) - tail, t)
    return None if low is None or high is None else (low, high)


def _below(t: float, degrees: float, shift: float) -> float:
    """P(T < t) of noncentral t; scipy gives NaN for values near 0 or 1 where `t` and `shift` differ in sign."""
    probability = float(special.nctdtr(degrees, shift, t))
    if math.isnan(probability) and t * shift < 0:
        return 0.0 if shift > t else 1.0
    return probability


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
    try:
        return float(optimize.brentq(falls, low, high, xtol=1e-10))
    except ValueError:  # NaN on the way
        return None


def cliffs_delta(baseline: Sequence[float], level: Sequence[float], confidence: float, over: str) -> Estimate | None:
    """P(level > baseline) - P(level < baseline); None below two units each. Pairs are treated as independent samples.

    Interval (Newcombe 2006, method 5), with p = (delta + 1) / 2: all p for which (p - observed)^2 <= z^2 V(p), V(p) =
    p (1 - p) (1 + m ((1 - p) / (2 - p) + p / (1 + p))) / (n_b n_l), m = (n_b + n_l) / 2 - 1. No ends below
    FEWEST_FOR_DELTA units each. With unequal numbers it takes equal spreads.
    """
    n_b, n_l = len(baseline), len(level)
    if min(n_b, n_l) < 2:
        return None
    dominance = np.sign(np.subtract.outer(np.asarray(level, dtype=float), np.asarray(baseline, dtype=float)))
    delta = float(dominance.mean())
    low = high = None
    if min(n_b, n_l) >= FEWEST_FOR_DELTA:
        low, high = (2 * end - 1 for end in _newcombe((delta + 1) / 2, n_b, n_l, confidence))
        method = f"Cliff's delta over {over}, interval of Newcombe"
    else:
        method = f"Cliff's delta over {over}; no interval below {FEWEST_FOR_DELTA} units each"
    return Estimate(value=delta, low=low, high=high, confidence=confidence, n=n_b + n_l, unit="", method=method)


def _newcombe(observed: float, n_b: int, n_l: int, confidence: float) -> tuple[float, float]:
    z, more = float(special.ndtri(0.5 + confidence / 2)), (n_b + n_l) / 2 - 1

    def beyond(p: float) -> float:
        variance = p * (1 - p) * (1 + more * ((1 - p) / (2 - p) + p / (1 + p))) / (n_b * n_l)
        return abs(p - observed) - z * math.sqrt(variance)

    # `beyond` is negative at the observed value, except at 0 and 1, where it is 0: hence a small step.
    low = 0.0 if observed == 0 else float(optimize.brentq(beyond, 0.0, min(observed, 1 - STEP_ASIDE)))
    high = 1.0 if observed == 1 else float(optimize.brentq(beyond, max(observed, STEP_ASIDE), 1.0))
    return low, high


def difference(
    baseline: Sequence[float], level: Sequence[float], unit: str, confidence: float, over: str, paired: bool = False,
    places: Places = None,
) -> Estimate | None:  # fmt: skip
    """Mean of level minus mean of baseline: Student's t of pairs, or Welch's; None below two units each.

    As scipy.stats.ttest_rel and ttest_ind, except for Welch's degrees of freedom with unequal numbers of units
    (`estimates.satterthwaite`).
    """
    if min(len(baseline), len(level)) < 2:
        return None
    gap = _gap(baseline, level, paired, places)
    n = len(baseline) if paired else len(baseline) + len(level)
    kind = "paired t interval" if paired else "Welch's t interval"
    method = f"difference of means over {over}, {kind}"
    error, degrees = gap.error()
    if error == 0:
        method = f"{method}; no interval: nothing varies"
        return Estimate(value=gap.value, confidence=confidence, n=n, unit=unit, method=method)
    half = gap.half(confidence)
    return Estimate(
        value=gap.value, low=gap.value - half, high=gap.value + half, confidence=confidence, n=n, unit=unit,
        method=f"{method} with {degrees:.3g} degrees of freedom",
    )  # fmt: skip


def error_of_difference(
    baseline: Sequence[float], level: Sequence[float], paired: bool, places: Places = None
) -> tuple[float, float]:
    """(standard error, degrees of freedom) of the difference of two means, of pairs or of two samples (Welch)."""
    return _gap(baseline, level, paired, places).error()


def _gap(baseline: Sequence[float], level: Sequence[float], paired: bool, places: Places) -> Gap:
    sides, weights = [baseline, level], [-1.0, 1.0]
    return gaps.in_blocks(sides, weights, places) if paired else gaps.of_samples(sides, weights)


def p_of_difference(
    baseline: Sequence[float], level: Sequence[float], paired: bool, places: Places = None
) -> float:  # fmt: skip
    """Two-sided p that the means are equal, by the test whose interval `difference` gives; NaN where nothing varies."""
    gap = _gap(baseline, level, paired, places)
    return gap.p() if gap.error()[0] else math.nan


def fieller(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str, paired: bool = False,
    places: Places = None,
) -> Estimate | None:  # fmt: skip
    """Ratio of means, level over baseline, with Fieller's interval; None below two units each or for a mean of 0.

    All r for which (l - r b)^2 <= t^2 (v_l - 2 r c + r^2 v_b), v the variances of the means, c their covariance. No
    ends where the baseline's mean does not differ from 0 at this confidence: the set is then unbounded. Degrees of
    freedom: those of the paired difference, else Satterthwaite's of l - r b at the estimated ratio, because the spreads
    may differ.
    """
    n_b, n_l = len(baseline), len(level)
    mean_b = math.fsum(baseline) / n_b if n_b else 0.0
    if min(n_b, n_l) < 2 or mean_b == 0:
        return None
    mean_l = math.fsum(level) / n_l
    if paired:
        gap = _gap(baseline, level, paired, places)
        degrees = gap.error()[1]
        v_b, v_l, c = _variances_of_pairs(baseline, level, degrees, places if gap.place else None)
    else:
        v_b, v_l, c = estimates.deviation(baseline) ** 2 / n_b, estimates.deviation(level) ** 2 / n_l, 0.0
    if v_b + v_l == 0:
        n, method = n_b if paired else n_b + n_l, f"ratio of means over {over}; no interval: nothing varies"
        return Estimate(value=mean_l / mean_b, confidence=confidence, n=n, unit="", method=method)
    if not paired:
        degrees = estimates.satterthwaite((v_b * (mean_l / mean_b) ** 2, v_l), (n_b, n_l))
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


def _variances_of_pairs(
    baseline: Sequence[float], level: Sequence[float], degrees: float, places: Places
) -> tuple[float, float, float]:
    """Variances of the two means, and their covariance; the difference of the places, a line, is taken out of both."""
    y = np.asarray([baseline, level], dtype=float)
    y = y - y.mean(axis=1, keepdims=True)
    if places is not None:
        along = np.subtract(places[1], places[0])
        y -= np.outer(y @ along, along) / float(along @ along)
    of = y @ y.T / (degrees * y.shape[1])
    return float(of[0, 0]), float(of[1, 1]), float(of[0, 1])


def bootstrap_ratio(
    baseline: Sequence[float], level: Sequence[float], rng: np.random.Generator, confidence: float, over: str,
    paired: bool = False,
) -> Estimate | None:  # fmt: skip
    """Ratio of means, level over baseline, with a bootstrap-t interval; None below two units each or without a ratio.

    On logarithms: with error e = sqrt(v_b / mean_b^2 + v_l / mean_l^2) (pairs: the sd of l / mean_l - b / mean_b, over
    sqrt(n)), each draw gives t = log(ratio of the draw / ratio) / error of the draw; the ends are ratio exp(-t(upper)
    e) and ratio exp(-t(lower) e), of the quantiles of t over RESAMPLES draws. A percentile interval, which scipy has,
    covers 80% for three units, 87% for five, 91% for ten: bootstrap means vary by (n - 1) / n of what they should, and
    have no tails of t. No ends below FEWEST_FOR_BOOTSTRAP units each, or where values are not above 0.
    """
    n_b, n_l = len(baseline), len(level)
    if min(n_b, n_l) < 2 or float(np.mean(baseline)) == 0 or min(baseline) < 0 < max(baseline):
        return None
    a, b = np.asarray(baseline, dtype=float), np.asarray(level, dtype=float)
    value, n = float(b.mean() / a.mean()), n_b if paired else n_b + n_l
    method = f"ratio of means over {over}"
    why = ""
    if min(n_b, n_l) < FEWEST_FOR_BOOTSTRAP:
        why = f"no bootstrap interval below {FEWEST_FOR_BOOTSTRAP} units each"
    elif min(*a, *b) <= 0:
        why = "no bootstrap interval: a value is not above 0"
    elif (error := float(_error_of_log_ratio(a, b, paired))) == 0:
        why = "no bootstrap interval: nothing varies"
    if why:
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=f"{method}; {why}")
    drawn_a = rng.integers(0, n_b, (RESAMPLES, n_b))
    drawn_b = drawn_a if paired else rng.integers(0, n_l, (RESAMPLES, n_l))
    draws_a, draws_b = a[drawn_a], b[drawn_b]
    moved = np.log(draws_b.mean(axis=1) / draws_a.mean(axis=1) / value)
    errors = _error_of_log_ratio(draws_a, draws_b, paired)
    # A draw of only one unit has no error: its t is infinite, beyond every quantile that is used.
    t = np.divide(moved, errors, out=np.copysign(np.full(RESAMPLES, np.inf), moved), where=errors > 0)
    tail = (1 - confidence) / 2
    upper, lower = np.quantile(t, [1 - tail, tail], method="inverted_cdf")
    ends = [value * math.exp(-float(one) * error) if math.isfinite(one) else None for one in (upper, lower)]
    return Estimate(
        value=value, low=None if None in ends else ends[0], high=None if None in ends else ends[1],
        confidence=confidence, n=n, unit="",
        method=f"{method}, bootstrap-t of {RESAMPLES} draws on logarithms{', paired' if paired else ''}",
    )  # fmt: skip


def _error_of_log_ratio(a: Numbers, b: Numbers, paired: bool) -> Numbers:
    """Standard error of log(mean(b) / mean(a)) along the last axis, by the delta method."""
    relative_a, relative_b = (one / one.mean(axis=-1, keepdims=True) for one in (a, b))
    if paired:
        return np.asarray((relative_b - relative_a).std(axis=-1, ddof=1) / math.sqrt(a.shape[-1]))
    return np.asarray(np.sqrt(sum(one.var(axis=-1, ddof=1) / one.shape[-1] for one in (relative_a, relative_b))))


def ratio_of_medians(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str
) -> Estimate | None:
    """Ratio of medians, level over baseline, with the interval of Price and Bonett; None for no or a negative value.

    On logarithms: with c = max(1, round((n + 1) / 2 - sqrt(n))) and z the normal quantile of 1 - P(Binomial(n, 1/2) <
    c), the variance of a median is ((x(n - c + 1) - x(c)) / (2 z))^2; difference +- 1.96 errors. No ends below
    FEWEST_FOR_MEDIANS units each. For four to ten units it covers 96 to 98%, as c jumps; beyond, 95 to 96%.
    """
    if not baseline or not level or min(*baseline, *level) <= 0:
        return None
    value = float(np.median(level)) / float(np.median(baseline))
    n = len(baseline) + len(level)
    method = f"ratio of medians over {over}"
    if min(len(baseline), len(level)) < FEWEST_FOR_MEDIANS:
        method = f"{method}; no interval below {FEWEST_FOR_MEDIANS} units each"
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)
    error = math.sqrt(_variance_of_log_median(baseline) + _variance_of_log_median(level))
    if error == 0:
        method = f"{method}; no interval: nothing varies about the medians"
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)
    half = float(special.ndtri(0.5 + confidence / 2)) * error
    return Estimate(
        value=value, low=value * math.exp(-half), high=value * math.exp(half), confidence=confidence, n=n, unit="",
        method=f"{method}, interval of Price and Bonett",
    )  # fmt: skip


def _variance_of_log_median(values: Sequence[float]) -> float:
    n, logs = len(values), np.log(np.sort(np.asarray(values, dtype=float)))
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    z = float(special.ndtri(1 - float(stats.binom.cdf(c - 1, n, 0.5))))
    return float((logs[n - c] - logs[c - 1]) / (2 * z)) ** 2


def ratio_of_deviations(
    baseline: Sequence[float], level: Sequence[float], confidence: float, over: str
) -> Estimate | None:
    """s_level / s_baseline with the interval of the F distribution (normal values); None without spread.

    No ends where a side's coefficient of variation is above MOST_CV: such times are too skew for it.
    """
    if not _enough(baseline, level) or estimates.deviation(baseline) == 0:
        return None
    spreads = estimates.deviation(baseline), estimates.deviation(level)
    value = spreads[1] / spreads[0]
    about: dict[str, Any] = {"value": value, "confidence": confidence, "n": len(baseline) + len(level), "unit": ""}
    method = f"ratio of standard deviations over {over}"
    if any(sd > MOST_CV * abs(float(np.mean(one))) for sd, one in zip(spreads, (baseline, level), strict=True)):
        why = f"no interval: F holds for normal values, and above a variation of {MOST_CV:.0%} times are skew"
        return Estimate(**about, method=f"{method}; {why}")
    tail = (1 - confidence) / 2
    upper, lower = (float(special.fdtri(len(level) - 1, len(baseline) - 1, q)) for q in (1 - tail, tail))
    return Estimate(
        **about, low=value / math.sqrt(upper), high=value / math.sqrt(lower), method=f"{method}, F interval"
    )


def eta_squared(f: float, df: float, error_df: float, confidence: float, n: int) -> Estimate:
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
        shift = _crossing(lambda at: float(special.ncfdtr(df, error_df, max(at, 0.0), f)) - p, df * f)
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
