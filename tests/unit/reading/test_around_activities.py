"""Operations in windows of a trial: which intervals count, and whose trial is the control."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.judging.membership import Span
from steelyard.reading.around_activities import TrialOperations
from steelyard.reading.reading import read
from tests.unit.report import growing


def operations(*failing: int, without: int = -1) -> TrialOperations:
    """60 intervals of 1 s from 0.1 s on with 1,000 operations of 5 ms each, the last of them 0.9 s long."""
    rows = [
        (place, place not in failing, 5_000_000, 5_000_000, 900 if place == 59 else 1000)
        for place in range(60)
        if place != without
    ]
    frame = pl.DataFrame(rows, schema=["place", "answered", "low", "high", "count"], orient="row")
    return TrialOperations(frame, first_s=0.1, last_s=60.0, step_s=1.0)


def test_only_intervals_that_lie_within_a_window_count() -> None:
    values = operations().values([Span(0.0, 20.2)])
    assert values == {
        "throughput_per_s": pytest.approx(1000.0), "response_ms_mean": 5.0, "response_ms_p50": 5.0,
        "response_ms_p99": 5.0, "error_percent": 0.0,
    }  # fmt: skip
    assert operations().values([Span(20.2, 22.0)]) == {}, "no interval lies within"
    assert operations().values([Span(20.2, 22.1)])["throughput_per_s"] == pytest.approx(1000.0)
    assert operations().values([Span(50.1, 60.0)])["throughput_per_s"] == pytest.approx(1000.0), "0.9 s are 0.9 s"
    assert operations().values([Span(59.0, 60.0)]) == {}, "less than 1 s"


def test_failed_operations_have_no_time_and_seconds_without_any_are_in_the_throughput() -> None:
    values = operations(3, 4).values([Span(0.1, 10.1)])
    assert (values["throughput_per_s"], values["error_percent"]) == (pytest.approx(800.0), pytest.approx(20.0))
    assert operations(without=5).values([Span(0.1, 10.1)])["throughput_per_s"] == pytest.approx(900.0)
    assert operations(*range(60)).values([Span(0.1, 10.1)]) == {"throughput_per_s": 0.0, "error_percent": 100.0}
    means = dict(operations(3, without=5).means)
    assert [mean for t_s, mean in means.items() if t_s < 7] == [5.0, 5.0, 5.0, float("inf"), 5.0, float("inf"), 5.0]


def test_the_control_is_of_the_same_block_and_settings(tmp_path: Path) -> None:
    text = growing.STUDY.replace("[factors]", '[factors]\n"load.threads" = [8, 16]')
    found = read(growing.store(tmp_path, text))
    around = found.within.of_analysis.around
    assert {one.trial for one in around} == {one.key for one in found.records if one.activities}
    assert len({one.trial for one in around}) == 8
    assert {len(one.controls) for one in around} == {1}
