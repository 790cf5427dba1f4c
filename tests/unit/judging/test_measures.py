"""Measures from samples made by hand, with known answers: rates, gaps, counters that begin anew, late nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.engine._event_log import Stage
from steelyard.judging.covariates import covariates_of
from steelyard.judging.measures import (
    Piece,
    Readings,
    cores_given,
    measures_of,
    metrics_of,
    points,
    seconds_of,
    with_derived,
)
from steelyard.model import power, responses
from steelyard.model.activity import Activity, Mark
from steelyard.model.measure import JOB_SPAN, POINT_S
from steelyard.model.search import Search, SearchResult, SearchRules, Window
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Verdict
from steelyard.probe import energy, os, simulated
from tests.unit.analysis import made

BEGUN_S = 5000.0
FACTS: Mapping[str, Mapping[str, str]] = {
    "n1": {"cores": "8", "limit_cpus": "0.5"},
    "n2": {"cores": "8", "limit_cpus": "0.5"},
    "l1": {"cores": "8", "limit_cpus": "none"},
    "system:n1": {},
    "system:n2": {},
}
USER, SYSTEM = "node_cpu_user_cores", "node_cpu_system_cores"
WRITTEN = "node_disk_write_bytes_per_s"


def record(seconds: float, *, operations: int = 1000, shares: tuple[str, ...] = ()) -> TrialRecord:
    measure = PhaseTime(phase=Phase.MEASURE, entered_s=BEGUN_S, left_s=BEGUN_S + seconds)
    known = {"phases": (measure,), "shares": shares, "responses": Responses(operations=operations)}
    return made.record(1000.0).model_copy(update=known)


def every_second(values: Sequence[float], first_s: float = 1.0) -> list[tuple[float, float]]:
    """A reading a second, the first of the second before `first_s` seconds of the span."""
    return [(BEGUN_S + first_s + place, value) for place, value in enumerate(values)]


def cpu(node_values: Mapping[str, Sequence[float]]) -> Readings:
    return {
        node: {USER: every_second([0.75 * value for value in values]), SYSTEM: every_second([0.25 * v for v in values])}
        for node, values in node_values.items()
    }


def test_cpu_is_a_share_of_what_the_node_was_given_not_of_its_machine() -> None:
    readings = cpu({"n1": [0.25] * 10, "n2": [0.5] * 10, "l1": [4.0] * 10})
    measures = measures_of(record(10.0), readings, FACTS)
    assert measures["cpu_percent_mean"] == pytest.approx(75.0)
    assert measures["cpu_percent_busiest_node"] == pytest.approx(100.0)
    assert measures["cpu_percent_max"] == pytest.approx(100.0)
    assert measures["load_cpu_percent_mean"] == pytest.approx(50.0)
    assert measures["cpu_s_total"] == pytest.approx(7.5)
    assert measures["cpu_ms_per_operation"] == pytest.approx(7.5)
    assert "cpu_percent_max_30s" not in measures


def test_while_jobs_are_at_work_their_rests_and_checks_do_not_count() -> None:
    # A rest of 4 s, a job of 3 s whose check lasts 1 s, a rest, and two jobs that overlap, of two load nodes.
    alone = {**{name: FACTS[name] for name in ("n1", "l1", "system:n1")}, "l2": FACTS["l1"]}
    busy = [0.0] * 4 + [0.25] * 3 + [0.5] * 1 + [0.0] * 4 + [0.5] * 6 + [0.0] * 2
    watts = {"node_power_watts": every_second([2.0 + 4.0 * cores for cores in busy])}
    jobs: Readings = {
        "l1": {JOB_SPAN: [(BEGUN_S + 7.0, 3.0), (BEGUN_S + 16.0, 4.0)]},
        "l2": {JOB_SPAN: [(BEGUN_S + 18.0, 4.5)]},
    }
    readings: Readings = {"n1": {**cpu({"n1": busy})["n1"], **watts}, **jobs}
    of = record(20.0, operations=3)
    measures = measures_of(of, readings, alone)
    assert measures["cpu_percent_mean"] == pytest.approx(100 * (3 * 0.25 + 7 * 0.5) / 20 / 0.5)
    assert measures["job_cpu_percent_mean"] == pytest.approx(100 * (3 * 0.25 + 6 * 0.5) / 9 / 0.5)
    assert measures["job_energy_j_per_operation"] == pytest.approx((3 * 3.0 + 6 * 4.0) / 3)
    assert measures["job_power_watts_mean"] == pytest.approx((3 * 3.0 + 6 * 4.0) / 9)
    assert "job_energy_j_above_idle_per_operation" not in measures, "no idle was measured"
    assert JOB_SPAN in metrics_of(["job_cpu_percent_mean"])
    assert measures_of(of, readings, alone, ["job_power_watts_mean"]).keys() == {"job_power_watts_mean"}
    without = {node: metrics for node, metrics in readings.items() if node not in jobs}
    assert not [name for name in measures_of(of, without, alone) if name.startswith("job_")], "as in older stores"


def test_measures_of_a_search_for_saturation_are_those_beyond_it() -> None:
    alone = {"n1": FACTS["n1"], "system:n1": {}}
    readings = cpu({"n1": [0.1] * 20 + [0.25, 0.0] * 5})
    rules = SearchRules(
        limits=(), saturation=True, first_rate_per_s=1.0, lowest_rate_per_s=1.0, highest_rate_per_s=9.0, window_s=5.0,
        settle_s=0.0, longest_window_s=5.0, precision=0.1, most_windows=9,
    )  # fmt: skip

    def window(rate_per_s: float, begun_s: float) -> Window:
        met = rate_per_s < 8
        return Window(
            name="w", rate_per_s=rate_per_s, begun_at=BEGUN_S + begun_s, seconds=1.0, operations=100, met=met, used=2.0,
            spread=0.0, throughput_per_s=rate_per_s,
        )  # fmt: skip

    found = SearchResult(outcome="found", rate_per_s=6.0, windows=6, reason="")
    windows = (window(7.0, 0.0), *(window(8.0, 20.0 + 2 * place) for place in range(5)))
    search = Search(rules=rules, windows=windows, result=found)
    searched = record(30.0).model_copy(update={"search": search})
    measures = measures_of(searched, readings, alone)
    assert measures["cpu_percent_mean"] == pytest.approx(50.0)
    assert measures["cpu_s_total"] == pytest.approx(1.25)
    assert measures["cpu_ms_per_operation"] == pytest.approx(2.5)
    for other in (
        search.model_copy(update={"rules": rules.model_copy(update={"saturation": False})}),
        search.model_copy(update={"windows": windows[:-1]}),
    ):
        unlike = record(30.0).model_copy(update={"search": other})
        assert measures_of(unlike, readings, alone)["cpu_s_total"] == pytest.approx(3.25)


def test_a_node_without_a_quota_was_given_the_cores_of_its_machine() -> None:
    assert cores_given({"cores": "4", "limit_cpus": "none"}) == 4.0
    assert cores_given({"cores": "4", "limit_cpus": "1.5"}) == 1.5
    assert cores_given({"cores": "4", "limit_cpus": "16"}) == 4.0
    assert cores_given({"cores": "4", "limit_cpus": "6", "dilation": "2"}) == 6.0, "in modelled time"
    assert cores_given({"cores": "4", "dilation": "2"}) == 8.0
    assert cores_given({}) is None


def grown(*activities: Activity) -> TrialRecord:
    return record(10.0).model_copy(update={"activities": activities})


def joining(node: str, **times_s: float) -> Activity:
    """A join with marks at seconds since the beginning."""
    marks = tuple(Mark(name=name.replace("_", "-"), t_s=BEGUN_S + at_s, node=node) for name, at_s in times_s.items())
    return Activity(kind="scale-out", nodes=(node,), cause="test", begun_s=BEGUN_S, ended_s=BEGUN_S + 10, marks=marks)


def test_each_second_of_a_growing_cluster_is_the_mean_of_the_nodes_that_were_there() -> None:
    readings = cpu({"n1": [0.25] * 10})
    readings = {**readings, "n2": {USER: every_second([0.5] * 6, 5.0), SYSTEM: every_second([0.0] * 6, 5.0)}}
    of_seconds = seconds_of("cpu_percent_mean", grown(joining("n2", started=4.0, in_service=6.0)), readings, FACTS)
    assert of_seconds == pytest.approx([50.0] * 4 + [75.0] * 6)
    assert seconds_of("cpu_percent_mean", record(10.0), readings, FACTS)[:4] == [None] * 4


def test_a_node_that_never_served_is_in_no_mean() -> None:
    readings = cpu({"n1": [0.25] * 10, "n2": [0.5] * 10})
    unfinished = measures_of(grown(joining("n2", started=1.0)), readings, FACTS)
    assert unfinished["cpu_percent_mean"] == pytest.approx(50.0)
    only_there = measures_of(grown(joining("n2", started=1.0)), {"n1": readings["n1"]}, FACTS)
    assert only_there["cpu_percent_mean"] == pytest.approx(50.0)


def test_a_gap_counts_once_and_with_its_length() -> None:
    """After a gap a counter tells the mean of the whole gap: 2 s at 100, 6 s at 500, 2 s at 100."""
    times = [1.0, 2.0, 8.0, 9.0, 10.0]
    values = [100.0, 100.0, 500.0, 100.0, 100.0]
    rates = [(BEGUN_S + t_s, 1024 * value) for t_s, value in zip(times, values, strict=True)]
    measures = measures_of(record(10.0), {"n1": {WRITTEN: rates}}, {"system:n1": {}})
    assert measures["disk_written_kb_per_s_mean"] == pytest.approx((2 * 100 + 6 * 500 + 2 * 100) / 10)
    assert measures["disk_written_mb_total"] == pytest.approx((4 * 100 + 6 * 500) / 1024)


def test_a_counter_that_began_anew_is_left_out_with_its_time() -> None:
    rates = every_second([1024.0, 1024.0, -9e9, math.nan, 3072.0, 3072.0])
    measures = measures_of(record(6.0), {"n1": {WRITTEN: rates}}, {"system:n1": {}})
    assert measures["disk_written_kb_per_s_mean"] == pytest.approx(2.0)


def test_a_node_that_joins_late_counts_from_its_first_reading() -> None:
    late = [(BEGUN_S + t_s, 1024 * 400.0) for t_s in (9.0, 10.0)]
    readings = {"n1": {WRITTEN: every_second([1024 * 100.0] * 10)}, "n2": {WRITTEN: late}}
    measures = measures_of(record(10.0), readings, FACTS)
    assert measures["disk_written_kb_per_s_mean"] == pytest.approx((10 * 100 + 2 * 400) / 12)
    assert measures["disk_written_mb_total"] == pytest.approx((10 * 100 + 2 * 400) / 1024)


def test_readings_count_as_far_as_they_lie_within_the_measured_span() -> None:
    """Readings at 0.5, 1.5, 2.5 of a span of 2 s: half of the first, all of the second, half of the third."""
    rates = [(BEGUN_S + t_s, 1024 * value) for t_s, value in ((-0.5, 999.0), (0.5, 10.0), (1.5, 20.0), (2.5, 30.0))]
    measures = measures_of(record(2.0), {"n1": {WRITTEN: rates}}, {"system:n1": {}})
    assert measures["disk_written_kb_per_s_mean"] == pytest.approx((0.5 * 10 + 20 + 0.5 * 30) / 2)


def test_a_node_without_a_reading_leaves_the_number_out() -> None:
    readings = cpu({"n1": [0.25] * 10})
    assert "cpu_percent_mean" not in measures_of(record(10.0), readings, FACTS)
    assert measures_of(record(10.0), {}, FACTS) == {}
    assert measures_of(made.record(1000.0), readings, FACTS) == {}


def test_the_highest_30_s_are_whole_points_of_one_node() -> None:
    """75 s are two points; the 15 s at the end, highest of all, are none."""
    values = [0.1] * 30 + [0.2] * 30 + [0.5] * 15
    measures = measures_of(record(75.0), cpu({"n1": values, "n2": [0.15] * 75}), FACTS)
    assert measures["cpu_percent_max_30s"] == pytest.approx(40.0)


def test_a_point_that_readings_cover_too_little_has_no_mean() -> None:
    pieces = [Piece(0.0, 28.0, 1.0), Piece(30.0, 59.0, 2.0)]
    assert points(pieces, 60.0) == [None, pytest.approx(2.0)]


def test_nodes_that_share_a_machine_count_its_readings_once() -> None:
    power = {"machine_package_power_watts": every_second([20.0] * 10)}
    facts = {"system:n1": {}, "system:n2": {}}
    apart = measures_of(record(10.0), {"n1": power, "n2": power}, facts)
    shared = measures_of(record(10.0, shares=("cpu",)), {"n1": power, "n2": power}, facts)
    assert (apart["energy_j_total"], shared["energy_j_total"]) == (pytest.approx(400.0), pytest.approx(200.0))
    assert shared["energy_j_per_operation"] == pytest.approx(0.2)
    assert apart["power_watts_mean"] == pytest.approx(20.0)


def test_energy_above_idle_is_without_the_power_of_each_idle_node() -> None:
    """Nodes of 10 and 20 W when idle draw 30 and 50 W for 10 s; the idle phase lies 20 to 10 s before."""
    idle = PhaseTime(phase=Phase.IDLE, entered_s=BEGUN_S - 20, left_s=BEGUN_S - 10)
    trial = record(10.0)
    trial = trial.model_copy(update={"phases": (idle, *trial.phases)})
    readings = {
        node: {"node_power_watts": [*every_second([before] * 10, -19.0), *every_second([during] * 10)]}
        for node, before, during in (("n1", 10.0, 30.0), ("n2", 20.0, 50.0))
    }
    measures = measures_of(trial, readings, FACTS)
    assert measures["idle_power_watts"] == pytest.approx(15.0)
    assert measures["energy_j_above_idle"] == pytest.approx(500.0)
    assert measures["energy_j_above_idle_per_operation"] == pytest.approx(0.5)
    del readings["n2"]["node_power_watts"][:10]
    unread = measures_of(trial, readings, FACTS)
    assert "energy_j_above_idle" not in unread
    # The first reading after a gap stands for all of it.
    assert unread["power_reading_s_longest"] == pytest.approx(1.0)
    assert "energy_j_above_idle" not in measures_of(record(10.0), readings, FACTS)


def test_energy_by_what_the_study_declares_is_modelled_or_above_the_declared_idle() -> None:
    """Two nodes of 40 W idle and 120 W busy, half busy for 10 s."""
    study = made.study(cost={"node_watts_idle": 40, "node_watts_busy": 120})
    settings = type(made.record(1.0).settings)({"site": {"name": "local", "nodes": 2}})
    trial = record(10.0).model_copy(
        update={"settings": settings, "measures": {"cpu_percent_mean": 50.0, "energy_j_total": 1500.0}}
    )
    (found,) = with_derived([trial], study)
    assert found.measures["modelled_energy_j_total"] == pytest.approx(1600.0)
    assert found.measures["modelled_energy_j_above_idle"] == pytest.approx(800.0)
    assert found.measures["modelled_energy_j_per_operation"] == pytest.approx(1.6)
    assert found.measures["modelled_energy_j_above_idle_per_operation"] == pytest.approx(0.8)
    assert found.measures["energy_j_above_idle"] == pytest.approx(700.0)
    assert found.measures["energy_j_above_idle_per_operation"] == pytest.approx(0.7)
    (shared,) = with_derived([trial.model_copy(update={"shares": ("cpu",)})], study)
    assert "energy_j_above_idle" not in shared.measures, "the machine's, of which a node is a part"
    assert not {name for name in with_derived([trial], made.study())[0].measures if "modelled" in name}


def test_no_number_per_operation_without_operations() -> None:
    measures = measures_of(record(10.0, operations=0), cpu({"n1": [0.25] * 10, "n2": [0.25] * 10}), FACTS)
    assert "cpu_ms_per_operation" not in measures
    assert "cpu_percent_mean" in measures


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    st.integers(0, 38),
    st.floats(0.1, 0.9),
)
def test_splitting_a_reading_changes_nothing(values: list[float], place: int, at: float) -> None:
    """One reading of a rate over a second, or two of the same rate over parts of it: the same mean and total."""
    whole = every_second(values)
    t_s, value = whole[place % len(whole)]
    split = sorted([*whole, (t_s - at, value)])
    known = [
        measures_of(record(float(len(values))), {"n1": {WRITTEN: rates}}, {"system:n1": {}}) for rates in (whole, split)
    ]
    for name in ("disk_written_kb_per_s_mean", "disk_written_mb_total"):
        assert known[0][name] == pytest.approx(known[1][name], rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 8), min_size=1, max_size=90))
def test_means_lie_between_the_least_and_the_highest(values: list[float]) -> None:
    measures = measures_of(record(float(len(values))), {"n1": cpu({"n1": values})["n1"]}, {"n1": {"cores": "8"}})
    least, most = 100 * min(values) / 8, 100 * max(values) / 8
    assert least - 1e-9 <= measures["cpu_percent_mean"] <= most + 1e-9
    assert measures["cpu_percent_max"] == pytest.approx(most)
    if len(values) >= POINT_S:
        assert measures["cpu_percent_mean"] - 1e-9 <= most + 1e-9
        assert least - 1e-9 <= measures["cpu_percent_max_30s"] <= most + 1e-9


def test_every_measure_is_of_metrics_that_its_probe_reads() -> None:
    probes = {"energy": energy.EnergyProbe.metrics, "os": os.METRICS, "simulated": simulated.create().metrics}
    read = {probe: {metric.name for metric in metrics} for probe, metrics in probes.items()}
    read[""] = set(Stage(0).values())  # of no probe: the engine's, of the stages of jobs
    for name, response in responses.measured_by_samples().items():
        assert response.measure is not None
        assert set(response.measure.metrics) <= read[response.measure.probe], name
        assert response.source == "samples", name
        read_for = {power.ANY} if response.measure.power else set(response.measure.metrics)
        assert metrics_of([name]) == read_for | ({JOB_SPAN} if response.measure.during == "jobs" else set())


def test_cost_is_the_price_of_the_nodes_for_a_million_operations() -> None:
    """Three nodes at 0.36 an hour and 500 operations a second: 2,000 s x 3 x 0.0001 a second."""
    settings = {"site": {"name": "local", "nodes": 3, "load_nodes": 1}}
    trial = made.record(2000.0).model_copy(update={"settings": type(made.record(1.0).settings)(settings)})
    study = made.study(cost={"price_per_node_hour": 0.36, "currency": "EUR"})
    (priced,), (bare,) = with_derived([trial], study), with_derived([trial], made.study())
    assert priced.measures["cost_per_million_operations"] == pytest.approx(0.6)
    assert {"cost_per_million_operations", "cost_per_trial"}.isdisjoint(bare.measures)
    measured = (PhaseTime(phase=Phase.MEASURE, entered_s=100.0, left_s=1900.0),)
    (timed,) = with_derived([trial.model_copy(update={"phases": measured})], study)
    assert timed.measures["cost_per_trial"] == pytest.approx(3 * 0.36 / 2)


def test_the_share_of_failed_operations_is_of_those_that_ended() -> None:
    trial = made.record(2000.0)
    failing = trial.model_copy(
        update={"responses": trial.responses.model_copy(update={"operations": 996, "errors": 4})}
    )
    (derived,) = with_derived([failing], made.study())
    assert derived.measures == {"error_percent": pytest.approx(0.4)}


def test_covariates_are_what_every_database_node_was_given() -> None:
    facts = {
        "n1": {"cores": "4", "limit_cpus": "2", "memory_mb": "8000", "limit_memory_bytes": str(1024 * 2**20)},
        "n2": {"cores": "4", "limit_cpus": "1", "memory_mb": "8000", "limit_memory_bytes": "none"},
        "l1": {"cores": "4"},
        "system:n1": {},
        "system:n2": {},
    }
    links = [{"from": "l1", "to": "n1", "rtt_ms_min": 0.1, "rtt_ms_mean": 0.2},
             {"from": "l1", "to": "n2", "rtt_ms_min": 0.3, "rtt_ms_mean": 0.4}]  # fmt: skip
    known = covariates_of(facts, links)
    assert known == {"rtt_ms_min": pytest.approx(0.2), "rtt_ms_mean": pytest.approx(0.3), "cores": 1.5,
                     "memory_mb": pytest.approx((1024 + 8000) / 2)}  # fmt: skip
    assert "rtt_ms_mean" not in covariates_of(facts, [*links, {"from": "l1", "to": "n3", "why": "no route"}])
    assert covariates_of({}, []) == {}


def test_a_time_that_some_trials_of_a_treatment_lack_has_no_mean() -> None:
    """Of five times without the two that never came, a mean would be too short."""
    trial = made.record(1.0)
    times = [
        trial.model_copy(update={"id": str(place), "measures": {"lost_operations": 5.0, **measures}})
        for place, measures in enumerate([{"scale_out_decision_s": 40.0}, {"scale_out_decision_s": 50.0}, {}])
    ]
    assert [one.measures.keys() & {"scale_out_decision_s"} for one in with_derived(times, made.study())] == [set()] * 3
    assert all(one.measures["lost_operations"] == 5.0 for one in with_derived(times, made.study()))
    both = [one.measures["scale_out_decision_s"] for one in with_derived(times[:2], made.study())]
    assert both == [40.0, 50.0]
    voided = times[2].model_copy(update={"verdict": Verdict(outcome="invalid")})
    assert with_derived([*times[:2], voided], made.study())[0].measures["scale_out_decision_s"] == 40.0
