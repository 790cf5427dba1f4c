"""Policy `hpa` as Kubernetes computes it: recommendation, stabilization, limits of the rate."""

from __future__ import annotations

import pytest

from steelyard.model.scaling import Desired, Supply
from steelyard.policy.base import Bounds, asked
from tests.unit.policy.series import history, points, policy_named, sizes

FIVE = Bounds(5, 1, 100)
AT_ONCE = (Supply(0.0, 3), Supply(5.0, 7), Supply(20.0, 14), Supply(35.0, 28), Supply(50.0, 56))
"""A supply that follows the limits of the rate without delay."""


@pytest.mark.parametrize(
    ("metric", "size"), [(60, 3), (65, 3), (66, 3), (66.1, 4), (90, 5), (139, 7), (200, 7), (1000, 7)]
)
def test_three_nodes_with_a_target_of_60(metric: float, size: int) -> None:
    """Within a tenth the size stays; 4 pods or 100% per 15 s are 7 at most."""
    assert sizes(policy_named("hpa", target=60), [metric]) == [size]


def test_the_limit_is_one_of_15_s() -> None:
    policy = policy_named("hpa", Bounds(3, 1, 100), target=60, period_s=5, sync_period_s=5)
    answers = asked(policy, Bounds(3, 1, 100), 1, points([1000.0] * 12, 5.0), AT_ONCE, 60.0)
    grown = [(answer.t_s, answer.nodes) for answer in answers]
    assert grown == [(0.0, 3), (5.0, 7), (20.0, 14), (35.0, 28), (50.0, 56)]


def test_a_smaller_size_is_the_greatest_recommendation_of_300_s() -> None:
    """5 nodes, 20 against 60: recommended are 2. With the recommendations 5 (at the beginning), 4 and 2 there are 5."""
    policy = policy_named("hpa", FIVE, target=60)
    values = [45.0] * 2 + [20.0] * 40
    answers = asked(policy, FIVE, 1, points(values, 15.0), (Supply(0.0, 5), Supply(301.0, 4), Supply(331.0, 2)), 600.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 5), (300.0, 4), (330.0, 2)]
    assert answers[1].reason == "cpu_percent_mean 20, target 60: recommended 2, stabilized 4"


def test_a_peak_within_the_window_keeps_the_size() -> None:
    policy = policy_named("hpa", FIVE, target=60)
    values = [20.0] * 10 + [60.0] + [20.0] * 30
    answers = asked(policy, FIVE, 1, points(values, 15.0), (Supply(0.0, 5),), 600.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 5), (165.0 + 300.0, 2)]


def test_without_stabilization_it_shrinks_at_once() -> None:
    policy = policy_named("hpa", FIVE, target=60, stabilization_window_down_s=0)
    assert sizes(policy, [20]) == [2]


def test_a_larger_size_is_the_least_recommendation_of_its_window() -> None:
    policy = policy_named("hpa", target=60, stabilization_window_up_s=60)
    assert sizes(policy, [90] * 5) == [3, 3, 3, 5, 5]
    assert sizes(policy, [90, 90, 90, 70, 90, 90, 90, 90]) == [3, 3, 3, 4, 4, 4, 4, 5]


@pytest.mark.parametrize(
    ("limits", "select", "size"),
    [
        ([["pods", 1, 60]], "max", 9),
        ([["percent", 10, 60]], "max", 9),
        ([["pods", 1, 60], ["percent", 50, 60]], "max", 5),
        ([["pods", 1, 60], ["percent", 50, 60]], "min", 9),
        ([["pods", 1, 60]], "disabled", 10),
    ],
)
def test_limits_of_shrinking(limits: list[list[object]], select: str, size: int) -> None:
    settings = {"stabilization_window_down_s": 0, "policies_down": limits, "select_policy_down": select}
    assert sizes(policy_named("hpa", Bounds(10, 1, 20), target=60, **settings), [10]) == [size]


@pytest.mark.parametrize(
    ("limits", "select", "size"),
    [
        ([["pods", 1, 60]], "max", 4),
        ([["percent", 10, 60]], "max", 4),
        ([["pods", 1, 60], ["percent", 100, 60]], "max", 6),
        ([["pods", 1, 60], ["percent", 100, 60]], "min", 4),
        ([["pods", 1, 60]], "disabled", 3),
    ],
)
def test_limits_of_growth(limits: list[list[object]], select: str, size: int) -> None:
    settings = {"policies_up": limits, "select_policy_up": select}
    assert sizes(policy_named("hpa", target=60, **settings), [1000]) == [size]


def test_nodes_that_join_count_as_idle() -> None:
    """Three of seven serve, at 130 against 60: the seven will have 55.7. At 160 they will have 68.6, so eight are
    needed."""
    policy = policy_named("hpa", target=60)
    seven = [Desired(0.0, 3, ""), Desired(15.0, 7, "")]
    supply = (Supply(0.0, 3), Supply(15.0, 3, 4))
    for metric, size in ((130.0, 7), (154.0, 7), (160.0, 8)):
        seen = history(policy, [130.0, 130.0, metric], supply, seven)
        assert policy.desired(seen, 45.0).nodes == size


def test_without_a_metric_the_size_stays() -> None:
    policy = policy_named("hpa", target=60)
    assert sizes(policy, [None, None]) == [3, 3]
    assert sizes(policy, [90, None]) == [5, 3]
