"""Change-point detection by rank CUSUM, with p-values that hold for autocorrelated series.

Binary segmentation by ranks. The statistic of a place k with at least two values on each side is the difference of the
mean ranks before and after it, in standard errors; the largest is compared with series of this length without a change
(A. N. Pettitt, A non-parametric approach to the change-point problem, Journal of the Royal Statistical Society C 28(2),
1979, with the weighting of D. M. Hawkins, Testing a sequence of observations for a shift in location, Journal of the
American Statistical Association 72, 1977). Each side of a change is then searched on its own, as E-divisive does (D. S.
Matteson, N. A. James, Journal of the American Statistical Association 109, 2014; D. Daly et al., The use of change
point detection to identify software performance regressions, ICPE 2020). Ranks, because one outlier is not a change of
level.

Reference series without a change: permutations for trials and starts. Consecutive seconds are correlated, and against
permutations almost any series would show a change; they are compared with first-order autoregressions of the same
correlation (M. Robbins, C. Gallagher, R. Lund, A. Aue, Mean shift testing in correlated data, Journal of Time
Series Analysis 32(5), 2011), long ones as means of as many seconds as leave about `MOST_VALUES` of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from steelyard.heavy import np, signal, stats

ALPHA = 0.01
"""Level of each search: strict, because every series of a study is looked at."""
FEWEST = 6
"""With fewer values no p is below 1%: a series and its reverse count as one, 2 / 5! = 1.7%."""
LEAST_SIDE = 2
"""Minimum number of values on either side of a change."""
DRAWS = 1999
"""Number of reference series without a change."""
SEED = 20261121
"""Seed of these series: the reference distribution of a length is the same in every report."""
MOST_CHANGES = 8
"""Most changes of one series; more are a trend, not steps."""
MOST_VALUES = 120
EXACT = 24
"""Longer series use the reference distribution of a rounded length, which changes little with length."""
STEP = 0.05
"""Correlations are rounded up to multiples of it, so that few reference distributions are needed."""
HIGHEST = 0.95
"""Cap of the correlation: seconds more correlated than this never show a level."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Change:
    """A change of level after the first `after` values of a series; `p` is that of its search."""

    after: int
    p: float


def changes(values: Sequence[float], r: float = 0.0, alpha: float = ALPHA) -> tuple[Change, ...]:
    """Change points, in order; empty below `FEWEST` values. `r`: correlation of neighbours (0: exchangeable)."""
    detected: list[Change] = []
    waiting = [(0, len(values))]
    y = np.asarray(values, dtype=float)
    while waiting and len(detected) < MOST_CHANGES:
        low, high = waiting.pop(0)
        if high - low < FEWEST:
            continue
        place, p = greatest(y[low:high], r)
        if p < alpha:
            detected.append(Change(low + place, p))
            waiting += [(low, low + place), (low + place, high)]
    return tuple(sorted(detected, key=lambda one: one.after))


def greatest(values: Numbers, r: float = 0.0) -> tuple[int, float]:
    """(k, p): the place at which the mean ranks before and after differ most, and its p-value."""
    place, height = _highest(values)
    return place, _share_beyond(_null(_length(len(values)), r)[0], height) if height > 0 else 1.0


def trend(values: Sequence[float], r: float = 0.0) -> tuple[float, float]:
    """Spearman's correlation with the order, and its p-value; (0, 1) below `FEWEST` values."""
    if len(values) < FEWEST or len(set(values)) == 1:
        return 0.0, 1.0
    rho = float(_order_correlation(np.asarray(stats.rankdata(values))[None, :])[0])
    return rho, _share_beyond(_null(_length(len(values)), r)[1], abs(rho))


def _length(n: int) -> int:
    """The length whose reference distribution is used for n: itself up to 24, then the nearest tenth, rounded."""
    if n <= EXACT:
        return n
    step = 5 if n <= 60 else 10
    return step * round(n / step)


def _share_beyond(null: Numbers, height: float) -> float:
    return (len(null) - int(np.searchsorted(null, height - 1e-9)) + 1) / (len(null) + 1)


def _highest(values: Numbers) -> tuple[int, float]:
    ranks = np.asarray(stats.rankdata(values))
    if ranks.std() == 0:
        return LEAST_SIDE, 0.0
    heights = _heights(ranks[None, :])[0]
    best = int(np.argmax(heights))
    return best + LEAST_SIDE, float(heights[best])


def _heights(ranks: Numbers) -> Numbers:
    """For each row: |sum of the first k ranks - k mean| / sqrt(k (n - k) / n) / sd, k = 2 .. n - 2."""
    n = ranks.shape[1]
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    k = np.arange(LEAST_SIDE, n - LEAST_SIDE + 1)
    sums = np.abs(np.cumsum(centred, axis=1)[:, k - 1])
    return np.asarray(sums / np.sqrt(k * (n - k) / n) / centred.std(axis=1, keepdims=True))


def _order_correlation(ranks: Numbers) -> Numbers:
    """For each row: correlation of its ranks with their places."""
    n = ranks.shape[1]
    order = np.arange(n) - (n - 1) / 2
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    return np.asarray(centred @ order / (n * order.std() * centred.std(axis=1)))


@lru_cache(maxsize=1024)
def _null(n: int, r: float) -> tuple[Numbers, Numbers]:
    """Greatest heights, and absolute correlations with the order, of series of n values without a change; sorted."""
    rng = np.random.default_rng([SEED, n, round(1000 * r)])
    series = rng.standard_normal((DRAWS, n))
    if r > 0:
        # The first value has the stationary variance, so the series is stationary from its beginning.
        series[:, 1:] *= math.sqrt(1 - r**2)
        series = np.asarray(signal.lfilter([1.0], [1.0, -r], series, axis=1))
    ranks = np.argsort(np.argsort(series, axis=1), axis=1) + 1.0
    return np.sort(_heights(ranks).max(axis=1)), np.sort(np.abs(_order_correlation(ranks)))


def likeness(values: Sequence[float]) -> float:
    """Correlation of neighbours, after the largest change of level is taken out; rounded up to a `STEP`.

    r = sum e(t) e(t + 1) / sum e(t)^2 falls short by about (1 + 4 r) / n for each of the two means that are taken out
    (M. G. Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41, 1954); that is added. Between 0
    and `HIGHEST`.
    """
    y = np.asarray(values, dtype=float)
    n = len(y)
    if n < FEWEST:
        return 0.0
    place, height = _highest(y)
    if not height:
        return 0.0
    left = np.concatenate([y[:place] - y[:place].mean(), y[place:] - y[place:].mean()])
    squares = float(left @ left)
    if squares == 0:
        return 0.0
    r = float(left[:-1] @ left[1:]) / squares
    r = r + 2 * (1 + 4 * max(r, 0.0)) / n
    return min(math.ceil(max(r, 0.0) / STEP - 1e-9) * STEP, HIGHEST)


def batch_means(values: Sequence[float]) -> tuple[list[float], int]:
    """(means, b): means of b neighbours each, b the smallest that leaves `MOST_VALUES` at most.

    Values behind the last whole batch are left out.
    """
    b = max(1, math.ceil(len(values) / MOST_VALUES))
    whole = len(values) // b
    return [float(one) for one in np.asarray(values[: whole * b], dtype=float).reshape(whole, b).mean(axis=1)], b
