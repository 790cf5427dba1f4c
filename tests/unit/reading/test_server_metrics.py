"""Pauses laid over windows, the worst window, and what only database nodes say."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl
import pytest

from steelyard.probe.os import METRICS
from steelyard.reading.server_metrics import (
    PAUSE,
    WATCHED,
    paused_ms,
    pauses_of,
    server_metrics,
    server_strips,
    worst_window,
)
from steelyard.reading.time_courses import timeline
from steelyard.report.figures.timelines import NO_WORST, figure, of_worst
from tests.unit.reading.test_time_courses import intervals
from tests.unit.report import synthetic

BEGUN_S = 1_790_000_000.0


@dataclass(frozen=True)
class Window:
    """A window with percentiles."""

    at_s: float
    percentiles_ms: dict[str, float] = field(default_factory=dict)
    seconds: float = 1.0


def samples(*rows: tuple[float, str, str, float]) -> pl.DataFrame:
    """Rows: seconds since the load began, node, metric, value."""
    placed = [(BEGUN_S + at_s, node, metric, value) for at_s, node, metric, value in rows]
    return pl.DataFrame(placed, schema=["t_s", "node", "metric", "value"], orient="row")


def watched(node: str, *seconds: int) -> list[tuple[float, str, str, float]]:
    return [(second + 1.0, node, WATCHED, 0.0) for second in seconds]


def test_a_pause_is_laid_over_the_windows_that_it_fell_in() -> None:
    frame = samples(
        *watched("n1", 0, 1, 2, 4), *watched("n2", 0, 1, 2, 3, 4), (2.1, "n1", PAUSE, 312.0), (4.9, "n2", PAUSE, 2000.0)
    )
    found = paused_ms(frame, pauses_of(frame, BEGUN_S), BEGUN_S, 1.0, 5)
    assert found["n1"] == pytest.approx((0.0, 212.0, 100.0, None, 0.0)), "1.788 to 2.1 s; second 3 was not watched"
    assert found["n2"] == pytest.approx((0.0, 0.0, 100.0, 1000.0, 900.0)), "2.9 to 4.9 s"
    assert pauses_of(frame.filter(pl.col("metric") == PAUSE), BEGUN_S) == {}, "nobody watched"


def test_the_worst_window_is_of_the_measured_phases_and_names_who_paused() -> None:
    windows = [Window(float(at), {"p50": 1.0, "p99": ms}) for at, ms in enumerate((99.0, 5.0, 40.0, 40.0, 3.0))]
    pauses = {"n1": [(0.5, 0.55), (3.5, 3.508)], "n2": [(2.25, 2.2655)], "n10": [(1.5, 1.9), (1.75, 2.25)], "n3": []}
    worst = worst_window(windows, pauses, 1.0)
    assert worst is not None
    assert (worst.percentile, worst.ms, worst.from_s, worst.with_pause, worst.windows) == ("p99", 40.0, 2.0, 3, 4)
    assert list(worst.paused_ms) == ["n10", "n2"], "the longest first"
    assert worst.paused_ms["n10"] == pytest.approx(290.0), "from 40 ms before the window on: 1.96 to 2.25 s"
    assert of_worst(worst) == (
        "p99 was highest, 40 ms, from 2 to 3 s; paused then to collect garbage: n10 290 ms and n2 15.5 ms. "
        "3 of 4 windows have a pause."
    )


def test_no_pause_in_the_worst_window_is_said_too() -> None:
    windows = [Window(0.0, {"p50": 1.0}, 5.0), Window(5.0, {"p50": 3.0}, 5.0), Window(10.0, {}, 5.0)]
    worst = worst_window(windows, {"n1": [(11.0, 11.009)]}, 0.0)
    assert worst is not None
    assert of_worst(worst) == (
        "p50 was highest, 3 ms, from 5 to 10 s; no node paused then to collect garbage. 1 of 3 windows have a pause."
    )
    assert worst_window(windows, {}, 0.0) is None, "pauses were not watched"
    assert worst_window([Window(0.0)], {"n1": []}, 0.0) is None, "no percentile is supported"


def test_a_course_whose_windows_support_no_percentile_says_why_it_names_no_worst_one() -> None:
    study_records = synthetic.records(synthetic.study(nodes=(1,), workloads=("A",), starts=1, trials=1), faults=False)
    few = intervals([(float(at), "ok", 1, 1) for at in range(6)])
    begun_s = float(few["t_s"].min())  # type: ignore[arg-type]
    rows = [(begun_s + 1.0, "n1", WATCHED, 0.0)]
    quiet = pl.DataFrame(rows, schema=["t_s", "node", "metric", "value"], orient="row")
    course = timeline(study_records[0], few, samples=quiet)
    assert course is not None
    assert course.worst is None
    assert figure(course).caption.count(NO_WORST) == 1
    unwatched = timeline(study_records[0], few, samples=quiet.clear())
    assert unwatched is not None
    assert NO_WORST not in figure(unwatched).caption


def test_strips_are_of_what_is_more_than_nothing() -> None:
    frame = samples(
        (1.0, "n1", "node_read_pending_tasks", 4.0), (1.0, "n1", "node_mutation_pending_tasks", 2.0),
        (1.0, "n1", "node_compactions_running", 0.0), (1.0, "n1", "node_compile_fraction", 0.25),
    )  # fmt: skip
    groups = server_strips(frame, BEGUN_S, 1.0, 2, {"n1": (0.0, 0.0)})
    assert [(group.title, group.unit, group.strips[0].values) for group in groups] == [
        ("tasks waiting for a thread", "tasks", (6.0, None)),
        ("just-in-time compilation", "% of a core", (25.0, None)),
    ]


def test_metrics_of_servers_are_those_that_load_nodes_lack() -> None:
    frame = samples(
        (1.0, "n1", "node_heap_used_bytes", 10.0), (5.0, "n2", "node_heap_used_bytes", 30.0),
        (9.0, "n2", "node_heap_used_bytes", 99.0), (1.0, "n1", "node_processes", 1.0),
        (1.0, "l1", "node_processes", 1.0),
    )  # fmt: skip
    (found,) = server_metrics(frame, ("n1", "n2"), (BEGUN_S, BEGUN_S + 5.0))
    assert (found.metric, found.readings, found.mean, found.greatest, found.node) == (
        "node_heap_used_bytes", 2, 20.0, 30.0, "n2"
    )  # fmt: skip
    assert server_metrics(frame, (), (BEGUN_S, BEGUN_S + 5.0)) == ()
    assert server_metrics(frame, ("n1", "n2"), None) == ()


def test_what_the_operating_system_says_of_a_node_is_not_of_its_database() -> None:
    """Load nodes need not have all of it: their disks are not theirs."""
    of_nodes = [metric.name for metric in METRICS if metric.name.startswith("node_")]
    frame = samples((1.0, "l1", "node_memory_bytes", 1.0), *((1.0, "n1", name, 1.0) for name in of_nodes))
    assert len(of_nodes) > 10
    assert server_metrics(frame, ("n1",), (BEGUN_S, BEGUN_S + 5.0)) == ()
