"""Percentiles of histograms in data frames: the percentiles of `model/percentiles.py` for many groups at once.

A separate module because code that only counts (engines, drop-ins) does not use data frames; a test checks that both
give the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.heavy import pl


def quantiles(rows: pl.DataFrame, group: str, value: str, shares: Mapping[str, float]) -> dict[str, dict[int, float]]:
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
