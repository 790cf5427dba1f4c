"""Means, medians, quantiles, dispersion and fences of outliers, with interval, n and method."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from steelyard.format import confidence_text
from steelyard.heavy import np, special, stats
from steelyard.judging.t_interval import FEWEST_STARTS, deviation, half_width
from steelyard.model.estimate import Estimate

WHISKER = 1.5
"""Values further than this many interquartile ranges from the quartiles are outliers (Tukey 1977)."""
ROUNDING = 1e-12
"""Logarithms that differ by less are of equal values."""
LARGEST_LOG = 600.0
"""The ends of an interval on logarithms that are exponentiated: beyond 709 a float overflows."""
FEWEST_FOR_MEDIAN = 6
"""Below six values no pair of order statistics covers the median at 95%: for five the error is 2 x 0.5^5 = 6.25%."""


def mean(values: Sequence[float], unit: str, confidence: float, over: str) -> Estimate:
    """Arithmetic mean with Student's t interval: mean +- t(n - 1) s / sqrt(n). `over` names the unit of replication.

    The ends are None for one value. Raises ValueError for none.
    """
    n = len(values)
    if not n:
        raise ValueError("the mean of no values")
    centre = math.fsum(values) / n
    if n < 2:
        return Estimate.of(centre, None, unit, confidence, n, f"one of {over}: no interval")
    method = f"mean over {over}, t interval with {n - 1} degrees of freedom"
    return Estimate.around(centre, half_width(deviation(values), n, confidence), unit, confidence, n, method)


def mean_over_starts(means: Sequence[float], unit: str, confidence: float) -> Estimate:
    """Arithmetic mean of start means of a quantity that cannot be below 0; no interval below three starts."""
    estimate = quantity(mean(means, unit, confidence, "start means"), means)
    if len(means) >= FEWEST_STARTS or estimate.low is None:
        return estimate
    return estimate.without_interval("mean over start means; fewer than three starts")


def mean_within(means: Sequence[float], unit: str, confidence: float, least: float, most: float) -> Estimate:
    """Arithmetic mean of start means of a quantity that may reach its bounds: the ends of its t interval are cut there,
    and the method says so. No interval below three starts, or where nothing varies."""
    estimate = mean(means, unit, confidence, "start means")
    if estimate.low is None or estimate.high is None or len(means) < FEWEST_STARTS:
        return estimate.without_interval("mean over start means; fewer than three starts")
    if len(set(means)) == 1:
        return estimate.without_interval("mean over start means; nothing varies")
    low, high = max(estimate.low, least), min(estimate.high, most)
    cut = [f"{end:g}" for end, was in ((low, estimate.low), (high, estimate.high)) if end != was]
    method = f"{estimate.method}, cut at {' and '.join(cut)}" if cut else estimate.method
    return estimate.model_copy(update={"low": low, "high": high, "method": method})


def by_start(values: Sequence[tuple[str, float]], unit: str, confidence: float) -> Estimate:
    """Arithmetic mean of (start, value of a trial): over start means where there are several starts, otherwise over
    trials. Of a quantity that cannot be below 0."""
    starts: dict[str, list[float]] = {}
    for start, value in values:
        starts.setdefault(start, []).append(value)
    if len(starts) > 1:
        return mean_over_starts([math.fsum(one) / len(one) for one in starts.values()], unit, confidence)
    trials = [value for _, value in values]
    return quantity(mean(trials, unit, confidence, "trials of one start"), trials)


def if_independent(estimate: Estimate, starts: int) -> Estimate:
    """The estimate over trials, with its interval only if they are independent: one per start, or all of one start.

    Over several trials of several starts a 95% interval of the median covers 55 to 84% (docs/explanation/coverage.md).
    """
    if estimate.low is None or starts in (1, estimate.n):
        return estimate
    what = estimate.method.partition(",")[0]
    return estimate.without_interval(f"{what}; {estimate.n} trials of {starts} starts are not independent")


def quantity(estimate: Estimate, values: Sequence[float]) -> Estimate:
    """The estimate of a quantity that cannot be below 0 (a time, a rate), from these values: without its interval where
    that would reach below 0 although no value does."""
    if estimate.low is None or estimate.low >= 0 or min(values) < 0:
        return estimate
    return estimate.without_interval(f"{estimate.method}, which would reach below 0")


def with_gain_error(estimate: Estimate, percent: float) -> Estimate:
    """The estimate of a quantity by a meter whose gain error has this standard uncertainty u, in percent of the value.

    It is the same in every trial and does not average out: the half widths h become sqrt(h^2 + (2 u value)^2), with the
    coverage factor 2 of a systematic contribution (JCGM 100:2008, GUM, 4.3 and G.6). An estimate without an interval
    gets none.
    """
    if not percent or estimate.low is None or estimate.high is None:
        return estimate
    gain = 2 * percent / 100 * abs(estimate.value)
    low, high = (math.hypot(end - estimate.value, gain) for end in (estimate.low, estimate.high))
    method = f"{estimate.method}, and a gain error of the meter of {percent:g}% (GUM)"
    return estimate.model_copy(update={"low": estimate.value - low, "high": estimate.value + high, "method": method})


def percent(ratio: Estimate) -> Estimate:
    """A ratio as a change in percent of the baseline."""
    return ratio.mapped(lambda one: 100 * (one - 1), "%")


def geometric_mean(
    values: Sequence[float], unit: str, confidence: float | None, over: str, fewest: int = 2
) -> Estimate:
    """Geometric mean with Student's t interval of the mean logarithm, so that no end is below 0.

    `over` names the unit of replication. `confidence` None: no interval is asked for. The arithmetic mean, without an
    interval, where a value is not above 0. The ends are None below `fewest` values, or where nothing varies. Raises
    ValueError for none.
    """
    n = len(values)
    if not n:
        raise ValueError("the mean of no values")
    if min(values) <= 0:
        method = f"mean over {over}; a value is not above 0: no interval"
        return Estimate.of(math.fsum(values) / n, None, unit, confidence or 0.95, n, method)
    logs = [math.log(value) for value in values]
    centre = math.fsum(logs) / n
    if confidence is None:
        return exponential(centre, None, unit, 0.95, n, f"geometric mean over {over}, without interval")
    spread = deviation(logs) if n > 1 else 0.0
    if n < max(fewest, 2) or spread <= ROUNDING:
        why = "nothing varies" if n >= max(fewest, 2) else f"fewer than {max(fewest, 2)}"
        return exponential(centre, None, unit, confidence, n, f"geometric mean over {over}; {why}: no interval")
    method = f"geometric mean over {over}, t interval on logarithms with {n - 1} degrees of freedom"
    return exponential(centre, half_width(spread, n, confidence), unit, confidence, n, method)


def exponential(log: float, half: float | None, unit: str, confidence: float, n: int, method: str) -> Estimate:
    """exp of an estimate of a logarithm and of the ends of its interval, `log` - `half` and `log` + `half`; `half`
    None: it has no interval."""
    ends = None if half is None else (math.exp(max(log - half, -LARGEST_LOG)), math.exp(min(log + half, LARGEST_LOG)))
    return Estimate.of(math.exp(log), ends, unit, confidence, n, method)


def mean_z(values: Sequence[float], unit: str, confidence: float, over: str) -> Estimate:
    """Arithmetic mean with the normal interval, mean +- z s / sqrt(n), z = 1.96 at 95%, as chekkilla2016 printed it.

    For replication only: it takes s as known, so it covers 70% with two values, 88% with five, 92% with ten, 94% with
    twenty, not 95%, and its method says that the form is the publication's. Otherwise as `mean`.
    """
    estimate = mean(values, unit, confidence, over)
    if estimate.low is None:
        return estimate
    z = float(special.ndtri(0.5 + confidence / 2))
    half = z * deviation(values) / math.sqrt(estimate.n)
    method = f"mean over {over}, z interval ({z:.2f} standard errors), as published: too narrow for few values"
    return estimate.model_copy(update={"low": estimate.value - half, "high": estimate.value + half, "method": method})


def satterthwaite(parts: Sequence[float], sizes: Sequence[int]) -> float:
    """Degrees of freedom of a sum of independent means, whose variances (s^2 / n) are `parts` and units `sizes`.

    Satterthwaite's (B. L. Welch, Biometrika 34, 1947), but at most those of equal spreads: (sum 1/n)^2 / sum 1 / (n^2
    (n - 1)). For equal numbers this changes nothing. For unequal ones it avoids overconfidence in a small sample whose
    spread is small by chance: identical systems with 2 against 5, 2 against 10 and 3 against 20 starts were called
    different 6%, 10% and 7% of the time, now 2%, 0.5% and 3% (docs/explanation/coverage.md).
    """
    if math.fsum(parts) == 0:
        return float(sum(sizes) - len(sizes))
    degrees = math.fsum(parts) ** 2 / math.fsum(one**2 / (n - 1) for one, n in zip(parts, sizes, strict=True))
    if len(set(sizes)) == 1:
        return degrees
    return min(degrees, math.fsum(1 / n for n in sizes) ** 2 / math.fsum(1 / (n**2 * (n - 1)) for n in sizes))


def degrees_text(degrees: float) -> str:
    """Degrees of freedom: `11`, or `8.3` where they are not whole."""
    return f"{degrees:.0f}" if degrees == round(degrees) else f"{degrees:.1f}"


def median_rank(n: int, confidence: float) -> int | None:
    """The largest k for which [x(k), x(n + 1 - k)] covers the median with at least this confidence; None if none does.

    P(fewer than k values below the median) is binomial(n, 1/2), whatever the distribution: David and Nagaraja, Order
    Statistics, 3rd edition, section 7.1.
    """
    k = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))
    while k > 0 and 2 * float(stats.binom.cdf(k - 1, n, 0.5)) > 1 - confidence:
        k -= 1
    return k if k > 0 else None


@functools.lru_cache(maxsize=1024)
def median_ranks(n: int, confidence: float) -> tuple[int, float] | None:
    """(k, share): the interval's lower end lies `share` of the way from x(k) to x(k + 1), the upper as far from above.

    Whole ranks would cover 97%, 98% or 99%, as n falls. With g(k) what ranks k and n + 1 - k cover and I = (g(k) -
    confidence) / (g(k) - g(k + 1)), the share is (n - k) I / (k + (n - 2 k) I): T. P. Hettmansperger, S. J. Sheather,
    Confidence intervals based on interpolated order statistics, Statistics & Probability Letters 4, 1986; that it
    hardly depends on the distribution: J. Nyblom, the same 14, 1992. None if `median_rank` is.
    """
    k = median_rank(n, confidence)
    if k is None:
        return None
    outer, inner = (1 - 2 * float(stats.binom.cdf(rank - 1, n, 0.5)) for rank in (k, k + 1))
    beyond = (outer - confidence) / (outer - inner)
    return k, (n - k) * beyond / (k + (n - 2 * k) * beyond)


def median(values: Sequence[float], unit: str, confidence: float, over: str = "trials") -> Estimate:
    """Median of independent values with the interval of interpolated order statistics; no ends below six (at 95%).

    Simulated, it covers 94.3 to 95.3% of normal, uniform, exponential, t(3) and lognormal values from 6 on, and 93 to
    95.5% where two modes lie apart.
    """
    n = len(values)
    ordered = sorted(float(value) for value in values)
    centre = quantile(ordered, 0.5)
    ranks = median_ranks(n, confidence) if n >= FEWEST_FOR_MEDIAN else None
    if ranks is None:
        method = f"median of {over}; {n} are too few for an interval at {confidence_text(confidence)}"
        return Estimate.of(centre, None, unit, confidence, n, method)
    k, share = ranks
    low, high = ((1 - share) * side[k - 1] + share * side[k] for side in (ordered, ordered[::-1]))
    method = f"median, order statistics {k} to {k + 1} and {n - k} to {n + 1 - k} of {n} {over}, interpolated"
    return Estimate.of(centre, (low, high), unit, confidence, n, method)


def quantile(values: Sequence[float], fraction: float) -> float:
    """Quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan 1996)."""
    return float(np.quantile(np.asarray(values, dtype=float), fraction))


def whiskers(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest value that are no outliers: within WHISKER interquartile ranges of the quartiles."""
    q1, q3 = quantile(values, 0.25), quantile(values, 0.75)
    reach = WHISKER * (q3 - q1)
    inside = [value for value in values if q1 - reach <= value <= q3 + reach]
    return min(inside, default=q1), max(inside, default=q3)


