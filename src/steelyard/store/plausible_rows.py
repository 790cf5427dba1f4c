"""Rows of a trial's tables that an instrument can have given; a store may come from anywhere, see `model.plausible`."""

from __future__ import annotations

from typing import TypeVar

from steelyard.heavy import pl
from steelyard.model.plausible import LARGEST, LATEST_S, LONGEST_NS, LONGEST_SPENT_NS, MOST_COUNTED, SMALLEST
from steelyard.store import layout

_Frame = TypeVar("_Frame", "pl.DataFrame", "pl.LazyFrame")


def plausible(rows: _Frame, part: str) -> _Frame:
    """The rows of a part of a trial that are plausible. Meters that decay write values that are as good as 0."""
    kept = rows.filter(plausible_row(part))
    if part != layout.SAMPLES:
        return kept
    value = pl.col("value")
    return kept.with_columns(value=pl.when(value.abs() < SMALLEST).then(0.0).otherwise(value))


def plausible_row(part: str) -> pl.Expr:
    """Whether a row of a part of a trial is plausible."""
    return _interval() if part == layout.INTERVALS else _sample()


def _interval() -> pl.Expr:
    high_ns, count = pl.col("bucket_high_ns"), pl.col("count")
    return _every(
        *_present(layout.INTERVAL_SCHEMA),
        pl.col("t_s").is_between(0, LATEST_S),
        pl.col("seconds").is_between(1e-9, LATEST_S),
        pl.col("bucket_low_ns").is_between(0, high_ns),
        high_ns <= LONGEST_NS,
        count.is_between(0, MOST_COUNTED),
        high_ns.cast(pl.Float64) * count <= LONGEST_SPENT_NS,
    )


def _sample() -> pl.Expr:
    present = _present(layout.SAMPLE_SCHEMA)
    return _every(*present, pl.col("t_s").is_between(0, LATEST_S), pl.col("value").is_between(-LARGEST, LARGEST))


def _present(schema: layout.Columns) -> list[pl.Expr]:
    return [pl.col(name).is_not_null() for name in schema]


def _every(*conditions: pl.Expr) -> pl.Expr:
    # A value that is missing is none that can be summed.
    return pl.all_horizontal(*conditions).fill_null(False)
