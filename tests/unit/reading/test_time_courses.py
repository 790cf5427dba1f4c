"""Percentiles, rates and heat of a trial come from added counts, and only where the counts support them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.trials import Point
from steelyard.model.activity import Activity, Disrupted, Mark
from steelyard.model.load import READ_AGAIN, READ_BACK, Load
from steelyard.model.search import Search
from steelyard.model.search import Window as SearchWindow
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan import expand
from steelyard.reading import time_courses
from steelyard.reading.node_strips import CPU, cpu_strips
from steelyard.reading.time_courses import CourseSpan
from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.data.presentation import view
from steelyard.report.figures import timelines
from steelyard.store import layout
from steelyard.store.journal import Entry, entries
from steelyard.study.read import read_text
from tests.unit.report import growing, synthetic

BEGUN_S = 1_790_000_000.0


def record(**load: Any) -> TrialRecord:
    study = synthetic.study(workloads=("A",), trials=1, warm_up_trials=0)
    found = synthetic.records(study, faults=False)[0]
    settings = {**found.settings.root, "load": {**found.settings.root["load"], **load}}
    return found.model_copy(update={"settings": TrialSettings.model_validate(settings)})


def intervals(
    rows: list[tuple[float, str, int, int]], *, phase: str = "measure", measure: str = "response"
) -> pl.DataFrame:
    """Rows: second, outcome, ms, count; buckets whose middle is that many ms."""
    return pl.DataFrame(
        [
            ("l1", phase, BEGUN_S + second, 1.0, "read", outcome, measure, ms * 1_000_000, ms * 1_000_000, count)
            for second, outcome, ms, count in rows
        ],
        schema={"node": pl.String, **layout.INTERVAL_SCHEMA},
        orient="row",
    )


def test_percentiles_are_of_added_counts_and_only_where_supported() -> None:
    rows = [(float(second), "ok", ms, count) for second in range(20) for ms, count in ((1, 1350), (5, 128), (50, 22))]
    found = time_courses.timeline(record(), intervals(rows))
    assert found is not None
    assert found.step_s == 1.0
    assert [window.operations for window in found.windows] == [1500] * 20
    assert dict(found.windows[0].percentiles_ms) == {"p50": 1.0, "p90": 1.0, "p99": 50.0}
    assert sum(count for _, _, count in found.heat) == 30_000


def test_few_operations_a_second_are_added_up_to_wider_windows() -> None:
    rows = [(float(second), "ok", 2, 250) for second in range(100)]
    found = time_courses.timeline(record(), intervals(rows))
    assert found is not None
    assert found.step_s == 10.0
    assert all("p99" in window.percentiles_ms and "p99.9" not in window.percentiles_ms for window in found.windows)
    assert found.windows[0].achieved_per_s == 250.0


def test_a_window_in_which_the_cluster_stalls_has_its_p99_too() -> None:
    rows = [(float(second), "ok", 2, 85 if second == 47 else 100) for second in range(125)]
    found = time_courses.timeline(record(), intervals(rows))
    assert found is not None
    assert found.step_s == 15.0
    assert found.windows[3].operations == 1485
    assert all("p99" in window.percentiles_ms for window in found.windows[:-1])
    short = time_courses.timeline(record(), intervals(rows[:85]))
    assert short is not None
    assert short.step_s == 10.0, "without room, rather than without a p99"


def test_failures_are_counted_but_have_no_response_time_and_a_silent_second_has_a_rate_of_zero() -> None:
    rows = [(float(second), "ok", 2, 2000) for second in range(20) if second != 7]
    found = time_courses.timeline(record(), intervals([*rows, (7.0, "timeout", 900, 12)]))
    assert found is not None
    silent = found.windows[7]
    assert (silent.operations, silent.failed, dict(silent.percentiles_ms)) == (0, 12, {})
    assert max(band for _, band, _ in found.heat) == 3


def test_offered_rate_follows_the_schedule_of_each_phase_and_the_warm_up() -> None:
    load = {
        "operations": None, "warm_up_s": 5,
        "phases": [
            {"name": "calm", "duration_s": 5, "schedule": "constant", "rate_per_s": 100},
            {"name": "rise", "duration_s": 5, "schedule": "ramp", "from_per_s": 100, "to_per_s": 200, "ramp_s": 5},
        ],
    }  # fmt: skip
    parts = [
        intervals([(float(first + second), "ok", 1, 90) for second in range(5)], phase=name)
        for first, name in ((0, "warm-up"), (5, "calm"), (10, "rise"))
    ]
    found = time_courses.timeline(record(**load), pl.concat(parts))
    assert found is not None
    assert [span.name for span in found.spans] == ["warm-up", "calm", "rise"]
    assert [window.offered_per_s for window in found.windows] == pytest.approx([100] * 10 + [110, 130, 150, 170, 190])
    drawn = timelines.figure(found)
    assert "offered rate" in [key.text for key in drawn.keys]
    assert "warm-up 0 to 5 s; calm 5 to 10 s; rise 10 to 15 s" in drawn.caption


def test_a_closed_loop_offers_no_rate_and_says_so() -> None:
    found = time_courses.timeline(record(), intervals([(float(second), "ok", 1, 90) for second in range(10)]))
    assert found is not None
    assert all(window.offered_per_s is None for window in found.windows)
    assert "A closed loop offers no rate" in timelines.figure(found).caption


def journal(lines: Sequence[Mapping[str, object]]) -> tuple[Entry, ...]:
    return tuple(entries("".join(json.dumps(line) + "\n" for line in lines)))


def test_events_within_the_trial_are_marked_and_book_keeping_is_not() -> None:
    lines: list[dict[str, object]] = [
        {"t_s": BEGUN_S + 4, "event": "node-added", "node": "n3"},
        {"t_s": BEGUN_S + 5, "event": "trial-sealed"},
        {"t_s": BEGUN_S + 6, "event": "session-began"},
        {"t_s": BEGUN_S + 6, "event": "session-ended"},
        {"t_s": BEGUN_S + 500, "event": "node-added"},
        {"event": "torn"},
    ]
    rows = [(float(second), "ok", 1, 90) for second in range(10)]
    found = time_courses.timeline(record(), intervals(rows), journal=journal(lines))
    assert found is not None
    assert found.events == ((4.0, "node-added n3"),)
    assert "node-added n3 at 4.0 s" in timelines.figure(found).caption


def test_what_lasted_is_a_band_and_not_two_events() -> None:
    lines: list[dict[str, object]] = [
        {"t_s": BEGUN_S - 5, "event": "drain-began", "node": "n1"},
        {"t_s": BEGUN_S + 1, "event": "drain-ended", "node": "n1"},
        {"t_s": BEGUN_S + 2, "event": "scaling-began"},
        {"t_s": BEGUN_S + 3, "event": "node-added", "node": "n3"},
        {"t_s": BEGUN_S + 6, "event": "scaling-ended"},
        {"t_s": BEGUN_S + 8, "event": "repair-began", "node": "n2"},
        {"t_s": BEGUN_S + 50, "event": "late-ended"},
        {"t_s": BEGUN_S + 100, "event": "later-began"},
    ]
    found = time_courses.timeline(
        record(), intervals([(float(second), "ok", 1, 90) for second in range(10)]), journal=journal(lines)
    )
    assert found is not None
    bands = [(one.name, one.from_s, one.to_s) for one in found.bands]
    assert bands == [("drain n1", 0.0, 1.0), ("late", 0.0, 10.0), ("scaling", 2.0, 6.0), ("repair n2", 8.0, 10.0)]
    assert found.events == ((3.0, "node-added n3"),)
    drawn = timelines.figure(found)
    assert "scaling 2 to 6 s" in drawn.caption
    assert ">scaling<" in drawn.panels[0].picture.in_file()


def test_a_strip_has_the_cores_of_each_window() -> None:
    rows = [
        (BEGUN_S + 1 + second, node, metric, value)
        for second in range(10)
        for node, value in (("n10", 0.1), ("n2", 1.0 if second < 5 else 0.5))
        for metric in CPU
    ]
    samples = pl.DataFrame(rows, schema=["t_s", "node", "metric", "value"], orient="row")
    found = cpu_strips(samples, BEGUN_S, 5.0, 2)
    assert [one.node for one in found] == ["n2", "n10"]
    assert list(found[0].values) == pytest.approx([2.0, 1.0])
    assert list(found[1].values) == pytest.approx([0.2, 0.2])
    assert cpu_strips(samples.clear(), BEGUN_S, 5.0, 2) == ()


def test_round_percentiles_of_a_curve_are_those_of_the_counts() -> None:
    found = time_courses.curve({}, "response", intervals([(0.0, "ok", ms, 100) for ms in range(1, 101)]), trials=1)
    assert found is not None
    assert dict(found.marks) == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 100.0}


def test_a_trial_too_short_or_without_intervals_has_no_course() -> None:
    assert time_courses.timeline(record(), intervals([(0.0, "ok", 1, 10)])) is None
    assert time_courses.timeline(record(), intervals([])) is None


def test_a_percentile_curve_ends_where_the_count_supports_no_more() -> None:
    histogram = intervals([(0.0, "ok", ms, 100) for ms in range(1, 101)])
    found = time_courses.curve({"nodes": 1}, "response", histogram, trials=1)
    assert found is not None
    assert found.operations == 10_000
    share, ms = found.points[-1]
    assert share == pytest.approx(0.999)
    assert ms == 100.0
    times = [ms for _, ms in found.points]
    assert times == sorted(times)
    assert time_courses.curve({}, "response", intervals([(0.0, "ok", 1, 15)]), trials=1) is None


def test_the_median_trial_comes_first_then_both_ends_and_unused_ones_last() -> None:
    study = synthetic.study(nodes=(1,), workloads=("A",), starts=1, trials=7, warm_up_trials=2)
    records = synthetic.records(study, faults=False)
    results = analyse(records, study, seed=1)
    used = {(point.trial_id, point.attempt): point.value for point in results.of(Point) if point.used}
    values = [used.get((one.id, one.attempt)) for one in time_courses.picked(records, used, most=60)]
    ranked = sorted(used.values())
    assert values[:3] == [ranked[2], ranked[0], ranked[4]]
    assert values[-2:] == [None, None]
    assert len(values) == 7
    assert len(time_courses.picked(records, used, most=3)) == 3


def test_a_drawing_of_a_long_trial_stays_small() -> None:
    rows = [(float(second), "ok", ms, 40) for second in range(3600) for ms in (1, 2, 4, 9, 20, 80)]
    found = time_courses.timeline(record(), intervals(rows))
    assert found is not None
    assert len(found.windows) <= time_courses.MOST_WINDOWS
    study = synthetic.study(workloads=("A",))
    this = view(analyse(synthetic.records(study), study, seed=1))
    panel = timelines.choices(this, [found])[0].figures[0].panels[0]
    assert panel.narrow is not None
    drawn = [one.in_page(HoverTexts(), title="", identity="a") for one in (panel.picture, panel.narrow)]
    assert sum(map(len, drawn)) + len(panel.values) < 2 * timelines.bytes_of(found)


def test_a_drawing_of_times_far_apart_stays_small() -> None:
    rows = [(1e8 * place, "ok", 1, 40) for place in range(100)]
    course = time_courses.timeline(record(), intervals(rows))
    assert course is not None
    assert len(course.windows) <= time_courses.MOST_WINDOWS


def test_a_search_offers_the_rate_of_each_window_from_its_settle_time_on() -> None:
    rules = Load.model_validate(
        {"schedule": "search", "objective": ["response_ms_p99 <= 10"], "threads": 64, "window_s": 10, "settle_s": 2}
    ).search_rules()
    windows = tuple(
        SearchWindow(name=f"w{place}", rate_per_s=rate, seconds=10, met=True, used=0.5, spread=0.0)
        for place, rate in enumerate((100, 200), start=1)
    )
    searched = record(schedule="search", objective=["response_ms_p99 <= 10"], threads=64, operations=None)
    searched = searched.model_copy(update={"search": Search(rules=rules, windows=windows)})
    seconds = {"search-settle": (0, 1, 15, 16), "w1": range(2, 12), "w2": range(17, 27)}
    drawn = pl.concat(intervals([(float(at), "ok", 2, 200) for at in of], phase=phase) for phase, of in seconds.items())
    found = time_courses.timeline(searched, drawn, value=150.0)
    assert found is not None
    assert [span.name for span in found.spans] == ["w1", "w2"]
    offered = [None if window.offered_per_s is None else round(window.offered_per_s) for window in found.windows]
    assert offered[:12] == [100] * 12
    assert offered[12:15] == [None] * 3
    assert offered[15:] == [200] * 12
    assert "A closed loop" not in timelines.figure(found).caption


def test_marks_of_a_disruption_are_drawn_and_listed() -> None:
    at_s = {"began": 12.1, "healed": 17.2, "recovered": 17.9}
    marks = tuple(Mark(name=name, node="n2", t_s=BEGUN_S + t_s) for name, t_s in at_s.items())
    held = Disrupted(nodes=("n2",), cause="pause of one for 5 s", begun_s=BEGUN_S + 12, marks=marks, outcome="done")
    load = intervals([(float(second), "ok", 1, 1500) for second in range(30)])
    # Values that are read back afterwards are no operations of the load.
    rows = pl.concat([load, *(intervals([(31.0, "ok", 1, 9000)], phase=phase) for phase in (READ_BACK, READ_AGAIN))])
    found = time_courses.timeline(record().model_copy(update={"disruptions": (held,)}), rows)
    assert found is not None
    assert (found.seconds, sum(window.operations for window in found.windows)) == (30.0, 45_000)
    assert [(one.name, one.from_s, round(one.to_s, 3)) for one in found.phases] == [("pause of one for 5 s", 12, 17.2)]
    assert [(round(time_s, 3), name) for time_s, name in found.events] == [
        (time_s, f"{name} n2") for name, time_s in at_s.items()
    ]
    caption = timelines.figure(found).caption
    assert "; began n2 at 12.1 s; healed n2 at 17.2 s; recovered n2 at 17.9 s." in caption
    many = replace(found, events=tuple((float(place), f"event {place}") for place in range(70)))
    assert "event 59 at 59.0 s; 10 more." in timelines.figure(many).caption


def growing_course(*activities: Activity) -> tuple[time_courses.Timeline, Mapping[str, CourseSpan]]:
    """A trial of 60 s that begins with three nodes, over time; its phases by name."""
    planned = expand(read_text(growing.STUDY)).trials[0]
    lines = [
        {"t_s": BEGUN_S + 20, "event": "activity-began", "trial": "t", "kind": "scale-out", "nodes": [], "cause": ""},
        {"t_s": BEGUN_S + 45, "event": "activity-ended", "trial": "t", "kind": "scale-out", "nodes": [],
         "outcome": "done"},
    ]  # fmt: skip
    rows = intervals([(float(second), "ok", 1, 1500) for second in range(60)])
    found = time_courses.timeline(growing.record(planned, BEGUN_S, *activities), rows, journal=journal(lines))
    assert found is not None
    return found, {span.name: span for span in found.phases}


def test_nodes_in_service_and_the_phases_of_an_activity_are_drawn_from_the_record() -> None:
    found, phases = growing_course(growing.growth(BEGUN_S + 20))
    assert found.nodes == ((0.0, 3), (pytest.approx(30.1), 4), (pytest.approx(40.2), 5))
    assert (phases["streaming n4"].from_s, phases["streaming n4"].to_s) == (pytest.approx(25.7), pytest.approx(29.2))
    assert phases["ring delay n5"].to_s == phases["streaming n5"].from_s
    assert "waiting n5" not in phases
    assert (found.bands, found.events) == ((), ()), "the journal's two events are not drawn once more"
    drawn = timelines.figure(found)
    assert "Below, the nodes in service while nodes joined or left, shaded by phase: preparing n4 20.0 to 20.6 s" in (
        drawn.caption
    )
    assert drawn.course is not None
    assert drawn.course.heads[-1] == ("nodes", "in service")
    assert [row[-1] for row in drawn.course.rows][28:32] == ["3", "3", "4", "4"]
    picture = drawn.panels[0].picture.in_page(HoverTexts(), title="", identity="t")
    assert ">nodes in service</text>" in picture
    fixed, _ = growing_course()
    assert timelines.figure(fixed).panels[0].picture.height < drawn.panels[0].picture.height
    assert "nodes in service" not in timelines.figure(fixed).panels[0].picture.in_page(
        HoverTexts(), title="", identity="t"
    )


def test_a_join_that_the_end_of_the_load_interrupts_is_drawn_to_the_end() -> None:
    marks = tuple(mark for mark in growing.growth(BEGUN_S + 50).marks if mark.t_s < BEGUN_S + 54 and mark.node == "n4")
    found, phases = growing_course(
        growing.growth(BEGUN_S + 50, nodes=("n4",), marks=marks, outcome="unfinished", ended_s=BEGUN_S + 61)
    )
    assert found.nodes == ((0.0, 3),)
    assert phases["unfinished n4"].to_s == 60.0
    assert timelines.figure(found).course is not None
