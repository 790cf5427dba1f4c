"""How percentiles of histograms are computed, and the least number of operations that supports one.

Every percentile of operations is computed here, from buckets as tuples or as rows of a frame; a test checks that both
agree. Each is the midpoint of its bucket. Two drop-ins print the upper bound of the same bucket, as their tools do:
`dropin/stress/run/interval_stats.py` and `dropin/ycsb/measures.py`. Intervals:
`analysis/inference/percentile_intervals.py`. The agent's live figures: `crates/steelyard-load/src/histogram.rs`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

from steelyard.heavy import pl
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


def quantiles_ns(buckets: Sequence[Bucket], shares: Sequence[float]) -> list[float | None]:
    """Several quantiles, each as the midpoint of its bucket; None when empty."""
    return [None if one is None else (one[0] + one[1]) / 2 for one in quantile_buckets(buckets, shares)]


def quantile_ns(buckets: Sequence[Bucket], q: float) -> float | None:
    """The quantile as the midpoint of its bucket; None when empty."""
    return quantiles_ns(buckets, (q,))[0]


def midpoint_ms() -> pl.Expr:
    """The midpoint of each bucket of a frame with the columns `bucket_low_ns` and `bucket_high_ns`."""
    return (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) / 2e6


def quantiles_by_group(
    rows: pl.DataFrame, group: str, value: str, shares: Mapping[str, float]
) -> dict[str, dict[int, float]]:
    """The smallest `value` per group such that at least the given share of the group's `count` lies at or below it, for
    each name in `shares`. Columns: `group` (integers), `value` (bucket midpoints) and `count`; groups without counts
    are omitted."""
    ordered = (
        rows.group_by(group, value)
        .agg(pl.col("count").sum())
        .filter(pl.col("count") > 0)
        .sort(group, value)
        .with_columns(
            pl.col("count").cum_sum().over(group).alias("seen"), pl.col("count").sum().over(group).alias("all")
        )
    )
    return {
        name: dict(
            ordered.filter(pl.col("seen") >= share * pl.col("all")).group_by(group).agg(pl.col(value).min()).iter_rows()
        )
        for name, share in shares.items()
    }
