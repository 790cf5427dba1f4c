"""The noise floor of the machine is laid into the store of a study as soon as a trial says which machine it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Silent
from steelyard.events.kept import NoiseFloorSought
from steelyard.events.shown import TimeLeft
from steelyard.judging.noise_floor import Circumstances, FoundFloor, KeptFloor, Spread
from steelyard.lab.conductor import FAILED_STARTS_LIMIT, Conductor
from steelyard.model.errors import SystemFault
from steelyard.model.study import Study
from steelyard.node import noise_floor as noise
from steelyard.store import Store, StoreWriter
from steelyard.store.layout import NOISE_FLOOR
from tests.unit.lab.fakes import FakeParts, Script, plan_of, study, without_waiting

SPREAD = Spread(response="execution_time_ms", starts=12, trials=36, trials_a_start=3.0)


@dataclass
class Parts(FakeParts):
    """With floors in a folder of the test's own."""

    asked: list[tuple[Circumstances, ...]] = field(default_factory=list)

    def noise_floor(self, of: Sequence[Circumstances]) -> FoundFloor:
        self.asked.append(tuple(of))
        return noise.find(self.script.folder / "state", of)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    without_waiting(monkeypatch)
    return Parts(Script(tmp_path))


def conduct(parts: Parts, chosen: Study | None = None) -> Store:
    chosen = chosen or study(data={"state": "continue"})
    plan = plan_of(chosen)
    any_parts: Any = parts
    with StoreWriter(parts.script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        conductor = Conductor(chosen, plan, writer, any_parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        asyncio.run(conductor.run())
    return Store(parts.script.folder / "store" / "fake")


def journal(store: Store) -> list[NoiseFloorSought]:
    return [entry.event for entry in store.journal() if isinstance(entry.event, NoiseFloorSought)]


def keep(parts: Parts, of: Circumstances) -> KeptFloor:
    floor = KeptFloor(study="noise-floor", made_s=5.0, pairs=6, holds_for=of, spreads=(SPREAD,))
    noise.write(parts.script.folder / "state", floor)
    return floor


def test_without_one_the_journal_says_why_and_the_next_run_looks_again(parts: Parts) -> None:
    store = conduct(parts)
    (event,) = journal(store)
    assert event.found is False
    assert "noise-floor.toml" in event.why
    assert store.noise_floor(store.trials()).floor is None
    assert len(parts.asked) == 1, "once a run, not once a trial"
    floor = keep(parts, parts.asked[0][0])
    store = conduct(parts)
    assert store.noise_floor(store.trials()).floor == floor, "nothing was left to do but this"
    assert journal(store)[-1].study == "noise-floor"


def test_it_waits_for_a_trial_that_says_which_machine_it_is(parts: Parts) -> None:
    tried: list[str] = []

    def first_start_fails(node: Any) -> bool:
        tried.append(node.name)
        if tried.count("n1") <= FAILED_STARTS_LIMIT:
            raise SystemFault(f"{node.name}: killed for memory")
        return True

    parts.script.on_ready = first_start_fails
    store = conduct(parts)
    first = min(store.trials(), key=lambda trial: trial.position)
    assert first.verdict.system_fault, "sealed as infeasible: it has no facts of a machine"
    assert not store.facts(first)
    assert len(parts.asked) == 1
    assert parts.asked[0][0].machines
    assert len(journal(store)) == 1
    events = [entry.fields()["event"] for entry in store.journal()]
    assert events[events.index("noise-floor") - 1] == "trial-sealed", "the journal has the trial first"


def test_what_lies_there_is_read_with_care(parts: Parts) -> None:
    store = conduct(parts)
    path = store.folder / NOISE_FLOOR
    path.write_text("no JSON")
    assert "cannot be read" in store.noise_floor(store.trials()).why
    held = store.circumstances(store.trials())[0]
    other = held.model_copy(update={"system": "another"})
    path.write_text(KeptFloor(study="x", made_s=1.0, pairs=6, holds_for=other, spreads=()).model_dump_json())
    found = store.noise_floor(store.trials())
    assert found.floor is None
    assert "system another, this study has simulated" in found.why


def test_a_study_of_identical_systems_gets_none(parts: Parts) -> None:
    store = conduct(parts, study(data={"state": "continue"}, factors={}, design={"kind": "same", "starts": 2}))
    assert parts.asked == []
    assert {record.treatment["label"] for record in store.trials()} == {"A", "B"}
    assert not (store.folder / NOISE_FLOOR).exists()
