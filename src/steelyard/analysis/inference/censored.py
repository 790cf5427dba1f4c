"""Times to an event that may be censored: it did not happen while a trial was watched, so only a lower bound is known.

Survival function: E. L. Kaplan, P. Meier, Nonparametric estimation from incomplete observations, Journal of the
American Statistical Association 53, 1958. Restricted mean up to tau, the integral of that function from 0 to tau: P.
Royston, M. K. B. Parmar, Restricted mean survival time, BMC Medical Research Methodology 13, 2013. Pseudo-values of a
jackknife, which are min(time, tau) where nothing is censored before tau: P. K. Andersen, M. G. Hansen, J. P. Klein,
Regression analysis of restricted mean survival time based on pseudo-observations, Lifetime Data Analysis 10, 2004.

The normal interval with Greenwood's variance covers 81, 90 and 92% of exponential times (5, 10 and 20 starts); t on
the logit of the share of tau, which keeps within 0 and tau, 94 to 96% (docs/explanation/coverage.md). A mean of the
times that are known is never given: the others are longer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from steelyard.analysis.inference import estimates
from steelyard.heavy import np, special, stats
from steelyard.judging.t_interval import deviation, half_width
from steelyard.model.estimate import Estimate

FEWEST_FOR_RESTRICTED: Final = 5
"""Starts below which a restricted mean has no interval: it would span most of what was watched."""
ARRANGEMENTS: Final = 20_000
"""Most arrangements of starts that a permutation test counts; of more it draws as many at random."""
HALF: Final = 0.5
TIES: Final = 6
"""Decimal places of seconds to which times are equal."""


class Watched(NamedTuple):
    """A trial that was watched for an event."""

    start: str
    watched_s: float
    """How long it was watched."""
    after_s: float | None
    """When the event happened, since it was watched; None if it did not: censored."""


def survival(watched: Sequence[Watched]) -> list[tuple[float, float]]:
    """Kaplan-Meier's estimate: times, and the share in which the event happens later; from (0, 1) on."""
    known = [one.after_s for one in watched if one.after_s is not None]
    censored = [one.watched_s for one in watched if one.after_s is None]
    function = stats.ecdf(stats.CensoredData(uncensored=known, right=censored)).sf
    return [(0.0, 1.0), *zip(function.quantiles.tolist(), function.probabilities.tolist(), strict=True)]


def median(watched: Sequence[Watched]) -> float | None:
    """Where the survival function crosses one half; the middle of where it is one half. None where it does not get
    below: the event happened in at most half of the trials."""
    steps = survival(watched)
    below = next((t_s for t_s, share in steps if share < HALF and not math.isclose(share, HALF)), None)
    if below is None:
        return None
    return statistics.fmean((below, next(t_s for t_s, share in steps if share <= HALF or math.isclose(share, HALF))))


def watched_by_half(watched: Sequence[Watched]) -> float:
    """The longest time for which at least half of the trials were watched, as far as the survival function is known:
    it ends with the last trial, unless the event happened in that."""
    last = max(watched, key=lambda one: one.watched_s if one.after_s is None else one.after_s)
    half_s = statistics.median_high(one.watched_s for one in watched)
    return min(half_s, last.watched_s) if last.after_s is None else half_s


def restricted(watched: Sequence[Watched], tau_s: float) -> float:
    """The restricted mean: the integral of the survival function from 0 to `tau_s`."""
    steps = [(min(t_s, tau_s), share) for t_s, share in survival(watched)]
    ends = [*(t_s for t_s, _ in steps[1:]), tau_s]
    return math.fsum(share * (end_s - t_s) for (t_s, share), end_s in zip(steps, ends, strict=True))


def start_means(watched: Sequence[Watched], tau_s: float) -> dict[str, float]:
    """Start to the mean over its trials of their pseudo-values of the restricted mean: n times that of all trials less
    n - 1 times that without the trial."""
    n, whole = len(watched), restricted(watched, tau_s)
    starts: dict[str, list[float]] = {}
    for place, trial in enumerate(watched):
        rest = [*watched[:place], *watched[place + 1 :]]
        value = n * whole - (n - 1) * restricted(rest, tau_s) if rest else whole
        starts.setdefault(trial.start, []).append(value)
    return {start: statistics.fmean(values) for start, values in starts.items()}


def restricted_mean(watched: Sequence[Watched], tau_s: float, confidence: float) -> Estimate:
    """Mean time to the event up to `tau_s`, those beyond counted as `tau_s`, over starts: t interval on the logit of
    its share of `tau_s`."""
    means = list(start_means(watched, tau_s).values())
    value, spread = statistics.fmean(means), deviation(means)
    method, n, ends = f"restricted mean up to {tau_s:.4g} s over starts, Kaplan-Meier", len(means), None
    if n < FEWEST_FOR_RESTRICTED:
        method = f"{method}; no interval below {FEWEST_FOR_RESTRICTED} starts"
    elif spread <= estimates.ROUNDING * tau_s or not 0 < value < tau_s:
        method = f"{method}; no interval: nothing varies"
    else:
        share = value / tau_s
        half = half_width(spread, n, confidence) / tau_s / (share * (1 - share))
        low, high = (tau_s * float(special.expit(special.logit(share) + side * half)) for side in (-1, 1))
        ends, method = (low, high), f"{method}, t interval on the logit with {n - 1} degrees of freedom"
    return Estimate.of(value, ends, "s", confidence, n, method)


def difference(
    level: Sequence[Watched], baseline: Sequence[Watched], rng: np.random.Generator
) -> tuple[Estimate, float] | None:
    """Restricted mean of the level minus that of the baseline, up to where both are known, and its p by permutation of
    starts: exact over all arrangements, of which 5 against 5 have 252, so that p is 0.008 at least. None below two
    starts a side, and if a start has trials of both."""
    tau_s = min(watched_by_half(level), watched_by_half(baseline))
    both = start_means([*level, *baseline], tau_s)
    of_level, of_baseline = {one.start for one in level}, {one.start for one in baseline}
    if of_level & of_baseline or min(len(of_level), len(of_baseline)) < 2:
        return None
    # Equal times have equal values again, which sums and differences have moved apart.
    sides = [
        np.asarray([round(mean, TIES) for start, mean in both.items() if start in side])
        for side in (of_level, of_baseline)
    ]
    tested = stats.permutation_test(
        sides, lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), vectorized=True, n_resamples=ARRANGEMENTS,
        rng=rng,
    )  # fmt: skip
    value = math.fsum(
        sign * statistics.fmean(start_means(side, tau_s).values()) for side, sign in ((level, 1), (baseline, -1))
    )
    arrangements, n = math.comb(len(both), len(of_level)), f"{len(of_level)} and {len(of_baseline)} starts"
    how = f"all {arrangements} arrangements" if arrangements <= ARRANGEMENTS else f"{ARRANGEMENTS} random arrangements"
    method = f"difference of restricted means up to {tau_s:.4g} s; p by permutation of {n}, {how}"
    return Estimate.of(value, None, "s", 0.95, len(both), method), float(tested.pvalue)
