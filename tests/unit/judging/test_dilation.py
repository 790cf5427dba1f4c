"""Dilation: what is divided, what is multiplied, what stays."""

from __future__ import annotations

import pytest

from steelyard.judging.dilation import (
    PER_SECOND,
    SECONDS,
    effective_limits,
    effective_load,
    modelled,
    modelled_facts,
    modelled_links,
    modelled_s,
    modelled_value,
)
from steelyard.model import responses as registered
from steelyard.model.link import LinkChoice
from steelyard.model.load import Load, LoadPhase
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.node_limits import NodeLimits
from steelyard.model.response import Dilates
from steelyard.model.search import SearchResult, SearchRules, Window
from steelyard.model.trial import Capacity, Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.probe.os import METRICS
from tests.unit.judging.test_attempts import record as record_of
from tests.unit.lab.fakes import plan_of, study

BY_UNIT: dict[str, Dilates] = {
    "ms": "time", "operations/s": "rate", "KiB/s": "rate", "Mbit/s": "rate", "reads/s": "rate", "writes/s": "rate",
    "W": "rate",
}  # fmt: skip
"""What becomes of a response by its unit; every other unit is an amount, processor work or a share."""


def settings(k: float, **load: object) -> TrialSettings:
    written = {"threads": 8, "duration_s": 10.0, **load}
    return TrialSettings.model_validate({"load": written, "node": {"cpus": 1.0, "dilation": k}})


def a_record(k: float, **changes: object) -> TrialRecord:
    planned = plan_of(study(factors={}, node={"cpus": 1.0, "dilation": k})).trials[0]
    return record_of(planned).model_copy(update=changes)


TIMED: dict[type[Value], set[str]] = {
    Load: {
        "rate_per_s", "from_per_s", "to_per_s", "mean_per_s", "amplitude_per_s", "first_rate_per_s",
        "step_per_s", "highest_rate_per_s", "ramp_s", "step_s", "period_s", "duration_s", "warm_up_s", "capacity_s",
        "window_s", "settle_s", "timeout_ms",
    },
    LoadPhase: {
        "rate_per_s", "from_per_s", "to_per_s", "mean_per_s", "amplitude_per_s", "ramp_s", "step_s", "period_s",
        "duration_s",
    },
    LinkChoice: {"rate_mbit", "ack_rate_mbit", "delay_ms", "jitter_ms"},
    SearchRules: {
        "first_rate_per_s", "step_per_s", "lowest_rate_per_s", "highest_rate_per_s", "window_s", "settle_s",
        "longest_window_s",
    },
    Window: {"rate_per_s", "seconds", "throughput_per_s"},
    SearchResult: {"rate_per_s", "low_per_s", "high_per_s", "knee_per_s"},
    Capacity: {"rate_per_s", "seconds", "service_ms_mean", "measured_s"},
}  # fmt: skip
"""Fields named as rates or times. `timeout_ms` stays whole, `ack_rate_mbit` and `measured_s` as they are."""


@pytest.mark.parametrize("kind", TIMED)
def test_fields_are_stretched_by_their_names(kind: type[Value]) -> None:
    named = {name for name in kind.model_fields if PER_SECOND.search(name) or SECONDS.search(name)}
    assert named - {"rates_per_s"} == TIMED[kind]


def test_every_response_is_divided_or_multiplied_by_its_unit() -> None:
    known = {name: response.dilates for name, response in registered.every().items()}
    assert known == {name: BY_UNIT.get(response.unit, "") for name, response in registered.every().items()}


def test_limits_are_divided_and_amounts_are_not() -> None:
    asked = NodeLimits(
        cpus=1.0, memory_mb=512, disk_read_mb_per_s=20.0, disk_write_ops_per_s=5, disk_gb=2.0, dilation=2
    )
    given = effective_limits(asked)
    assert (given.cpus, given.memory_mb, given.disk_gb) == (0.5, 512, 2.0)
    assert (given.disk_read_mb_per_s, given.disk_write_ops_per_s) == (10.0, 2)
    assert effective_limits(given) == given
    assert effective_limits(NodeLimits(cpus=1.0)) == NodeLimits(cpus=1.0)


def test_rates_of_a_load_are_divided_and_its_times_multiplied() -> None:
    load = effective_load(settings(2.0, schedule="constant", rate_per_s=1000.0, warm_up_s=1.0, timeout_ms=500))
    assert (load.rate_per_s, load.duration_s, load.warm_up_s, load.timeout_ms) == (500.0, 20.0, 2.0, 1000)
    steps = effective_load(settings(2.0, schedule="steps", rates_per_s=[10.0, 20.0], step_s=5.0))
    assert (steps.rates_per_s, steps.step_s) == ((5.0, 10.0), 10.0)
    assert steps.operations_within(20.0) == settings(
        1.0, schedule="steps", rates_per_s=[10.0, 20.0], step_s=5.0
    ).load.operations_within(10.0)
    trace = effective_load(settings(4.0, schedule="trace", trace="t.txt", speed=2.0))
    assert trace.speed == 0.5
    same = settings(1.0)
    assert effective_load(same) == same.load


