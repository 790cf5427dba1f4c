"""Effect sizes of two samples, each with an interval; works on plain numbers, not on trials.

The coverage of each interval was simulated: docs/explanation/coverage.md. With too few units for the nominal coverage,
an estimate has no interval, and `method` says why.

Cohen's d with its standardiser: J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed. 1988, p. 44
(also used by srinadhuni2018). Hedges' g: L. V. Hedges, Distribution theory for Glass's estimator of effect size,
Journal of Educational Statistics 6(2), 1981. Their intervals by noncentral t: K. Kelley, Confidence intervals for
standardized effect sizes, Journal of Statistical Software 20(8), 2007, with the error and the degrees of freedom for
unequal spreads: M. Delacre, D. Lakens, C. Ley, L. Liu, C. Leys, Why Hedges' g*s based on the non-pooled standard
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
from functools import cached_property
from typing import Any, TypeAlias

from steelyard.analysis.inference import estimates, gaps
from steelyard.analysis.inference.gaps import Gap
from steelyard.heavy import np, optimize, special
from steelyard.judging import t_interval
from steelyard.model.estimate import Estimate

RESAMPLES = 2000
"""Number of bootstrap draws."""
FEWEST_FOR_BOOTSTRAP = 5
"""Units per side. With four, the bootstrap-t interval covers 94 to 96% but is two or three times wider than needed."""
FEWEST_PAIRS_FOR_D = 3
"""With two pairs, the interval of a paired standardised difference covers only 91%."""
FEWEST_FOR_DELTA = 4
"""Units per side. With three, the interval of Cliff's delta covers 90% for equal systems: only 20 orders exist."""
FEWEST_FOR_MEDIANS = 4
"""Units per side for a ratio of medians."""
MOST_CV = 0.1
"""Above this coefficient of variation, times are too skewed for the F interval of a ratio of standard deviations: at
20% it covers 92% for lognormal values, at 30% only 88%."""
STEP_ASIDE = 1e-9
WIDEST = 1e6
"""Noncentrality at which the search for an end of an interval gives up."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class TwoSamples:
    """Two samples, one number per unit of each (a start's mean, or a trial)."""

    baseline: Sequence[float]
    level: Sequence[float]
    over: str
    """Name of the units, such as `starts`."""
    paired: bool = False
    """Values of the same index share a unit."""
    places: Sequence[Sequence[float]] | None = None
    """For pairs: positions of both sides within their blocks, whose effect is removed from the error
    (`gaps.in_blocks`)."""

    @property
    def fewest(self) -> int:
        """Number of units in the smaller sample."""
        return min(len(self.baseline), len(self.level))

    @property
    def n(self) -> int:
        """Number of pairs, or of units in both samples."""
        return len(self.baseline) if self.paired else len(self.baseline) + len(self.level)

    @cached_property
    def means(self) -> tuple[float, float]:
        """Means of baseline and level."""
        return math.fsum(self.baseline) / len(self.baseline), math.fsum(self.level) / len(self.level)

    @cached_property
    def variances(self) -> tuple[float, float]:
        """Sample variances (n - 1) of baseline and level."""
        return t_interval.deviation(self.baseline) ** 2, t_interval.deviation(self.level) ** 2

    @property
    def varied(self) -> bool:
        """Whether both have at least two units and there is some spread."""
        return self.fewest >= 2 and sum(self.variances) > 0

    @cached_property
    def gap(self) -> Gap:
        """Mean of the level minus mean of the baseline."""
        sides, weights = [self.baseline, self.level], [-1.0, 1.0]
        return gaps.in_blocks(sides, weights, self.places) if self.paired else gaps.of_samples(sides, weights)


def cohens_d(two: TwoSamples, confidence: float) -> Estimate | None:
    """(mean(level) - mean(baseline)) / sqrt((s_b^2 + s_l^2) / 2); None with fewer than two units each or no spread."""
    if not two.varied:
        return None
    v_b, v_l = two.variances
    degrees = (v_b + v_l) ** 2 / (v_b**2 / (len(two.baseline) - 1) + v_l**2 / (len(two.level) - 1))
    return _standardised(two, math.sqrt((v_b + v_l) / 2), degrees, 1.0, f"Cohen's d over {two.over}", confidence)


def hedges_g(two: TwoSamples, confidence: float) -> Estimate | None:
    """Difference of means over the pooled sd, times J(df) = G(df/2) / (sqrt(df/2) G((df - 1)/2)).

    None if Cohen's d is, and for two pairs, because J(1) is 0.

    Pooled: s^2 = ((n_b - 1) s_b^2 + (n_l - 1) s_l^2) / (n_b + n_l - 2); for pairs the average, df = n - 1. The interval
    is for the population's standardised difference, of which g is an unbiased estimate.
    """
    if not two.varied or (two.paired and two.n < 3):
        return None
    (v_b, v_l), n_b, n_l = two.variances, len(two.baseline), len(two.level)
    sums = (n_b - 1) * v_b, (n_l - 1) * v_l
    degrees = sum(sums) ** 2 / ((n_b - 1) * v_b**2 + (n_l - 1) * v_l**2)
    factor = correction(n_b - 1 if two.paired else n_b + n_l - 2)
    sd = math.sqrt(sum(sums) / (n_b + n_l - 2))
    return _standardised(two, sd, degrees, factor, f"Hedges' g over {two.over}", confidence)


def correction(degrees: float) -> float:
    """Hedges' exact bias correction J of a standardised difference."""
    if degrees <= 1:
        return 0.0
    return math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)


