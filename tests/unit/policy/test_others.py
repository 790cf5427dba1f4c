"""Policies none, static-max, scheduled, pid and oracle."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.policy.base import Bounds, History, asked
from tests.unit.policy.series import BOUNDS, points, policy_named, sizes

EMPTY = History(0.0, (), (), ())


def test_controls() -> None:
    assert [policy_named("none").desired(EMPTY, now_s).nodes for now_s in (1.0, 900.0)] == [3, 3]
    assert [policy_named("static-max").desired(EMPTY, now_s).nodes for now_s in (1.0, 900.0)] == [20, 20]
    assert asked(policy_named("none"), BOUNDS, 1, (), (), 900.0)[1:] == ()
    assert len(asked(policy_named("static-max", Bounds(5, 3, 5)), Bounds(5, 3, 5), 1, (), (), 900.0)) == 1


def test_scheduled() -> None:
    policy = policy_named("scheduled", times=[[40, 4], [120.5, 3]])
    answers = asked(policy, BOUNDS, 1, (), (), 200.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (40.0, 4), (120.5, 3)]
    assert answers[1].reason == "scheduled: 4 nodes at 40 s"


def test_pid_in_velocity_form() -> None:
    """Errors 10, 8, 5: the output changes by 2.0, 0.6 and 0.2, in all 2.8; 5.8 nodes are 6."""
    policy = policy_named("pid", setpoint=60, kp=0.1, ki=0.01, sample_s=10)
    assert sizes(policy, [70, 68, 65]) == [5, 6, 6]
    answers = asked(policy, BOUNDS, 1, points([70, 68, 65], 10.0), (), 30.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (10.0, 5), (20.0, 6)]
    assert answers[-1].reason == "cpu_percent_mean is off its set point by 8: output 5.6"


def test_pid_by_its_derivative() -> None:
    """kd (e - 2 e1 + e2) / dt: errors 0, 10, 10 change the output by 0, +2 and -2."""
    assert sizes(policy_named("pid", setpoint=60, kd=2, sample_s=10), [60, 70, 70, 70]) == [3, 5, 3, 3]


def test_a_sample_without_a_reading_changes_nothing() -> None:
    policy = policy_named("pid", setpoint=60, kp=0.1, ki=0.01, sample_s=10)
    assert sizes(policy, [None, 70, None, 68, 65, None]) == [3, 5, 5, 6, 6, 6]


@pytest.mark.parametrize(("anti_windup", "size"), [(True, 3), (False, 9)])
def test_anti_windup(anti_windup: bool, size: int) -> None:
    """Ten samples at full error, of which the cluster can use two; then four below the set point."""
    policy = policy_named("pid", Bounds(3, 3, 5), setpoint=60, ki=0.01, sample_s=10, anti_windup=anti_windup)
    assert sizes(policy, [70] * 10 + [50] * 4)[-1] == size


CAPACITY = [[3, 9000], [4, 11500], [5, 14000]]


def test_oracle_orders_a_scaling_time_ahead() -> None:
    rates = [[0, 8000], [200, 11000], [400, 14000], [500, 2000]]
    policy = policy_named("oracle", capacity=CAPACITY, t_scale_s=60, rates=rates)
    answers = asked(policy, BOUNDS, 1, (), (), 900.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (140.0, 4), (340.0, 5), (500.0, 3)]
    assert answers[1].reason == "oracle: up to 11000 per s until 60 s from now"


def test_oracle_beyond_the_largest_size() -> None:
    policy = policy_named("oracle", capacity=CAPACITY, t_scale_s=60, rates=[[0, 50_000]])
    answer = policy.desired(EMPTY, 1.0)
    assert (answer.nodes, answer.reason.endswith("more than the largest size carries")) == (5, True)


def test_oracle_before_the_first_rate() -> None:
    policy = policy_named("oracle", capacity=CAPACITY, t_scale_s=60, rates=[[100, 12_000]])
    answers = asked(policy, BOUNDS, 1, (), (), 200.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (40.0, 5)]


def test_oracle_without_a_load_that_says_its_rate() -> None:
    with pytest.raises(StudyError, match="does not know the offered rate"):
        policy_named("oracle", capacity=CAPACITY, t_scale_s=60)
