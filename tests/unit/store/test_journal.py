"""The journal: what one version writes every later one reads, and nothing that stands there breaks a reader."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from tools.campaigns.small_disk import mounted

from steelyard.events.base import KINDS, Kept, Unknown
from steelyard.events.kept import (
    ActivityBegan,
    ActivityEnded,
    BlockLost,
    DisksLimited,
    DraftRemoved,
    FolderMissed,
    FolderSetAside,
    LaboratoryFailed,
    LevelDerived,
    LinksMeasured,
    NodesGauged,
    NoiseFloorSought,
    ProcessorsLimited,
    QuietAwaited,
    QuietReached,
    SealCorrected,
    ServersWarmedUp,
    SessionBegan,
    SessionEnded,
    SessionFailed,
    SessionInterrupted,
    StartBegan,
    StartEnded,
    StartFailed,
    StartReady,
    StoppingJudged,
    StudyWritten,
    TrialSealed,
)
from steelyard.judging.stopping import decide, rule_of
from steelyard.model.derived import Derived
from steelyard.model.estimate import Estimate
from steelyard.model.gauged import Gauged
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.trial import Phase, PhaseTime
from steelyard.model.verdict_reasons import Reason, ReasonKind
from steelyard.store import Store, StoreWriter, journal
from tests.unit.lab.fakes import plan_of, study

UNTIL = study(design={"starts": 9, "trials": 1, "seed": 3, "until": {"width_percent": 3, "least_starts": 6}})


def decision() -> Any:
    rule = rule_of(UNTIL)
    assert rule is not None
    return decide(plan_of(UNTIL), (), rule)


EVENTS: tuple[Kept, ...] = (
    SessionBegan(todo=3, total=8, command=("steelyard", "run", "a.toml"), folder="/home/a", commit="c0ffee"),
    StartBegan(start="b01-1", block=1, trials=4),
    StartFailed(start="b01-1", message="no port", count=1),
    StartReady(start="b01-1", cluster="b01-1-abc"),
    NodesGauged(
        start="b01-1",
        gauged=Gauged(moment="before", asked={"cpus": 0.5}, measured={"n1": {"cpus": 0.49}}, problems={"n2": "no"}),
    ),
    LinksMeasured(start="b01-s1", cluster="b01-s1-x", links=({"from": "l1", "to": "n1", "rtt_ms_min": 0.1},)),
    ServersWarmedUp(
        start="b01-1",
        cluster="b01-1-abc",
        warmth=ServerWarmth(seconds=4.5, rounds=2, operations=99, reached=True),
    ),
    NodesGauged(start="b01-1", gauged=Gauged(moment="before", asked={"cpus": 0.4})),
    ProcessorsLimited(start="b01-1", cluster="b01-1-abc", cpus={"n1": 0.4}),
    DisksLimited(start="b01-1", cluster="b01-1-abc", rates={"n1": {"limit_disk_write_bytes_per_s": 7_000_000.0}}),
    LevelDerived(
        start="b01-1",
        treatment={"nodes": 3},
        fired=1,
        share=Estimate.of(0.5, (0.01, 0.99), "", 0.95, 2, "exact"),
        derived=Derived(
            level="phase-1", response="cpu_percent_mean", mean=79.0, add=-3.0, trials=(("a-s1-t1", 1), ("a-s2-t1", 1))
        ),
    ),
    ActivityBegan(trial="a-s1-t1", kind="scale-out", nodes=("n4",), cause="scheduled"),
    ActivityEnded(trial="a-s1-t1", kind="scale-out", nodes=("n4",), outcome="failed", error="no disk"),
    StartEnded(start="b01-1", phases=(PhaseTime(phase=Phase.DEPLOY, entered_s=1.0, left_s=2.0),)),
    BlockLost(block=2, machine="boxB", why="its laboratory has gone"),
    LaboratoryFailed(start="b01-1", message="no disk", notes=("and no wipe",)),
    QuietAwaited(reasons=(Reason(kind=ReasonKind.STEAL, measured=0.8, threshold=0.2, detail="a"),), wait_s=60.0),
    QuietReached(waited_s=7.0),
    TrialSealed(trial="a-s1-t1", attempt=2, outcome="invalid", reasons=("LAG",), record_sha256="ab"),
    SealCorrected(
        line=3,
        instead_of="a-s1-t1",
        trial="a-s1-t1",
        attempt=2,
        outcome="invalid",
        reasons=(),
        record_sha256="ab",
        why="one digit",
    ),
    DraftRemoved(folder=".a-s1-t1.partial"),
    FolderSetAside(folder="a-s1-t1", to="set-aside/a-s1-t1", why="no record"),
    FolderMissed(folder="a-s1-t1"),
    StudyWritten(sha256={"study.toml": "ab"}),
    NoiseFloorSought(found=True, study="floor", made_s=1.0, sha256="ab"),
    NoiseFloorSought(found=False, why="none was measured"),
    StoppingJudged(decision=decision()),
    SessionEnded(valid=7, invalid=1, missing=0),
    SessionFailed(message="gave up", hint="fix it"),
    SessionInterrupted(),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with StoreWriter(tmp_path, "fake") as writer:
        (writer.folder / "study.json").write_text(study().model_dump_json())
        for event in EVENTS:
            writer.event(event)
        read = Store(writer.folder).journal()
    assert tuple(entry.event for entry in read) == EVENTS
    assert [entry.number for entry in read] == list(range(1, len(EVENTS) + 1))
    assert all(entry.t_s is not None and entry.t_s > 1.7e9 for entry in read)
    assert {type(event) for event in EVENTS} == set(KINDS.values()), "each kind is in this test"


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ({"event": "judged", **decision().model_dump(mode="json")}, StoppingJudged(decision=decision())),
        ({"event": "session-interrupted", "by": "a later version"}, SessionInterrupted()),
    ],
)  # fmt: skip
def test_lines_are_read(line: dict[str, Any], event: Kept) -> None:
    (entry,) = journal.entries(json.dumps({"t_s": 5, **line}) + "\n")
    assert (entry.t_s, entry.event) == (5.0, event)


def test_what_is_not_known_is_kept() -> None:
    (later,) = journal.entries(json.dumps({"t_s": 5.0, "event": "node-killed", "node": "n1"}))
    assert later.event == Unknown("node-killed", {"node": "n1"})
    assert later.fields() == {"t_s": 5.0, "event": "node-killed", "node": "n1"}
    (harmed,) = journal.entries(json.dumps({"t_s": 5.0, "event": "session-failed", "message": [1], "hint": ""}))
    assert harmed.event == Unknown(
        "session-failed", {"message": [1], "hint": ""}, "message: Input should be a valid string"
    )


@pytest.mark.parametrize("line", ["[]", "3", "null", '"x"', "{}", '{"event": ["x"]}', '{"event": null, "t_s": "?"}'])
def test_a_line_without_a_name(line: str) -> None:
    (entry,) = journal.entries(line)
    assert isinstance(entry.event, Unknown)
    assert (entry.t_s, entry.event.name) == (None, "")


@pytest.mark.parametrize("line", ['{"t_s": 5.0, "ev', "", "[" * 100_000])
def test_a_torn_line_is_an_entry_without_an_event(line: str) -> None:
    entries = list(journal.entries(f'{line}\n{{"t_s": {10**400}, "event": "session-interrupted"}}\n'))
    assert [entry.event for entry in entries] == [None, SessionInterrupted()]
    assert entries[1].t_s is None


@pytest.mark.root
def test_a_line_of_the_journal_is_whole_or_not_there(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "2m") as disk, StoreWriter(disk.folder, "fake") as writer:
        writer.event(SessionFailed(message="before", hint=""))
        before = (disk.folder / "fake" / "events.jsonl").read_bytes()
        disk.fill()
        with pytest.raises(OSError, match=r"events\.jsonl") as caught:
            writer.event(SessionFailed(message="x" * 100_000, hint=""))
        assert caught.value.errno == errno.ENOSPC
        assert (disk.folder / "fake" / "events.jsonl").read_bytes() == before