def _standardised(two: TwoSamples, sd: float, degrees: float, factor: float, name: str, confidence: float) -> Estimate:
    """Difference of means over the standardiser `sd`, with a noncentral t interval.

    `degrees`: Satterthwaite's degrees of freedom of the squared `sd`; `factor`: the bias correction.

    Two samples: t = difference / sqrt(s_b^2 / n_b + s_l^2 / n_l), with the standardiser's degrees of freedom; its error
    over the standardiser turns noncentralities into standard deviations. Spreads may differ; for equal spreads and
    sizes the interval is Kelley's, except that the degrees of freedom come from the observed spreads. Pairs: the error
    and degrees of freedom of the paired difference; the interval is wide if pairs hardly correlate and the effect is
    large.
    """
    value = (two.means[1] - two.means[0]) / sd
    error, of_pairs = two.gap.error()
    degrees, scale, ends = of_pairs if two.paired else degrees, error / sd, None
    if two.paired and two.n < FEWEST_PAIRS_FOR_D:
        method = f"{name}; {two.n} pairs are too few for an interval"
    elif limits := noncentral_limits(value / scale, degrees, confidence) if scale > 0 else None:
        ends = limits[0] * scale, limits[1] * scale
        method = (
            f"{name}, noncentral t interval with {degrees:.3g} degrees of freedom{', paired' if two.paired else ''}"
        )
    else:
        method = f"{name}; no interval: the difference is too large relative to the spread"
    return Estimate.of(factor * value, ends, "", confidence, two.n, method)


def noncentral_limits(t: float, degrees: float, confidence: float) -> tuple[float, float] | None:
    """The noncentralities for which t is the upper and the lower quantile; None if they cannot be computed."""
    if abs(t) > WIDEST:
        return None  # scipy would sum for minutes
    tail = (1 - confidence) / 2
    low = _crossing(lambda shift: _below(t, degrees, shift) - (1 - tail), t)
    high = _crossing(lambda shift: _below(t, degrees, shift) - tail, t)
    return None if low is None or high is None else (low, high)


def _below(t: float, degrees: float, shift: float) -> float:
    """P(T < t) of noncentral t; scipy gives NaN for values near 0 or 1 if `t` and `shift` differ in sign."""
    probability = float(special.nctdtr(degrees, shift, t))
    if math.isnan(probability) and t * shift < 0:
        return 0.0 if shift > t else 1.0
    return probability


def _crossing(falls: Callable[[float], float], near: float) -> float | None:
    """Zero of a decreasing function, searched outwards from `near`; None if the function cannot be computed there."""
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


