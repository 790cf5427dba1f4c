"""Activities as tables: a row per node, and the trial as the unit of the means."""

from __future__ import annotations

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.row import columns_of
from steelyard.analysis.statistics.activities import NodeActivity
from steelyard.analysis.statistics.activity_phase import A_NODE, AN_ACTIVITY, LATER, PHASES, ActivityPhase
from steelyard.analysis.tables import columns, tables
from steelyard.model.trial import TrialRecord
from steelyard.study.read import read_text
from tests.unit.report import growing

NO_PART = ("total_s", *(f"{name}_s" for name in LATER))
OF_PHASES = [c.name for c in columns_of(NodeActivity) if c.name.endswith("_s") and c.name not in NO_PART]


def analysed(records: tuple[TrialRecord, ...]) -> Results:
    return analyse(records, read_text(growing.STUDY), seed=1)


def with_activity(record: TrialRecord, **changes: object) -> TrialRecord:
    activities = tuple(one.model_copy(update=changes) for one in record.activities)
    return record.model_copy(update={"activities": activities})


def test_the_phases_of_each_node_sum_to_the_whole() -> None:
    rows = analysed(growing.records()).of(NodeActivity)
    assert [(row.node, row.outcome, row.used) for row in rows] == [("n4", "joined", True), ("n5", "joined", True)] * 4
    for row in rows:
        parts_s = [value for name in OF_PHASES if (value := getattr(row, name)) is not None]
        assert sum(parts_s) == pytest.approx(row.total_s, abs=1e-6)
        assert row.streamed_bytes == 6_000_000
    assert rows[1].total_s == pytest.approx(2 * (rows[0].total_s or 0.0), abs=0.002)
    assert rows[1].waiting_s == rows[0].total_s
    assert (rows[0].provisioning_s, rows[0].waiting_s, rows[0].cleanup_s) == (0.0, None, None)
    assert rows[1].cleanup_s == pytest.approx(2.0, abs=0.002)
    assert all(row.discovery_s == pytest.approx(1.5, abs=0.002) for row in rows)


def test_a_trial_is_one_observation_and_the_means_sum_to_the_whole() -> None:
    rows = {row.phase: row for row in analysed(growing.records()).of(ActivityPhase)}
    assert [*rows] == [*PHASES[:-1], A_NODE, AN_ACTIVITY, "discovery", "cleanup"]
    assert {(row.kind, row.n, row.arrived) for row in rows.values()} == {("scale-out", 4, 8)}
    streaming = rows["streaming"]
    # 3.5 s of streaming, 1.1 to 1.4 times as long.
    assert (streaming.mean.n, streaming.mean.value) == (4, pytest.approx(3.5 * 1.25, abs=0.002))
    assert (streaming.shortest_s, streaming.longest_s) == (pytest.approx(3.85), pytest.approx(4.9))
    assert streaming.mean.low is not None
    assert sum(rows[phase].mean.value for phase in PHASES[:-1]) == pytest.approx(rows[A_NODE].mean.value, abs=0.002)
    assert rows[AN_ACTIVITY].mean.value == pytest.approx(2 * rows[A_NODE].mean.value, abs=0.005)


def test_nodes_that_did_not_arrive_are_in_no_mean_and_a_limit_says_so() -> None:
    records = growing.records()
    first = next(record for record in records if record.activities)
    marks = tuple(mark for mark in first.activities[0].marks if mark.node == "n4" or mark.name == "started")
    half = with_activity(first, marks=marks, outcome="unfinished", error="")
    results = analysed(tuple(half if record is first else record for record in records))
    (lost,) = (row for row in results.of(NodeActivity) if row.outcome == "unfinished")
    assert (lost.node, lost.total_s, lost.streaming_s) == ("n5", None, None)
    assert lost.unfinished_s is not None
    nodes = {row.phase: row.arrived for row in results.of(ActivityPhase)}
    assert nodes["streaming"] == 7
    assert any(
        limit.startswith("Of 8 nodes that were to join or leave, 1 did not (1 unfinished), in 1 trial")
        for limit in results.caveats
    )


def test_attempts_that_do_not_count_are_listed_but_in_no_mean() -> None:
    records = growing.records()
    first = next(record for record in records if record.activities)
    control = first.model_copy(update={"control": True})
    results = analysed(tuple(control if record is first else record for record in records))
    assert [row.used for row in results.of(NodeActivity)].count(False) == 2
    assert {row.n for row in results.of(ActivityPhase)} == {3}


def test_both_are_tables_of_the_results_and_empty_without_activities() -> None:
    results = analysed(growing.records())
    frames = tables(results)
    assert frames["activities"].height == 8
    assert frames["activities"].columns[:2] == ["policy", "trial_id"]
    assert frames["activity_phase"].height == 12
    assert "0.2 to 4.2 s" in columns(results)["activities"]["discovery_s"]
    fixed = analysed(tuple(record for record in growing.records() if not record.activities))
    assert tables(fixed)["activities"].is_empty()
    assert tables(fixed)["activity_phase"].is_empty()


def test_no_column_has_the_name_of_a_factor_of_sizes() -> None:
    """A frame has one column of a name: the number of nodes of a treatment would be lost."""
    for row in (NodeActivity, ActivityPhase):
        assert "nodes" not in {column.name for column in columns_of(row)}
