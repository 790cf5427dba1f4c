"""Judgement of a server warm-up: what keeps a start from being warm, from made-up rounds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from steelyard.judging.server_warm_up import (
    Round,
    Service,
    node_warmth,
    not_reached,
    service_of,
    still_falling,
    workload_warmth,
)
from steelyard.model.server_warm_up import NodeWarmth, ServerWarmth, ServerWarmUp, WorkloadWarmth

SETTINGS = ServerWarmUp()


def service(mean_ms: float, count: int = 10_000, cv: float = 1.0) -> Service:
    return Service(count, mean_ms * 1e6, (cv * mean_ms * 1e6) ** 2)


def reasons(*rounds: Round) -> list[str]:
    nodes = {name: node_warmth(rounds, name) for name in ("n1", "n2")}
    names = {name for one in rounds for name in one.services}
    workloads = {name: workload_warmth(rounds, name, len(names)) for name in names}
    return list(not_reached(nodes, workloads, SETTINGS))


def made(mean_ms: float, *, compiled_s: float | None = 0.01, cpu_s: float | None = None, count: int = 10_000) -> Round:
    return Round(
        seconds=3.0,
        operations=count,
        services={"ycsb-c": service(mean_ms, count)},
        compiled_s={} if compiled_s is None else {"n1": 0.01, "n2": compiled_s},
        cpu_s={} if cpu_s is None else {"n1": 0.5, "n2": cpu_s},
    )


def test_the_moments_of_a_histogram():
    found = service_of([(999, 1001, 3), (1999, 2001, 1)])
    assert found == Service(4, 1250.0, 187_500.0)
    assert service_of([]) is None


def test_a_quiet_compiler_and_a_level_service_time_are_warm():
    assert reasons(made(1.0), made(1.0)) == []
    assert reasons(made(1.0), made(0.98)) == [], "a fall of 2% is noise"
    assert reasons(made(1.0), made(1.5)) == [], "slower is not colder"


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ((made(1.0),), "there was time for only one round"),
        ((made(1.0), made(1.0, compiled_s=0.1504)), "compilers still used 5.01% of a core on n2 (warm: below 5%)"),
        ((made(1.0), made(1.0, compiled_s=0.3)), "compilers still used 10% of a core on n2 (warm: below 5%)"),
        ((made(1.0), made(0.9)), "service times still fell by 10% for ycsb-c (noise: 5%)"),
    ],
)
def test_what_is_not_warm_is_said(rounds, words):
    (reason,) = reasons(*rounds)
    assert words in reason


def test_without_a_compiler_cpu_per_operation_decides_for_each_node():
    level = made(1.0, compiled_s=None, cpu_s=0.8)
    (reason,) = reasons(made(1.0, compiled_s=None, cpu_s=1.0), level)
    assert reason == "CPU per operation still fell by 20% on n2 (noise: 10%)"
    assert reasons(level, level) == []
    idle = made(1.0, compiled_s=None, cpu_s=0.01)
    assert reasons(level, idle) == [], "too little CPU time to compare"


def test_few_operations_allow_for_more_noise_but_not_for_any():
    assert reasons(made(1.0, count=1000), made(0.94, count=1000)) == []
    assert reasons(made(1.0, count=10), made(0.8, count=10)) != []


def test_a_workload_that_answers_nothing_is_not_warm_and_its_last_answers_are_compared():
    silent = replace(made(1.0), services={})
    (reason,) = reasons(made(1.0), silent)
    assert reason == "no operation was answered at the study's own load: ycsb-c"
    assert reasons(made(1.0), silent, made(1.0)) == []
    (reason,) = reasons(made(1.0), silent, made(0.5))
    assert "service times still fell by 50% for ycsb-c" in reason


def test_several_workloads_raise_no_more_alarms_than_one():
    one, four = (workload_warmth((made(1.0, count=2000), made(0.9, count=2000)), "ycsb-c", of) for of in (1, 4))
    assert one is not None
    assert four is not None
    assert one.noise_percent < four.noise_percent


def warmth(
    *changes: tuple[float | None, float | None], cpu: float | None = None, reached: bool = False
) -> ServerWarmth:
    """The outcome of a server warm-up: change and noise of each workload, change of the CPU time per operation."""
    return ServerWarmth(
        seconds=60, rounds=4, operations=1, reached=reached, nodes={"n1": NodeWarmth(cpu_change_percent=cpu)},
        workloads={
            f"w{place}": WorkloadWarmth(service_ms=1, change_percent=change, noise_percent=noise)
            for place, (change, noise) in enumerate(changes)
        },
    )  # fmt: skip


def test_what_may_still_fall_is_the_greatest_fall_of_the_last_round_and_at_least_its_noise():
    for made_up, ratio in (
        (warmth((-14.0, 5.0), (-9.0, 5.0)), 0.86),
        (warmth((-2.0, 5.0)), 0.95),
        (warmth((39.0, 5.0)), 0.95),
        (warmth((-6.0, 5.0), cpu=-20.0), 0.8),
        (warmth((None, None)), 0.0),
        (warmth(), 0.0),
        (warmth((-200.0, 5.0)), 0.0),  # of somebody else
        (warmth((-14.0, 5.0), reached=True), 1.0),
    ):
        assert still_falling(made_up) == (pytest.approx(-math.log(ratio)) if ratio else math.inf)
