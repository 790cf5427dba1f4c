"""Disruptions during a trial: what is sealed of them, who is blamed, and what they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.disruption.base import Disruption, Stage
from steelyard.lab.conductor import Outcome
from steelyard.model.errors import SteelyardError, SystemFault
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.base import Node
from tests.unit.lab.fakes import FakeParts, FakeSystem, Script, study, without_waiting
from tests.unit.lab.test_conductor import conduct, stored
from tests.unit.lab.test_scaling import LastingEngine

FOR_S = 0.1


class Downs:
    """Takes targets down for FOR_S, as the fake system sees them."""

    name, takes_down = "downs", True
    fails: SteelyardError | None = None

    def __init__(self, down: set[str]) -> None:
        self.down = down
        self.targets: list[tuple[str, ...]] = []

    def refusal(self, *_: object) -> str:
        return ""

    async def hold(self, stage: Stage) -> None:
        names = tuple(node.name for node in stage.nodes)
        self.targets.append(names)
        self.down |= set(names)
        for node in stage.nodes:
            stage.mark(node, "began", None)
        try:
            await asyncio.sleep(stage.for_s)
            if self.fails is not None:
                raise self.fails
        finally:
            self.down -= set(names)
        for node in stage.nodes:
            stage.mark(node, "healed", None)


class Mortal(FakeSystem):
    """Says who is dead."""

    async def death(self, node: Node) -> SystemFault | None:
        return SystemFault(f"{node.name} is dead", node=node.name) if node.name in down else None

    async def ready(self, node: Node, members: int) -> bool:
        return await super().ready(node, members) and node.name not in down

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        down.discard(node.name)


class Parts(FakeParts):
    def disruption(self, settings: TrialSettings) -> Disruption:
        return downs[-1]


down: set[str] = set()
downs: list[Downs] = []


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    down.clear()
    downs[:] = [Downs(down)]
    return Script(tmp_path)


def disrupted(**changes: Any) -> Study:
    disruption = {"name": "kill", "at_s": 0.1, "for_s": FOR_S, "recover_s": 0.2, **changes}
    design = {"starts": 1, "trials": 2, "seed": 3}
    load = {"schedule": "constant", "rate_per_s": 20, "duration_s": 0.5}
    return study(disruption=disruption, design=design, factors={"nodes": [3]}, load=load)


def records(script: Script, a_study: Study, system: type[FakeSystem] = Mortal) -> tuple[TrialRecord, ...]:
    outcome = conduct(script, a_study, parts=Parts(script, system_of=system, engine_of=LastingEngine))
    assert isinstance(outcome, Outcome)
    assert script.leases == script.released
    return tuple(stored(script).trials())


def names(marks: Sequence[Any]) -> list[str]:
    return [mark.name for mark in marks]


def test_targets_may_be_dead_meanwhile_and_the_trial_ends_its_start(script: Script) -> None:
    found = records(script, disrupted())
    assert len(found) == len(script.leases) == 2
    for record in found:
        (activity,) = record.disruptions
        assert (activity.kind, activity.outcome, len(activity.nodes)) == ("disruption", "done", 1)
        assert names(activity.marks) == ["began", "healed", "recovered"]
        assert activity.cause == "kill of one for 0.1 s"
        assert record.verdict.outcome == "valid"
        assert record.activities == ()
    assert down == set()


@pytest.mark.parametrize("noticed", [True, False], ids=["by all", "not by all"])
def test_the_others_take_a_target_for_dead(script: Script, noticed: bool) -> None:
    asked: list[tuple[str, str]] = []

    class Noticing(Mortal):
        async def seen_down(self, viewer: Node, node: Node, since_s: float) -> float | None:
            asked.append((viewer.name, node.name))
            return since_s + (0.04 if viewer.name == "n3" else 0.02) if noticed or viewer.name == "n3" else None

    (record, *_) = records(script, disrupted(on="n1"), Noticing)
    (activity,) = record.disruptions
    assert asked[:2] == [("n2", "n1"), ("n3", "n1")]
    marked = {mark.name: mark.t_s for mark in activity.marks}
    assert ("seen-down" in marked) == noticed
    if noticed:
        assert marked["seen-down"] == pytest.approx(activity.begun_s + 0.04)


def test_a_node_that_is_no_target_must_live(script: Script) -> None:
    class Spreads(Downs):
        async def hold(self, stage: Stage) -> None:
            self.down.add("n3")
            await super().hold(stage)

    downs[:] = [Spreads(down)]
    (record, *_) = records(script, disrupted(on="n1"))
    assert record.verdict.system_fault
    assert "n3 is dead" in record.verdict.reasons[0].detail
    assert "n1" not in down, "it is healed although the load has ended"


def test_a_target_that_does_not_recover_is_a_result(script: Script) -> None:
    class Stays(Downs):
        async def hold(self, stage: Stage) -> None:
            await super().hold(stage)
            self.down.add("n2")

    downs[:] = [Stays(down)]
    (record, *_) = records(script, disrupted(on="n2"))
    assert record.verdict.system_fault
    assert "n2 did not recover within 0.2 s (disruption.recover_s)" in record.disruptions[0].error


def test_what_the_laboratory_could_not_do_voids_the_trial(script: Script) -> None:
    downs[0].fails = SteelyardError("n1: `pause` was not held: no such program")
    with pytest.raises(SteelyardError, match="was not held"):
        records(script, disrupted())
    (record, *_) = stored(script).trials()
    assert record.verdict.lab_fault


def test_without_a_disruption_nothing_is_recorded(script: Script) -> None:
    found = records(
        script, study(data={"state": "continue"}, factors={"nodes": [3]}, design={"starts": 1, "trials": 2})
    )
    assert len(script.leases) == 1
    assert "disruptions" not in found[0].model_dump(mode="json")
