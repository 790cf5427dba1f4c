"""What a folder holds: whole stores, half-written ones, none."""

from __future__ import annotations

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from steelyard.events.kept import SessionBegan
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.serve.store_cache import Shelf, Watched, find
from steelyard.store import Store, layout
from tests.unit.serve.stores import a_record, write


def test_stores_are_found_by_name(tmp_path: Path) -> None:
    write(tmp_path / "b")
    write(tmp_path / "a")
    (tmp_path / "no store").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").write_text("")
    assert list(find(tmp_path)) == ["a", "b"]
    assert find(tmp_path / "a") == {"a": (tmp_path / "a").resolve()}
    assert find(tmp_path / "no store") == {}
    assert find(tmp_path / "gone") == {}


def test_a_whole_store_is_read(tmp_path: Path) -> None:
    records = [a_record(0), a_record(1)]
    found = Watched("s", write(tmp_path / "s", records, [{"event": "session-began", "todo": 2, "total": 2}])).read()
    assert found.study is not None
    assert found.records == tuple(records)
    assert [entry.event for entry in found.journal] == [SessionBegan(todo=2, total=2)]
    assert (found.problem, found.remarks, found.live) == ("", (), None)


def test_half_written_trials_are_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    trials = folder / layout.TRIALS
    for name, text in (("torn", '{"id": '), ("newer", '{"format": 99}'), ("list", "[]"), ("bytes", "\0")):
        (trials / name).mkdir()
        (trials / name / layout.TRIAL_JSON).write_text(text)
    (trials / "copied to its half").mkdir()
    (trials / ".draft.partial").mkdir()
    (trials / ".draft.partial" / layout.TRIAL_JSON).write_text("{}")
    found = Watched("s", folder).read()
    assert found.records == (a_record(0),)
    assert len(found.remarks) == 5
    assert any("format 99" in remark for remark in found.remarks)
    assert not any("draft" in remark for remark in found.remarks)


def test_what_was_half_copied_is_read_when_it_is_whole(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [a_record(0), a_record(1)])
    record = folder / layout.TRIALS / a_record(1).id / layout.TRIAL_JSON
    text = record.read_text()
    record.write_text(text[:40])
    watched = Watched("s", folder)
    before = watched.read()
    record.write_text(text)
    after = watched.read()
    assert (len(before.records), len(after.records), after.remarks) == (1, 2, ())
    assert before.changed != after.changed


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"format": 2}', "format 2, this version reads 1"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "restore it from a copy"),
    ],
)
def test_a_study_that_cannot_be_read_is_a_problem_and_no_error(tmp_path: Path, text: str, told: str) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    (folder / layout.STUDY_JSON).write_text(text)
    found = Watched("s", folder).read()
    assert found.study is None
    assert told in found.problem
    assert len(found.problem) < 700