def cliffs_delta(two: TwoSamples, confidence: float) -> Estimate | None:
    """P(level > baseline) - P(level < baseline); None with fewer than two units each. Pairs are treated as independent.

    Interval (Newcombe 2006, method 5), with p = (delta + 1) / 2: all p for which (p - observed)^2 <= z^2 V(p), V(p) =
    p (1 - p) (1 + m ((1 - p) / (2 - p) + p / (1 + p))) / (n_b n_l), m = (n_b + n_l) / 2 - 1. No interval
    with fewer than FEWEST_FOR_DELTA units each. Unequal sizes require equal spreads.
    """
    n_b, n_l = len(two.baseline), len(two.level)
    if two.fewest < 2:
        return None
    dominance = np.sign(np.subtract.outer(np.asarray(two.level, dtype=float), np.asarray(two.baseline, dtype=float)))
    delta, ends = float(dominance.mean()), None
    method = f"Cliff's delta over {two.over}; no interval below {FEWEST_FOR_DELTA} units each"
    if two.fewest >= FEWEST_FOR_DELTA:
        low, high = _newcombe((delta + 1) / 2, n_b, n_l, confidence)
        ends, method = (2 * low - 1, 2 * high - 1), f"Cliff's delta over {two.over}, interval of Newcombe"
    return Estimate.of(delta, ends, "", confidence, n_b + n_l, method)


def _newcombe(observed: float, n_b: int, n_l: int, confidence: float) -> tuple[float, float]:
    z, more = float(special.ndtri(0.5 + confidence / 2)), (n_b + n_l) / 2 - 1

    def beyond(p: float) -> float:
        variance = p * (1 - p) * (1 + more * ((1 - p) / (2 - p) + p / (1 + p))) / (n_b * n_l)
        return abs(p - observed) - z * math.sqrt(variance)

    # `beyond` is negative at the observed value, except at 0 and 1, where it is 0, so the search starts a step aside.
    low = 0.0 if observed == 0 else float(optimize.brentq(beyond, 0.0, min(observed, 1 - STEP_ASIDE)))
    high = 1.0 if observed == 1 else float(optimize.brentq(beyond, max(observed, STEP_ASIDE), 1.0))
    return low, high


def difference(two: TwoSamples, unit: str, confidence: float) -> Estimate | None:
    """Mean of level minus mean of baseline: paired or Welch's t interval; None with fewer than two units each.

    Equals scipy.stats.ttest_rel and ttest_ind, except for Welch's degrees of freedom with unequal sample sizes
    (`estimates.satterthwaite`).
    """
    if two.fewest < 2:
        return None
    kind = "paired t interval" if two.paired else "Welch's t interval"
    method = f"difference of means over {two.over}, {kind}"
    error, degrees = two.gap.error()
    half = two.gap.half(confidence) if error else None
    method += f" with {degrees:.3g} degrees of freedom" if error else "; no interval: nothing varies"
    return Estimate.around(two.gap.value, half, unit, confidence, two.n, method)


def p_of_difference(two: TwoSamples) -> float:
    """Two-sided p that the means are equal, by the test that matches the interval of `difference`; NaN if nothing
    varies."""
    return two.gap.p() if two.gap.error()[0] else math.nan


def fieller(two: TwoSamples, confidence: float) -> Estimate | None:
    """Ratio of means, level over baseline, with Fieller's interval; None with fewer than two units each or a mean of 0.

    All r for which (l - r b)^2 <= t^2 (v_l - 2 r c + r^2 v_b), v the variances of the means, c their covariance. No
    interval if the baseline's mean does not differ from 0 at this confidence: the set is then unbounded. Degrees of
    freedom: those of the paired difference, otherwise Satterthwaite's for l - r b at the estimated ratio, because the
    spreads may differ.
    """
    if two.fewest < 2 or two.means[0] == 0:
        return None
    (mean_b, mean_l), method, ends = two.means, f"ratio of means over {two.over}", None
    value, n_b, n_l = mean_l / mean_b, len(two.baseline), len(two.level)
    if two.paired:
        degrees = two.gap.error()[1]
        v_b, v_l, c = _variances_of_pairs(two, degrees)
    else:
        v_b, v_l, c = two.variances[0] / n_b, two.variances[1] / n_l, 0.0
    if v_b + v_l == 0:
        method = f"{method}; no interval: nothing varies"
    else:
        if not two.paired:
            degrees = estimates.satterthwaite((v_b * value**2, v_l), (n_b, n_l))
        t2 = t_interval.t_quantile(confidence, degrees) ** 2
        a, half_b = mean_b**2 - t2 * v_b, mean_b * mean_l - t2 * c
        inside = half_b**2 - a * (mean_l**2 - t2 * v_l)
        method = f"{method}, Fieller's interval with {degrees:.3g} degrees of freedom"
        if a <= 0 or inside < 0:
            method = f"{method}: unbounded, the baseline's mean is not distinguishable from 0"
        else:
            ends = (half_b - math.sqrt(inside)) / a, (half_b + math.sqrt(inside)) / a
    return Estimate.of(value, ends, "", confidence, two.n, method)


