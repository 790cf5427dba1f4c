"""`steelyard report` from a store on disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.commands.report import report
from steelyard.model.errors import StoreError, StudyError
from steelyard.model.plan import Plan
from steelyard.model.verdict_reasons import Verdict
from steelyard.reading.reading import read
from steelyard.store.read import Store
from steelyard.store.write import StoreWriter
from tests.unit.cli.screen import printed
from tests.unit.report import synthetic
from tests.unit.verify import made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return synthetic.stored(tmp_path)


def test_it_writes_the_page_beside_the_data(store: Path) -> None:
    found = printed(lambda: report(store))
    assert (found.code, found.out) == (0, "")
    assert (store / "report.html").as_uri() in found.err
    assert "--open shows it in the browser" in found.err
    assert "workload A, 3 nodes" in (store / "report.html").read_text(encoding="utf-8")


def test_the_page_is_opened_if_asked_for_and_where_there_is_a_browser(store: Path, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o755)
    words = [sys.executable, "-m", "steelyard", "report", str(store), "--open"]
    plain = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    without = subprocess.run(words, env=plain, capture_output=True, text=True, timeout=120, check=True)
    assert "no browser can be opened here" in without.stderr
    shown = subprocess.run(
        words, env={**plain, "BROWSER": f"{browser} %s"}, capture_output=True, text=True, timeout=120, check=True
    )
    assert "no browser" not in shown.stderr
    assert opened.read_text(encoding="utf-8").strip() == (store / "report.html").as_uri()


def test_json_goes_to_stdout_and_no_page_is_written(store: Path) -> None:
    assert len(json.loads(printed(lambda: report(store, as_json=True)).out)["trials"]["rows"]) == 8
    assert not (store / "report.html").exists()


def test_methods_go_to_stdout_and_no_page_is_written(store: Path) -> None:
    text = printed(lambda: report(store, methods=True)).out
    assert text.startswith("The system under test was cassandra 5.0.5")
    assert "AMD EPYC 7B13" in text
    assert not (store / "report.html").exists()


def test_two_things_on_stdout_are_refused(store: Path) -> None:
    with pytest.raises(StudyError, match="both write to standard output"):
        report(store, as_json=True, methods=True)
    assert not (store / "report.html").exists()


def test_the_median_trial_has_a_strip_for_each_node(store: Path) -> None:
    found = read(store).report_input()
    strips = {
        one.record.treatment["nodes"]: [strip.node for strip in one.strips] for one in found.timelines if one.middle
    }
    assert strips == {1: ["n1"], 3: ["n1", "n2", "n3"]}
    assert all(one.strips == () for one in found.timelines if not one.middle)


def test_courses_and_curves_come_from_the_stored_intervals(store: Path) -> None:
    found = read(store).report_input()
    assert len(found.timelines) == len(found.records) == 8
    assert sum(one.middle for one in found.timelines) == 2
    by_size = {curve.treatment["nodes"]: curve for curve in found.curves if curve.measure == "response"}
    assert set(by_size) == {1, 3}
    assert by_size[1].trials == 2
    assert by_size[1].operations == 2 * 15 * 1000
    assert read(store).report_input(courses=False).curves == ()


def test_load_nodes_are_told_from_database_nodes(store: Path) -> None:
    found = read(store).report_input()
    assert {trace.databases for trace in found.traces} == {("n1",), ("n1", "n2", "n3")}


def test_a_store_without_trials_is_refused(tmp_path: Path) -> None:
    study = synthetic.study()
    with StoreWriter(tmp_path, study.study.name) as writer:
        writer.intend(study, "", Plan(study="synthetic", seed=7, factors={}, hard=(), trials=()))
    with pytest.raises(StoreError, match="no sealed trial"):
        read(writer.folder).report_input()


def test_an_attempt_that_was_voided_and_repeated_does_not_count_against_the_exit_code(tmp_path: Path) -> None:
    assert printed(lambda: report(_with_attempts(tmp_path, "unknown", "valid"), as_json=True)).code == 0


def test_a_trial_without_a_valid_attempt_counts(tmp_path: Path) -> None:
    assert printed(lambda: report(_with_attempts(tmp_path, "unknown", "invalid"), as_json=True)).code == 1


def _with_attempts(root: Path, *outcomes: str) -> Path:
    """A store whose first trial has attempts with these outcomes, and whose other trials are valid."""
    folder = made.store(root)
    first = Store(folder).trials()[0]
    (sealed,) = (folder / "trials").glob(f"{first.id}*")
    shutil.rmtree(sealed)
    with StoreWriter(root, "made") as writer:
        for attempt, outcome in enumerate(outcomes, start=1):
            draft = writer.draft(first.id, attempt)
            draft.intervals("l1", made.engine_records(1, 1.0)[0])
            verdict = Verdict.model_validate({"outcome": outcome})
            draft.seal(first.model_copy(update={"attempt": attempt, "verdict": verdict, "checksums": {}}))
    return folder
