"""Histograms as tables of occupied buckets; their percentiles are computed in `model/percentiles.py`.

They are merged by adding counts, never by averaging percentiles. A bucket is `(low_ns, high_ns, count)` with both
bounds inclusive. Buckets of one instrument have the same bounds wherever they occur, so the key of a merge is the lower
bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Bucket = tuple[int, int, int]


def merge(parts: Iterable[Iterable[Sequence[int]]]) -> list[Bucket]:
    """The merged histogram of all parts, in order of value."""
    counts: dict[tuple[int, int], int] = {}
    for part in parts:
        for low, high, count in part:
            counts[low, high] = counts.get((low, high), 0) + count
    return [(low, high, count) for (low, high), count in sorted(counts.items())]


def total(buckets: Iterable[Sequence[int]]) -> int:
    """Number of values."""
    return sum(count for _, _, count in buckets)


def mean_ns(buckets: Sequence[Bucket]) -> float | None:
    """Mean from the midpoints of the buckets; None when empty."""
    n = total(buckets)
    return sum((low + high) / 2 * count for low, high, count in buckets) / n if n else None
