"""Metric of a policy as it comes in: periods are closed when every node has said something, or after a while."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.lab.metric_seen import GRACE_S, MetricSeen
from steelyard.model.sample import Sample

FACTS = {"n1": {"role": "database", "cores": "1"}, "n2": {"role": "database", "cores": "1"}}


def cluster(*nodes: str) -> Any:
    """As much of a cluster as is looked at."""
    return SimpleNamespace(
        facts=FACTS, shares=frozenset(), loaders=(),
        members=SimpleNamespace(in_service=tuple(SimpleNamespace(name=name) for name in nodes)),
        readings=SimpleNamespace(samples={("os", name): [] for name in nodes}),
    )  # fmt: skip


def policy(metric: str = "cpu_percent_mean") -> Any:
    return SimpleNamespace(metric=metric, period_s=1.0)


def samples(until_s: float, begun_s: float, cores: float) -> list[Sample]:
    return [
        Sample(t_s=begun_s + at_s, node="", metric="node_cpu_user_cores", value=cores)
        for at_s in range(int(until_s) + 1)
    ]


def test_a_period_is_closed_when_every_node_has_a_reading_after_it() -> None:
    of_two, begun_s = cluster("n1", "n2"), time.time() - 1.0
    of_two.readings.samples["os", "n1"] += samples(1, begun_s, 0.2)
    of_two.readings.samples["os", "n2"] += samples(0, begun_s, 0.4)
    seen = MetricSeen(policy(), of_two, {}, ())

    async def body() -> None:
        closing = asyncio.ensure_future(seen.until(1.0, begun_s, ()))
        await asyncio.sleep(0.1)
        assert not closing.done()
        of_two.readings.samples["os", "n2"] += samples(1, begun_s, 0.4)[1:]
        assert await closing

    asyncio.run(body())
    assert seen.points == [(1.0, pytest.approx(30.0), 2)]


def test_a_node_that_is_silent_is_waited_for_and_left_out() -> None:
    of_two, begun_s = cluster("n1", "n2"), time.time() - GRACE_S - 2.0
    of_two.readings.samples["os", "n1"] += samples(1, begun_s, 0.2)
    seen = MetricSeen(policy(), of_two, {}, ())
    assert not asyncio.run(seen.until(1.0, begun_s, ()))
    assert seen.points == [(1.0, pytest.approx(20.0), 1)]
    assert not asyncio.run(seen.until(2.0, begun_s, ()))
    assert seen.points[-1] == (2.0, None, 0)


def test_without_a_metric_nothing_is_waited_for() -> None:
    seen = MetricSeen(policy(metric=""), cluster("n1"), {}, ())
    assert asyncio.run(seen.until(60.0, time.time(), ()))
    assert seen.points == []


def interval(begun_s: float, phase: str, answered: int) -> Any:
    counts = (SimpleNamespace(measure="response", outcome="ok", buckets=((1_000_000, 1_000_000, answered),)),)
    return SimpleNamespace(phase=phase, t_s=begun_s, seconds=1.0, counts=counts if answered else ())


def test_operations_of_the_measured_phase_count_and_a_system_that_answers_nothing_is_not_missing() -> None:
    begun_s = time.time() - 10.0
    loaded = cluster("n1")
    loaded.loaders = (SimpleNamespace(name="l1"),)
    intervals = [
        interval(begun_s - 0.5, "warm-up", 90),
        interval(begun_s, "measure", 30),
        interval(begun_s + 1, "measure", 0),
    ]
    seen = MetricSeen(policy("throughput_per_s"), loaded, {"l1": intervals}, ("measure",))
    assert asyncio.run(seen.until(2.0, begun_s, ()))
    assert seen.points == [(1.0, 30.0, 1), (2.0, 0.0, 1)]
    assert not asyncio.run(seen.until(3.0, begun_s, ()))
    assert seen.points[-1] == (3.0, None, 0)
