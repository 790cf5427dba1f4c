"""Collecting evidence: reading is bounded, and an instrument that is silent is not hidden by another."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Silent
from steelyard.events.shown import TimeLeft
from steelyard.lab import trial
from steelyard.lab.cluster import start_identity
from steelyard.lab.conductor import Conductor
from steelyard.lab.probe_processes import Readings
from steelyard.model.errors import NodeError, ProbeError
from steelyard.model.sample import Sample
from steelyard.node import files
from steelyard.node.base import START, Node
from steelyard.store import Store, StoreWriter
from tests.unit.lab.fakes import FakeParts, FakeSystem, Script, plan_of, study, without_waiting


class StuckSystem(FakeSystem):
    """Its logs cannot be read: the disk is gone."""

    forever = threading.Event()

    def logs(self, node: Node) -> tuple[Path, ...]:
        return (self.script.folder,)


class StuckParts(FakeParts):
    def system(self, settings: Any) -> FakeSystem:
        return StuckSystem(self.script)


def test_a_node_whose_logs_cannot_be_read_ends_the_start_and_not_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch)
    # A disk that hangs cannot be had.
    monkeypatch.setattr(trial, "COLLECT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(files, "_sizes", lambda folder: StuckSystem.forever.wait() and {})
    script = Script(tmp_path)
    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = StuckParts(script)
        conductor = Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        with pytest.raises(NodeError, match="phase collect took longer"):
            asyncio.run(conductor.run())
    StuckSystem.forever.set()
    assert script.leases == script.released
    assert Store(tmp_path / "store" / "fake").trials() == ()
    assert not any(path.name.startswith(".") for path in (tmp_path / "store" / "fake" / "trials").iterdir())


def test_collecting_is_a_phase_of_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch)
    script = Script(tmp_path)
    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script)
        asyncio.run(Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0)).run())
    record = Store(tmp_path / "store" / "fake").trials()[0]
    assert "collect" in [time.phase.value for time in record.phases]


def test_every_instrument_must_reach_the_end() -> None:
    readings = Readings(
        samples={("os", "n1"): [Sample(5.0, "n1", "x", 1)], ("energy", "n1"): [Sample(5.0, "n1", "y", 1)]}
    )
    asyncio.run(readings.reach(5.0))
    readings.failure = ProbeError("gone")
    with pytest.raises(ProbeError):
        asyncio.run(readings.reach(5.0))
    between = readings.between(4.0, 4.5)
    assert {who: len(found) for who, found in between.items()} == {("os", "n1"): 1, ("energy", "n1"): 1}


def test_a_start_is_told_by_its_place_in_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)
    by_start: dict[str, list[Any]] = {}
    for one in plan.trials:
        by_start.setdefault(one.start, []).append(one)
    names = [start_identity(3, trials) for trials in by_start.values()]
    assert len(set(names)) == len(names) == 4
    assert names == [start_identity(3, trials) for trials in by_start.values()]
    first = next(iter(by_start.values()))
    assert start_identity(3, first[1:]) != start_identity(3, first), "the rest after an interrupt is a start of its own"
    assert start_identity(4, first) != start_identity(3, first)

    seen: list[str] = []
    without_waiting(monkeypatch)
    script = Script(tmp_path)

    def note(node: Node) -> bool:
        seen.append(node.environment[START])
        return True

    script.on_ready = note
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script)
        asyncio.run(Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0)).run())
    assert set(seen) == set(names)
