"""A store read in three lines, without the command line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steelyard.analysis.statistics.trend import Trend
from steelyard.model.errors import StoreError, StudyError
from steelyard.reading import comparison, read
from steelyard.reading.comparison import compare
from steelyard.reading.node_usage import measured_samples
from steelyard.store.read import Store

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "analyse-in-python.md"


def test_trials_estimates_and_tables_are_those_of_the_report(store: Path) -> None:
    reading = read(store)
    assert reading.trials.height == len(reading.records) == 8
    assert set(reading.trials["outcome"]) == {"valid"}
    assert reading.estimates.equals(reading.tables["summary"])
    assert reading.tables["trials"].height == 8
    assert reading.report_input(courses=False).tables["summary"].equals(reading.estimates)
    assert "unit" in reading.meanings["summary"]


def test_a_store_is_found_in_the_folder_above_it(store: Path) -> None:
    assert read(store.parent).study == read(store).study


def test_courses_have_a_row_per_second_of_each_used_trial(store: Path) -> None:
    reading = read(store)
    used = reading.trials.filter("used")
    courses = reading.courses
    assert set(courses["trial_id"]) == set(used["trial_id"])
    assert courses["attempt"].dtype == pl.Int64
    for _, trial in courses.group_by("trial_id"):
        assert trial["second"].to_list() == sorted(set(trial["second"]))
        assert (trial["throughput_per_s"] > 0).all()


def test_usage_tells_the_roles_of_nodes_and_means_of_the_measured_phase(store: Path) -> None:
    for facts in store.glob("trials/*/facts/system.n1.json"):
        facts.unlink()
    reading = read(store)
    three_nodes = reading.trials.filter(pl.col("nodes") == 3)["trial_id"]
    usage = reading.usage.filter(pl.col("trial_id").is_in(three_nodes.to_list()))
    assert set(usage.filter(pl.col("node") == "n1")["role"]) == {"load"}, "only databases have facts of the system"
    assert set(usage.filter(pl.col("node") != "n1")["role"]) == {"database"}
    record = next(record for record in reading.records if record.id == usage["trial_id"][0])
    samples = measured_samples(Store(store).samples(record), record.measured_span)
    row = usage.row(0, named=True)
    wanted = samples.filter((pl.col("node") == row["node"]) & (pl.col("metric") == row["metric"]))
    assert row["readings"] == len(wanted)
    assert row["mean"] == pytest.approx((wanted["value"] * wanted["covered_s"]).sum() / wanted["covered_s"].sum())
    assert row["max"] == wanted["value"].max()


def test_two_treatments_are_compared_by_mapping_and_by_text(store: Path) -> None:
    reading = read(store)
    by_mapping = reading.compare(a={"nodes": 1}, b={"nodes": 3})
    by_text = reading.compare(a=["nodes=1"], b=["nodes=3"])
    assert len(by_mapping.contrasts) == 1
    assert by_mapping.contrasts == by_text.contrasts
    assert reading.compare(a="nodes=1", b="nodes=3").contrasts == by_text.contrasts


def test_two_stores_are_compared(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    shutil.copytree(store, other)
    comparison = read(store).compare(read(other))
    assert any("8 trials are in both stores" in text for text in comparison.missing)


def test_a_store_without_trials_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a study's folder"):
        read(tmp_path)


def test_reading_needs_no_command_line_and_no_laboratory() -> None:
    program = (
        "import sys, steelyard.reading; "
        "print([name for name in sys.modules if name.startswith(('steelyard.cli', 'steelyard.lab', 'steelyard.site',"
        " 'steelyard.report', 'steelyard.study', 'typer'))])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_the_snippets_of_the_page_run(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    folder = tmp_path / "notebook"
    (folder / "store").mkdir(parents=True)
    (folder / "store" / "quickstart").symlink_to(store)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    for snippet in snippets:
        # The quickstart has 1 and 2 nodes, this store 1 and 3.
        exec(compile(snippet.replace('{"nodes": 2}', '{"nodes": 3}'), str(PAGE), "exec"), names)
    assert len(snippets) == 6
    assert names["medians"].height == 2
    assert names["comparison"].contrasts
    assert len(names["published"].rows) == 27


def test_a_comparison_weighs_the_trends_that_the_report_names(store: Path) -> None:
    reading, both = read(store), read(store)
    compared = compare(both, both, a={"nodes": 1}, b={"nodes": 3})
    assert reading.results.of(Trend)
    assert compared.a.trends == compared.b.trends == reading.results.of(Trend)


def test_a_table_that_is_misspelt_is_answered_with_the_nearest(store: Path) -> None:
    reading = read(store)
    assert reading.answer.equals(reading.tables["answer"])
    with pytest.raises(KeyError, match="no table 'anovaa': did you mean anova"):
        reading.tables["anovaa"]


def test_sides_are_chosen_by_the_clients_own_names() -> None:
    factors = {"load.routing": ("token", "round-robin"), "nodes": (1, 3)}
    assert comparison.levels(["client.routing=token"], factors, "--a") == {"load.routing": "token"}
    assert comparison.levels(["load.routing=token"], factors, "--a") == {"load.routing": "token"}
    with pytest.raises(StudyError, match="no such factor") as caught:
        comparison.levels(["client.rooting=token"], factors, "--a")
    assert "did you mean 'client.routing'? there are: client.routing, nodes" in caught.value.hint