def test_phases_and_searches_are_stretched() -> None:
    phase = {"name": "peak", "duration_s": 5.0, "schedule": "poisson", "rate_per_s": 100.0}
    (stretched,) = effective_load(settings(2.0, duration_s=None, phases=[phase])).phases
    assert (stretched.duration_s, stretched.rate_per_s) == (10.0, 50.0)
    objective = ["response_ms_p99 <= 10", "error_fraction <= 0.01"]
    search = effective_load(
        settings(2.0, duration_s=None, schedule="search", objective=objective, first_rate_per_s=400)
    )
    assert search.objective == ("response_ms_p99 <= 20", "error_fraction <= 0.01")
    assert (search.first_rate_per_s, search.window_s, search.settle_s) == (200.0, 20.0, 4.0)
    saturation = effective_load(settings(2.0, duration_s=None, schedule="search", objective=["saturation"]))
    assert saturation.objective == ("saturation",)


def test_a_record_is_put_into_modelled_time_once() -> None:
    responses = Responses(execution_time_ms=200.0, throughput_per_s=50.0, operations=10, response_ms_p99=8.0)
    sealed = a_record(
        2.0,
        begun_s=100.0,
        responses=responses,
        phase_responses={"peak": responses},
        measures={
            "cpu_percent_mean": 80.0, "cpu_s_total": 3.0, "disk_read_mb_total": 4.0, "network_in_kb_per_s_mean": 5.0
        },
        covariates={"rtt_ms_min": 1.0, "cores": 0.5, "memory_mb": 512.0},
        phases=(PhaseTime(phase=Phase.DEPLOY, entered_s=90.0, left_s=99.0),
                PhaseTime(phase=Phase.MEASURE, entered_s=110.0, left_s=130.0)),
        offered_rate_per_s=50.0,
        capacity=Capacity(
            rate_per_s=60.0, threads=4, seconds=10.0, operations=600, errors=0, service_ms_mean=3.0, trial="a",
            measured_s=95.0,
        ),
        moved_frames=MovedFrames(
            seconds=10.0, frames=5, delivered=5, dropped=0, lost=0, unread=0, late_ms_mean=0.2, late_ms_max=3.0,
            stalled_s=0.05, cpu_s=0.1,
        ),
    )  # fmt: skip
    seen = modelled(sealed)
    assert (seen.responses.execution_time_ms, seen.responses.throughput_per_s) == (100.0, 100.0)
    assert (seen.responses.operations, seen.responses.response_ms_p99) == (10, 4.0)
    assert seen.phase_responses["peak"] == seen.responses
    assert seen.measures == {
        "cpu_percent_mean": 80.0, "cpu_s_total": 3.0, "disk_read_mb_total": 4.0, "network_in_kb_per_s_mean": 10.0
    }  # fmt: skip
    assert seen.covariates == {"rtt_ms_min": 0.5, "cores": 1.0, "memory_mb": 512.0, "dilation": 2.0}
    assert [(phase.entered_s, phase.left_s) for phase in seen.phases] == [(90.0, 99.0), (105.0, 115.0)]
    assert seen.offered_rate_per_s == 100.0
    assert seen.capacity is not None
    assert (seen.capacity.rate_per_s, seen.capacity.service_ms_mean, seen.capacity.seconds) == (120.0, 1.5, 5.0)
    assert seen.moved_frames == sealed.moved_frames, "judged by the clock, and shown so"
    assert modelled(seen) is seen
    assert modelled_s(sealed, 130.0) == 115.0
    plain = a_record(1.0)
    assert modelled(plain) is plain


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("node_cpu_user_cores", 2.0), ("node_disk_read_bytes_per_s", 2.0), ("node_gc_pause_ms", 0.5),
        ("node_local_read_p99_ms", 0.5), ("machine_cpu_idle_fraction", 1.0), ("node_memory_bytes", 1.0),
        ("machine_load_average_1min", 1.0), ("rtt_ms_mean", 0.5), ("rtt_ms_min_after", 0.5),
        ("link_mbit_per_s_least_after", 2.0), ("link_loss_percent", 1.0), ("cores", 2.0), ("memory_mb", 1.0),
    ],
)  # fmt: skip
def test_metrics_are_known_by_their_names(name: str, factor: float) -> None:
    assert modelled_value(name, 1.0, 2.0) == factor


def test_metrics_of_the_probe_os_follow_their_units() -> None:
    expected = {metric.name: 2.0 if metric.unit.endswith("/s") or metric.unit == "cores" else 1.0 for metric in METRICS}
    assert {metric.name: modelled_value(metric.name, 1.0, 2.0) for metric in METRICS} == expected


def test_facts_and_links_are_marked_and_put_into_modelled_time() -> None:
    facts = modelled_facts({"limit_cpus": "0.4", "limit_memory_bytes": "1000", "cores": "2"}, 2.0)
    assert facts == {"limit_cpus": "0.8", "limit_memory_bytes": "1000", "cores": "2", "dilation": "2"}
    assert modelled_facts({"limit_cpus": "none"}, 2.0)["limit_cpus"] == "none"
    assert modelled_links([{"from": "l1", "rtt_ms_min": 1.0}], 2.0) == [{"from": "l1", "rtt_ms_min": 0.5}]
