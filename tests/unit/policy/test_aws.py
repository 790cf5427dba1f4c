"""Policies of AWS Auto Scaling: threshold, simple, step, target-tracking, and the warm pool of two-stage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from steelyard.model.scaling import Desired, Supply
from steelyard.policy.base import Bounds, asked
from tests.unit.policy.series import history, points, policy_named, sizes

WIDE = Bounds(nodes=3, min_nodes=1, max_nodes=20)
JOINED = (Supply(0.0, 3), Supply(60.0, 3, pending=2), Supply(150.0, 4, pending=1), Supply(200.0, 5))
"""Two nodes that were ordered at 60 s: the last is in service at 200 s."""


def test_threshold_three_of_five() -> None:
    policy = policy_named("threshold", threshold=80, evaluation_periods=5, datapoints_to_alarm=3, add=2)
    assert sizes(policy, [81, 79, 82, 70, 83]) == [3, 3, 3, 3, 5]
    assert policy.every_s == 60


def test_threshold_held_for_seconds_on_end() -> None:
    policy = policy_named("threshold", threshold=80, period_s=1, held_seconds=300, add=2)
    assert asked(policy, WIDE, 1, points([80.0] * 299 + [79.9] * 100, 1.0), (), 399.0) == (Desired(0.0, 3, ""),)
    answers = asked(policy, WIDE, 1, points([80.0] * 400, 1.0), (), 400.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (300.0, 5)]
    assert answers[1].reason == "cpu_percent_mean >= 80 for 300 s on end, last 80"


def test_threshold_never_removes_a_node() -> None:
    assert sizes(policy_named("threshold", threshold=80, evaluation_periods=1), [10] * 30) == [3] * 30


def test_the_rule_of_srinadhuni2018() -> None:
    """Five means of a minute at or over the threshold add two nodes, once."""
    policy = policy_named("threshold", threshold=79, evaluation_periods=5, datapoints_to_alarm=5, add=2)
    values = [70, 80, 81, 79, 85, 82, 90, 90, 90, 90, 90, 90, 90, 90, 90]
    answers = asked(policy, Bounds(3, 3, 5), 3, points(values, 60.0), (), 900.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (360.0, 5)]


@pytest.mark.parametrize("name", ["threshold", "simple"])
def test_the_cooldown_begins_when_the_last_node_is_in_service(name: str) -> None:
    change = {"threshold": {"add": 2}, "simple": {"adjustment": 2}}[name]
    policy = policy_named(name, threshold=80, period_s=20, evaluation_periods=3, cooldown_s=300, **change)
    answers = asked(policy, WIDE, 1, points([90.0] * 30, 20.0), JOINED, 600.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (60.0, 5), (500.0, 7)]


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"adjustment": 2}, 5),
        ({"adjustment": -1}, 2),
        ({"adjustment_type": "percent-change-in-capacity", "adjustment": 50}, 4),
        ({"adjustment_type": "percent-change-in-capacity", "adjustment": 10}, 4),
        ({"adjustment_type": "percent-change-in-capacity", "adjustment": 10, "min_adjustment_magnitude": 2}, 5),
        ({"adjustment_type": "exact-capacity", "adjustment": 7}, 7),
    ],
)
def test_simple_adjusts(settings: dict[str, object], size: int) -> None:
    assert sizes(policy_named("simple", threshold=80, evaluation_periods=1, **settings), [90]) == [size]


def test_simple_removes_nodes_when_the_metric_is_low() -> None:
    policy = policy_named(
        "simple", threshold=20, comparison_operator="less-than-threshold", evaluation_periods=2, adjustment=-1
    )
    assert sizes(policy, [10, 30, 10, 10]) == [3, 3, 3, 2]


STEPS = {"threshold": 60, "evaluation_periods": 1, "steps": [[0, 1], [10, 2], [20, 3]]}


@pytest.mark.parametrize(("metric", "size"), [(59, 3), (60, 4), (69, 4), (70, 5), (75, 5), (79, 5), (80, 6), (500, 6)])
def test_a_step_begins_at_its_distance(metric: float, size: int) -> None:
    assert sizes(policy_named("step", **STEPS), [metric]) == [size]


def test_step_adds_only_what_a_further_step_asks_for_while_nodes_warm_up() -> None:
    """75 adds two; 75 again, while they join and warm up, none; 85 one more; a low metric removes none until they are
    warm."""
    policy = policy_named("step", **STEPS, instance_warmup_s=300)
    ordered = [Desired(0.0, 3, ""), Desired(60.0, 5, "step")]

    def size(values: Sequence[float], desired: Sequence[Desired]) -> int:
        return policy.desired(history(policy, values, JOINED, desired), len(values) * 60.0).nodes

    assert size([75], ordered[:1]) == 5
    assert size([75, 75], ordered) == 5
    assert size([75, 75, 75, 75], ordered) == 5, "in service since 40 s"
    assert size([75, 75, 85], ordered) == 6
    assert size([75] * 9, ordered) == 7, "warm since 500 s"

    low = policy_named(
        "step", threshold=30, comparison_operator="less-than-threshold", evaluation_periods=1,
        steps=[[0, -1], [20, -2]], instance_warmup_s=300,
    )  # fmt: skip

    def reduced(values: Sequence[float]) -> int:
        return low.desired(history(low, values, JOINED, ordered), len(values) * 60.0).nodes

    assert reduced([75] * 7 + [10]) == 5, "480 s: not yet warm"
    assert reduced([75] * 8 + [25]) == 4
    assert reduced([75] * 8 + [10]) == 3


def test_step_in_percent_as_the_user_guide_has_it() -> None:
    """Threshold 50, steps of 0, 10 and 30%: 10 nodes at 60 become 11; while the 11th warms up, none is added at 62, two
    more at 70; 11 warm ones at 70 become 14. Below: 14 at 40 become 13, 13 at 30 become 10."""
    percent = {"adjustment_type": "percent-change-in-capacity", "evaluation_periods": 1, "threshold": 50}
    bounds = Bounds(10, 1, 100)
    out = policy_named("step", bounds, **percent, steps=[[0, 0], [10, 10], [20, 30]])
    warming, ready = (Supply(0.0, 10), Supply(60.0, 10, 1)), (Supply(-900.0, 11),)
    eleven = [Desired(0.0, 10, ""), Desired(60.0, 11, "")]

    def size(metric: float, supply: Sequence[Supply], desired: Sequence[Desired]) -> int:
        return out.desired(history(out, [60, metric], supply, desired), 120.0).nodes

    assert size(60, warming[:1], eleven[:1]) == 11
    assert size(62, warming, eleven) == 11
    assert size(70, warming, eleven) == 13
    assert size(70, ready, eleven) == 14
    assert size(59, ready, eleven) == 11
    below = policy_named(
        "step", bounds, **percent, comparison_operator="less-than-or-equal-to-threshold",
        steps=[[0, 0], [10, -10], [20, -30]],
    )  # fmt: skip
    for nodes, metric, fewer in ((14, 40, 13), (13, 30, 10), (14, 41, 14)):
        seen = history(below, [metric], (Supply(-900.0, nodes),), [Desired(-900.0, nodes, "")])
        assert below.desired(seen, 60.0).nodes == fewer


def test_step_needs_a_point_that_breaches_now() -> None:
    """An alarm of 2 of 3 is on, but its last point is in no step."""
    policy = policy_named("step", **{**STEPS, "evaluation_periods": 3, "datapoints_to_alarm": 2})
    assert sizes(policy, [75, 75, 50]) == [3, 5, 3]
    assert sizes(policy, [75, 75, None]) == [3, 5, 3]


TRACKING = {"target": 60, "evaluation_periods_out": 3, "evaluation_periods_in": 15}


@pytest.mark.parametrize(
    ("metric", "tolerance", "size"), [(90, 0, 5), (65, 0, 4), (65, 0.1, 3), (60, 0, 3), (60.1, 0, 4), (120, 0, 6)]
)
def test_target_tracking_out_after_three_points(metric: float, tolerance: float, size: int) -> None:
    assert sizes(policy_named("target-tracking", **TRACKING, tolerance=tolerance), [metric] * 4) == [3, 3, size, size]


def test_target_tracking_in_after_fifteen_points_below_nine_tenths() -> None:
    bounds = Bounds(6, 1, 20)
    policy = policy_named("target-tracking", bounds, **TRACKING)
    assert sizes(policy, [35] * 16) == [6] * 14 + [4] * 2, "6 x 35 / 60 = 3.5: two of 2.5 are removed"
    assert sizes(policy, [54] * 30) == [6] * 30
    assert sizes(policy, [35] * 14 + [55] + [35] * 14) == [6] * 29
    assert sizes(policy_named("target-tracking", bounds, **TRACKING, disable_scale_in=True), [35] * 30) == [6] * 30


def test_target_tracking_counts_what_it_ordered() -> None:
    policy = policy_named("target-tracking", **TRACKING, instance_warmup_s=300)
    five = [Desired(0.0, 3, ""), Desired(180.0, 5, "")]
    supply = (Supply(0.0, 3), Supply(180.0, 3, 2), Supply(200.0, 5))

    def size(values: Sequence[float]) -> int:
        return policy.desired(history(policy, values, supply, five), len(values) * 60.0).nodes

    assert size([90] * 4) == 5
    assert size([90] * 3 + [130]) == 7, "of three nodes: 6.5"
    assert size([90] * 9) == 8, "five are warm: 7.5"
    assert size([10] * 15) == 1
    cold = (Supply(0.0, 3), Supply(180.0, 3, 2), Supply(700.0, 5))
    assert policy.desired(history(policy, [10] * 15, cold, five), 900.0).nodes == 5


def test_without_data_target_tracking_does_not_scale_in() -> None:
    assert sizes(policy_named("target-tracking", **TRACKING), [35] * 5 + [None] * 30)[15:] == [3] * 20


def test_two_stages() -> None:
    """Low fires at 60 s: two are prepared. High at 180 s: they join."""
    policy = policy_named(
        "two-stage", low=60, high=80, period_s=20, evaluation_periods=3, add=2, max_prepared=2, cooldown_s=300
    )
    values = [65, 65, 65, 65, 65, 65, 85, 85, 85] + [85] * 40
    supply = (Supply(0.0, 3), Supply(100.0, 3, 0, 2), Supply(180.0, 3, 2), Supply(240.0, 5))
    answers = asked(policy, WIDE, 1, points(values, 20.0), supply, 600.0)
    assert [(answer.t_s, answer.nodes, answer.prepared) for answer in answers] == [
        (0.0, 3, 0), (60.0, 3, 2), (180.0, 5, 0), (540.0, 7, 0),
    ]  # fmt: skip
    assert ">= 60" in answers[1].reason
    assert ">= 80" in answers[2].reason


def test_what_is_prepared_stays_when_the_metric_falls_and_is_prepared_again() -> None:
    policy = policy_named(
        "two-stage", Bounds(3, 3, 6), low=60, high=80, period_s=10, evaluation_periods=1, add=2, max_prepared=2,
        cooldown_s=0,
    )  # fmt: skip
    values = [65, 10, 10, 85, 65, 65, 65]
    supply = (Supply(0.0, 3), Supply(50.0, 5))
    answers = asked(policy, Bounds(3, 3, 6), 1, points(values, 10.0), supply, 70.0)
    assert [(answer.t_s, answer.nodes, answer.prepared) for answer in answers] == [
        (0.0, 3, 0), (10.0, 3, 2), (40.0, 5, 0), (50.0, 5, 1),
    ]  # fmt: skip


def test_a_leap_over_both_thresholds_joins_at_once() -> None:
    policy = policy_named("two-stage", low=60, high=80, evaluation_periods=1, add=2)
    answer = policy.desired(history(policy, [95]), 60.0)
    assert (answer.nodes, answer.prepared) == (5, 0)
