"""The store: sealed or not there, whole after any kill, one writer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Unknown
from steelyard.events.kept import DraftRemoved, SessionInterrupted
from steelyard.model.errors import StoreError
from steelyard.model.sample import Sample
from steelyard.model.trial import TrialRecord
from steelyard.store import Store, StoreWriter
from steelyard.store.modelled import open_store
from steelyard.store.write import sha256_of
from tests.unit.judging.test_attempts import record as record_of
from tests.unit.lab.fakes import plan_of, records_of, study
from tests.unit.wire.orders import order


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    a_study = study()
    with StoreWriter(tmp_path, "fake") as opened:
        opened.intend(a_study, "[study]\n", plan_of(a_study))
        yield opened


def a_record() -> TrialRecord:
    return record_of(plan_of(study()).trials[0])


def test_a_sealed_trial_reads_back(writer: StoreWriter) -> None:
    record = a_record()
    draft = writer.draft(record.id, 1)
    draft.intend(record)
    draft.intervals("l1", records_of(order(stop={"operations": 7}))[1:2])
    draft.samples("n1", [Sample(1.0, "n1", "node_cpu_user_cores", 0.5)])
    draft.facts("system:n1", {"version": "1"})
    draft.log("n1", "system.log", b"hello\n")
    sealed = draft.seal(record)
    store = Store(writer.folder)
    assert store.trials() == (sealed,)
    assert store.intervals(sealed)["count"].sum() == 14
    assert store.samples(sealed).row(0, named=True)["value"] == 0.5
    assert store.facts(sealed) == {"system:n1": {"version": "1"}}
    for name, checksum in sealed.checksums.items():
        assert sha256_of(store.folder_of(sealed) / name) == checksum
    assert store.plan == plan_of(study())
    assert store.study == study()


def test_a_draft_does_not_exist_for_readers_and_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    record = a_record()
    with StoreWriter(tmp_path, "fake") as first:
        first.intend(study(), "", plan_of(study()))
        first.draft(record.id, 1).intend(record)
        assert Store(first.folder).trials() == ()
    with StoreWriter(tmp_path, "fake") as second:
        assert not list(second.trials.iterdir())
        assert isinstance(Store(second.folder).journal()[-1].event, DraftRemoved)


def test_the_next_writer_removes_texts_that_a_kill_left_half_written(tmp_path: Path) -> None:
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / ".study.json.4711.tmp").write_text("{")
    with StoreWriter(tmp_path, "fake"):
        assert not list(folder.glob(".*.tmp"))


def test_one_writer_at_a_time(writer: StoreWriter, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="another process"):
        StoreWriter(tmp_path, "fake")


def test_a_study_of_which_nothing_is_written_leaves_no_folder(tmp_path: Path) -> None:
    """As a run that is refused."""
    with StoreWriter(tmp_path, "other") as opened:
        assert opened.trials.is_dir()
    assert not (tmp_path / "other").exists()
    opened.close()
    with StoreWriter(tmp_path, "other") as again:
        again.event(SessionInterrupted())
    assert (tmp_path / "other" / "trials").is_dir()


def test_a_torn_journal_is_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "events.jsonl").write_text('{"t_s": 1, "event": "a"}\n{"t_s": 2, "ev')
    with StoreWriter(tmp_path, "fake") as writer:
        (folder / "study.json").write_text(study().model_dump_json())
        writer.event(SessionInterrupted())
        assert [entry.event for entry in Store(writer.folder).journal()] == [Unknown("a", {}), SessionInterrupted()]


def test_a_trial_is_sealed_once(writer: StoreWriter) -> None:
    record = a_record()
    writer.draft(record.id, 1).seal(record)
    with pytest.raises(StoreError, match="sealed already"):
        writer.draft(record.id, 1)


def test_other_formats_are_refused_by_number(writer: StoreWriter) -> None:
    record = a_record()
    writer.draft(record.id, 1).seal(record)
    path = writer.trials / record.id / "trial.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        Store(writer.folder).trials()


def test_opening_finds_the_only_study_and_names_the_choices(writer: StoreWriter, tmp_path: Path) -> None:
    assert open_store(tmp_path).folder == writer.folder
    with pytest.raises(StoreError, match="not a study's folder") as caught:
        open_store(tmp_path / "nothing")
    assert "steelyard run" in caught.value.hint


def test_attempts_are_listed_by_folder_and_read_one_by_one(writer: StoreWriter) -> None:
    record = a_record()
    store = Store(writer.folder)
    assert store.attempts() == frozenset()
    sealed = writer.draft(record.id, 1).seal(record)
    writer.draft(record.id, 2)
    (writer.trials / "half copied").mkdir()
    assert store.attempts() == {record.id, "half copied"}
    assert store.attempt(record.id) == sealed
    with pytest.raises(StoreError, match=r"has no trial\.json"):
        store.attempt("half copied")
    for text in ('{"format": 99}', "[]", "{", '"text"'):
        (writer.trials / "half copied" / "trial.json").write_text(text)
        with pytest.raises(StoreError):
            store.attempt("half copied")


def test_what_a_study_left_that_never_began_is_named(tmp_path: Path) -> None:
    """A run that was killed so early; one that ends otherwise removes the folder."""
    with StoreWriter(tmp_path, "s") as writer, pytest.raises(StoreError, match="it has no study") as caught:
        Store(writer.folder)
    assert "a run ended here before it wrote its study" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("file", "file: not a folder", "name a folder"),
        ("file/below", "below: not a directory", "name a folder"),
        ("/proc/none", "/proc/none: no such file or directory", "name a folder"),
        ("store/fake", "results of a study", "{tmp_path}/store"),
        ("store/fake/trials", "results of a study", "{tmp_path}/store"),
    ],
)
def test_a_folder_that_cannot_hold_studies_is_refused(tmp_path: Path, name: str, message: str, hint: str) -> None:
    (tmp_path / "file").touch()
    with StoreWriter(tmp_path / "store", "fake") as opened:
        opened.intend(study(), "", plan_of(study()))
    with pytest.raises(StoreError, match=message) as raised:
        StoreWriter(tmp_path / name, "fake")
    assert hint.format(tmp_path=tmp_path) in raised.value.hint
    assert not (tmp_path / "store" / "fake" / "fake").exists()
