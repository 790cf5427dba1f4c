"""Parquet, Markdown and the history for Otava, read back."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path

import polars as pl
import yaml

from steelyard.analysis.frame import frame_of
from steelyard.export import markdown, otava, parquet
from steelyard.export.attempts import exported
from steelyard.model import responses
from steelyard.model.trial import Responses, TrialRecord
from steelyard.reading.reading import read, reading_of
from steelyard.store.read import Store
from tests.unit.export import stores
from tests.unit.verify import made


def test_parquet_has_a_row_per_trial(store: Store, records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    path = tmp_path / "trials.parquet"
    assert parquet.write(frame_of(records, store.study), exported(records, voided=False), path) == stores.TRIALS
    table = pl.read_parquet(path)
    assert table["execution_time_ms"].to_list() == [
        record.responses.execution_time_ms for record in records if not record.verdict.voided
    ]
    assert set(responses.every()) < set(table.columns)
    assert table.schema["nodes"] == pl.Int64
    assert set(table["study"]) == {"known"}
    assert json.loads(table["settings"][0])["system"]["heap_mb"] == 512
    assert json.loads(table["versions"][0])["kernel"] == "6.1.0"
    assert parquet.write(frame_of(records, store.study), records, path) == stores.TRIALS + 1


def test_a_factor_that_has_the_name_of_a_column_keeps_it(
    store: Store, records: tuple[TrialRecord, ...], tmp_path: Path
) -> None:
    named = [record.model_copy(update={"treatment": {**record.treatment, "data": "cold"}}) for record in records]
    parquet.write(frame_of(named, store.study), named, tmp_path / "t.parquet")
    table = pl.read_parquet(tmp_path / "t.parquet")
    assert set(table["data"]) == {"cold"}
    assert "record_data" in table.columns


def test_otava_has_a_test_per_cell(records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    assert otava.write(records, tmp_path) == 2
    tests = yaml.safe_load((tmp_path / "otava.yaml").read_text(encoding="utf-8"))["tests"]
    assert set(tests) == {"known.workload-A-1-node", "known.workload-A-3-nodes"}
    metrics = [metric for test in tests.values() for metric in test["metrics"]]
    assert len(set(metrics)) == len(metrics), "Otava wants names that no other test has"
    one = tests["known.workload-A-1-node"]
    directions = {metric["column"]: metric["direction"] for metric in one["metrics"].values()}
    assert directions["throughput_per_s"] == 1
    assert {directions[name] for name in ("execution_time_ms", "response_ms_p99", "errors")} == {-1}
    with (tmp_path / one["file"]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    of_cell = [record for record in records if record.treatment["nodes"] == 1 and record.verdict.outcome == "valid"]
    assert [row["trial"] for row in rows] == [record.id for record in of_cell]
    assert [float(row["execution_time_ms"]) for row in rows] == [
        record.responses.execution_time_ms for record in of_cell
    ]
    times = [datetime.fromisoformat(row[one["time_column"]]) for row in rows]
    assert times == sorted(times)
    assert all(time.tzinfo for time in times)


def test_otava_gets_no_empty_number(records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    of_cell = [record for record in records if record.treatment["nodes"] == 1 and record.verdict.outcome == "valid"]
    lacking = of_cell[0].model_copy(update={"responses": Responses(execution_time_ms=12.0, operations=10)})
    otava.write([lacking, *of_cell[1:]], tmp_path)
    (test,) = yaml.safe_load((tmp_path / "otava.yaml").read_text(encoding="utf-8"))["tests"].values()
    columns = {metric["column"] for metric in test["metrics"].values()}
    assert "response_ms_p99" not in columns
    assert "execution_time_ms" in columns
    with (tmp_path / test["file"]).open(newline="") as file:
        assert all(row[column] for row in csv.DictReader(file) for column in columns)


def test_cells_whose_names_differ_only_in_signs_keep_files_of_their_own(
    records: tuple[TrialRecord, ...], tmp_path: Path
) -> None:
    pair = [
        record.model_copy(update={"treatment": {"level": level}})
        for record, level in zip(records, ("a/b", "a b"), strict=False)
    ]
    assert otava.write(pair, tmp_path) == 2
    assert {path.name for path in tmp_path.glob("*.csv")} == {"known.level-a-b.csv", "known.level-a-b-2.csv"}


def test_the_page_has_answer_cells_comparisons_and_limits(store: Store, tmp_path: Path) -> None:
    page_input = reading_of(store).report_input(courses=False)
    markdown.write(page_input, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# Cassandra on one machine, one node and three",
        "## Answer", "## Cells", "## Comparisons", "## Limits", "## Provenance",
    ]  # fmt: skip
    assert page_input.results.answer[0] in text
    assert all(caveat in text for caveat in page_input.results.caveats)
    assert "| nodes | workload | execution time (ms) |" in text
    assert "workload A: 3 nodes against 1 node" in text
    assert "1 of 9 attempts was left out" in text


def test_no_text_of_a_study_is_markup(store: Store) -> None:
    page_input = reading_of(store).report_input(courses=False)
    results = page_input.results.model_copy(update={"title": "a <b>*title*</b>\nof two lines"})
    text = markdown.page(type(page_input)(**{**page_input.__dict__, "results": results}))
    assert text.startswith("# a &lt;b>\\*title\\*&lt;/b> of two lines\n")


def test_a_level_in_the_cells_is_written_as_the_study_file_writes_it(tmp_path: Path) -> None:
    text = made.STUDY.replace("nodes = [1, 2]", "workload.read_all_fields = [false, true]")
    page = markdown.page(read(made.store(tmp_path, text=text)).report_input())
    cells = page[page.index("## Cells") : page.index("## Comparisons")]
    rows = [line.split(" | ")[0] for line in cells.splitlines() if line.startswith("| ")]
    assert rows[-2:] == ["| false", "| true"]
