from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons.start_series import of_seconds, of_trials
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import warming
from steelyard.analysis.statistic import Seconds, Within
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.trend import MOVES, Trend, first_rank, found, too_few, trends
from steelyard.analysis.tables import tables
from tests.unit.analysis.made import VOIDED, cell, frame, record, study

NINE = [463, 990, 2414, 3005, 2823, 2874, 2798, 2799, 2811]
"""Throughput of the nine trials of issue 9."""
WARM = np.asarray([0.5, 2 ** (-2 / 3), 2 ** (-1 / 3), *[1.0] * 6])
"""A warm-up by a factor of 2 over the first three of nine trials."""


def noise(rng: np.random.Generator, n: int, cv: float = 0.05, r: float = 0.3) -> np.ndarray:
    drawn = rng.standard_normal(n)
    drawn[1:] *= np.sqrt(1 - r**2)
    return cv * np.asarray(lfilter([1.0], [1.0, -r], drawn))


def of(*starts: np.ndarray | list[float], nodes: int = 1) -> tuple[Trend, ...]:
    """Trends of throughput of starts, each a series per second."""
    return trends(
        frame(cell([[1e6 / float(one) for one in start] for start in starts], nodes=nodes)), "throughput_per_s"
    )


def test_the_nine_trials_of_the_issue_are_still_warming():
    (row,) = of(NINE)
    assert (row.verdict, row.n, row.starts, row.series, row.family) == ("warming", 9, 1, "trials", 1)
    assert row.p_holm is not None
    assert row.p_holm < 1e-4
    change = row.change_percent
    assert change is not None
    assert change.low is not None
    assert change.high is not None
    assert change.low > 0
    assert row.detail == "still warming: +21% per trial [17, 24], most of it in the first 2 trials"
    assert first_rank([row])[0].startswith(
        "Not steady (throughput): 1 node, b01-n1 (9 trials of 1 start): still warming: "
    )


def test_execution_time_that_falls_is_warming_and_one_that_rises_is_slowing():
    falling = trends(frame(cell([[1e6 / value for value in NINE]])), "execution_time_ms")
    rising = trends(frame(cell([[float(value) for value in NINE]])), "execution_time_ms")
    assert [row.verdict for row in (*falling, *rising)] == ["warming", "slowing"]


WARMER = "warm the servers for longer"


def test_more_warm_up_is_advised_only_where_something_warms_up():
    (warming_row,) = of(NINE)
    slowing = warming_row.model_copy(update={"verdict": "slowing", "treatment": {"nodes": 3}})
    (only_warming,), (only_slowing,), (both,) = (
        first_rank(rows) for rows in ([warming_row], [slowing], [warming_row, slowing])
    )
    assert "Such trials do not measure a warm cluster: " + WARMER in only_warming
    assert WARMER not in only_slowing
    assert only_slowing.endswith(
        "The level changes within starts, so that the mean depends on how many trials a start has."
    )
    assert "Trials that still warm up do not measure a warm cluster: " + WARMER in both
    assert "Elsewhere the level changes within starts" in both


def test_trends_of_different_responses_are_each_called_what_they_are_of():
    (row,) = of(NINE)
    seconds = row.model_copy(update={"response": "response_ms_mean", "series": "seconds", "treatment": {"nodes": 3}})
    (sentence,) = first_rank([row, seconds])
    assert sentence.startswith("Not steady: throughput of 1 node, b01-n1 (9 trials of 1 start): still warming: ")
    assert "; mean response time of 3 nodes, b01-n1 (9 values of 1 start): still warming: " in sentence


def test_a_warm_up_by_a_factor_of_two_is_found_in_every_start_of_twelve():
    rng = np.random.default_rng(3)
    rows = of(*(2800 * WARM * (1 + noise(rng, 9)) for _ in range(12)))
    assert sum(row.verdict == "warming" for row in rows if row.starts == 1) >= 11


def test_studies_without_a_trend_raise_an_alarm_in_at_most_5_per_cent():
    rng, studies = np.random.default_rng(4), 120
    alarms = 0
    for _ in range(studies):
        rows = of(*(2800 * (1 + noise(rng, 9)) for _ in range(4)))
        alarms += any(row.verdict in MOVES for row in rows)
    assert alarms <= studies * 0.05 + 3 * (studies * 0.05 * 0.95) ** 0.5


