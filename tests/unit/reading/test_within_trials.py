from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistic import Within
from steelyard.analysis.statistics.merit import Merit
from steelyard.analysis.statistics.objective import ObjectiveLevel
from steelyard.analysis.statistics.parts import PartMean
from steelyard.analysis.statistics.percentile import TrialPercentile
from steelyard.analysis.statistics.steady import Steady
from steelyard.analysis.tables import tables
from steelyard.model.trial import Attempt, TrialRecord, by_cell
from steelyard.reading.reading import read
from steelyard.reading.within_trials import answered, series, within_trials
from steelyard.store import layout
from steelyard.store.read import Store
from tests.unit.analysis.made import cell, study
from tests.unit.report import growing

SECOND_NS = 1_000_000


def intervals(rows: list[tuple[str, float, str, str, int, int]]) -> pl.DataFrame:
    """Rows of (phase, t_s, outcome, measure, milliseconds, count)."""
    return pl.DataFrame(
        [
            (phase, t_s, 1.0, "read", outcome, measure, ms * SECOND_NS, ms * SECOND_NS, count)
            for phase, t_s, outcome, measure, ms, count in rows
        ],
        schema=layout.INTERVAL_SCHEMA,
        orient="row",
    )


def seconds(store: Store, records: Sequence[TrialRecord]) -> list[tuple[Attempt, pl.DataFrame]]:
    return series(answered(store, records), records)


def within(store: Store, records: Sequence[TrialRecord]) -> Within:
    return within_trials(store, by_cell(records), study().analysis).of_analysis


class Folder(Store):
    """A store whose trials are given and whose intervals lie in a folder."""

    def __init__(self, folder: Path, records) -> None:
        (folder / layout.STUDY_JSON).write_text("{}")
        super().__init__(folder)
        self.records = records

    def trials(self):
        return tuple(self.records)

    @property
    def study(self):
        return study()


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    """Two trials of 24 s by two load nodes whose clocks are 0.2 s apart; the second trial is 2 ms slower."""
    records = cell([[100.0, 110.0]])
    made = Folder(tmp_path, records)
    for slower, record in zip((0, 2), records, strict=True):
        folder = made.folder_of(record) / layout.INTERVALS
        folder.mkdir(parents=True)
        for node, ms, late in (("l1", 10, 0.0), ("l2", 20, 0.2)):
            rows = [("measure", 1000 + late + s, "ok", "response", ms + slower, 3) for s in range(24)]
            rows += [("warm-up", 999.0, "ok", "response", 900, 3), ("measure", 1000.0, "error", "response", 900, 3)]
            rows += [("measure", 1000.0, "ok", "service", 900, 3)]
            intervals(rows).write_parquet(folder / f"{node}.parquet")
    return made


def test_the_milliseconds_in_which_the_last_operations_end_are_no_second(store: Folder) -> None:
    whole = [frame.height for _, frame in seconds(store, store.records)]
    files = sorted(store.folder.glob("**/*.parquet"))
    assert len(files) == 4
    for file in files:
        rows = pl.read_parquet(file)
        stub = rows.filter(pl.col("t_s") == rows["t_s"].max()).with_columns(t_s=pl.col("t_s") + 1.0, seconds=0.004)
        pl.concat([rows, stub]).write_parquet(file)
    assert [frame.height for _, frame in seconds(store, store.records)] == whole


def test_load_nodes_are_added_up_and_only_answers_of_the_measured_phase_count(store: Folder) -> None:
    first, second = (frame for _, frame in seconds(store, store.records))
    assert first.height == second.height == 24
    assert first["response_ms_mean"].to_list() == pytest.approx([15.0] * 24)
    assert second["response_ms_mean"].to_list() == pytest.approx([17.0] * 24)
    assert first["throughput_per_s"].to_list() == pytest.approx([6.0] * 24)


