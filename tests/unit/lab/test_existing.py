"""A cluster that exists, through the laboratory: nothing lent for it, no command on its machines, one start."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Silent
from steelyard.events.shown import TimeLeft
from steelyard.lab.conductor import Conductor
from steelyard.model.errors import CommandFailed
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.machine import Machine
from steelyard.store import Store, StoreWriter
from steelyard.system.base import Existing
from tests.unit.lab.fakes import FakeParts, FakeSite, FakeSystem, Script, plan_of, study, without_waiting
from tests.unit.small_study import refused_on

MACHINE = Machine(cores=2, memory_mb=8000, disk_free_bytes=10**12)


class SomebodysSystem(FakeSystem):
    watched = False

    def members(self, lent: Sequence[Node], loaders: Sequence[Node]) -> tuple[Node, ...]:
        assert list(lent) == []
        assert [loader.name for loader in loaders] == ["l1"]
        member = Node("n1", "database", "10.9.9.9", (), Path("/"), commands=False, kernel="db1", hardware="db1")
        return member, replace(member, name="n2", address="10.9.9.10")


class CountingSite(FakeSite):
    async def facts(self, node: Node) -> dict[str, str]:
        self.script.words.append(node.name)  # type: ignore[arg-type]
        return await super().facts(node)


class SomebodysParts(FakeParts):
    def site(self, settings: Any) -> FakeSite:
        return CountingSite(self.script)

    def system(self, settings: Any) -> FakeSystem:
        return SomebodysSystem(self.script)


def test_it_is_measured_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch)
    script = Script(tmp_path)
    assert isinstance(SomebodysSystem(script), Existing)
    chosen = study(
        data={"state": "continue"},
        design={"starts": 1, "trials": 3, "seed": 3},
        factors={"load.threads": [1, 2]},
        site={"name": "local", "nodes": 2},
    )
    plan = plan_of(chosen)
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = SomebodysParts(script)
        asyncio.run(Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0)).run())
    trials = Store(tmp_path / "store" / "fake").trials()
    assert len(trials) == 6
    assert {trial.verdict.outcome for trial in trials} == {"valid"}
    assert len({trial.start for trial in trials}) == 1
    assert script.words == ["l1"], "facts of the load node only"
    assert script.driven[0].contacts == ("10.9.9.9:1", "10.9.9.10:1")


def test_no_command_is_run_on_a_machine_that_is_not_lent() -> None:
    member = Node("n1", "database", "10.9.9.9", (), Path("/"), commands=False)
    with pytest.raises(CommandFailed, match="its machine is not lent"):
        asyncio.run(run(member, ["true"], timeout_s=1.0))


EXISTING = {"name": "cassandra", "managed": False, "contact_points": ["10.0.0.1"]}
LOOPBACK = {"name": "local", "mode": "loopback"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"factors": {"load.threads": [1, 2]}, "design": {"starts": 2, "trials": 2}}, "design.starts requires them"),
        ({"factors": {"system.keyspace": ["one", "two"]}, "design": {"starts": 1, "trials": 2}}, "system.keyspace"),
        ({"factors": {"nodes": [1, 3]}, "design": {"starts": 1, "trials": 2}}, "contact_points names 1"),
        ({"site": {"name": "local", "mode": "namespaces"}, "factors": {}}, "their own network"),
    ],
)
def test_what_it_cannot_be_asked_is_refused(changes: dict[str, Any], words: str) -> None:
    chosen = study(**{"system": EXISTING, "site": LOOPBACK, "design": {"starts": 1, "trials": 2}, **changes})
    messages = [error.message for error in refused_on(MACHINE, chosen, plan_of(chosen))]
    assert any(words in message for message in messages), messages


def test_what_it_can_be_asked_is_not() -> None:
    chosen = study(
        system=EXISTING,
        site=LOOPBACK,
        design={"starts": 1, "trials": 2},
        factors={"load.read_consistency": ["ONE", "QUORUM"]},
    )
    assert refused_on(MACHINE, chosen, plan_of(chosen)) == ()
