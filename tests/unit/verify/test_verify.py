"""`steelyard verify` against stores that were harmed on purpose, one way each."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from steelyard.cli.commands.report import report
from steelyard.cli.commands.verify import EXIT_DIFFERENCE, EXIT_SOUND, verify
from steelyard.events.kept import NoiseFloorSought
from steelyard.format import FORM, FORM_NAME
from steelyard.judging.noise_floor import KeptFloor
from steelyard.judging.stopping import decide, rule_of
from steelyard.judging.trial_responses import responses
from steelyard.model.errors import StoreError
from steelyard.model.trial import Responses
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.report.basics import embedded_data
from steelyard.store.read import Store
from steelyard.store.write import StoreWriter, sha256_of
from steelyard.verify.checklist import CHECKS, HINTS, Book, VerificationFinding
from steelyard.verify.stopping import stopping
from steelyard.verify.store import verification
from tests.unit.cli.screen import printed
from tests.unit.verify import made


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made.store(tmp_path_factory.mktemp("sound"))
    report(folder)
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


def differences(store: Path, *, page: bool = False) -> list[VerificationFinding]:
    if not page:
        (store / "report.html").unlink()
    return [one for one in verification(Store(store)).findings if one.weight == "difference"]


def kinds(found: list[VerificationFinding]) -> set[str]:
    return {one.kind for one in found}


def test_a_sound_store_has_no_finding(store: Path) -> None:
    told = printed(lambda: verify(store))
    assert told.code == EXIT_SOUND
    found = verification(Store(store))
    assert found.findings == ()
    assert found.trials == 6
    assert found.made["response"] == 6 * 12
    assert found.made["checksum"] == 6 * 3
    assert found.made["record"] == 6
    assert found.made["report"] > 100
    assert "nothing differs" in told.out


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
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if first(store).name not in line))
    (store / "report.html").unlink()
    found = verification(Store(store))
    assert found.sound
    assert [one.kind for one in found.findings] == ["journal"]


def test_an_edited_page(store: Path) -> None:
    path = store / "report.html"
    page = path.read_text()
    value = json.loads((first(store) / "trial.json").read_text())["responses"]["execution_time_ms"]
    head, mark, rest = page.partition('id="data">')
    inside, end, tail = rest.partition("</script>")
    told = json.dumps(embedded_data.unpack(inside))
    assert str(value) in told
    edited = embedded_data.pack(json.loads(told.replace(str(value), str(value + 1))))
    path.write_text("".join((head, mark, edited, end, tail)))
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


def test_the_text_of_a_page_in_another_form_is_not_compared(store: Path) -> None:
    """Which writes 0.034 as 0.0340, for example; its tables are compared all the same."""
    path = store / "report.html"
    text = path.read_text().replace(f'name="{FORM_NAME}" content="{FORM}"', f'name="{FORM_NAME}" content="2"', 1)
    path.write_text(text.replace("of 3 trials from 3 starts", "of 30 trials from 30 starts", 1))
    found = verification(Store(store))
    assert found.sound
    assert [one.what for one in found.findings if one.kind == "report"] == ["text of the page"]
    assert found.made["report"] > 1000, "the tables"


def test_report_json_is_checked_too(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(store, as_json=True)
    path = tmp_path / "numbers.json"
    path.write_text(capsys.readouterr().out)
    assert verify(store, reports=[path], as_json=True) == EXIT_SOUND
    assert json.loads(capsys.readouterr().out)["sound"] is True
    told = json.loads(path.read_text())
    table = told["trials"]
    place = next(at for at, value in enumerate(table["rows"][0]) if isinstance(value, float))
    table["rows"][0][place] += 1
    path.write_text(json.dumps(told))
    assert verify(store, reports=[path], as_json=True) == EXIT_DIFFERENCE
    (one,) = json.loads(capsys.readouterr().out)["findings"]
    assert one["what"].startswith("table trials, row 1")


def test_a_page_of_before_the_last_trial_is_a_remark(store: Path) -> None:
    hidden = store.parent / "hidden"
    shutil.move(first(store), hidden)
    report(store)
    shutil.move(hidden, store / "trials" / json.loads((hidden / "trial.json").read_text())["id"])
    found = verification(Store(store))
    assert found.sound
    assert [one.what for one in found.findings] == ["made before trials were sealed, so not compared"]


def test_a_report_that_is_not_there_is_refused(store: Path) -> None:
    with pytest.raises(StoreError, match="no such report"):
        verify(store, reports=[store / "nothing.html"])


UNTIL = made.STUDY.replace("starts = 3", "starts = 8").replace(
    "[factors]", "[design.until]\nwidth_percent = 100\nleast_starts = 6\n[factors]"
)


def test_decisions_of_a_stopping_rule(tmp_path: Path) -> None:
    folder = made.store(tmp_path, text=UNTIL)
    opened = Store(folder)
    rule, plan = rule_of(opened.study), opened.plan
    assert rule is not None
    assert plan is not None
    path = folder / "events.jsonl"
    journal = path.read_text()

    def judged(blocks: int, **changes: object) -> str:
        known = [record for record in opened.trials() if record.block <= blocks]
        said = decide(plan, known, rule).model_dump(mode="json")
        return json.dumps({"t_s": 1.0, "event": "judged", **said, **changes}) + "\n"

    path.write_text(journal + judged(5) + judged(6))
    found = verification(Store(folder))
    assert found.sound
    assert found.made["until"] == 2 * (2 + 2 * 2) + 4
    remarks = {one.what for one in found.findings if one.kind == "until"}
    assert remarks == {"a trial after the end of the study"}, "of blocks 7 and 8"
    cells = json.loads(judged(6))["cells"]
    cells[0]["half_width_percent"] += 0.1
    for changes, what in (({"cells": cells}, "half width of 1 node"), ({"why": "width"}, "the decision")):
        path.write_text(journal + judged(6, **changes))
        (one,) = [one for one in verification(Store(folder)).findings if one.weight == "difference"]
        assert (one.kind, one.file) == ("until", "events.jsonl")
        assert what in one.what
    path.write_text(journal + judged(6, cap=11, why="width"))
    found = verification(Store(folder))
    assert found.sound
    assert "decisions of the stopping rule that were made on an earlier form of the plan" in found.not_checked


def test_a_decision_is_judged_by_the_attempts_that_it_knew(tmp_path: Path) -> None:
    """`limits.attempts` was raised after the decision, and a trial that had been given up was tried once more."""
    folder = made.store(tmp_path, text=UNTIL)
    opened = Store(folder)
    rule, plan = rule_of(opened.study), opened.plan
    assert rule is not None
    assert plan is not None
    trials = [record for record in opened.trials() if record.block <= 6]
    again = next(record for record in trials if record.block == 3)
    voided = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.LAG),))
    given_up = [
        again.model_copy(update={"attempt": attempt, "verdict": voided, "responses": Responses()})
        for attempt in range(1, rule.attempts + 1)
    ]
    then = [*(record for record in trials if record.id != again.id), *given_up]
    said = decide(plan, then, rule)
    assert sorted(cell.n for cell in said.cells) == [5, 6]
    event = json.dumps({"t_s": 1.0, "event": "judged", **said.model_dump(mode="json")})
    (folder / "events.jsonl").write_text(event + "\n")
    now = [*then, again.model_copy(update={"attempt": rule.attempts + 1})]
    book = Book()
    stopping(folder, {(record.id, record.attempt): (record, "trial") for record in now}, book)
    assert book.made["until"]
    assert not book.findings


def test_a_decision_on_a_narrower_plan_is_not_compared(tmp_path: Path) -> None:
    folder = made.store(tmp_path, text=UNTIL)
    opened = Store(folder)
    rule, plan = rule_of(opened.study), opened.plan
    assert rule is not None
    assert plan is not None
    records = [record for record in opened.trials() if record.block <= 6]
    said = decide(plan, records, rule).model_dump(mode="json") | {"why": "width"}
    path = folder / "events.jsonl"
    journal = path.read_text()
    for total, sound in ((len(plan.trials), False), (len(plan.trials) - 8, True)):
        began = json.dumps({"t_s": 1.0, "event": "session-began", "todo": 1, "total": total}) + "\n"
        path.write_text(journal + began + json.dumps({"t_s": 1.0, "event": "judged", **said}) + "\n")
        found = verification(Store(folder))
        assert found.sound is sound
        assert (
            "decisions of the stopping rule that were made on an earlier form of the plan" in found.not_checked
        ) is sound


def test_an_edited_noise_floor(store: Path) -> None:
    (store / "report.html").unlink()
    held = Store(store).circumstances(Store(store).trials())[0]
    with StoreWriter(store.parent, store.name) as writer:
        sha256 = writer.noise_floor(KeptFloor(study="floor", made_s=1.0, pairs=6, holds_for=held, spreads=()))
        path = store / "noise-floor.json"
        assert [one.weight for one in verification(Store(store)).findings if one.kind == "floor"] == ["remark"]
        writer.event(NoiseFloorSought(found=True, study="floor", made_s=1.0, sha256=sha256))
    assert not [one for one in verification(Store(store)).findings if one.kind == "floor"]
    path.write_text(path.read_text().replace('"pairs": 6', '"pairs": 60'))
    (one,) = [one for one in verification(Store(store)).findings if one.weight == "difference"]
    assert (one.kind, one.file) == ("floor", "noise-floor.json")
    path.unlink()
    (one,) = [one for one in verification(Store(store)).findings if one.weight == "difference"]
    assert one.read == "no such file"


def test_a_line_that_is_not_what_its_name_says(store: Path) -> None:
    with (store / "events.jsonl").open("a") as handle:
        handle.write(json.dumps({"t_s": 1.0, "event": "trial-sealed", "trial": "x", "attempt": "once"}) + "\n")
    (one,) = differences(store)
    assert (one.kind, one.file) == ("journal", "events.jsonl")
    assert "attempt" in one.read


def test_a_width_that_differs_in_the_last_digit_is_the_same(tmp_path: Path) -> None:
    folder = made.store(tmp_path, text=UNTIL)
    opened = Store(folder)
    rule, plan = rule_of(opened.study), opened.plan
    assert rule is not None
    assert plan is not None
    records = [record for record in opened.trials() if record.block <= 6]
    said = decide(plan, records, rule).model_dump(mode="json")
    for cell in said["cells"]:
        cell["half_width_percent"] = math.nextafter(cell["half_width_percent"], math.inf)
    path = folder / "events.jsonl"
    path.write_text(path.read_text() + json.dumps({"t_s": 1.0, "event": "judged", **said}) + "\n")
    assert verification(Store(folder)).sound


def test_what_damage_changes_on_the_page_is_one_remark_below_its_cause(store: Path) -> None:
    path = first(store) / "trial.json"
    path.write_bytes(path.read_bytes()[:300])
    found = verification(Store(store)).findings
    assert (found[0].kind, found[-1].kind) == ("format", "report")
    assert [(one.weight, one.what) for one in found if one.kind == "report"] == [
        ("remark", "made before the store was damaged (see the differences)")
    ]
    told = printed(lambda: verify(store))
    lines = told.out.splitlines()
    assert f"trials/{first(store).name}/trial.json" in lines[0]
    assert "not JSON at line" in lines[0]
    assert "Error" not in told.out
    assert any(line.startswith("what to do, format") and "restore the file from a copy" in line for line in lines)
    assert "make it again with `steelyard report`" in told.out


def test_a_page_of_before_a_trial_was_measured_again_is_a_remark(store: Path) -> None:
    trial = first(store)
    record = Store(store).attempt(trial.name)
    shutil.rmtree(trial)
    with StoreWriter(store.parent, "made") as writer:
        draft = writer.draft(record.id, 1)
        draft.intervals("l1", made.engine_records(7, 2.0)[0])
        intervals, dones = made.engine_records(7, 2.0)
        later = {"begun_s": record.begun_s + 500.0, "ended_s": record.begun_s + 503.0}
        later |= {"checksums": {}, "covariates": {}}
        sealed = draft.seal(record.model_copy(update={**later, "responses": responses(intervals, dones)}))
        writer.event(made.sealed_line(sealed))
    outcome = verification(Store(store))
    assert outcome.sound
    told = [one for one in outcome.findings if one.kind == "report"]
    assert [one.what for one in told] == [f"made before 1 trial was measured again ({trial.name})"]
    assert "make it again with `steelyard report`" in told[0].read


def test_what_is_missing_is_expected_and_what_is_recomputed_is_read() -> None:
    missing = VerificationFinding(kind="checksum", file="a", what="file", read="missing", recomputed="b")
    assert missing.words() == "a: file: expected b, found missing"
    again = VerificationFinding(kind="response", file="a", what="b", read="1", recomputed="2")
    assert again.words() == "a: b: read 1, recomputed 2"
    assert set(HINTS) == set(CHECKS)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("facts/n1.json", '{"cores": null, "limit_memory_bytes": 5, "memory_mb": "\u00b2"}'),
        ("facts/n1.json", '{"cores": []}'),
        ("links.json", "[1]"),
    ],
)
def test_facts_of_other_forms_are_differences_and_nothing_falls_over(store: Path, file: str, content: str) -> None:
    path = first(store) / file
    path.write_text(content, encoding="utf-8")
    assert str(path.relative_to(store)) in {one.file for one in differences(store)}


def test_facts_that_cannot_be_read_are_no_difference_of_the_record(store: Path) -> None:
    (first(store) / "facts" / "n1.json").write_text("{", encoding="utf-8")
    assert {one.kind for one in differences(store)} == {"format", "checksum"}
