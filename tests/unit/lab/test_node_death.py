"""A phase of load ends when a node dies, and names it; whatever else ends it does so as before."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.events.base import Silent
from steelyard.events.shown import TimeLeft
from steelyard.lab.conductor import Conductor
from steelyard.lab.node_death import while_alive
from steelyard.lab.trial import TrialRunner
from steelyard.model.errors import EngineError, NodeError, SteelyardError, SystemFault
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.node.base import Node
from steelyard.store import Store, StoreWriter
from tests.unit.lab.fakes import FakeParts, FakeSystem, Script, plan_of, study, without_waiting


class MortalSystem(FakeSystem):
    """A system whose nodes die when the test says so."""

    def __init__(self, script: Script, dead: set[str]) -> None:
        super().__init__(script)
        self.dead = dead

    async def death(self, node: Node) -> SystemFault | None:
        return SystemFault(f"{node.name}: dead; last lines: oops", node=node.name) if node.name in self.dead else None


class MortalParts(FakeParts):
    def system(self, settings: Any) -> FakeSystem:
        return MortalSystem(self.script, self.script.dead)  # type: ignore[attr-defined]


@pytest.fixture
def nodes(tmp_path: Path) -> list[Node]:
    return [Node(name, "database", "10.0.0.1", (), tmp_path) for name in ("n1", "n2", "n3")]


def test_the_first_death_ends_the_load_and_names_all_dead_nodes(nodes: list[Node], tmp_path: Path) -> None:
    system = MortalSystem(Script(tmp_path), set())
    ended: list[str] = []

    async def driving() -> None:
        try:
            await asyncio.sleep(0.05)
            system.dead = {"n2", "n3"}
            await asyncio.sleep(3600)
        finally:
            ended.append("the load")

    with pytest.raises(SystemFault, match="n2: dead; last lines: oops; dead too: n3") as caught:
        asyncio.run(while_alive(driving(), system, lambda: nodes))
    assert caught.value.node == "n2"
    assert ended == ["the load"]


def test_a_look_during_which_a_node_is_killed_on_purpose_blames_nobody(nodes: list[Node], tmp_path: Path) -> None:
    """It began while the node was to be alive, as over a slow connection, and saw it dead."""
    expectations, down, answered = [0], set[str](), list[str]()

    class Slow(MortalSystem):
        async def death(self, node: Node) -> SystemFault | None:
            if node.name == "n2" and not down:
                down.add(node.name)
                expectations[0] += 1
                await asyncio.sleep(0.01)
                return SystemFault("n2: dead", node="n2")
            answered.append(node.name)
            return None

    async def driving() -> None:
        await asyncio.sleep(1.2)

    def living() -> list[Node]:
        return [node for node in nodes if node.name not in down]

    asyncio.run(while_alive(driving(), Slow(Script(tmp_path), set()), living, (), lambda: expectations[0]))
    assert answered.count("n1") > 1, "it has looked again"


@pytest.mark.parametrize("mortal", [True, False], ids=["notices", "does not notice"])
def test_nothing_else_ends_otherwise_than_before(nodes: list[Node], tmp_path: Path, mortal: bool) -> None:
    system = MortalSystem(Script(tmp_path), set()) if mortal else FakeSystem(Script(tmp_path))

    async def ends() -> None:
        await asyncio.sleep(0.03)

    async def fails() -> None:
        await ends()
        raise EngineError("tripped")

    asyncio.run(while_alive(ends(), system, lambda: nodes))
    with pytest.raises(EngineError, match="tripped"):
        asyncio.run(while_alive(fails(), system, lambda: nodes))


@pytest.mark.parametrize(
    ("death", "kind"),
    [
        (SystemFault("n1: dead", node="n1"), ReasonKind.SYSTEM_FAULT),
        (NodeError("n1 cannot be reached", node="n1"), ReasonKind.LAB_FAULT),
    ],
    ids=["dead", "out of reach"],
)
def test_who_is_to_blame_where_a_load_failed(death: SteelyardError, kind: ReasonKind) -> None:
    async def unwell() -> bool:
        return False

    async def asked() -> SystemFault:
        if isinstance(death, SystemFault):
            return death
        raise death

    unused: Any = None
    cluster: Any = SimpleNamespace(healthy=unwell, death=asked)
    runner = TrialRunner(unused, cluster, unused, unused)
    verdict = asyncio.run(runner._blamed_by_the_cluster(EngineError("no answer")))
    assert [(reason.kind, death.message in reason.detail) for reason in verdict.reasons] == [(kind, True)]


@pytest.mark.parametrize("phase", ["filling", "measuring"])
def test_a_study_goes_on_after_a_death(phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cluster dies under load that would take an hour; the next one is whole."""
    without_waiting(monkeypatch)
    script = Script(tmp_path, hang_at_drive=0 if phase == "filling" else 1)
    script.dead = set()  # type: ignore[attr-defined]
    released: list[str] = script.released

    class Site(MortalParts):
        def system(self, settings: Any) -> FakeSystem:
            script.dead = set()  # type: ignore[attr-defined]
            return super().system(settings)

    async def conduct(conductor: Conductor) -> None:
        task = asyncio.ensure_future(conductor.run())
        while len(script.driven) <= (script.hang_at_drive or 0):  # noqa: ASYNC110 - the fake engine has no event
            await asyncio.sleep(0)
        script.dead.add("n1")  # type: ignore[attr-defined]
        await asyncio.wait_for(task, 30)

    chosen = study(data={"state": "continue"}, factors={"nodes": [1]}, design={"starts": 2, "trials": 1, "seed": 3})
    plan = plan_of(chosen)
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = Site(script)
        asyncio.run(conduct(Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))))
    records = Store(tmp_path / "store" / "fake").trials()
    assert script.leases == released
    if phase == "filling":
        assert [record.verdict.outcome for record in records] == ["valid", "valid"], (
            "a start that failed once is repeated"
        )
        return
    failed, whole = records
    assert failed.verdict.system_fault
    assert failed.verdict.reasons[0].detail == "n1: dead; last lines: oops"
    assert whole.verdict.outcome == "valid"