def standard_deviation(values: Sequence[float], unit: str, confidence: float, over: str = "trials") -> Estimate | None:
    """With n - 1; interval (n - 1) s^2 / chi-squared quantiles, for normal values, none where nothing varies; None
    below two values.

    With heavier tails than the normal distribution the interval is too narrow.
    """
    n = len(values)
    if n < 2:
        return None
    value, (low, high) = deviation(values), of_deviation(n - 1, confidence)
    if value == 0:
        return Estimate.of(
            value, None, unit, confidence, n, f"standard deviation over {over}; nothing varies: no interval"
        )
    method = f"standard deviation over {over} (n - 1), chi-squared interval of normal values"
    return Estimate.of(value, (value * low, value * high), unit, confidence, n, method)


@functools.lru_cache(maxsize=1024)
def of_deviation(degrees: float, confidence: float) -> tuple[float, float]:
    """Ends of the interval of a standard deviation of normal values, over the standard deviation: chi-squared."""
    tail = (1 - confidence) / 2
    low, high = (math.sqrt(degrees / float(special.chdtri(degrees, p))) for p in (tail, 1 - tail))
    return low, high


def quartile(values: Sequence[float], fraction: float, unit: str, confidence: float, over: str = "trials") -> Estimate:
    """A quantile with order statistics as its interval, whatever the distribution.

    Ends x(r) and x(s): the largest r with P(Binomial(n, fraction) < r) <= tail and the smallest s with P(Binomial(n,
    fraction) >= s) <= tail (H. A. David, H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1); none if n is
    too small for either, for quartiles at 95% below 13.
    """
    n = len(values)
    ordered = sorted(float(value) for value in values)
    value = quantile(ordered, fraction)
    low, high = _ranks(n, fraction, confidence)
    name = f"{fraction:.0%} quantile over {over}"
    if low is None or high is None:
        method = f"{name}; {n} are too few for an interval at {confidence_text(confidence)}"
        return Estimate.of(value, None, unit, confidence, n, method)
    method = f"{name}, order statistics {low} and {high} of {n} (binomial)"
    return Estimate.of(value, (ordered[low - 1], ordered[high - 1]), unit, confidence, n, method)