def test_interleaved_workloads_are_one_series():
    """Two workloads of three trials each have too few trials one by one, and enough together."""
    rng = np.random.default_rng(5)
    records = []
    for start in (1, 2, 3):
        warm = 1 / WARM * (1 + noise(rng, 9, cv=0.03))
        for order, workload in enumerate("ACAACCACA"):
            level = 100 if workload == "A" else 900
            records.append(
                record(level * warm[order], workload=workload, start=start, order=order + 1, replicate=order)
            )
    rows = trends(frame(records), "execution_time_ms")
    assert {row.verdict for row in rows} == {"warming"}
    assert {row.n for row in rows} == {9, 27}
    assert first_rank(rows)[0].count("still warming") == 1


def test_the_place_in_the_start_counts_voided_attempts():
    values = [100.0 + one for one in (0, 3, 1, 2, 3, 1, 2)]
    records = cell([values])
    between = [one.model_copy(update={"verdict": VOIDED}) if place == 2 else one for place, one in enumerate(records)]
    (row,) = trends(frame(between), "execution_time_ms")
    assert row.n == 6
    line = warming.fit(series([0, 1, 3, 4, 5, 6], np.log([values[at] for at in (0, 1, 3, 4, 5, 6)])), 0.3)
    assert line is not None
    assert of_rows(between)[0] == pytest.approx(line.slope)


def of_rows(records) -> list[float]:
    return [
        one.slope
        for series in of_trials(frame(records), "execution_time_ms").values()
        if (one := warming.fit(series, 0.3))
    ]


def series(at, logs) -> warming.Series:
    at = np.asarray(at, dtype=float)
    none = np.zeros(len(at), dtype=int)
    return warming.Series(np.asarray(logs), at, none, none, at, warming.settling_places(at[-1] + 1), True)


def seconds_of(rng: np.random.Generator, records, tau_s: float, depth: float, length: int = 60) -> Within:
    """Seconds of trials of one start: service time decays by `depth` (logarithm) with `tau_s` from the start on."""
    trials = []
    for place, one in enumerate(records):
        served = place * length + np.arange(length)
        ms = 10 * np.exp(depth * np.exp(-served / tau_s) + rng.normal(0, 0.05) + noise(rng, length, 0.1))
        values = pl.DataFrame(
            {"place": np.arange(length, dtype=float), "response_ms_mean": ms, "throughput_per_s": 1 / ms}
        )
        trials.append(((one.id, one.attempt), values))
    return Within(seconds=[Seconds(dict(records[0].treatment), trials)])


def test_two_trials_of_many_seconds_still_show_the_warm_up():
    records = cell([[110.0, 100.0]])
    within = seconds_of(np.random.default_rng(6), records, 30.0, 0.7)
    rows = trends(frame(records), "execution_time_ms", seconds=within.seconds)
    assert [(row.series, row.verdict, row.family) for row in rows] == [("seconds", "warming", 1)]
    assert "by the seconds within its trials" in rows[0].detail
    assert of_seconds(frame(records), "execution_time_ms", within.seconds)
    for other in ("cpu_percent_mean", "capacity_per_s"):
        made_of = TrialFrame(frame(records).data.with_columns(pl.lit(9.0).alias(other)), ("nodes",), ("nodes",), 0)
        assert of_seconds(made_of, other, within.seconds) == {}, "seconds of a load say nothing of it"
    level = seconds_of(np.random.default_rng(6), records, 30.0, 0.0)
    assert not first_rank(trends(frame(records), "execution_time_ms", seconds=level.seconds))


def test_trials_of_unequal_length_are_one_series_of_seconds():
    records = cell([[110.0, 100.0, 100.0]])
    rng = np.random.default_rng(7)
    (of,) = seconds_of(rng, records, 30.0, 0.7).seconds
    uneven = [(attempt, values.head(keep)) for (attempt, values), keep in zip(of.trials, (60, 20, 3), strict=True)]
    rows = trends(frame(records), "execution_time_ms", seconds=[Seconds(of.treatment, uneven)])
    assert [(row.verdict, row.n) for row in rows] == [("warming", 59 + 19)]


