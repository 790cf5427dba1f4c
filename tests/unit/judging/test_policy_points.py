"""Points of a policy's metric: over the nodes that serve, from readings and intervals of whole periods."""

from __future__ import annotations

import pytest

from steelyard.judging.membership import Span
from steelyard.judging.policy_points import Seen, mean_in_service, metrics, point
from steelyard.model.activity import Activity, Mark

BEGUN_S = 1000.0
SYSTEM = {"role": "database", "cores": "1"}
FACTS = {name: {**SYSTEM} for name in ("n1", "n2", "n3")}


def readings(values: dict[str, dict[int, float]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Cores that nodes used, by second of the measured phase."""
    return {
        node: {"node_cpu_user_cores": [(BEGUN_S + at_s, value) for at_s, value in of_node.items()]}
        for node, of_node in values.items()
    }


def seen(values: dict[str, dict[int, float]], *activities: Activity) -> Seen:
    return Seen(readings(values), FACTS, (), {}, activities)


def steady(value: float, seconds: range) -> dict[int, float]:
    return dict.fromkeys(seconds, value)


def test_a_point_is_the_mean_over_nodes_and_its_period() -> None:
    known = seen({"n1": {**steady(0.2, range(6)), **steady(0.6, range(6, 11))}, "n2": steady(0.4, range(11))})
    assert point("cpu_percent_mean", 5.0, 5.0, BEGUN_S, known) == (5.0, pytest.approx(30.0), 2)
    assert point("cpu_percent_mean", 10.0, 5.0, BEGUN_S, known) == (10.0, pytest.approx(50.0), 2)


def test_what_comes_later_changes_nothing() -> None:
    early = seen({"n1": steady(0.2, range(6))})
    late = seen({"n1": {**steady(0.2, range(6)), **steady(0.9, range(6, 100))}})
    at = ("cpu_percent_mean", 5.0, 5.0, BEGUN_S)
    assert point(*at, early) == point(*at, late)


def test_a_node_counts_once_it_has_a_reading_at_the_end_of_the_period_so_that_none_comes_in_later() -> None:
    early = {**steady(0.2, range(60)), 59: 0.2}
    assert point("cpu_percent_mean", 60.0, 60.0, BEGUN_S, seen({"n1": early})) == (60.0, None, 0)
    assert point("cpu_percent_mean", 60.0, 60.0, BEGUN_S, seen({"n1": {**early, 60: 0.8}}))[2] == 1


def test_a_node_without_a_reading_of_the_whole_period_is_left_out_and_counted() -> None:
    known = seen({"n1": steady(0.2, range(6)), "n2": steady(0.8, range(3))})
    assert point("cpu_percent_mean", 5.0, 5.0, BEGUN_S, known) == (5.0, pytest.approx(20.0), 1)
    assert point("cpu_percent_mean", 10.0, 5.0, BEGUN_S, known) == (10.0, None, 0)


def test_a_node_counts_from_its_first_whole_period_in_service_on() -> None:
    marks = (Mark(name="started", t_s=BEGUN_S + 4, node="n3"), Mark(name="in-service", t_s=BEGUN_S + 8, node="n3"))
    grows = Activity(kind="scale-out", nodes=("n3",), cause="", begun_s=BEGUN_S + 3, marks=marks)
    known = seen({"n1": steady(0.2, range(16)), "n3": steady(1.0, range(4, 16))}, grows)
    values = [point("cpu_percent_mean", end_s, 5.0, BEGUN_S, known)[1:] for end_s in (5.0, 10.0, 15.0)]
    assert values == [(pytest.approx(20.0), 1), (pytest.approx(20.0), 1), (pytest.approx(60.0), 2)]


def test_a_window_has_each_node_for_the_time_in_which_it_served() -> None:
    marks = (Mark(name="started", t_s=BEGUN_S + 4, node="n3"), Mark(name="in-service", t_s=BEGUN_S + 8, node="n3"))
    grows = Activity(kind="scale-out", nodes=("n3",), cause="", begun_s=BEGUN_S + 3, marks=marks)
    known = seen({"n1": steady(0.2, range(17)), "n3": steady(1.0, range(4, 17))}, grows)

    def mean(*windows: Span) -> float | None:
        return mean_in_service("cpu_percent_mean", windows, BEGUN_S, known)

    assert mean(Span(0.0, 8.0)) == pytest.approx(20.0), "n3 did not serve yet"
    assert mean(Span(8.0, 16.0)) == pytest.approx(60.0)
    assert mean(Span(4.0, 16.0)) == pytest.approx((12 * 20 + 8 * 100) / 20), "8 of 20 node-seconds"
    assert mean(Span(0.0, 2.0), Span(10.0, 11.0)) == pytest.approx((3 * 20 + 100) / 4)
    assert mean(Span(10.0, 16.0)) == point("cpu_percent_mean", 16.0, 6.0, BEGUN_S, known).value
    assert mean(Span(10.0, 30.0)) is None, "readings end at 16 s"


def test_responses_of_clients_are_of_the_intervals_that_end_within_the_period() -> None:
    bucket = (1_000_000, 1_000_000)
    slow = (9_000_000, 9_000_000)
    answers = {
        "l1": [(BEGUN_S + at_s, [(*bucket, 30)] if at_s <= 5 else [(*slow, 10)]) for at_s in range(1, 11)],
        "l2": [(BEGUN_S + 5, [(*bucket, 50)])],
    }
    known = Seen({}, {}, (), answers, ())
    assert point("throughput_per_s", 5.0, 5.0, BEGUN_S, known) == (5.0, 40.0, 2)
    assert point("response_ms_mean", 5.0, 5.0, BEGUN_S, known) == (5.0, 1.0, 2)
    assert point("throughput_per_s", 10.0, 5.0, BEGUN_S, known) == (10.0, 10.0, 2)
    assert point("response_ms_p99", 10.0, 5.0, BEGUN_S, known) == (10.0, 9.0, 2)
    assert point("response_ms_mean", 15.0, 5.0, BEGUN_S, known) == (15.0, None, 2)
    assert point("throughput_per_s", 15.0, 5.0, BEGUN_S, known) == (15.0, 0.0, 2), "a system that answers nothing"


def test_a_policy_can_follow_what_has_a_value_in_each_second() -> None:
    assert {"cpu_percent_mean", "response_ms_p99", "throughput_per_s"} <= set(metrics())
    assert "cpu_percent_max" not in metrics()
