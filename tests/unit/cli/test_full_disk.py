"""Commands on a disk that is full, read-only or forbidden: one foreseen error, code 3, and nothing half written."""

from __future__ import annotations

import contextlib
import errno
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.campaigns.small_disk import SmallDisk, mounted

from steelyard.cli.main import main
from steelyard.events.kept import SessionFailed
from steelyard.lab import session
from steelyard.model.errors import FileError
from steelyard.store import Store
from tests.unit.report import synthetic
from tests.unit.small_study import SMALL_STUDY


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.stored(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with mounted(tmp_path / "disk", "6m") as small:
        yield small


def called(*words: str | Path) -> tuple[int, str]:
    """Exit code and messages of a command."""
    messages = io.StringIO()
    with contextlib.redirect_stderr(messages), pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    code = ended.value.code
    assert isinstance(code, int)
    return code, messages.getvalue()


@pytest.mark.root
def test_report_is_written_whole_or_not_at_all(disk: SmallDisk, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Path(shutil.copytree(sound, disk.folder / "store"))
    before = {path for path in disk.folder.rglob("*") if path.is_file()}
    disk.fill()
    folders = ("--tables", disk.folder / "t", "--figures", disk.folder / "f")
    for words in (
        (),
        ("--output", disk.folder / "page.html"),
        ("--methods", *folders[:2]),
        ("--methods", *folders[2:]),
    ):
        code, messages = called("report", store, *words)
        assert code == 3
        assert "the disk is full (0 B of 6 MiB are free)" in messages
        assert "free some space" in messages
        assert ("or write the page to another disk with `--output FILE`" in messages) is (not words)
        assert "not foreseen" not in messages
        assert {path for path in disk.folder.rglob("*") if path.is_file()} - {disk.folder / "filler"} == before
    disk.empty()
    assert called("report", store)[0] == 0
    page = (store / "report.html").read_bytes()
    disk.fill()
    assert called("report", store)[0] == 3
    assert (store / "report.html").read_bytes() == page, "the page of before is what it was"


@pytest.mark.root
@pytest.mark.parametrize("option", ["--hdr", "--openmetrics", "--otava", "--parquet", "--markdown"])
def test_an_export_is_written_whole_or_not_at_all(
    option: str, disk: SmallDisk, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = disk.folder / "exported"
    disk.fill()
    code, messages = called("export", sound, option, place)
    assert code == 3
    assert f"error: {place}" in messages
    assert "cannot be written: the disk is full (0 B of 6 MiB are free)" in messages
    assert [path for path in disk.folder.rglob("*") if path.is_file()] == [disk.folder / "filler"]
    disk.empty()
    assert called("export", sound, option, place)[0] == 0


@pytest.mark.root
@pytest.mark.agent
def test_run_on_a_disk_that_takes_nothing(disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    study = tmp_path / "full.toml"
    study.write_text(SMALL_STUDY)
    words = ("run", study, "--store", disk.folder, "--plain")
    disk.fill()
    code, messages = called(*words)
    assert (code, "not foreseen" in messages) == (3, False), messages
    assert "of disk are free" in messages or "the disk is full" in messages
    assert "run the same command again" in messages or "then the same command goes on" in messages
    assert "no sealed trial is lost" in messages
    disk.empty()
    shutil.rmtree(disk.folder / "small")
    disk.remount("ro")
    code, messages = called(*words)
    assert (code, "not foreseen" in messages) == (3, False), messages
    assert "cannot be written: the file system is read-only" in messages


@pytest.mark.parametrize("error", [
    OSError(errno.ENOSPC, "No space left on device", "store/small/trials"),
    FileError("store/small: the disk is full", f"free some space, and go on: {session.NONE_LOST}"),
])  # fmt: skip
def test_a_session_that_the_disk_ends_says_once_that_no_sealed_trial_is_lost(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def conduct(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    # The disk is full in the middle of a session (a real one: lab/test_full_disk.py).
    monkeypatch.setattr(session.Conductor, "run", conduct)
    study = tmp_path / "full.toml"
    study.write_text(SMALL_STUDY)
    code, messages = called("run", study, "--store", tmp_path / "store", "--plain")
    assert code == 3
    assert "the disk is full" in messages
    assert messages.count("no sealed trial is lost") == 1
    assert ("run the same command again" in messages) is isinstance(error, OSError)
    events = [entry.event for entry in Store(tmp_path / "store" / "small").journal()]
    failed = [event for event in events if isinstance(event, SessionFailed)]
    assert [event.hint.count("no sealed trial is lost") for event in failed] == [1]


@pytest.mark.root
def test_report_on_a_read_only_disk_names_the_page(
    disk: SmallDisk, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Path(shutil.copytree(sound, disk.folder / "store"))
    disk.remount("ro")
    code, messages = called("report", store)
    assert code == 3
    assert f"{store / 'report.html'} cannot be written: the file system is read-only" in messages


def test_a_folder_in_place_of_a_file_is_named(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, messages = called("report", sound, "--output", tmp_path)
    assert (code, messages) == (3, f"error: {tmp_path}: is a directory\n  use another file or folder\n")


@pytest.mark.root
def test_a_gate_on_a_full_or_read_only_disk(disk: SmallDisk, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = disk.folder / "gate.xml"
    old.write_text("old")
    words = (
        "gate",
        sound,
        "--against",
        sound,
        "--a",
        "nodes=1,workload=A",
        "--b",
        "nodes=3,workload=A",
        "--margin",
        "2%",
    )
    for option, path in (("--junit", old), ("--markdown", disk.folder / "new.md")):
        disk.fill()
        code, messages = called(*words, option, path)
        assert (code, "the disk is full" in messages) == (3, True), messages
        disk.empty()
        disk.remount("ro")
        code, messages = called(*words, option, path)
        assert (code, "the file system is read-only" in messages) == (3, True), messages
        disk.remount("rw")
    assert old.read_text() == "old"
    assert {path.name for path in disk.folder.iterdir()} == {"gate.xml"}
