from __future__ import annotations

import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistic import Seconds, Within
from steelyard.analysis.statistics.parts import mean_values, part_means
from steelyard.analysis.tables import tables
from tests.unit.analysis.made import cell, study


def test_parts_are_equal_and_in_order():
    assert part_means([1, 2, 3, 4, 5, 6, 7, 8], 4) == (1.5, 3.5, 5.5, 7.5)
    assert part_means([1, 2, 3, 4], 1) == (2.5,)


@given(st.integers(1, 60), st.integers(1, 9))
def test_no_value_is_lost_or_counted_twice(n, parts):
    if n < parts:
        with pytest.raises(ValueError, match="cannot be cut"):
            part_means([1.0] * n, parts)
        return
    sizes = [1 / mean for mean in part_means([1.0] * n, parts)]
    assert len(sizes) == parts
    bounds = [round(place * n / parts) for place in range(parts + 1)]
    assert bounds[-1] == n
    assert max(b - a for a, b in itertools.pairwise(bounds)) - n / parts < 1


def test_the_trial_is_what_counts():
    """Ten trials of forty points, as chekkilla2016 had: n is 10 in every part, and z is narrower than t."""
    trials = [(f"b{trial}", [100 + trial + point / 10 for point in range(40)]) for trial in range(10)]
    found = mean_values(trials, "response_ms_mean", "ms")
    assert [(one.parts, one.part) for one in found] == [(k, part) for k in (2, 4, 8) for part in range(1, k + 1)]
    assert {one.n for one in found} == {10}
    first = found[0]
    assert first.mean.value == pytest.approx(104.5 + 0.95)
    assert first.mean_z.high - first.mean_z.low < first.mean.high - first.mean.low
    assert first.mean_z.high == pytest.approx(first.mean.value + 1.959964 * (110 / 12) ** 0.5 / 10**0.5)


def test_trials_of_a_start_are_averaged():
    """Three starts of four trials that are alike: three values, of which t has two degrees of freedom."""
    trials = [(f"b{start}", [100.0 + start] * 8) for start in range(3) for _ in range(4)]
    first = mean_values(trials, "response_ms_mean", "ms")[0]
    assert (first.n, first.mean.n, first.mean.method.partition(",")[0]) == (12, 3, "mean over start means")
    assert first.mean.high - first.mean.value == pytest.approx(4.30265 / 3**0.5, rel=1e-4)


def test_short_trials_are_left_out_of_a_cut():
    found = mean_values([("b1", [1.0, 2, 3]), ("b1", [1.0] * 8)], "response_ms_mean", "ms")
    assert {one.parts: one.n for one in found} == {2: 2, 4: 1, 8: 1}
    assert mean_values([], "response_ms_mean", "ms") == ()


def test_parts_reach_the_tables():
    trials = [
        (("t", attempt), pl.DataFrame({"response_ms_mean": values, "throughput_per_s": values}))
        for attempt, values in enumerate([[1.0, 2.0], [3.0, 4.0]], start=1)
    ]
    within = Within(seconds=[Seconds({"nodes": 1, "workload": "A"}, trials)])
    found = analyse(cell([[5.0, 6.0]]), study(), seed=1, within=within)
    table = tables(found)["parts"].filter(response="response_ms_mean")
    assert table["mean"].to_list() == [2, 3]
    assert table["nodes"].to_list() == [1, 1]
