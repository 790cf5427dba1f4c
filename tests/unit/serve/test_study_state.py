"""How a study stands, by its store alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.treatments import label
from steelyard.events.kept import QuietAwaited, QuietReached, StartBegan
from steelyard.events.shown import TimeLeft
from steelyard.format import clock
from steelyard.model.estimate import Estimate
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.progress.state import Left, Live, expected_finish, fold
from steelyard.serve import cells_table, live_view, study_state
from steelyard.serve.finished_answers import answer_of
from steelyard.serve.store_cache import StoreLook, Watched
from steelyard.store import layout
from tests.unit.lab.fakes import study
from tests.unit.serve.stores import FAULT, NOW_S, VOIDED, a_plan, a_record, write

ALL = tuple(a_record(place) for place in range(8))
BEGAN = {"event": "session-began", "todo": 8, "total": 8}
ENDED = {"event": "session-ended", "valid": 8, "invalid": 0, "missing": 0}


def look(
    folder: Path,
    records: Sequence[TrialRecord] = (),
    events: Sequence[Mapping[str, Any]] = (),
    *,
    live: Mapping[str, Any] | None = None,
    of: Study | None = None,
) -> StoreLook:
    return Watched("s", write(folder / "s", records, events, live=live, of=of)).read()


@pytest.mark.parametrize(
    ("records", "events", "live", "state", "why"),
    [
        (ALL, [BEGAN, ENDED], None, "finished", ""),
        (ALL, [], None, "finished", ""),
        (ALL[:7], [BEGAN, ENDED], None, "interrupted", "1 trial is no longer there; run the same command to resume"),
        (ALL[:3], [BEGAN], {"t_s": NOW_S - 1}, "in progress", ""),
        (ALL[:3], [BEGAN], {"t_s": NOW_S - 20}, "in progress", "no sign of life for 20 s"),
        (ALL[:3], [BEGAN], {"t_s": NOW_S - 3600}, "interrupted", "no sign of life for 60 min"),
        (ALL[:3], [BEGAN], None, "interrupted", "without a word"),
        (ALL[:3], [BEGAN, {"event": "session-interrupted"}], None, "interrupted", "run the same command to resume"),
        (ALL[:3], [BEGAN, {**ENDED, "missing": 5}], None, "interrupted", "asked to stop"),
        (ALL[:3], [BEGAN, {"event": "session-failed", "message": "no port", "hint": ""}], None, "failed", "no port"),
        (ALL[:3], [{"event": "session-interrupted"}, BEGAN], {"t_s": NOW_S}, "in progress", ""),
        (ALL[:3], [], None, "interrupted", "does not say"),
        (ALL[:3], [{"event": ["?"]}, {"t_s": "?", "event": 7}], {"t_s": "?"}, "interrupted", "does not say"),
    ],
)
def test_the_state(
    tmp_path: Path, records: Sequence[TrialRecord], events: Any, live: Any, state: str, why: str
) -> None:
    found = study_state.standing(look(tmp_path, records, events, live=live), NOW_S)
    assert found.state == state
    assert why in found.why
    assert bool(found.why) == bool(why)
    assert found.planned == 8
    assert found.done == len(records)


def test_a_store_without_a_study(tmp_path: Path) -> None:
    assert study_state.standing(Watched("s", tmp_path / "gone").read(), NOW_S).state == study_state.EMPTY
    (tmp_path / "s").mkdir()
    assert study_state.standing(Watched("s", tmp_path / "s").read(), NOW_S).state == study_state.EMPTY
    (tmp_path / "s" / "study.json").write_text("{}")
    assert study_state.standing(Watched("s", tmp_path / "s").read(), NOW_S).state == study_state.UNREADABLE


def test_trials_are_counted_once_however_often_they_were_tried(tmp_path: Path) -> None:
    records = [a_record(0, VOIDED), a_record(0, attempt=2), a_record(1, FAULT), a_record(2, VOIDED)]
    found = study_state.standing(look(tmp_path, records, [BEGAN]), NOW_S)
    assert (found.done, found.valid, found.invalid, found.voided) == (2, 1, 1, 2)


def test_what_became_of_attempts_that_are_not_valid(tmp_path: Path) -> None:
    thrice = [a_record(3, VOIDED, attempt=attempt) for attempt in (1, 2, 3)]
    records = [a_record(0, VOIDED), a_record(0, attempt=2), a_record(1, FAULT), a_record(2, VOIDED), *thrice]
    found = {(one.trial, one.attempt): one for one in study_state.lost(look(tmp_path, records), "in progress")}
    ids = [a_record(place).id for place in range(4)]
    assert found[ids[0], 1].then == "repeated: attempt 2 is valid"
    assert found[ids[0], 1].reasons == "lag p99 above the limit: 14.4 ms against 10 ms"
    assert (found[ids[1], 1].then, found[ids[1], 1].blamed) == ("kept: it is a result", "the system")
    assert found[ids[2], 1].then == "queued again"
    assert found[ids[3], 3].then == "given up after 3 attempts"
    assert study_state.lost(look(tmp_path, records), "interrupted")[-2].then == "kept: it is a result"


def test_the_log_has_activities_in_words(tmp_path: Path) -> None:
    of = {"trial": ALL[0].id, "kind": "scale-out", "nodes": ["n4"]}
    events = [
        {"event": "activity-began", "t_s": NOW_S, "cause": "scheduled", **of},
        {"event": "activity-ended", "t_s": NOW_S + 1, "outcome": "failed", "error": "no disk", **of},
    ]
    lines = study_state.log(look(tmp_path, ALL[:1], events))
    assert [(line.text, line.trouble) for line in lines] == [
        ("scale-out of n4 failed: no disk", True),
        ("scale-out of n4 begins (scheduled)", False),
    ]


def test_the_log_has_journal_and_troubles_newest_first(tmp_path: Path) -> None:
    sealed = {"event": "trial-sealed", "trial": ALL[0].id, "attempt": 2, "outcome": "invalid", "reasons": ["LAG"]}
    sealed |= {"record_sha256": "ab"}
    events = [BEGAN, {**sealed, "t_s": NOW_S + 2}, {"event": "of-a-later-version", "t_s": NOW_S + 3}, {"event": None}]
    troubles = [{"t_s": NOW_S + 1, "message": "it slipped", "hint": "again"}, "?"]
    lines = study_state.log(look(tmp_path, ALL[:1], events, live={"t_s": NOW_S, "troubles": troubles}))
    assert [line.text for line in lines] == [
        "of a later version",
        f"trial {ALL[0].id}, attempt 2 ({label(ALL[0].treatment)}) invalid: lag",
        "it slipped: again",
        "began: 8 of 8 trials to do",
    ]
    assert [line.trouble for line in lines] == [False, True, True, False]


@pytest.mark.parametrize(
    "event",
    [
        [], "x", 3, None, {"event": "trial-sealed", "reasons": 5},
        {"event": "trial-sealed", "reasons": [[1]], "trial": {}},
        {"event": "session-interrupted", "t_s": 10**400},
        {"event": "session-failed", "message": [1], "hint": {}},
        {"event": "judged", "blocks": {}}, {"event": "noise-floor", "why": [1]}, {"event": "x", "t_s": 1e308},
    ],
)  # fmt: skip
def test_a_journal_of_anybody_breaks_nothing(tmp_path: Path, event: Any) -> None:
    folder = write(tmp_path / "s", ALL[:1], [BEGAN])
    with (folder / layout.EVENTS).open("a") as journal:
        journal.write(json.dumps({"t_s": NOW_S, **event} if isinstance(event, dict) else event) + "\n")
    found = Watched("s", folder).read()
    assert any(line.text.startswith("began") for line in study_state.log(found))
    assert study_state.standing(found, NOW_S).done == 1


def test_a_long_journal_is_cut(tmp_path: Path) -> None:
    events = [{"event": "session-interrupted", "t_s": NOW_S + place} for place in range(1000)]
    lines = study_state.log(look(tmp_path, [], events))
    assert len(lines) == study_state.LINES
    assert lines[0].t_s == NOW_S + 999


@pytest.mark.parametrize(
    "left", [None, {}, {"seconds": 0.0, "said_s": NOW_S}, {"seconds": "?"}, [1], {"said_s": 1e300}]
)
def test_no_end_by_the_clock_where_none_is_known(tmp_path: Path, left: Any) -> None:
    live = look(tmp_path, [], [BEGAN], live={"t_s": NOW_S, "left": left}).live
    assert live is not None
    assert expected_finish(live, NOW_S) == ""


def test_the_end_by_the_clock_has_a_range() -> None:
    left = Left(seconds=600.0, low_s=300.0, high_s=1200.0, said_s=NOW_S)
    minutes = [clock(NOW_S + seconds, NOW_S) for seconds in (600, 300, 1200)]
    for later_s in (0, 100):
        told = expected_finish(Live(t_s=NOW_S, left=left), NOW_S + later_s)
        assert told == f"about {minutes[0]} ({minutes[1]} to {minutes[2]})", "the end stays while time passes"
    live = Live(t_s=NOW_S, left=left)
    assert expected_finish(live, NOW_S + 700).startswith(f"about {clock(NOW_S + 700, NOW_S)} ("), "never past"
    assert expected_finish(live, NOW_S + 1170) == "within 30 s"
    assert expected_finish(live, NOW_S + 2000) == "overdue: it takes longer than expected"


def test_after_the_last_trial_the_end_is_what_is_still_done() -> None:
    none_left = TimeLeft(0.0, 0.0, 0.0, trials=0)
    assert expected_finish(fold(Live(t_s=NOW_S), none_left, NOW_S), NOW_S) == "", "nothing was begun"
    live = fold(Live(t_s=NOW_S), StartBegan(start="s1", block=1, blocks=1, treatment={}, trials=1), NOW_S)
    assert expected_finish(fold(live, none_left, NOW_S), NOW_S).startswith("once the cluster is stopped and its nodes")
    assert expected_finish(fold(live, TimeLeft(22.0, 10.0, 40.0, trials=1), NOW_S), NOW_S) == "within 40 s"


def test_the_wait_for_a_quiet_machine_is_no_progress() -> None:
    live = Live(t_s=NOW_S, left=Left(seconds=600.0, low_s=300.0, high_s=1200.0, said_s=NOW_S))
    live = fold(live, QuietAwaited(reasons=(), wait_s=1800.0), NOW_S)
    later_s = NOW_S + 1500
    expected = f"about {clock(later_s + 600, NOW_S)} ("
    assert expected_finish(live, later_s).startswith(expected)
    live = fold(live, QuietReached(waited_s=1500.0), later_s)
    assert expected_finish(live, later_s).startswith(expected)


def test_a_study_with_a_stopping_rule_counts_what_is_needed(tmp_path: Path) -> None:
    until = {"width_percent": 50.0, "least_starts": 6}
    of = study(design={"starts": 8, "trials": 1, "seed": 3, "until": until})
    plan = a_plan(of)
    records = [a_record(place, of=of) for place, trial in enumerate(plan.trials) if trial.block <= 6]
    found = study_state.standing(look(tmp_path, records, [BEGAN, ENDED], of=of), NOW_S)
    assert (found.state, found.planned, found.done, found.spared) == ("finished", 12, 12, 4)
    assert found.rule.startswith("The study stopped after 6 of at most 8 blocks")
    going = study_state.standing(look(tmp_path / "2", records[:2], [BEGAN], live={"t_s": NOW_S}, of=of), NOW_S)
    assert (going.planned, going.at_most, going.spared) == (16, True, 0)


def test_cells_are_estimates_of_the_analysis(tmp_path: Path) -> None:
    found = cells_table.Cells().of(look(tmp_path, [*ALL, a_record(0, VOIDED, attempt=2)]))
    assert [cell.name for cell in found] == ["1 node", "3 nodes"]
    for cell in found:
        assert (cell.n, cell.planned, cell.starts) == (4, 4, 2)
        assert "geometric mean over start means; fewer than 3: no interval" in cell.values[0].method
        assert cell.half_percent is None
    assert "1 ×" in "".join(cell.left_out for cell in found)


def test_a_cell_has_no_interval_below_three_starts_and_narrows_over_its_starts(tmp_path: Path) -> None:
    of = study(design={"starts": 6, "trials": 2, "seed": 1}, factors={"nodes": [1]})
    records = [a_record(place, of=of) for place in range(12)]
    (early,) = cells_table.Cells().of(look(tmp_path / "early", records[:4], of=of))
    assert (early.starts, early.half_percent, early.course) == (2, None, ())
    assert "[" not in early.values[0].text
    (cell,) = cells_table.Cells().of(look(tmp_path / "late", records, of=of))
    assert len(cell.course) == 4
    assert cells_table.width(cell).startswith("±")


def test_a_cell_has_the_number_of_the_answer(tmp_path: Path) -> None:
    found = look(tmp_path, ALL)
    answer = answer_of(found.folder)
    assert answer.table is not None
    assert answer.failure == ""
    assert answer.line.startswith("execution time, 3 nodes against 1 node: 1.03 s to 1.0")
    assert answer.line.endswith(answer.table.rows[1].verdict_text)
    for cell, row in zip(cells_table.Cells().of(found), answer.table.rows, strict=True):
        assert row.value_text == f"{cell.values[0].text} {cell.values[0].unit}"


def test_cells_without_a_trial_and_infeasible_ones(tmp_path: Path) -> None:
    empty, *_ = cells_table.Cells().of(look(tmp_path / "1"))
    assert (empty.n, empty.planned, empty.half_percent, empty.values[0].known) == (0, 4, None, False)
    of = study(design={"starts": 1, "trials": 1, "seed": 1}, factors={"nodes": [1]})
    (cell,) = cells_table.Cells().of(look(tmp_path / "2", [a_record(0, FAULT, of=of)], of=of))
    assert cell.infeasible == "n1 was killed for memory"


def test_a_cell_is_computed_again_only_with_another_trial(tmp_path: Path) -> None:
    kept = cells_table.Cells()

    def again(before: tuple[cells_table.Cell, ...], records: list[TrialRecord]) -> tuple[int, tuple[Any, ...]]:
        """How many cells are none of those before, and all of them."""
        now = kept.of(look(tmp_path, records))
        return sum(not any(cell is one for one in before) for cell in now), now

    computed, first = again((), ALL[:7])
    assert computed == len(first) == 2
    assert again(first, ALL[:7]) == (0, first)
    computed, second = again(first, ALL)
    assert computed == 1
    anew = [record.model_copy(update={"begun_s": record.begun_s + 500}) for record in ALL]
    assert again(second, anew)[0] == 2


def second(t_s: float, node: str = "l1", **changes: Any) -> dict[str, Any]:
    return {
        "t_s": t_s, "node": node, "phase": "measure", "span_s": 1.0, "rate_per_s": 100.0, "response_ms_p50": 1.0,
        "response_ms_p99": 5.0, "lag_ms_p99": 0.5, "errors": 0, "backlog": 0, "cpu_fraction": 0.1, **changes,
    }  # fmt: skip


def moment(folder: Path, **said: Any) -> live_view.Now:
    found = live_view.now(look(folder, ALL[:1], [BEGAN], live={"t_s": NOW_S, **said}), NOW_S)
    assert found is not None
    return found


def test_the_moment(tmp_path: Path) -> None:
    planned = a_plan().trials[1]
    found = moment(
        tmp_path,
        block=1,
        blocks=2,
        total=8,
        trial={"id": planned.id, "number": 2, "attempt": 2, "treatment": planned.treatment},
        phase={"name": "settle", "entered_s": NOW_S - 5, "timeout_s": 60.0},
        waiting="waiting for 2 compactions to end",
    )
    assert (found.block, found.trial) == ("1 of 2", "2 of 8, attempt 2")
    assert (found.phase, found.gone, found.waiting) == (
        "settle",
        "5 s of at most 60 s",
        "Waiting for 2 compactions to end",
    )
    assert found.drawings == ()
    warming = {"name": "server-warm-up", "entered_s": NOW_S - 13, "timeout_s": 360.0, "expected_s": 60.0}
    found = moment(tmp_path / "2", phase=warming, waiting="ycsb-i, high concurrency")
    assert (found.gone, found.waiting) == ("13 s of 60 s", "Warming up: ycsb-i, high concurrency")


def test_the_size_of_a_cluster_under_a_policy(tmp_path: Path) -> None:
    size = {"in_service": 3, "desired": 5, "reason": "busy", "metric": "cpu", "value": 90.0, "limit": "threshold 80"}
    found = moment(tmp_path, size=size)
    assert (found.size, found.size_why) == ("3 of 5 desired", "busy; now cpu 90, threshold 80")
    assert moment(tmp_path / "2").size == ""


def test_seconds_of_several_load_nodes(tmp_path: Path) -> None:
    seconds = [second(NOW_S - 10 + t + shift, node) for t in range(8) for node, shift in (("l1", 0.1), ("l2", 0.4))]
    seconds += [second(NOW_S - 2, response_ms_p99=50.0), second(NOW_S - 1.5, span_s=0.01, rate_per_s=90_000.0)]
    rate, response, lag = moment(tmp_path, seconds=seconds).drawings
    assert rate.curves[0].last == "200"
    assert rate.top == "216"
    assert [(curve.name, curve.last) for curve in response.curves] == [("p99", "50"), ("p50", "1")]
    assert lag.curves[0].last == "0.500"
    assert "200" in rate.spoken


def test_a_gap_between_trials_breaks_the_line(tmp_path: Path) -> None:
    times = [NOW_S - 60, NOW_S - 59, NOW_S - 10, NOW_S - 9]
    rate, *_ = moment(tmp_path, seconds=[second(t) for t in times]).drawings
    assert rate.curves[0].path.count("M") == 2
    assert rate.curves[0].path.count("L") == 2


@pytest.mark.parametrize(
    "said",
    [
        {"seconds": "?"}, {"seconds": [1, None, {}]}, {"seconds": [{"t_s": "?"}, second(NOW_S - 1, rate_per_s="?")]},
        {"nodes": []}, {"nodes": {"n1": 3}}, {"nodes": {"n1": {"values": {"node_memory_limit_hits": float("nan")}}}},
        {"seconds": [{**second(NOW_S - 1), "t_s": 10**400, "rate_per_s": 10**400}], "phase": {"entered_s": 10**400}},
        {"quiet": 3}, {"quiet": {"since_s": 10**400, "limit_s": 1.0}}, {"quiet": {"since_s": -1e308, "limit_s": 1e308}},
        {"trial": 7, "phase": [], "start": "?"}, {"phase": {"entered_s": {}}}, {"seconds": [second(NOW_S + 1e9)]},
        {"seconds": [second(NOW_S - 1, response_ms_p99=0.0, response_ms_p50=0.0, rate_per_s=0.0, lag_ms_p99=None)]},
    ],
)  # fmt: skip
def test_a_live_file_of_anybody_breaks_nothing(tmp_path: Path, said: dict[str, Any]) -> None:
    assert moment(tmp_path, **said).block == "–"


def test_the_health_of_nodes(tmp_path: Path) -> None:
    well = {"node_cpu_user_cores": 0.5, "node_cpu_system_cores": 0.25, "node_memory_rss_bytes": 2**30}
    nodes = {
        "n1": {"t_s": NOW_S - 1, "values": well},
        "n2": {"t_s": NOW_S - 30, "values": well},
        "n3": {"t_s": NOW_S, "values": {**well, "node_throttled_fraction": 0.4, "node_memory_limit_hits": 3}},
    }
    one, two, three = moment(tmp_path, nodes=nodes).nodes
    assert (one.cpu, one.memory, one.disk, one.state) == ("0.75 cores", "1 GiB", "–", "ok")
    assert (two.state, two.trouble) == ("no reading for 30 s", True)
    assert three.state == "held back by its CPU quota in 40% of the periods; met its memory limit 3 times"


def test_estimates_without_an_interval_have_no_width() -> None:
    one = Estimate(value=3.0, n=1, unit="ms", method="one")
    assert cells_table._half_percent(one) is None
    assert cells_table._half_percent(None) is None


BUSY: dict[str, Any] = {
    "kind": "background load or steal", "measured": 0.8, "threshold": 0.2, "unit": "of all CPU time",
    "detail": "other programs on this machine kept 1.60 of 2 cores busy, among them java 1.50",
}  # fmt: skip


def test_who_is_busy_is_shown_while_a_quiet_machine_is_waited_for(tmp_path: Path) -> None:
    now = moment(tmp_path, quiet={"since_s": NOW_S - 90, "limit_s": 1800.0, "reasons": [BUSY]})
    assert (now.phase, now.gone) == ("waiting", "")
    for words in ("Waiting for a quiet machine", "of at most 30 min (limits.quiet_wait_s)", "80%", "limit 20%", "java"):
        assert words in now.busy, words
    assert moment(tmp_path / "2").busy == ""


def test_the_log_says_how_long_a_quiet_machine_was_waited_for(tmp_path: Path) -> None:
    awaited = {"event": "quiet-awaited", "t_s": NOW_S + 1, "reasons": [BUSY], "wait_s": 1800.0}
    reached = {"event": "quiet-reached", "t_s": NOW_S + 60, "waited_s": 60.0}
    last, first, _ = study_state.log(look(tmp_path, ALL[:1], [BEGAN, awaited, reached]))
    assert first.text.startswith("waiting for a quiet machine: background load: 80% of all CPU time, limit 20%")
    assert (last.text, first.trouble, last.trouble) == ("the machine is quiet: waited 60 s", True, False)