def test_an_empty_folder_and_one_that_has_gone(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    watched = Watched("s", tmp_path / "s")
    assert watched.read().problem.endswith("has no study.json yet")
    (tmp_path / "s").rmdir()
    assert watched.read().problem == ""


@pytest.mark.parametrize("text", ["", "{}\n{}", "no json", "[]\n"])
def test_a_plan_that_cannot_be_read_is_a_remark(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    (folder / layout.PLAN).write_text(text)
    found = Watched("s", folder).read()
    assert found.plan is None
    assert len(found.remarks) == 1
    assert len(found.records) == 1


@pytest.mark.parametrize("text", ["{", '{"format": 9}', "[]", "\0\0"])
def test_a_live_file_of_anybody_is_passed_over(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path / "s")
    (folder / layout.LIVE).write_text(text)
    assert Watched("s", folder).read().live is None


def test_sealed_trials_are_read_once_and_removed_ones_forgotten(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [a_record(0), a_record(1)])
    watched = Watched("s", folder)
    first = watched.read()
    (folder / layout.TRIALS / a_record(0).id / layout.TRIAL_JSON).write_text("{")
    assert watched.read().records == first.records
    shutil.rmtree(folder / layout.TRIALS / a_record(0).id)
    assert watched.read().records == (a_record(1),)


SECRET = {"event": "session-failed", "message": "login: password=geheim123", "hint": ""}


def test_secrets_in_a_store_are_not_shown(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [], [SECRET])
    study = json.loads((folder / layout.STUDY_JSON).read_text())
    study["system"]["password"] = "geheim123"
    (folder / layout.STUDY_JSON).write_text(json.dumps(study))
    assert "geheim123" not in repr(Watched("s", folder).read())


def test_a_look_is_repeated_only_after_a_while(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    now_s = [0.0]
    watched = Watched("s", folder, clock=lambda: now_s[0])
    with ThreadPoolExecutor(1) as readers:
        first = watched.look(readers, 10.0)
        write(folder, [a_record(0), a_record(1)])
        assert watched.look(readers, 10.0) is first
        now_s[0] = 1.0
        again = watched.look(readers, 10.0)
    assert again is not None
    assert len(again.records) == 2


def test_a_store_that_is_slow_is_not_waited_for(tmp_path: Path) -> None:
    watched = Watched("s", write(tmp_path / "s", [a_record(0)]))
    with ThreadPoolExecutor(1) as readers:
        go_on = threading.Event()
        readers.submit(go_on.wait, 10.0)
        assert watched.look(readers, 0.0) is None
        go_on.set()
        assert watched.look(readers, 10.0) is not None


def test_names_are_compared_and_never_joined(tmp_path: Path) -> None:
    write(tmp_path / "root" / "s")
    write(tmp_path / "outside")
    shelf = Shelf(tmp_path / "root")
    for name in ("..", "../outside", "s/../../outside", "", ".", str(tmp_path / "outside"), "s/", "S"):
        with pytest.raises(KeyError):
            shelf.look(name, 1.0)
    assert shelf.look("s", 10.0) is not None
    shutil.rmtree(tmp_path / "root")
    with pytest.raises(KeyError):
        shelf.look("s", 1.0)
    shelf.close()


DEEP = "[" * 200_000
"""More than a reader of JSON goes down."""


@pytest.mark.parametrize("name", [layout.STUDY_JSON, layout.PLAN, layout.EVENTS, layout.LIVE, "trial", "nested"])
@pytest.mark.parametrize("text", [DEEP, '{"a":' * 900 + "1" + "}" * 900, "9" * 5000, "\ud800"])
def test_files_of_anybody_are_remarks_and_no_errors(tmp_path: Path, name: str, text: str) -> None:
    folder = write(tmp_path / "s", [a_record(0), a_record(1)])
    if name in ("trial", "nested"):
        path = folder / layout.TRIALS / a_record(1).id / layout.TRIAL_JSON
        record = json.loads(path.read_text())
        text = (
            json.dumps(record).replace('"settings": {', f'"settings": {{"x": {text or 1},')
            if name == "nested"
            else text
        )
    else:
        path = folder / name
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    found = Watched("s", folder).read()
    assert found.live is None
    assert a_record(0) in found.records
    assert len(found.records) == (1 if name in ("trial", "nested") else 2)
    assert all(len(remark) < 700 for remark in found.remarks)


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "loop", "outside"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, what: str) -> None:
    folder = write(tmp_path / "s", [a_record(0), a_record(1)])
    (tmp_path / "outside").write_text("root:x:0:0:of somebody else\n")
    for path in (folder / layout.TRIALS / a_record(1).id / layout.TRIAL_JSON, folder / layout.LIVE):
        path.unlink(missing_ok=True)
        match what:
            case "pipe":
                os.mkfifo(path)
            case "device":
                path.symlink_to("/dev/zero")
            case "folder":
                path.mkdir()
            case "loop":
                path.symlink_to(path)
            case _:
                path.symlink_to(tmp_path / "outside")
    found = Watched("s", folder).read()
    assert (found.records, len(found.remarks), found.live) == ((a_record(0),), 1, None)
    assert "somebody" not in repr(found)


def test_a_study_that_was_run_anew_in_the_same_folder_is_read_anew(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    watched = Watched("s", folder)
    assert watched.read().records == (a_record(0),)
    shutil.rmtree(folder)
    later = a_record(0).model_copy(update={"begun_s": a_record(0).begun_s + 500})
    write(folder, [later])
    (folder / layout.STUDY_JSON).touch()
    assert watched.read().records == (later,)


def test_secrets_in_reasons_are_not_shown(tmp_path: Path) -> None:
    detail = "the node said: password=geheim123"
    reason = Reason(kind=ReasonKind.SYSTEM_FAULT, detail=detail)
    folder = write(tmp_path / "s", [a_record(0, Verdict(outcome="invalid", reasons=(reason,)))])
    assert "geheim123" not in repr(Watched("s", folder).read())


def test_a_look_that_nobody_waited_for_is_no_news_later(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    now_s = [0.0]
    watched = Watched("s", folder, clock=lambda: now_s[0])
    with ThreadPoolExecutor(1) as readers:
        go_on = threading.Event()
        readers.submit(go_on.wait, 60.0)
        assert watched.look(readers, 0.0) is None
        go_on.set()
        # Behind the look in the same queue.
        readers.submit(int).result(60.0)
        now_s[0] = 3600.0
        write(folder, [a_record(0), a_record(1)])
        found = watched.look(readers, 60.0)
    assert found is not None
    assert len(found.records) == 2
    assert watched.look(readers, 60.0) is found
    now_s[0] = 7200.0
    # The server has ended.
    assert watched.look(readers, 60.0) is found


def test_attempts_that_cannot_be_read_are_tried_again_only_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "s", [a_record(0)])
    for place in range(50):
        torn = folder / layout.TRIALS / f"torn{place:02}"
        torn.mkdir()
        (torn / layout.TRIAL_JSON).write_text('{"format": 99}')
    watched = Watched("s", folder)
    first = watched.read()
    assert len(first.remarks) == 21
    assert first.remarks[-1] == "30 other attempts cannot be read either"
    tried: list[str] = []
    real = Store.attempt

    def attempt(store: Store, name: str) -> TrialRecord:
        tried.append(name)
        return real(store, name)

    # What is read again gives the same answer.
    monkeypatch.setattr(Store, "attempt", attempt)
    assert watched.read().remarks == first.remarks
    assert tried == []
    repaired = a_record(1)
    (folder / layout.TRIALS / "torn07" / layout.TRIAL_JSON).write_text(repaired.model_dump_json())
    (folder / layout.TRIALS / "torn07").rename(folder / layout.TRIALS / repaired.id)
    shutil.rmtree(folder / layout.TRIALS / "torn08")
    found = watched.read()
    assert tried == [repaired.id]
    assert len(found.records) == 2
    assert found.remarks[-1] == "28 other attempts cannot be read either"