def test_sums_do_not_depend_on_the_order_in_which_threads_add_up(tmp_path: Path) -> None:
    records = cell([[100.0]])
    made, rng = Folder(tmp_path, records), random.Random(1)
    folder = made.folder_of(records[0]) / layout.INTERVALS
    folder.mkdir(parents=True)
    counts = [(rng.randrange(10**5, 10**9), rng.randrange(1, 999)) for _ in range(500)]
    rows = [("measure", 0.0, 1.0, "read", "ok", "response", low, low + 77, count) for low, count in counts]
    pl.DataFrame(rows, schema=layout.INTERVAL_SCHEMA, orient="row").write_parquet(folder / "l1.parquet")
    ((_, one),) = seconds(made, records)
    twice_ns, operations = sum((2 * low + 77) * count for low, count in counts), sum(count for _, count in counts)
    assert one["response_ms_mean"].to_list() == [twice_ns / operations / 2e6]


def test_the_results_hold_parts_and_steady_states(store: Folder) -> None:
    found = analyse(store.records, study(), seed=1, within=within(store, store.records))
    times = [one for one in found.of(PartMean) if one.response == "response_ms_mean"]
    assert [(one.parts, one.n) for one in times] == [(k, 2) for k in (2, 4, 8) for _ in range(k)]
    assert times[0].mean.value == pytest.approx(16)
    assert [(one.trial_id, one.n, one.verdict) for one in found.of(Steady)] == [
        (record.id, 24, "steady") for record in store.records
    ]
    made = tables(found)
    assert made["steady"].height == 2
    assert made["parts"].height == 28
    assert made["percentile"].height == 6


def test_percentiles_of_each_trial_have_intervals_where_the_count_supports_them(store: Folder) -> None:
    """24 s of 3 operations at 10 ms and 3 at 20 ms: 144 operations have a median, but no p95 and no p99."""
    found = analyse(store.records, study(), seed=1, within=within(store, store.records))
    first = {one.response: one for one in found.of(TrialPercentile) if one.trial_id == store.records[0].id}
    median = first["response_ms_p50"].percentile
    assert median is not None
    assert (median.n, median.value, median.low, median.high) == (144, 10.0, 10.0, 20.0)
    assert first["response_ms_p95"].percentile is None
    assert "144 operations are too few: 200 are needed" in first["response_ms_p95"].note
    assert "No trial has a p99 of its own: it needs 1,000 operations, and they have at most 144." in found.caveats
    assert found.of(Merit) == ()


def test_a_trial_without_intervals_has_no_parts(tmp_path: Path) -> None:
    records = cell([[100.0, 110.0]])
    found = analyse(records, study(), seed=1, within=within(Folder(tmp_path, records), records))
    assert (found.of(PartMean), found.of(Steady)) == ((), ())


@pytest.mark.parametrize("limit", ["response_ms_p99 <= 6", "response_ms_mean < 1.3", "throughput_per_s < 1"])
def test_seconds_over_the_objective(tmp_path: Path, limit: str) -> None:
    """Clusters that grow are twice as slow while they do: p99 10 instead of 5 ms, mean 2.3 instead of 1.1."""
    text = growing.STUDY.replace("[factors]", f'[analysis]\nobjective = "{limit}"\n[factors]')
    found = read(growing.store(tmp_path, text)).results.of(ObjectiveLevel)
    if limit.startswith("throughput"):
        assert {row.seconds_over.value for row in found if row.seconds_over} == {100.0}
        return
    busy = {
        record.key: sum(
            one.begun_s <= record.begun_s + second <= (one.ended_s or 0.0)
            for one in record.activities
            for second in range(growing.SECONDS)
        )
        for record in growing.records(text)
    }
    kept, grown = (row.seconds_over for row in found)
    assert kept is not None
    assert grown is not None
    assert kept.value == 0.0
    assert grown.value == pytest.approx(statistics.fmean(100 * n / growing.SECONDS for n in busy.values() if n))
    assert grown.low is not None
