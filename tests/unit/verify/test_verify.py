"""`steelyard verify` against stores that were harmed on purpose, one way each."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from steelyard.cli.report import report
from steelyard.cli.verify import EXIT_DIFFERENCE, EXIT_SOUND, check, verify
from steelyard.model.errors import StoreError
from steelyard.store.read import Store
from steelyard.store.write import sha256_of
from steelyard.verify.finding import Finding
from tests.unit.verify import made


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made.store(tmp_path_factory.mktemp("sound"))
    with Console(file=io.StringIO()) as console:
        report(folder, output=None, tables=None, figures=None, as_json=False, console=console)
    return folder


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "made"))


def first(store: Path) -> Path:
    return min(path for path in (store / "trials").iterdir())


def edit(path: Path, change: Callable[[dict], None]) -> None:
    read = json.loads(path.read_text())
    change(read)
    path.write_text(json.dumps(read, indent=1))


def differences(store: Path, *, page: bool = False) -> list[Finding]:
    if not page:
        (store / "report.html").unlink()
    return [one for one in check(Store(store)).findings if one.weight == "difference"]


def kinds(found: list[Finding]) -> set[str]:
    return {one.kind for one in found}


def test_a_sound_store_has_no_finding(store: Path) -> None:
    told = io.StringIO()
    assert verify(store, reports=(), as_json=False, console=Console(file=told, width=200)) == EXIT_SOUND
    found = check(Store(store))
    assert found.findings == ()
    assert found.trials == 6
    assert found.made["response"] == 6 * 12
    assert found.made["checksum"] == 6 * 3
    assert found.made["record"] == 6
    assert found.made["report"] > 100
    assert "nothing differs" in told.getvalue()


def test_a_flipped_byte_in_parquet(store: Path) -> None:
    path = first(store) / "intervals" / "l1.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(bytes(content))
    found = differences(store)
    assert "checksum" in kinds(found)
    named = next(one for one in found if one.kind == "checksum")
    assert named.file.endswith("intervals/l1.parquet")
    assert named.read == sha256_of(path)


def test_other_intervals_with_a_repaired_checksum(store: Path) -> None:
    path = first(store) / "intervals" / "l1.parquet"
    pl.read_parquet(path).with_columns(pl.col("bucket_low_ns") + 2, pl.col("bucket_high_ns") + 2).write_parquet(path)
    edit(first(store) / "trial.json", lambda read: read["checksums"].update({"intervals/l1.parquet": sha256_of(path)}))
    found = differences(store)
    assert kinds(found) == {"response", "record"}
    assert "responses: response_ms_mean" in {one.what for one in found}


@pytest.mark.parametrize(
    ("name", "change", "kind"),
    [
        ("response_ms_p99", lambda value: value * (1 + 1e-15), "response"),
        ("service_ms_mean", lambda value: value - 0.01, "response"),
        ("operations", lambda value: value + 1, "response"),
        ("execution_time_ms", lambda value: value * 0.99, "relation"),
        ("throughput_per_s", lambda value: value * 1.01, "relation"),
        ("not_found", lambda value: value + 1, "relation"),
    ],
)
@pytest.mark.parametrize("repaired", [False, True])
def test_an_edited_number(store: Path, name: str, change: Callable, kind: str, repaired: bool) -> None:
    path = first(store) / "trial.json"
    edit(path, lambda read: read["responses"].update({name: change(read["responses"][name])}))
    if repaired:
        repair_journal(store, path)
    found = differences(store)
    assert kind in kinds(found)
    assert ("record" in kinds(found)) is not repaired
    assert all(one.read and one.recomputed for one in found)


def repair_journal(store: Path, path: Path) -> None:
    """As one would who knows that the journal has the record's checksum."""
    lines = (store / "events.jsonl").read_text().splitlines()
    name = path.parent.name
    events = [json.loads(line) for line in lines]
    for event in events:
        if event.get("trial") == name:
            event["record_sha256"] = sha256_of(path)
    (store / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def test_consistent_lies_about_the_execution_time_meet_the_intervals(store: Path) -> None:
    path = first(store) / "trial.json"

    def slow(read: dict) -> None:
        read["responses"]["execution_time_ms"] *= 4
        read["responses"]["throughput_per_s"] /= 4

    edit(path, slow)
    repair_journal(store, path)
    assert [one.what for one in differences(store)] == ["responses: execution_time_ms against the intervals' span"]


def test_a_number_that_nothing_else_gives_is_kept_by_the_journal(store: Path) -> None:
    edit(first(store) / "trial.json", lambda read: read["responses"].update(generator_cpu_us_per_operation=1.0))
    assert kinds(differences(store)) == {"record"}


def test_a_removed_trial(store: Path) -> None:
    gone = first(store)
    shutil.rmtree(gone)
    found = differences(store)
    assert kinds(found) == {"journal"}
    assert gone.name in found[0].what


def test_a_removed_and_an_added_file(store: Path) -> None:
    (first(store) / "facts" / "n1.json").unlink()
    (first(store) / "logs" / "new.log").write_text("more")
    assert sorted(one.file.split("/", 2)[2] for one in differences(store)) == ["facts/n1.json", "logs/new.log"]


def test_other_settings(store: Path) -> None:
    edit(first(store) / "trial.json", lambda read: read["settings"]["system"].update(service_us=999.0))
    assert {"id", "plan"} <= kinds(differences(store))


def test_an_outcome_without_a_reason(store: Path) -> None:
    path = first(store) / "trial.json"
    edit(path, lambda read: read["verdict"].update(outcome="invalid"))
    repair_journal(store, path)
    assert kinds(differences(store)) == {"verdict", "journal"}


def test_a_reason_that_the_intervals_do_not_give(store: Path) -> None:
    path = first(store) / "trial.json"
    reason = {"kind": "errors above the limit", "measured": 0.5, "threshold": 0.01, "unit": "of operations"}
    edit(path, lambda read: read["verdict"].update(outcome="invalid", reasons=[reason]))
    assert {"verdict", "journal", "record"} <= kinds(differences(store))


def test_a_hidden_reason(store: Path) -> None:
    """Two hundred operations came about; had four hundred been asked for, the trial would not be valid."""
    edit(first(store) / "trial.json", lambda read: read["settings"]["load"].update(operations=400))
    found = [one for one in differences(store) if one.kind == "verdict"]
    assert [(one.read, "fewer operations" in one.recomputed) for one in found] == [("none", True)]


def test_an_unreadable_record_is_no_removed_trial(store: Path) -> None:
    (first(store) / "trial.json").write_text("{")
    found = differences(store)
    assert [(one.kind, one.what) for one in found] == [("format", "the record cannot be read")]


def test_a_trial_of_another_store_is_a_remark(store: Path) -> None:
    path = store / "events.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    (store / "report.html").unlink()
    found = check(Store(store))
    assert found.sound
    assert [one.kind for one in found.findings] == ["journal"]


def test_an_edited_page(store: Path) -> None:
    path = store / "report.html"
    page = path.read_text()
    value = json.loads((first(store) / "trial.json").read_text())["responses"]["execution_time_ms"]
    assert str(value) in page
    path.write_text(page.replace(str(value), str(value + 1)))
    found = differences(store, page=True)
    assert kinds(found) == {"report"}
    assert any("table trials" in one.what and one.recomputed == str(value) for one in found)


def test_edited_words_of_a_page(store: Path) -> None:
    path = store / "report.html"
    page = path.read_text()
    assert "of 3 trials from 3 starts" in page
    path.write_text(page.replace("of 3 trials from 3 starts", "of 30 trials from 30 starts", 1))
    found = differences(store, page=True)
    assert [one.what for one in found] == ["text of the page"]
    assert "30 starts" in found[0].read
    assert "3 starts" in found[0].recomputed


def test_report_json_is_checked_too(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(store, output=None, tables=None, figures=None, as_json=True, console=Console(stderr=True))
    path = tmp_path / "numbers.json"
    path.write_text(capsys.readouterr().out)
    assert verify(store, reports=(path,), as_json=True, console=Console()) == EXIT_SOUND
    assert json.loads(capsys.readouterr().out)["sound"] is True
    told = json.loads(path.read_text())
    table = told["trials"]
    place = next(at for at, value in enumerate(table["rows"][0]) if isinstance(value, float))
    table["rows"][0][place] += 1
    path.write_text(json.dumps(told))
    assert verify(store, reports=(path,), as_json=True, console=Console()) == EXIT_DIFFERENCE
    (one,) = json.loads(capsys.readouterr().out)["findings"]
    assert one["what"].startswith("table trials, row 1")


def test_a_page_of_before_the_last_trial_is_a_remark(store: Path) -> None:
    hidden = store.parent / "hidden"
    shutil.move(first(store), hidden)
    with Console(file=io.StringIO()) as console:
        report(store, output=None, tables=None, figures=None, as_json=False, console=console)
    shutil.move(hidden, store / "trials" / json.loads((hidden / "trial.json").read_text())["id"])
    found = check(Store(store))
    assert found.sound
    assert [one.what for one in found.findings] == ["made before trials were sealed, so not compared"]


def test_a_report_that_is_not_there_is_refused(store: Path) -> None:
    with pytest.raises(StoreError, match="no such report"):
        verify(store, reports=(store / "nothing.html",), as_json=False, console=Console())
