"""Phases of activities sum to the whole, whichever marks there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judging.activity_phases import arrival, phases, phases_after
from steelyard.model.activity import OF_JOIN, OF_LEAVE, Activity, Mark

BEGUN_S = 1_790_000_000.0


def activity(marks: Sequence[tuple[str, float, str]], **changes: Any) -> Activity:
    """Marks: name, seconds since the activity began, node."""
    given_marks = tuple(Mark(name=name, t_s=BEGUN_S + at_s, node=node) for name, at_s, node in marks)
    given_ones = {
        "kind": "scale-out", "nodes": ("n4",), "cause": "test", "begun_s": BEGUN_S, "ended_s": BEGUN_S + 100.0,
        "outcome": "done", "marks": tuple(sorted(given_marks, key=lambda mark: mark.t_s)),
    }  # fmt: skip
    return Activity.model_validate({**given_ones, **changes})


def seconds_of(of: Activity, node: str = "n4") -> dict[str, float]:
    return {phase.name: round(phase.seconds, 3) for phase in phases(of, node)}


def test_a_phase_ends_at_its_mark() -> None:
    times_s = (0.0, 1.0, 3.0, 3.5, 6.5, 11.5, 12.0, 12.25)
    joined = activity([(name, at_s, "n4") for name, at_s in zip(OF_JOIN, times_s, strict=True)])
    assert seconds_of(joined) == {
        "provisioning": 0.0, "preparing": 1.0, "starting": 2.0, "schema": 0.5, "ring delay": 3.0, "streaming": 5.0,
        "opening": 0.5, "joining": 0.25,
    }  # fmt: skip
    left = activity([("leaving", 0.5, "n4"), ("streamed", 4.0, "n4"), ("left", 9.0, "n4")], kind="scale-in")
    assert seconds_of(left) == {"preparing": 0.5, "streaming": 3.5, "leaving": 5.0}


@given(
    st.sampled_from([("scale-out", OF_JOIN, "in-service"), ("scale-in", OF_LEAVE, "left")]),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.lists(st.floats(-0.2, 40.0), min_size=8, max_size=8),
    st.floats(1.0, 60.0),
)
def test_the_phases_sum_to_the_whole(
    of: tuple[Any, dict[str, str], str], there: list[bool], at_s: list[float], whole_s: float
) -> None:
    """With marks missing, in any order, and before or after their turn by the error of a clock."""
    kind, names, last = of
    marks = [
        (name, second, "n4")
        for name, is_there, second in zip(names, there, at_s, strict=False)
        if is_there and name != last
    ]
    joined = activity([*marks, (last, whole_s, "n4")], kind=kind)
    in_order = phases(joined, "n4")
    assert sum(phase.seconds for phase in in_order) == pytest.approx(whole_s, abs=1e-5)
    assert all(phase.seconds >= 0 for phase in in_order)
    assert in_order[-1].to_s == BEGUN_S + whole_s
    assert {phase.name for phase in in_order} <= set(names.values())


def test_a_node_waits_for_the_one_before_it() -> None:
    marks = [("started", 1.0, "n4"), ("in-service", 10.0, "n4"), ("started", 12.0, "n5"), ("in-service", 19.0, "n5")]
    both = activity(marks, nodes=("n4", "n5"))
    assert seconds_of(both) == {"preparing": 1.0, "joining": 9.0}
    assert seconds_of(both, "n5") == {"waiting": 10.0, "preparing": 2.0, "joining": 7.0}


@pytest.mark.parametrize("outcome", ["failed", "unfinished"])
def test_what_did_not_arrive_is_unfinished_until_the_activity_ends(outcome: str) -> None:
    marks = [("started", 1.0, "n4"), ("in-service", 10.0, "n4"), ("started", 12.0, "n5")]
    half = activity(marks, nodes=("n4", "n5", "n6"), ended_s=BEGUN_S + 30.0, outcome=outcome)
    assert arrival(half, "n5") is None
    assert seconds_of(half, "n5") == {"waiting": 10.0, "preparing": 2.0, "unfinished": 18.0}
    assert seconds_of(half, "n6") == {"waiting": 10.0, "unfinished": 20.0}
    killed = activity(marks, nodes=("n4", "n5"), ended_s=None, outcome="unfinished")
    assert seconds_of(killed, "n5") == {"waiting": 10.0, "preparing": 2.0}


def test_what_follows_the_arrival_is_no_part_of_the_whole() -> None:
    marks = [
        ("in-service", 10.0, "n4"), ("routed", 9.5, "n4"), ("in-service", 19.0, "n5"), ("routed", 21.0, "n5"),
        ("cleaned", 25.0, "n5"),
    ]  # fmt: skip
    both = activity(marks, nodes=("n4", "n5"))
    after = {node: {phase.name: phase.seconds for phase in phases_after(both, node)} for node in both.nodes}
    assert after == {"n4": {"discovery": -0.5}, "n5": {"discovery": 2.0, "cleanup": 6.0}}
    assert sum(seconds_of(both).values()) == 10.0
