"""Quantiles of buckets: one meaning, whether the buckets are tuples, rows of a frame, or a drop-in's."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.dropin.stress.run.interval_stats import Span
from steelyard.dropin.ycsb.measures import Measure
from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.percentiles import quantiles_by_group
from steelyard.wire.tables import Histogram

SHARES = {"none": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "all": 1.0}
COUNTS = st.lists(st.integers(1, 2000), min_size=1, max_size=30)


def buckets_of(counts: list[int]) -> list[Bucket]:
    return [(1000 * place, 1000 * place + 999, count) for place, count in enumerate(counts)]


def by_values(buckets: list[Bucket], q: float) -> Bucket:
    """The bucket of the smallest value with at least a share `q` not above it, from single values."""
    values = [(low, high, count) for low, high, count in buckets for _ in range(count)]
    return next(value for rank, value in enumerate(values, 1) if rank >= q * len(values))


@given(COUNTS, st.floats(0, 1))
def test_a_quantile_is_that_of_the_values(counts: list[int], q: float) -> None:
    buckets = buckets_of(counts)
    low, high, _ = by_values(buckets, q)
    found = percentiles.quantile_bucket(buckets, q)
    assert found is not None
    assert found[:2] == (low, high)
    assert percentiles.quantile_ns(buckets, q) == (low + high) / 2


@given(st.lists(COUNTS, min_size=1, max_size=5))
def test_rows_of_a_frame_have_the_same_quantiles(groups: list[list[int]]) -> None:
    tables = [buckets_of(counts) for counts in groups]
    rows = [
        (group, (low + high) / 2e6, part)
        for group, table in enumerate(tables)
        for low, high, count in table
        for part in (count // 2, count - count // 2)
    ]
    frame = pl.DataFrame(rows, schema={"window": pl.Int64, "ms": pl.Float64, "count": pl.Int64}, orient="row")
    found = quantiles_by_group(frame, "window", "ms", SHARES)
    for name, q in SHARES.items():
        assert found[name] == {
            group: (percentiles.quantile_ns(table, q) or 0.0) / 1e6 for group, table in enumerate(tables)
        }


@given(COUNTS)
def test_drop_ins_print_the_upper_bound_of_the_same_bucket(counts: list[int]) -> None:
    buckets = tuple(buckets_of(counts))
    for q in SHARES.values():
        _, high, _ = by_values(list(buckets), q)
        assert Span(times=Histogram(buckets)).upper_quantile_ms(q) == high / 1e6
        assert Measure(buckets).upper_percentile_us(100 * q) == high // 1000


def test_nothing_has_no_quantile() -> None:
    for nothing in ([], [(1, 2, 0)]):
        assert percentiles.quantile_bucket(nothing, 0.5) is None
        assert percentiles.quantile_ns(nothing, 0.5) is None
    assert percentiles.quantile_bucket([(1, 2, 0), (3, 4, 1)], 0.0) == (3, 4, 1)
    assert (Span().upper_quantile_ms(0.5), Measure().upper_percentile_us(50)) == (0.0, 0)
    empty = pl.DataFrame(schema={"window": pl.Int64, "ms": pl.Float64, "count": pl.Int64})
    assert quantiles_by_group(empty, "window", "ms", {"p50": 0.5}) == {"p50": {}}
    assert histogram.mean_ns([(0, 10, 1), (10, 20, 3)]) == pytest.approx(12.5)
