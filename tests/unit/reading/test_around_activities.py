"""Operations in windows of a trial: which intervals count, and whose trial is the control."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.judging.membership import Span
from steelyard.model.activity import Disrupted, Mark
from steelyard.model.sample import Sample
from steelyard.plan import expand
from steelyard.reading.around_activities import TrialOperations
from steelyard.reading.reading import read
from steelyard.store.write import StoreWriter
from steelyard.study.read import read_text
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


def test_seconds_begin_with_the_interval_nearest_to_the_decision() -> None:
    rates = operations(3, without=5).curves(20.4)["throughput_per_s"]
    assert list(rates) == list(range(-20, 40)), "interval 20 begins at 20.1 s"
    assert list(operations().curves(20.7)["throughput_per_s"]) == list(range(-21, 39))
    times = operations(3, without=5).curves(20.4)["response_ms_mean"]
    assert (rates[-17], rates[-15], rates[0], rates[39]) == (0.0, 0.0, 1000.0, pytest.approx(1000.0))
    assert {-17, -15} & times.keys() == set(), "no operation, no time"
    assert set(times.values()) == {5.0}


def test_shorter_intervals_are_added_up_to_seconds() -> None:
    """Quarters of a second with 10, 20, 30 and 40 operations of 1, 2, 3 and 4 ms."""
    quarters = [(place, True, *[(place % 4 + 1) * 1_000_000] * 2, (place % 4 + 1) * 10) for place in range(40)]
    frame = pl.DataFrame(quarters, schema=["place", "answered", "low", "high", "count"], orient="row")
    curves = TrialOperations(frame, first_s=0.0, last_s=10.0, step_s=0.25).curves(5.0)
    assert curves["throughput_per_s"] == dict.fromkeys(range(-5, 5), 100.0)
    assert curves["response_ms_mean"] == dict.fromkeys(range(-5, 5), 3.0)


def test_cpu_around_the_decision_is_that_of_the_nodes_in_service(tmp_path: Path) -> None:
    """Nodes of 2 cores: those of the beginning use 1.0, those that join 0.4 from their start on."""
    text = growing.STUDY.replace("starts = 4", "starts = 1")
    study = read_text(text)
    with StoreWriter(tmp_path, study.study.name) as writer:
        writer.intend(study, text, expand(study))
        for record in growing.records(text):
            draft = writer.draft(record.id, record.attempt)
            draft.intervals("l1", growing.intervals(record.begun_s, *record.activities))
            for node in ("n1", "n2", "n3", *(node for activity in record.activities for node in activity.nodes)):
                first, cores = (0, 1.0) if node in ("n1", "n2", "n3") else (21, 0.4)
                readings = [(record.begun_s + second, cores) for second in range(first, growing.SECONDS + 2)]
                samples = [
                    Sample(t_s, node, f"node_cpu_{kind}_cores", value / 2)
                    for t_s, value in readings
                    for kind in ("user", "system")
                ]
                draft.samples(node, samples)
                draft.facts(node, {"role": "database", "cores": "2"})
            draft.seal(record)
        folder = writer.folder
    (trial,) = read(folder).within.of_analysis.aligned
    cpu = trial.curves["cpu_percent_mean"]
    assert (min(cpu), max(cpu)) == (-20, 39)
    assert (cpu[0], cpu[10], cpu[13]) == tuple(map(pytest.approx, (50.0, 50.0, (3 * 50 + 20) / 4)))
    assert cpu[39] == pytest.approx((3 * 50 + 2 * 20) / 5)
    (control,) = trial.controls
    assert list(control["cpu_percent_mean"].values()) == pytest.approx([50.0] * 60)
    assert (trial.nodes[0], trial.nodes[13], trial.nodes[39]) == (3, 4, 5)
    assert trial.arrived_s == pytest.approx([11.11, 22.22])


def test_disrupted_trials_are_aligned_with_the_beginning_next_to_those_that_are_not(tmp_path: Path) -> None:
    text = growing.STUDY.replace("[policy]\ntimes = [[20, 5]]", "[disruption]\nat_s = 20\nfor_s = 8\nrecover_s = 9")
    text = text.replace('"policy.name" = ["none", "scheduled"]', 'disruption = ["none", "pause"]')
    study = read_text(text)
    with StoreWriter(tmp_path, study.study.name) as writer:
        writer.intend(study, text, expand(study))
        for record in growing.records(text):
            times = {"began": 20.02, "healed": 28.02, "recovered": 28.6}
            marks = tuple(Mark(name=name, node="n1", t_s=record.begun_s + t_s) for name, t_s in times.items())
            begun_s = record.begun_s + 20
            held = Disrupted(
                nodes=("n1",), cause="pause of one", begun_s=begun_s, ended_s=begun_s + 9, outcome="done", marks=marks
            )
            disruptions = (held,) if record.settings.disruption.disrupts else ()
            draft = writer.draft(record.id, record.attempt)
            draft.intervals("l1", growing.intervals(record.begun_s, *disruptions))
            draft.seal(record.model_copy(update={"disruptions": disruptions}))
        folder = writer.folder
    found = read(folder).within.of_analysis
    assert (found.around, found.returns) == ([], []), "no cluster changed its size"
    assert [(one.kind, len(one.controls)) for one in found.aligned] == [("disruption", 1)] * 4
    trial = found.aligned[0]
    slow, usual = (trial.curves["response_ms_mean"][second] for second in (5, 12))
    assert slow == pytest.approx(2 * usual)
    assert trial.controls[0]["response_ms_mean"][5] == pytest.approx(usual)
    assert trial.arrived_s == pytest.approx([8.02, 8.6])
    assert (trial.nodes[-5], trial.nodes[5]) == (3, 3)
