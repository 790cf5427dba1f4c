"""Percentiles of histograms, and the minimum number of operations that supports one.

Every percentile of operations is computed here, from buckets as tuples, or in `percentile_frames`, from buckets as rows
of a frame; a test checks that both agree. Each is the midpoint of its bucket; drop-ins print the upper bound.
Intervals: `analysis/inference/percentile_intervals.py`. The agent's live figures:
`crates/steelyard-load/src/histogram.rs`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from steelyard.model.histogram import Bucket

BEYOND = 10
"""Number of operations required on either side of a percentile: 1,000 in total for a p99, 10,000 for a p99.9."""


def needed(q: float) -> int:
    """The smallest number of operations that supports a percentile: BEYOND above it, and as many below it."""
    return math.ceil(BEYOND / min(q, 1 - q) - 1e-6)


def supported(q: float, operations: int) -> bool:
    """Whether this number of operations supports a percentile."""
    return operations >= needed(q)


def quantile_bucket(buckets: Sequence[Bucket], q: float) -> Bucket | None:
    """The bucket of the smallest recorded value such that at least a share `q` of the values lies at or below it. None
    when empty. `buckets` must be in order of value."""
    return quantile_buckets(buckets, (q,))[0]


def quantile_buckets(buckets: Sequence[Bucket], shares: Sequence[float]) -> list[Bucket | None]:
    """The bucket of each of several quantiles; see `quantile_bucket`."""
    seen = list(accumulate(count for _, _, count in buckets))
    if not seen or not seen[-1]:
        return [None] * len(shares)
    # A share of 0 gives the first value.
    places = (bisect_left(seen, q * seen[-1] or 1) for q in shares)
    return [buckets[place] if place < len(buckets) else None for place in places]


def quantile_ns(buckets: Sequence[Bucket], q: float) -> float | None:
    """The quantile as the midpoint of its bucket; None when empty."""
    bucket = quantile_bucket(buckets, q)
    return None if bucket is None else (bucket[0] + bucket[1]) / 2
