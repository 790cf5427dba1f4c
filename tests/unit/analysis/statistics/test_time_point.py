"""Points in time over trials, with the t interval and the published z interval, and mean value analysis of samples."""

from __future__ import annotations

import math

import polars as pl
import pytest
from scipy import stats

from steelyard.analysis.frame import frame_of
from steelyard.analysis.statistic import Context, Seconds, Within
from steelyard.analysis.statistics import time_point
from steelyard.analysis.statistics.parts import part_means, series_of
from steelyard.analysis.statistics.time_point import length_s, point_means, time_points
from steelyard.model.study import Study
from tests.unit.analysis.made import study

CPU = "machine_cpu_percent_mean"


def frame(values: list[float], places: list[int] | None = None) -> pl.DataFrame:
    return pl.DataFrame({"place": places or list(range(len(values))), CPU: values})


def test_forty_points_of_30_s_as_published() -> None:
    """Ten runs of 20 minutes; run r has CPU r + point in every second of a point."""
    trials = [(f"b{run}", frame([float(run + second // 30) for second in range(1200)])) for run in range(10)]
    assert length_s(1200) == 30
    rows = list(time_points({"nodes": 3}, CPU, trials, 30))
    assert [row.point for row in rows] == list(range(1, 41))
    assert [row.from_s for row in rows[:3]] == [0.0, 30.0, 60.0]
    deviation = math.sqrt(sum((run - 4.5) ** 2 for run in range(10)) / 9)
    for row in rows:
        assert (row.n, row.unit, row.seconds) == (10, "%", 30.0)
        assert row.mean_z.value == pytest.approx(4.5 + row.point - 1)
        assert row.mean_z.high is not None
        assert row.mean_z.high - row.mean_z.value == pytest.approx(1.959964 * deviation / math.sqrt(10))
        assert row.mean.high is not None
        assert row.mean.high - row.mean.value == pytest.approx(stats.t.ppf(0.975, 9) * deviation / math.sqrt(10))


@pytest.mark.parametrize(("seconds", "length"), [(1200, 30), (240, 30), (239, 10), (45, 5), (16, 2), (15, 1), (0, 1)])
def test_shorter_trials_have_shorter_points(seconds: int, length: int) -> None:
    assert length_s(seconds) == length


def test_a_point_is_whole_and_has_most_of_its_seconds() -> None:
    series = [(0, 1.0), (1, 3.0), (2, 5.0), (7, 9.0), (8, 2.0), (9, 4.0), (10, 6.0), (11, 8.0), (12, 99.0)]
    assert point_means(series, 4) == {0: 3.0, 2: 5.0}


def test_mean_value_analysis_has_the_measures_that_the_study_names() -> None:
    values = [float(second) for second in range(8)]
    within = Within(sampled=[Seconds({}, [(("a", 1), frame(values)), (("b", 1), frame(values))])])
    ((treatment, response, trials),) = series_of(context(study(), within))
    assert (treatment, response, len(trials)) == ({}, CPU, 2)
    assert part_means(trials[0][1][response].to_list(), 2) == (1.5, 5.5)


def test_a_trial_without_readings_does_not_shorten_the_points_of_others() -> None:
    read = [(("a", 1), frame([1.0] * 240)), (("b", 1), frame([3.0] * 240))]
    within = Within(sampled=[Seconds({}, [*read, (("c", 1), frame([]))])])
    rows = time_point.STATISTIC.compute(context(study(), within))
    assert {(row.seconds, row.n, row.mean.value) for row in rows} == {(30.0, 2, 2.0)}


def context(asked: Study, within: Within) -> Context:
    """What the statistic reads, without trials."""
    return Context(frame_of([], asked), asked, seed=1, statistics=(), records=(), within=within)
