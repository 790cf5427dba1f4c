"""Percentiles of histograms in data frames: those of `model/percentiles.py` for many groups of buckets at once.

A module of its own because code that only counts (engines, drop-ins) has no frames; a test holds the two to the same
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def quantiles(rows: pl.DataFrame, group: str, value: str, shares: Mapping[str, float]) -> dict[str, dict[int, float]]:
    """Of each name in `shares` and each group the smallest `value` such that at least this share of the group's `count`
    is not above it. Columns: `group` (whole numbers), `value` (bucket middles) and `count`; groups without a count are
    left out."""
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
