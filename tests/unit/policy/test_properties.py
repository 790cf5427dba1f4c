"""Properties of all twelve policies, on histories that no laboratory would record."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.model.scaling import Desired, Point, Supply
from steelyard.policy.base import History, asked, bounded
from steelyard.testing.policy import shifted
from tests.unit.policy.series import BOUNDS, policy_named

PERIOD_S = 10
ALARM = {"period_s": PERIOD_S, "evaluation_periods": 3, "datapoints_to_alarm": 2}
POLICIES: dict[str, dict[str, Any]] = {
    "none": {},
    "static-max": {},
    "scheduled": {"times": [[40, 4], [120, 2]]},
    "threshold": {**ALARM, "threshold": 60, "cooldown_s": 20},
    "simple": {**ALARM, "threshold": 60, "adjustment": 2, "cooldown_s": 20, "when_missing": "ignore"},
    "step": {**ALARM, "threshold": 60, "steps": [[0, 1], [20, 2]], "instance_warmup_s": 20},
    "target-tracking": {"period_s": PERIOD_S, "target": 60, "evaluation_periods_in": 4, "instance_warmup_s": 20},
    "hpa": {"period_s": PERIOD_S, "target": 60, "sync_period_s": 5, "stabilization_window_down_s": 60},
    "pid": {"sample_s": PERIOD_S, "setpoint": 60, "kp": 0.02, "ki": 0.002, "kd": 0.1},
    "two-stage": {**ALARM, "low": 50, "high": 70, "cooldown_s": 20},
    "predictive": {"period_s": PERIOD_S, "target": 60, "horizon_s": 60, "disable_scale_in": False},
    "oracle": {"capacity": [[3, 100], [5, 200]], "t_scale_s": 30, "rates": [[0, 50], [90, 150]]},
}
BY_THE_CLOCK = {"scheduled", "oracle"}
SHIFT_S = 512.0


class Drawn(NamedTuple):
    """A history, a time within it, and a later part that differs."""

    history: History
    now_s: float
    other: History


@st.composite
def histories(draw: st.DrawFn) -> Drawn:
    """Points of periods from 0 on, and times of everything else in whole seconds."""
    values = st.one_of(st.none(), st.integers(0, 120))
    now_s = draw(st.integers(0, 300))

    def drawn(from_s: int, to_s: int) -> tuple[list[Point], list[Supply], list[Desired]]:
        ends = [end for end in range(PERIOD_S, 310, PERIOD_S) if from_s <= end < to_s]
        seen = draw(st.lists(values, min_size=len(ends), max_size=len(ends)))
        times = sorted(draw(st.sets(st.integers(from_s, to_s - 1), max_size=4)))
        counts = st.tuples(
            st.integers(1, 9), st.integers(0, 3), st.just(0), st.one_of(st.none(), st.integers(from_s, to_s - 1))
        )
        return (
            [Point(float(end), value, 3) for end, value in zip(ends, seen, strict=True)],
            [Supply(float(t_s), *draw(counts)) for t_s in times],
            [Desired(t_s + 0.5, draw(st.integers(1, 9)), "", draw(st.integers(0, 2))) for t_s in times],
        )

    past = drawn(0, now_s + 1)
    one, other = (
        History(PERIOD_S, *(before + after for before, after in zip(past, drawn(now_s + 1, 311), strict=True)))
        for _ in range(2)
    )
    return Drawn(one, float(now_s), other)


ONE_OF_EACH = {name: policy_named(name, **own) for name, own in POLICIES.items()}
thorough = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_all_are_here() -> None:
    assert len(POLICIES) == 12


@thorough
@given(drawn=histories())
def test_an_answer_does_not_depend_on_what_comes_later(drawn: Drawn) -> None:
    for name, policy in ONE_OF_EACH.items():
        assert policy.desired(drawn.history, drawn.now_s) == policy.desired(drawn.other, drawn.now_s), name


@thorough
@given(drawn=histories())
def test_an_answer_does_not_depend_on_earlier_questions(drawn: Drawn) -> None:
    for name, policy in ONE_OF_EACH.items():
        answer = policy.desired(drawn.history, drawn.now_s)
        policy.desired(drawn.other, 300.0)
        assert policy.desired(drawn.history, drawn.now_s) == answer, name
        assert policy_named(name, **POLICIES[name]).desired(drawn.history, drawn.now_s) == answer, name
        assert answer.t_s == drawn.now_s


@thorough
@given(drawn=histories())
def test_a_later_history_gives_the_same_answer_later(drawn: Drawn) -> None:
    for name, policy in ONE_OF_EACH.items():
        answer = policy.desired(drawn.history, drawn.now_s)
        later = policy.desired(shifted(drawn.history, SHIFT_S), drawn.now_s + SHIFT_S)
        assert name in BY_THE_CLOCK or later == answer._replace(t_s=answer.t_s + SHIFT_S), name


@thorough
@given(drawn=histories(), replication=st.integers(0, 4))
def test_a_replay_of_a_part_gives_the_answers_of_the_part(drawn: Drawn, replication: int) -> None:
    history, other = drawn.history, drawn.other
    for name, policy in ONE_OF_EACH.items():
        whole = asked(policy, BOUNDS, replication, history.points, history.supply, 300.0)
        half = asked(policy, BOUNDS, replication, other.points, other.supply, drawn.now_s)
        assert half == tuple(each for each in whole if each.t_s <= drawn.now_s), name
        assert all(bounded(each, BOUNDS, replication) == each for each in whole[1:]), name
        changed = pairwise((each.nodes, each.prepared) for each in whole)
        assert all(before != after for before, after in changed), name