def _variances_of_pairs(two: TwoSamples, degrees: float) -> tuple[float, float, float]:
    """Variances of the two means and their covariance, after removing a linear effect of the positions from both."""
    y = np.asarray([two.baseline, two.level], dtype=float)
    y = y - y.mean(axis=1, keepdims=True)
    if two.gap.place and two.places is not None:
        along = np.subtract(two.places[1], two.places[0])
        y -= np.outer(y @ along, along) / float(along @ along)
    of = y @ y.T / (degrees * y.shape[1])
    return float(of[0, 0]), float(of[1, 1]), float(of[0, 1])


def bootstrap_ratio(two: TwoSamples, rng: np.random.Generator, confidence: float) -> Estimate | None:
    """Ratio of means, level over baseline, with a bootstrap-t interval; None with fewer than two units each or no
    ratio.

    On logarithms: with error e = sqrt(v_b / mean_b^2 + v_l / mean_l^2) (pairs: the sd of l / mean_l - b / mean_b, over
    sqrt(n)), each draw gives t = log(ratio of the draw / ratio) / error of the draw; the ends are ratio exp(-t(upper)
    e) and ratio exp(-t(lower) e), with the quantiles of t over RESAMPLES draws. scipy's percentile interval covers 80%
    for three units, 87% for five, 91% for ten: the variance of bootstrap means is (n - 1) / n of what it should be, and
    they lack the tails of t. No interval with fewer than FEWEST_FOR_BOOTSTRAP units each, or if any value is not above
    0.
    """
    if two.fewest < 2 or float(np.mean(two.baseline)) == 0 or min(two.baseline) < 0 < max(two.baseline):
        return None
    a, b = np.asarray(two.baseline, dtype=float), np.asarray(two.level, dtype=float)
    value, method = float(b.mean() / a.mean()), f"ratio of means over {two.over}"
    why = ""
    if two.fewest < FEWEST_FOR_BOOTSTRAP:
        why = f"no bootstrap interval below {FEWEST_FOR_BOOTSTRAP} units each"
    elif min(*a, *b) <= 0:
        why = "no bootstrap interval: a value is not above 0"
    elif (error := float(_error_of_log_ratio(a, b, two.paired))) == 0:
        why = "no bootstrap interval: nothing varies"
    if why:
        return Estimate.of(value, None, "", confidence, two.n, f"{method}; {why}")
    drawn_a = rng.integers(0, len(a), (RESAMPLES, len(a)))
    drawn_b = drawn_a if two.paired else rng.integers(0, len(b), (RESAMPLES, len(b)))
    draws_a, draws_b = a[drawn_a], b[drawn_b]
    moved = np.log(draws_b.mean(axis=1) / draws_a.mean(axis=1) / value)
    errors = _error_of_log_ratio(draws_a, draws_b, two.paired)
    # A draw that repeats a single unit has no error: its t is infinite, beyond every quantile in use.
    t = np.divide(moved, errors, out=np.copysign(np.full(RESAMPLES, np.inf), moved), where=errors > 0)
    tail = (1 - confidence) / 2
    upper, lower = (float(one) for one in np.quantile(t, [1 - tail, tail], method="inverted_cdf"))
    known = math.isfinite(upper) and math.isfinite(lower)
    ends = (value * math.exp(-upper * error), value * math.exp(-lower * error)) if known else None
    method += f", bootstrap-t of {RESAMPLES} draws on logarithms{', paired' if two.paired else ''}"
    return Estimate.of(value, ends, "", confidence, two.n, method)


def _error_of_log_ratio(a: Numbers, b: Numbers, paired: bool) -> Numbers:
    """Standard error of log(mean(b) / mean(a)) along the last axis, by the delta method."""
    relative_a, relative_b = (one / one.mean(axis=-1, keepdims=True) for one in (a, b))
    if paired:
        return np.asarray((relative_b - relative_a).std(axis=-1, ddof=1) / math.sqrt(a.shape[-1]))
    return np.asarray(np.sqrt(sum(one.var(axis=-1, ddof=1) / one.shape[-1] for one in (relative_a, relative_b))))