@functools.lru_cache(maxsize=1024)
def _ranks(n: int, fraction: float, confidence: float) -> tuple[int | None, int | None]:
    """(r, s) of the interval of a quantile of n values, from 1; None if n is too small."""
    tail, ranks = (1 - confidence) / 2, np.arange(1, n + 1)
    low = ranks[stats.binom.cdf(ranks - 1, n, fraction) <= tail]
    high = ranks[stats.binom.sf(ranks - 1, n, fraction) <= tail]
    return (int(low[-1]) if len(low) else None), (int(high[0]) if len(high) else None)


def share(happened: int, n: int, confidence: float, over: str = "trials") -> Estimate:
    """Fraction of n independent units, with the interval of C. J. Clopper and E. S. Pearson (Biometrika 26, 1934),
    which covers at least as often as it promises: of 0 in 5 it ends at 52%."""
    ends = stats.binomtest(happened, n).proportion_ci(confidence_level=confidence, method="exact")
    method = f"Clopper-Pearson interval over {over}"
    return Estimate.of(happened / n, (float(ends.low), float(ends.high)), "", confidence, n, method)


def extreme(value: float, n: int, unit: str, confidence: float, what: str, over: str = "trials") -> Estimate:
    """Least, greatest or range, as measured: no interval, because more trials only push it outwards."""
    method = f"{what} of {n} {over}, as measured; no interval: more of them only push it outwards"
    return Estimate.of(value, None, unit, confidence, n, method)