def test_steady_is_said_only_where_a_factor_of_a_fifth_would_be_found():
    rng = np.random.default_rng(8)
    quiet = of(*(2800 * (1 + noise(rng, 12, cv=0.01)) for _ in range(3)))
    assert {row.verdict for row in quiet} == {"steady"}
    assert all(row.least_factor is not None and row.least_factor <= 1.2 for row in quiet)
    assert not too_few(quiet)
    (few,) = of([100.0, 101.0, 99.0])
    assert (few.verdict, few.n, few.p) == ("too few", 3, None)
    assert too_few([few]) == ["No start has enough trials to show whether it was still warming up."]
    (noisy,) = of(*(2800 * (1 + noise(rng, 5, cv=0.2)) for _ in range(2)))
    assert (noisy.verdict, noisy.starts, noisy.n) == ("too few", 2, 10)


def test_a_trend_is_the_first_caveat_and_changes_the_verdict():
    """The trend of 3 nodes is large enough to be all of the difference to 1 node, so that is undecided."""
    rng = np.random.default_rng(9)
    level = [list(200 * (1 + noise(rng, 9, cv=0.02))) for _ in range(3)]
    warm = [list(200 / WARM * (1 + noise(rng, 9, cv=0.02))) for _ in range(3)]
    records = [*cell(level, nodes=1), *cell(warm, nodes=3)]
    results = analyse(records, study(factors={"nodes": (1, 3)}), seed=1)
    (row,) = found(results.of(Trend))
    assert (row.verdict, row.treatment) == ("warming", {"nodes": 3})
    assert results.caveats[0].startswith(
        "Not steady (execution time): 3 nodes (27 trials of 3 starts): still warming: −"
    )
    (comparison,) = results.of(Comparison)
    assert (comparison.verdict, comparison.within_trend, comparison.survives_holm) == ("undecided", True, None)
    assert f"3 nodes {row.detail}" in comparison.trend
    assert comparison.trend in comparison.sentence
    assert any(comparison.trend in one for one in results.answer)
    assert tables(results)["trend"].height == len(results.of(Trend))


def test_a_difference_beyond_the_trend_keeps_its_verdict_and_says_the_trend():
    rng = np.random.default_rng(10)
    level = [list(200 * (1 + noise(rng, 9, cv=0.02))) for _ in range(3)]
    warm = [list(2000 / WARM * (1 + noise(rng, 9, cv=0.02))) for _ in range(3)]
    (comparison,) = analyse([*cell(level, nodes=1), *cell(warm, nodes=3)], study(factors={"nodes": (1, 3)}), seed=1).of(
        Comparison
    )
    assert (comparison.verdict, comparison.within_trend) == ("slower", False)
    assert "3 nodes still warming: −" in comparison.sentence


def test_sentences_quote_the_numbers_of_their_row():
    """Random starts that warm up: value and ends in the sentence are those of the row, and of the same sign."""
    rng = np.random.default_rng(12)
    for _ in range(30):
        depth, trials = rng.uniform(0.3, 3), int(rng.integers(6, 20))
        warm = np.exp(-depth * np.exp(-np.arange(trials) / rng.uniform(0.5, 4)))
        for row in of(2800 * warm * (1 + noise(rng, trials, cv=0.02))):
            if row.verdict not in MOVES:
                continue
            assert row.change_percent is not None
            quoted = re.match(r"still warming: ([+−][\d,.]+)% per trial \[([−\d,.]+), ([−\d,.]+)\]", row.detail)
            assert quoted is not None, row.detail
            numbers = [float(one.replace("−", "-").replace(",", "")) for one in quoted.groups()]
            ends = (row.change_percent.value, row.change_percent.low, row.change_percent.high)
            assert numbers == pytest.approx(ends, rel=0.06)
            assert first_rank([row])[0].count(row.detail) == 1


def test_a_study_of_no_starts_has_no_rows():
    assert trends(frame(cell([[100.0]])).__class__.build([], {}, (), 0), "execution_time_ms") == ()
