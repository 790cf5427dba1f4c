"""Curves around the decision: planted courses are found second by second, over trials and against controls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from steelyard.analysis.frame import frame_of
from steelyard.analysis.results import Results
from steelyard.analysis.statistic import AlignedTrial, Context, Within
from steelyard.analysis.statistics.aligned import AlignedSecond, aligned
from steelyard.model.trial import TrialRecord
from steelyard.reading.reading import read
from steelyard.study.read import read_text
from steelyard.wire.record import Interval
from tests.unit.analysis.statistics import test_activity_response as around
from tests.unit.report import growing, synthetic
from tests.unit.wire import made

SIX = growing.STUDY.replace("starts = 4", "starts = 6")
Course = Callable[[TrialRecord, int], float]


def course(record: TrialRecord, second: int) -> float:
    """ms: all drift; clusters that grow are twice as slow from 5 to 15 s after the decision at 20 s."""
    slow = 2.0 if record.activities and 25 <= second < 35 else 1.0
    return 10.0 * slow * (1 + second / 60) * (1 + record.block / 20)


def intervals(record: TrialRecord, of_second: Course = course) -> Iterator[Interval]:
    for second in range(growing.SECONDS):
        value_ns = round(1e6 * of_second(record, second))
        counts = made.counts([(value_ns, value_ns, 1000 + second)])
        yield made.interval(counts, t_s=record.begun_s + second, sent=1000, done=1000)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return around.results(tmp_path_factory.mktemp("aligned"), SIX, intervals)


def rows(results: Results, response: str) -> dict[int, AlignedSecond]:
    return {row.second_s: row for row in results.of(AlignedSecond) if row.response == response}


def test_each_second_has_what_was_planted_in_it(results: Results) -> None:
    times = rows(results, "response_ms_mean")
    assert list(times) == list(range(-20, 40))
    centre = float(np.exp(np.mean(np.log([1 + block / 20 for block in range(1, 7)]))))
    for second, slow in ((-20, 1), (0, 1), (4, 1), (5, 2), (14, 2), (15, 1), (39, 1)):
        row = times[second]
        drift = 1 + (second + 20) / 60
        assert row.value.value == pytest.approx(10 * slow * drift * centre, rel=1e-6)
        assert row.control == pytest.approx(10 * drift * centre, rel=1e-6)
        assert row.against_control is not None
        assert row.against_control.value == pytest.approx(slow), "the drift of every cluster is not in it"
        assert row.value.low is not None
        assert row.value.high is not None
        assert row.value.low < row.value.value < row.value.high
    assert {(row.n, row.used, row.kind, row.unit) for row in times.values()} == {(6, 6, "scale-out", "ms")}
    assert times[0].value.method == "geometric mean, simultaneous 95% band over 6 trials"
    assert times[0].against_control is not None
    assert times[0].against_control.method == "geometric mean, simultaneous 95% band over 6 blocks"


def test_throughput_is_an_arithmetic_mean_and_nothing_that_varies_no_band(results: Results) -> None:
    rates = rows(results, "throughput_per_s")
    assert rates[-20].value.value == pytest.approx(1000.0)
    assert rates[39].value.value == pytest.approx(1059.0)
    assert (rates[0].value.low, rates[0].value.method) == (None, "mean, simultaneous 95% band over 6 trials")
    assert not rows(results, "cpu_percent_mean"), "no samples"


def test_nodes_are_means_over_trials_and_arrivals_medians(results: Results) -> None:
    """Nodes join after 10.1 and 20.2 s, times 1.1 to 1.6 in blocks 1 to 6."""
    times = rows(results, "response_ms_mean")
    assert (times[-1].nodes, times[10].nodes, times[39].nodes) == (3.0, 3.0, 5.0)
    assert times[13].nodes == pytest.approx(3 + 3 / 6), "11.1, 12.1 and 13.1 s are before the middle of it"
    assert times[0].arrivals_s == pytest.approx((10.1 * 1.35, 20.2 * 1.35))


@pytest.mark.parametrize(
    ("starts", "words"), [(4, "4 trials: no band"), (5, "pointwise 95% band over 5 trials, no test")]
)
def test_few_trials_have_no_band_or_none_that_tests(tmp_path: Path, starts: int, words: str) -> None:
    text = growing.STUDY.replace("starts = 4", f"starts = {starts}")
    row = rows(around.results(tmp_path, text, intervals), "response_ms_mean")[0]
    assert row.value.method == f"geometric mean, {words}"
    assert (row.value.low is None) == (starts == 4)
    assert row.ratio_band == words.replace("trials", "blocks")


def test_without_a_control_there_is_no_ratio_and_without_an_activity_no_row(tmp_path: Path) -> None:
    alone = around.results(tmp_path, SIX.replace('["none", "scheduled"]', '["scheduled"]'), intervals)
    assert {(row.control, row.against_control) for row in alone.of(AlignedSecond)} == {(None, None)}
    (tmp_path / "other").mkdir()
    assert read(synthetic.stored(tmp_path / "other")).results.of(AlignedSecond) == ()


def context(*trials: AlignedTrial, text: str = SIX) -> Context:
    study, records = read_text(text), growing.records(text)
    return Context(frame_of(records, study), study, seed=1, records=records, within=Within(aligned=trials))


def aligned_trial(record: TrialRecord, value: float, *controls: float, seconds: range = range(-2, 3)) -> AlignedTrial:
    def curves(level: float) -> dict[str, dict[int, float]]:
        return {
            "response_ms_mean": dict.fromkeys(seconds, level), "throughput_per_s": dict.fromkeys(seconds, 10 * level),
            "cpu_percent_mean": {},
        }  # fmt: skip

    nodes = dict.fromkeys(seconds, 3)
    return AlignedTrial(record.key, "scale-out", curves(value), nodes, [1.0], [curves(one) for one in controls])


def test_trials_of_a_start_are_averaged_first_and_controls_of_a_block() -> None:
    text = growing.STUDY.replace("trials = 1", "trials = 2")
    grown = [record for record in growing.records(text) if record.activities]
    assert len({record.start for record in grown}) == len(grown) / 2
    trials = [
        aligned_trial(record, math.exp(record.block + place % 2), math.exp(record.block), math.exp(record.block + 2))
        for place, record in enumerate(grown)
    ]
    row = next(aligned(context(*trials, text=text)))
    assert (row.n, row.value.n, row.band) == (8, 4, "4 starts: no band")
    assert row.value.value == pytest.approx(math.exp(2.5 + 0.5))
    assert row.control == pytest.approx(math.exp(2.5 + 1))
    assert row.against_control is not None
    assert row.against_control.value == pytest.approx(math.exp(-0.5))


def test_curves_reach_as_far_as_all_trials_and_trials_without_a_change_are_counted() -> None:
    grown = [record for record in growing.records(SIX) if record.activities]
    short = aligned_trial(grown[0], 1.0, 2.0, seconds=range(-1, 2))
    whole = [aligned_trial(record, 1.0, 2.0) for record in grown[1:5]]
    times = [row for row in aligned(context(short, *whole)) if row.response == "response_ms_mean"]
    assert [row.second_s for row in times] == [-1, 0, 1]
    assert {(row.n, row.used) for row in times} == {(5, 6)}
    one_without = aligned_trial(grown[5], 1.0)
    against = next(aligned(context(*whole, one_without))).against_control
    assert against is not None
    assert against.n == 4, "one of five trials has no control"


def test_a_second_without_operations_has_no_ratio_and_no_response_is_below_0() -> None:
    grown = [record for record in growing.records(SIX) if record.activities]
    trials = [aligned_trial(record, 1.0 + 20 * (record.block == 6), 1.0) for record in grown]
    trials[0].curves["throughput_per_s"] |= {0: 0.0}  # type: ignore[operator]
    rates = [row for row in aligned(context(*trials)) if row.response == "throughput_per_s"]
    assert [row.against_control is None for row in rates] == [False, False, True, False, False]
    assert {row.value.low for row in rates} == {0.0}


def test_a_band_beyond_all_measure_has_finite_ends() -> None:
    grown = [record for record in growing.records(SIX) if record.activities]
    trials = [aligned_trial(record, math.exp(300 * (-1) ** record.block), 1.0) for record in grown]
    row = next(aligned(context(*trials)))
    assert row.value.high is not None
    assert math.isfinite(row.value.high)
    assert row.against_control is not None
    assert row.against_control.value == pytest.approx(1.0)
