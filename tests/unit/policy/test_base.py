"""Bounds, the replay, and the readers of a history."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.model.scaling import Desired, Supply
from steelyard.policy.base import (
    Bounds,
    History,
    ask_times,
    asked,
    bounded,
    in_service,
    known,
    latest,
    rested,
    value,
    warm,
)
from tests.unit.policy.series import points, policy_named

BOUNDS = Bounds(nodes=3, min_nodes=2, max_nodes=5)
WHY = "cpu is high"


@pytest.mark.parametrize(
    ("nodes", "replication", "size", "reason"),
    [
        (4, 1, 4, WHY),
        (7, 1, 5, f"{WHY}; 7 nodes became 5 by max_nodes = 5"),
        (0, 1, 2, f"{WHY}; 0 nodes became 2 by min_nodes = 2"),
        (2, 3, 3, f"{WHY}; 2 nodes became 3 by a replication factor of 3"),
        (-4, 3, 3, f"{WHY}; -4 nodes became 3 by a replication factor of 3"),
        (9, 6, 6, f"{WHY}; 9 nodes became 6 by a replication factor of 6"),
    ],
)
def test_a_size_is_held_to_its_bounds_and_says_so(nodes: int, replication: int, size: int, reason: str) -> None:
    assert bounded(Desired(60.0, nodes, WHY), BOUNDS, replication) == Desired(60.0, size, reason)


def test_what_is_prepared_fits_below_the_largest_size() -> None:
    assert bounded(Desired(1.0, 4, WHY, 1), BOUNDS, 1) == Desired(1.0, 4, WHY, 1)
    assert bounded(Desired(1.0, 4, WHY, 3), BOUNDS, 1) == Desired(1.0, 4, f"{WHY}; 3 prepared became 1", 1)
    assert bounded(Desired(1.0, 4, "", -1), BOUNDS, 1) == Desired(1.0, 4, "-1 prepared became 0", 0)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9))
def test_bounding_twice_is_bounding_once(nodes: int, prepared: int, least: int, more: int, replication: int) -> None:
    bounds = Bounds(least, least, least + more)
    once = bounded(Desired(1.0, nodes, WHY, prepared), bounds, replication)
    assert bounded(once, bounds, replication) == once
    assert once.nodes >= replication


class Follows(NamedTuple):
    """Desires the last value of the metric as a size; remembers what it was given."""

    name: str = "follows"
    metric: str = "m"
    period_s: float = 10.0
    every_s: float = 20.0
    given: list[tuple[float, History]] | None = None

    def desired(self, history: History, now_s: float) -> Desired:
        if self.given is not None:
            self.given.append((now_s, history))
        return Desired(now_s, int(value(history) or 0), f"{value(history)}")


def test_a_replay_asks_on_the_grid_with_what_was_closed_by_then() -> None:
    seen: list[tuple[float, History]] = []
    policy = Follows(given=seen)
    supply = (Supply(0.0, 3), Supply(35.0, 4))
    answers = asked(policy, BOUNDS, 1, points([9, 3, 3, 3, 4, 4, 4, 4, 1], 10.0), supply, 85.0)
    assert [now_s for now_s, _ in seen] == [20.0, 40.0, 60.0, 80.0]
    assert [len(history.points) for _, history in seen] == [2, 4, 6, 8]
    assert [len(history.supply) for _, history in seen] == [1, 2, 2, 2]
    assert answers == (Desired(0.0, 3, ""), Desired(60.0, 4, "4"))
    assert [history.desired for _, history in seen] == [answers[:1], answers[:1], answers[:1], answers]


def test_a_replay_collects_bounded_answers() -> None:
    answers = asked(Follows(), BOUNDS, 1, points([9, 9, 9, 8, 1, 1], 10.0), (), 60.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (20.0, 5), (60.0, 2)]
    assert "max_nodes" in answers[1].reason
    assert "min_nodes" in answers[2].reason


def test_a_change_of_what_is_prepared_is_an_answer_of_its_own() -> None:
    alarm = {"low": 60, "high": 80, "period_s": 10, "evaluation_periods": 1}
    policy = policy_named("two-stage", BOUNDS, **alarm, add=2, max_prepared=2)
    answers = asked(policy, BOUNDS, 1, points([10, 70, 70, 90, 90], 10.0), (), 50.0)
    assert [answer[:2] + answer[3:] for answer in answers] == [(0.0, 3, 0), (20.0, 3, 2), (40.0, 5, 0)]


def test_times_of_its_own() -> None:
    policy = policy_named("scheduled", times=[[0, 4], [20.5, 5], [90, 3]])
    assert list(ask_times(policy)) == [0.0, 20.5, 90.0]
    answers = asked(policy, BOUNDS, 1, (), (), 60.0)
    assert [(answer.t_s, answer.nodes) for answer in answers] == [(0.0, 3), (0.0, 4), (20.5, 5)]


def test_times_do_not_drift() -> None:
    policy = Follows(every_s=0.1)
    assert list(itertools.islice(ask_times(policy), 10_000))[-1] == 1000.0


def test_what_is_known() -> None:
    whole = History(10.0, points([1, 2, 3], 10.0), (Supply(0.0, 3), Supply(20.0, 4)), (Desired(15.0, 4, ""),))
    assert known(whole, 20.0) == whole._replace(points=whole.points[:2])
    assert known(whole, 19.9) == whole._replace(points=whole.points[:1], supply=whole.supply[:1])
    assert known(whole, 15.0).desired == (), "the answer at that time is yet to come"
    assert known(whole, -1.0) == History(10.0, (), (), ())
    assert value(known(whole, 25.0)) == 2
    assert value(known(whole, 1.0)) is None


def test_what_there_is() -> None:
    empty = History(10.0, (), (), ())
    assert latest(empty, BOUNDS, 7.0) == Desired(7.0, 3, "")
    assert latest(empty._replace(desired=(Desired(5.0, 4, WHY, 1),)), BOUNDS, 7.0) == Desired(7.0, 4, "", 1)
    assert in_service(empty, BOUNDS) == 3
    assert in_service(empty._replace(supply=(Supply(0.0, 3), Supply(20.0, 4))), BOUNDS) == 4


def test_nodes_are_warm_once_they_served_for_the_whole_time() -> None:
    history = History(0.0, (), (Supply(0.0, 3), Supply(60.0, 3, 2), Supply(100.0, 4, 1), Supply(200.0, 5)), ())
    at = [0.0, 399.0, 400.0, 499.0, 500.0]
    assert [warm(known(history, now_s), BOUNDS, now_s, 300.0) for now_s in at] == [3, 3, 4, 4, 5]
    assert warm(history, BOUNDS, 200.0, 0.0) == 5
    assert warm(History(0.0, (), (), ()), BOUNDS, 10.0, 300.0) == 3


def test_a_cooldown_begins_when_the_last_node_is_in_service() -> None:
    desired = (Desired(0.0, 3, ""), Desired(60.0, 5, WHY))
    supply = (Supply(0.0, 3), Supply(61.0, 3, 2), Supply(100.0, 4, 1), Supply(200.0, 5))

    def over(now_s: float, entries: tuple[Supply, ...] = supply) -> bool:
        return rested(known(History(0.0, (), entries, desired), now_s), BOUNDS, now_s, 300.0)

    assert [over(now_s) for now_s in (0.0, 60.0, 61.0, 150.0, 499.0, 500.0)] == [True, True, False, False, False, True]
    assert not over(9000.0, supply[:3]), "one of two joined"
    assert not over(9000.0, (supply[0],)), "a trial in which nothing was done"
    assert not over(9000.0, ())


def test_a_cooldown_after_a_failed_join_begins_at_the_end_of_the_change() -> None:
    desired = (Desired(0.0, 3, ""), Desired(60.0, 5, WHY))
    failed = (Supply(0.0, 3), Supply(61.0, 3, 2), Supply(100.0, 4, 1), Supply(120.0, 4, ended_s=119.5))

    def over(now_s: float, entries: tuple[Supply, ...]) -> bool:
        return rested(known(History(0.0, (), entries, desired), now_s), BOUNDS, now_s, 300.0)

    assert [over(now_s, failed) for now_s in (110.0, 120.0, 419.0, 420.0)] == [False, False, False, True]
    assert not over(9000.0, (*failed[:3], failed[3]._replace(ended_s=59.0))), "the end of the change before"
    assert not over(9000.0, failed[:3]), "it is still in progress"
    reached = (*failed[:3], Supply(120.0, 5), Supply(150.0, 5, ended_s=149.5))
    assert over(420.0, reached), "the size was reached before the change ended, with a cleanup"


def test_preparing_is_no_change_of_size() -> None:
    desired = (Desired(0.0, 3, ""), Desired(60.0, 3, WHY, 2))
    assert rested(History(0.0, (), (Supply(0.0, 3),), desired), BOUNDS, 61.0, 300.0)


def test_a_size_that_came_back_rests_from_its_last_change_on() -> None:
    desired = (Desired(60.0, 4, WHY), Desired(120.0, 3, WHY))
    history = History(0.0, (), (Supply(0.0, 3),), desired)
    assert not rested(history, BOUNDS, 419.0, 300.0)
    assert rested(history, BOUNDS, 420.0, 300.0)


def test_a_change_that_takes_nodes_away_rests_from_its_end_on() -> None:
    """The node stops counting when it begins to leave, and has left 600 s later."""
    leaving = (Supply(0.0, 3), Supply(62.0, 2))
    desired = (Desired(60.0, 2, WHY),)
    assert not rested(History(0.0, (), leaving, desired), BOUNDS, 500.0, 300.0)
    ended = History(0.0, (), (*leaving, Supply(661.0, 2, ended_s=660.0)), desired)
    assert not rested(ended, BOUNDS, 959.0, 300.0)
    assert rested(ended, BOUNDS, 960.0, 300.0)
