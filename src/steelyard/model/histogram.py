"""Histograms as tables of occupied buckets: merged by adding counts, never by averaging percentiles.

A bucket is `(low_ns, high_ns, count)` with both bounds inclusive. Buckets of one instrument have the same bounds
wherever they occur, so the key of a merge is the lower bound.

Every quantile of ours is made here, of buckets as tuples (`quantile_bucket`), or in `histogram_frames`, of buckets as
rows; a test holds the two together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

Bucket = tuple[int, int, int]


def merge(parts: Iterable[Iterable[Sequence[int]]]) -> list[Bucket]:
    """The histogram of all parts together, in order of value."""
    counts: dict[tuple[int, int], int] = {}
    for part in parts:
        for low, high, count in part:
            counts[low, high] = counts.get((low, high), 0) + count
    return [(low, high, count) for (low, high), count in sorted(counts.items())]


def total(buckets: Iterable[Sequence[int]]) -> int:
    """Number of values."""
    return sum(count for _, _, count in buckets)


def quantile_bucket(buckets: Sequence[Bucket], q: float) -> Bucket | None:
    """The bucket of the smallest recorded value such that at least a share `q` of the values is not above it. None when
    empty. `buckets` in order of value."""
    return quantile_buckets(buckets, (q,))[0]


def quantile_buckets(buckets: Sequence[Bucket], shares: Sequence[float]) -> list[Bucket | None]:
    """The bucket of each of several quantiles, as `quantile_bucket`."""
    seen = list(accumulate(count for _, _, count in buckets))
    if not seen or not seen[-1]:
        return [None] * len(shares)
    # Of nothing wanted, the first value.
    places = (bisect_left(seen, q * seen[-1] or 1) for q in shares)
    return [buckets[place] if place < len(buckets) else None for place in places]


def quantile_ns(buckets: Sequence[Bucket], q: float) -> float | None:
    """The quantile as the middle of its bucket; None when empty."""
    bucket = quantile_bucket(buckets, q)
    return None if bucket is None else (bucket[0] + bucket[1]) / 2


def mean_ns(buckets: Sequence[Bucket]) -> float | None:
    """Mean by the middles of the buckets; None when empty."""
    n = total(buckets)
    return sum((low + high) / 2 * count for low, high, count in buckets) / n if n else None
