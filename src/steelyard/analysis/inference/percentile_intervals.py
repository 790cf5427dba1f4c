"""Percentiles within one trial, with intervals from the effective number of operations.

If operations were independent, the number of them at or below the true q-quantile would be binomial(n, q), whatever the
distribution, and a pair of order statistics covers it (David and Nagaraja, Order Statistics, 3rd edition, section 7.1).
They are not: a pause of a collector delays all that are in flight. So the share of operations at or below the quantile
is taken as a ratio over parts of time (a cluster sample), whose variance says how many independent operations the count
is worth; binomial limits of that count bound the share (Korn and Graubard 1998, Survey Methodology 24(2)), and the
histogram turns shares into times (Woodruff 1952, JASA 47). Too few parts of time say nothing of that, so there is no
interval: docs/reference/numbers/response-time.md has the simulation by which it was chosen.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence

from steelyard.format import count
from steelyard.heavy import np, special
from steelyard.model import histogram, percentiles
from steelyard.model.estimate import Estimate
from steelyard.model.histogram import Bucket
from steelyard.model.percentiles import supported

PARTS = 20
"""Parts of time per trial: with more, neighbours are more correlated; with fewer, the variance is less certain."""
FEWEST_PARTS = 12
"""With fewer parts their variance is too uncertain, and there is no interval."""
NS_PER_MS = 1e6


def quantile(
    buckets: Sequence[Bucket], q: float, parts: Sequence[tuple[int, int]] = (), confidence: float = 0.95
) -> Estimate | None:
    """The q-quantile of a histogram of nanoseconds, in milliseconds; None if the count does not support it.

    `buckets` in order of value. `parts`: operations, and those of them at or below the quantile's bucket, in equal
    parts of the trial's time (see `below`). Ends are the outer bounds of buckets, so the buckets' width is inside; None
    where the count has no order statistic that far out, and both None below FEWEST_PARTS.
    """
    n = histogram.total(buckets)
    value = percentiles.quantile_ns(buckets, q)
    if value is None or not supported(q, n):
        return None
    if len(parts) < FEWEST_PARTS:
        why = f"its operations are not independent, and {count(len(parts), 'part')} of time cannot say how far"
        return Estimate.of(value / NS_PER_MS, None, "ms", confidence, n, f"{why}: no interval")
    worth = worth_of(parts, confidence)
    if worth is None or worth >= n:
        worth, how = float(n), "operations taken as independent: at least so wide"
    else:
        how = f"worth {worth:,.0f} independent ones by the spread over {len(parts)} parts of time"
        how += "" if supported(q, int(worth)) else ", which is little: likely too narrow"
    low, high = shares(q, worth, confidence)
    ends = list(itertools.accumulate(n_of for _, _, n_of in buckets))
    first, last = math.floor(low * n), math.ceil(high * n) + 1
    bounds = (
        buckets[bisect.bisect_left(ends, first)][0] / NS_PER_MS if first >= 1 else None,
        buckets[bisect.bisect_left(ends, last)][1] / NS_PER_MS if last <= n else None,
    )
    method = f"order statistics {first:,} and {last:,} of {n:,}; {how}"
    return Estimate.of(value / NS_PER_MS, bounds, "ms", confidence, n, method)


def shares(q: float, worth: float, confidence: float) -> tuple[float, float]:
    """Limits of the share at or below the quantile (Clopper and Pearson 1934) for `worth` independent operations."""
    tail, below = (1 - confidence) / 2, q * worth
    # Quantiles of the beta distribution, without the checks of scipy.stats, which take most of the time.
    low = float(special.betaincinv(below, worth - below + 1, tail)) if below > 0 else 0.0
    high = float(special.betaincinv(below + 1, worth - below, 1 - tail)) if below < worth else 1.0
    return low, high


def worth_of(parts: Sequence[tuple[int, int]], confidence: float = 0.95) -> float | None:
    """Effective number of independent operations, from the parts; None if it cannot be estimated.

    p = sum of those below / sum of all; its variance as a ratio over k parts is k / (k - 1) sum (b - p m)^2 / M^2.
    Independent operations would have p (1 - p) / worth; few parts are corrected by the squared ratio of the quantiles
    of the normal distribution and of t with k - 1 degrees of freedom.
    """
    m, below = (np.asarray([one[place] for one in parts], dtype=float) for place in (0, 1))
    whole, k = float(m.sum()), len(parts)
    p = float(below.sum()) / whole if whole else 0.0
    if not 0 < p < 1 or k < 2:
        return None
    variance = k / (k - 1) * float(np.sum((below - p * m) ** 2)) / whole**2
    if variance == 0:
        return whole
    quotient = float(special.ndtri(0.5 + confidence / 2)) / float(special.stdtrit(k - 1, 0.5 + confidence / 2))
    return min(whole, p * (1 - p) / variance * quotient**2)


def below(parts: Sequence[Sequence[Bucket]], edge_ns: float) -> list[tuple[int, int]]:
    """(all values, those at or below `edge_ns`) of each part's histogram; parts without a value are left out."""
    counts = [(histogram.total(one), sum(n for low, _, n in one if low <= edge_ns)) for one in parts]
    return [one for one in counts if one[0]]


class HistogramSeries:
    """Histograms of consecutive periods in bounded memory: if there are too many, neighbours are merged."""

    def __init__(self, most: int = 3 * PARTS) -> None:
        self._most = most
        self._each = 1
        self._pieces: list[list[Bucket]] = []
        self._open: list[Sequence[Bucket]] = []

    def add(self, buckets: Sequence[Bucket]) -> None:
        """Add the next period, of the same length as those before."""
        self._open.append(buckets)
        if len(self._open) < self._each:
            return
        self._pieces.append(histogram.merge(self._open))
        self._open = []
        if len(self._pieces) > self._most:
            pairs = [self._pieces[at : at + 2] for at in range(0, len(self._pieces), 2)]
            self._pieces = [histogram.merge(pair) for pair in pairs]
            self._each *= 2

    def parts(self) -> list[list[Bucket]]:
        """PARTS parts at most, of equal time except the last, or the periods themselves where these would be too few. A
        period that is not complete is left out."""
        if len(self._pieces) < FEWEST_PARTS:
            return []
        each = -(-len(self._pieces) // PARTS)
        joined = [histogram.merge(self._pieces[at : at + each]) for at in range(0, len(self._pieces), each)]
        return joined if len(joined) >= FEWEST_PARTS else self._pieces
