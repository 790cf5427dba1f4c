"""The disk fills at each place where a study writes: no sealed trial is lost, nothing stays lent, and with room again
the same study goes on."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.campaigns.small_disk import SmallDisk, mounted

from steelyard.events.base import Kept
from steelyard.events.kept import TrialSealed
from steelyard.file_errors import foreseen
from steelyard.lab.conductor import Outcome
from steelyard.lab.disk_room import DiskRoom
from steelyard.model.errors import FileError, SteelyardError
from steelyard.node.base import Node
from steelyard.plan.abilities import Abilities
from steelyard.store import Store, StoreWriter
from steelyard.store.write import TrialDraft
from steelyard.verify.store import verification
from tests.unit.lab.fakes import FakeParts, FakeSystem, Script, plan_of, study, without_waiting
from tests.unit.lab.test_conductor import conduct

WHOLE = Outcome(planned=8, valid=8, invalid=0, missing=0)
PLACES: dict[str, tuple[type, str, int]] = {
    "the study and its plan": (StoreWriter, "intend", 0),
    "the first line of the journal": (StoreWriter, "event", 0),
    "the line of a sealed trial": (StoreWriter, "event", 4),
    "the folder of a draft": (StoreWriter, "draft", 2),
    "what is about to be done": (TrialDraft, "intend", 2),
    "facts": (TrialDraft, "facts", 6),
    "intervals": (TrialDraft, "intervals", 2),
    "a log": (TrialDraft, "log", 4),
    "links": (TrialDraft, "links", 2),
    "the seal": (TrialDraft, "seal", 2),
}
"""The function that meets a full disk, and how many of its calls go well before."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with mounted(tmp_path / "disk", "2m") as small:
        yield small


def filling(disk: SmallDisk, original: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """The function; before its call number `calls` the disk is filled."""
    left = [calls]

    def call(*arguments: Any, **named: Any) -> Any:
        if left[0] == 0:
            disk.fill()
        left[0] -= 1
        return original(*arguments, **named)

    return call


@pytest.mark.root
@pytest.mark.parametrize("place", PLACES)
def test_the_disk_fills_up(place: str, disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch)
    script = Script(disk.folder)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "system.log").write_text("INFO a line\n" * 1000)

    class LoggingSystem(FakeSystem):
        def logs(self, node: Node) -> tuple[Path, ...]:
            return (logs,)

    holder, name, calls = PLACES[place]
    store = disk.folder / "store" / "fake"
    with monkeypatch.context() as patched:
        # Each write is one call of the writer: no other seam says which is next.
        patched.setattr(holder, name, filling(disk, getattr(holder, name), calls))
        with pytest.raises((OSError, SteelyardError)) as caught:
            conduct(script, parts=FakeParts(script, system_of=LoggingSystem))
    error = foreseen(caught.value)
    assert error is not None
    assert str(disk.folder) in error.path
    assert re.search(r"the disk is full \(|: 0 B of disk are free", error.message)
    assert "the same command" in error.hint
    assert script.leases == script.released
    sealed = {record.id for record in Store(store).trials()} if (store / "study.json").is_file() else set()
    assert len(sealed) == (0 if place in ("the study and its plan", "the first line of the journal") else len(sealed))
    assert list((store / "trials").glob(".*")) == [], "no draft stays"
    assert list(store.glob(".*.tmp")) == []
    disk.empty()
    assert conduct(script) == WHOLE
    assert sealed <= {record.id for record in Store(store).trials()}
    assert len(Store(store).trials()) == 8, "no trial is measured twice"
    assert [finding for finding in verification(Store(store)).findings if "journal" in str(finding)] == []


def test_a_trial_whose_line_was_not_written_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills between the seal and the journal."""
    without_waiting(monkeypatch)
    script = Script(tmp_path)

    class FullWriter(StoreWriter):
        def event(self, event: Kept) -> None:
            if isinstance(event, TrialSealed):
                raise OSError(errno.ENOSPC, "No space left on device", "events.jsonl")
            super().event(event)

    with pytest.raises(OSError, match="No space"):
        conduct(script, writes=FullWriter)
    store = tmp_path / "store" / "fake"
    assert len(Store(store).trials()) == 1
    assert conduct(script) == WHOLE
    assert len(Store(store).trials()) == 8
    remarks = [finding for finding in verification(Store(store)).findings if finding.kind == "journal"]
    assert [(finding.weight, finding.read) for finding in remarks] == [
        ("remark", "the journal does not know it: copied from another store?")
    ]


@pytest.mark.root
def test_a_read_only_disk(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch)
    disk.remount("ro")
    with pytest.raises(OSError, match="Read-only") as caught:
        conduct(Script(disk.folder))
    error = foreseen(caught.value)
    assert error is not None
    assert "the file system is read-only" in error.message


def room(tmp_path: Path, free_bytes: float) -> DiskRoom:
    (tmp_path / "state").mkdir(exist_ok=True)
    return DiskRoom(tmp_path, tmp_path / "state", Abilities(), free_bytes=lambda folder: int(free_bytes))


def test_a_trial_that_would_not_fit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two trials somebody else fills the disk: the study ends, and says how to go on."""
    without_waiting(monkeypatch)
    script = Script(tmp_path)
    # The conductor makes its own look at the disk.
    monkeypatch.setattr(
        "steelyard.lab.disk_room.shutil.disk_usage",
        lambda folder: type("Usage", (), {"free": 10**9 if len(script.driven) < 3 else 120 * 1024}),
    )
    with pytest.raises(FileError, match=r"fake: 120 KiB of disk are free, the next trial may need 293 KiB") as caught:
        conduct(script)
    assert caught.value.hint == "free some space and run the same command to resume: no sealed trial is lost"
    assert script.leases == script.released
    assert 0 < len(Store(tmp_path / "store" / "fake").trials()) < 8
    monkeypatch.undo()
    without_waiting(monkeypatch)
    assert conduct(script) == WHOLE


def test_room_counts_what_a_trial_writes_and_how_large_the_largest_was(tmp_path: Path) -> None:
    trial = plan_of(study(load={"operations": 1_000_000})).trials[0]
    room(tmp_path, 10**12).require(trial.settings)
    with pytest.raises(FileError, match=r"need 954 MiB"):
        room(tmp_path, 10**8).require(trial.settings)
    small = plan_of(study()).trials[0]
    large = room(tmp_path, 10**6)
    large.require(small.settings)
    large.largest_bytes = 10**6
    with pytest.raises(FileError):
        large.require(small.settings)