def ratio_of_medians(two: TwoSamples, confidence: float) -> Estimate | None:
    """Ratio of medians, level over baseline, with Price and Bonett's interval; None if values are missing or negative.

    On logarithms: with c = max(1, round((n + 1) / 2 - sqrt(n))) and z the normal quantile of 1 - P(Binomial(n, 1/2) <
    c), the variance of a median is ((x(n - c + 1) - x(c)) / (2 z))^2; difference +- 1.96 errors. No interval
    with fewer than FEWEST_FOR_MEDIANS units each. It covers 96 to 98% for four to ten units, because c jumps, and 95 to
    96% for more.
    """
    if not two.fewest or min(*two.baseline, *two.level) <= 0:
        return None
    log = math.log(float(np.median(two.level)) / float(np.median(two.baseline)))
    method, half = f"ratio of medians over {two.over}", None
    if two.fewest < FEWEST_FOR_MEDIANS:
        method = f"{method}; no interval below {FEWEST_FOR_MEDIANS} units each"
    elif error := math.sqrt(_variance_of_log_median(two.baseline) + _variance_of_log_median(two.level)):
        half, method = float(special.ndtri(0.5 + confidence / 2)) * error, f"{method}, interval of Price and Bonett"
    else:
        method = f"{method}; no interval: nothing varies about the medians"
    return estimates.exponential(log, half, "", confidence, len(two.baseline) + len(two.level), method)


def _variance_of_log_median(values: Sequence[float]) -> float:
    n, logs = len(values), np.log(np.sort(np.asarray(values, dtype=float)))
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    z = float(special.ndtri(1 - float(special.bdtr(c - 1, n, 0.5))))
    return float((logs[n - c] - logs[c - 1]) / (2 * z)) ** 2


def ratio_of_deviations(two: TwoSamples, confidence: float) -> Estimate | None:
    """s_level / s_baseline with the F interval, which assumes normal values; None without spread.

    No interval if either coefficient of variation is above MOST_CV: such times are too skewed for it.
    """
    if not two.varied or two.variances[0] == 0:
        return None
    spreads = [math.sqrt(variance) for variance in two.variances]
    value, n, method = spreads[1] / spreads[0], len(two.baseline) + len(two.level), "ratio of standard deviations"
    if any(sd > MOST_CV * abs(mean) for sd, mean in zip(spreads, two.means, strict=True)):
        why = f"no interval: F assumes normal values, and times are skewed above a variation of {MOST_CV:.0%}"
        return Estimate.of(value, None, "", confidence, n, f"{method} over {two.over}; {why}")
    tail, degrees = (1 - confidence) / 2, (len(two.level) - 1, len(two.baseline) - 1)
    low, high = (value / math.sqrt(float(special.fdtri(*degrees, q))) for q in (1 - tail, tail))
    return Estimate.of(value, (low, high), "", confidence, n, f"{method} over {two.over}, F interval")


def eta_squared(f: float, df: float, error_df: float, confidence: float, n: int) -> Estimate:
    """Partial eta squared df F / (df F + error df), with the noncentral F interval.

    Ends: L / (L + df + error df + 1), L the noncentralities for which F is the upper and the lower quantile (J. H.
    Steiger, Beyond the F test, Psychological Methods 9(2), 2004). If both ends are 0 (a very small F), the upper is
    the value.
    """
    tail = (1 - confidence) / 2

    def limit(p: float) -> float | None:
        if not math.isfinite(f):
            return None
        if special.fdtr(df, error_df, f) <= p:
            return 0.0
        shift = _crossing(lambda at: float(special.ncfdtr(df, error_df, max(at, 0.0), f)) - p, df * f)
        return None if shift is None else max(shift, 0.0) / (max(shift, 0.0) + df + error_df + 1)

    low, high = limit(1 - tail), limit(tail)
    value = df * f / (df * f + error_df) if math.isfinite(f) else 1.0
    ends = None if low is None or high is None else (low, max(high, value))
    return Estimate.of(value, ends, "", confidence, n, "partial eta squared, noncentral F interval")
