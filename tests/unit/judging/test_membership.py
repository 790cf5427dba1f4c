"""Members over time, derived from activities."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judging.background_load import Machines, OwnTime, background_load
from steelyard.judging.membership import Span, in_service, sizes, spans
from steelyard.model.activity import Activity, Mark
from steelyard.model.sample import Sample


def joined(node: str, *, started_s: float, in_service_s: float) -> Activity:
    marks = (Mark(name="started", t_s=started_s, node=node), Mark(name="in-service", t_s=in_service_s, node=node))
    return Activity(
        kind="scale-out",
        nodes=(node,),
        cause="test",
        begun_s=started_s,
        ended_s=in_service_s,
        outcome="done",
        marks=marks,
    )


def left(node: str, *, leaving_s: float, left_s: float) -> Activity:
    marks = (Mark(name="leaving", t_s=leaving_s, node=node), Mark(name="left", t_s=left_s, node=node))
    return Activity(
        kind="scale-in", nodes=(node,), cause="test", begun_s=leaving_s, ended_s=left_s, outcome="done", marks=marks
    )


@given(
    st.lists(st.floats(0.1, 50.0), max_size=6),
    st.lists(st.floats(0.1, 50.0), max_size=6),
)
def test_members_are_initial_plus_joined_minus_left(joins_s: list[float], leaves_s: list[float]) -> None:
    clock_s, activities, nodes = 1000.0, [], 3
    for number, lasts_s in enumerate(joins_s):
        activities.append(joined(f"n{4 + number}", started_s=clock_s, in_service_s=clock_s + lasts_s))
        clock_s += lasts_s
    for number, lasts_s in enumerate(leaves_s[: len(joins_s)]):
        activities.append(left(f"n{4 + number}", leaving_s=clock_s, left_s=clock_s + lasts_s))
        clock_s += lasts_s
    steps = sizes(nodes, activities)
    for at_s in (999.0, *(mark.t_s + 1e-6 for one in activities for mark in one.marks), clock_s + 1):
        served = sum(
            (mark.name == "in-service") - (mark.name == "left")
            for one in activities
            for mark in one.marks
            if mark.t_s <= at_s
        )
        assert nodes + served == next((size for t_s, size in reversed(steps) if t_s <= at_s), nodes)
    area = sum(span.within(Span(1000.0, clock_s)).seconds for span in spans(activities, "in-service").values())
    edges = [(1000.0, nodes), *steps, (clock_s, 0)]
    integral = sum((after[0] - at[0]) * (at[1] - nodes) for at, after in pairwise(edges))
    assert area == pytest.approx(integral, abs=1e-6)


def test_a_server_that_never_came_into_service_ended_with_its_activity() -> None:
    failed = Activity(
        kind="scale-out", nodes=("n4",), cause="test", begun_s=10, ended_s=30, outcome="failed",
        marks=(Mark(name="started", t_s=12, node="n4"),),
    )  # fmt: skip
    assert spans([failed]) == {"n4": Span(12, 30)}
    assert in_service([failed])["n4"].within(Span(0, 100)).seconds == 0
    never = failed.model_copy(update={"marks": ()})
    assert spans([never])["n4"].begun_s == math.inf


def _use(node: str, from_s: int, to_s: int, cores: float, machine: float) -> list[Sample]:
    metrics = {
        "machine_cpu_user_fraction": machine, "machine_cpu_system_fraction": 0.0,
        "node_cpu_user_cores": cores, "node_cpu_system_cores": 0.0,
    }  # fmt: skip
    return [Sample(t_s, node, name, value) for t_s in range(from_s, to_s + 1) for name, value in metrics.items()]


def test_a_node_that_joins_half_way_counts_for_half_of_the_time() -> None:
    # Two nodes of 0.4 cores each on 2 cores, the second from half-time on: 0.6 cores on average, not 0.8.
    first = _use("n1", 0, 10, 0.4, 0.2) + _use("n1", 11, 20, 0.4, 0.4)
    samples = {"n1": first, "n2": _use("n2", 10, 20, 0.4, 0.4)}
    machines = Machines(cores={"n1": 2, "n2": 2})
    there = spans([joined("n2", started_s=10, in_service_s=12)])
    (load,) = background_load(samples, machines, OwnTime(), 0.0, 20.0, there) or ()
    assert load.cores == pytest.approx(0.0, abs=1e-9)
    whole = 2 * (0.2 * 10 + 0.4 * 10) / 20
    assert whole == pytest.approx(0.6)


def test_a_machine_that_a_node_had_for_a_part_of_the_time_only_is_not_judged() -> None:
    """Its readings cover the node's own time, and what else ran on it before and after is not known."""
    samples = {"n1": _use("n1", 0, 20, 0.4, 0.2), "n2": _use("n2", 10, 20, 0.4, 0.9)}
    machines = Machines(cores={"n1": 2, "n2": 2}, kernels={"n2": "box"})
    there = spans([joined("n2", started_s=10, in_service_s=12)])
    (load,) = background_load(samples, machines, OwnTime(), 0.0, 20.0, there) or ()
    assert load.where == "this machine"
    assert load.cores == pytest.approx(0.0, abs=1e-9)
