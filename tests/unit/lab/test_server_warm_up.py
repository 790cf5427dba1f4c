"""The server warm-up of a start: rounds until nodes are warm, a deadline, data put back, everything recorded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Event, Silent, Watcher
from steelyard.events.kept import ServersWarmedUp
from steelyard.events.shown import PhaseEntered, TimeLeft, Trouble, Waiting
from steelyard.lab.conductor import Conductor
from steelyard.model.data_model import Schema
from steelyard.model.errors import EngineError
from steelyard.model.load import Load
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.study import Study
from steelyard.model.trial import Phase, TrialRecord
from steelyard.node.base import Node
from steelyard.store import Store, StoreWriter
from steelyard.wire.order import Order
from tests.unit.lab.fakes import FakeEngine, FakeParts, FakeSystem, Script, plan_of, study, without_waiting


@dataclass
class Compiler:
    """Grows by so many seconds with every question; nothing more once the list is used up."""

    grows_s: list[float]
    spent_s: float = 0.0

    def read(self) -> float:
        self.spent_s += self.grows_s.pop(0) if self.grows_s else 0.0
        return self.spent_s


@dataclass
class Kept:
    """Snapshots that were taken, and how often they were restored."""

    keys: set[str] = field(default_factory=set)
    restored: int = 0
    wiped: int = 0


class CompilingSystem(FakeSystem):
    """A system whose servers compile and whose tables can be put back."""

    def __init__(self, script: Script, compiler: Compiler, kept: Kept) -> None:
        super().__init__(script)
        self.compiler = compiler
        self.kept = kept

    async def compile_times_s(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        spent_s = self.compiler.read()
        return {node.name: spent_s for node in nodes}

    def snapshot_key(self, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any]) -> str:
        return f"{len(nodes)} nodes"

    async def has(self, nodes: Any, key: str) -> bool:
        return key in self.kept.keys

    async def snapshot(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        self.kept.keys.add(key)

    async def restore(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        self.kept.restored += 1

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None: ...

    async def wipe(self, node: Node) -> None:
        self.kept.wiped += 1


@dataclass
class Parts(FakeParts):
    compiler: Compiler = field(default_factory=lambda: Compiler([]))
    kept: Kept = field(default_factory=Kept)

    def system(self, settings: Any) -> FakeSystem:
        return CompilingSystem(self.script, self.compiler, self.kept)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    return Script(tmp_path)


def one_start(**server_warm_up: Any) -> Study:
    changes = {"server_warm_up": server_warm_up} if server_warm_up else {}
    return study(design={"starts": 1, "trials": 2}, factors={}, **changes)


def conduct(script: Script, chosen: Study, parts: Parts, watcher: Watcher | None = None) -> tuple[TrialRecord, ...]:
    plan = plan_of(chosen)
    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        made: Any = parts
        conductor = Conductor(chosen, plan, writer, made, watcher or Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        asyncio.run(conductor.run())
        return Store(writer.folder).trials()


def schedules(script: Script) -> list[tuple[int, float | None]]:
    """Operations in flight, and seconds, of what was driven beside filling."""
    orders = [order for order in script.driven if order.action == "load"]
    return [(order.schedule.threads, order.stop.duration_s) for order in orders]


def test_two_rounds_warm_a_quiet_cluster_and_everything_is_recorded(script: Script) -> None:
    parts = Parts(script)
    first, second = conduct(script, one_start(), parts)
    assert schedules(script) == [(64, 9.0), (1, 3.0), (64, 9.0), (1, 3.0), (1, None), (1, None)]
    warmth = first.server_warm_up
    assert warmth is not None
    assert warmth == second.server_warm_up
    assert warmth.reached
    assert warmth.rounds == 2
    assert warmth.operations == 2 * (9 + 3) * 500
    assert warmth.nodes["n1"].compiler_fraction == 0
    assert warmth.workloads["ycsb-a"].change_percent == pytest.approx(0)
    (event,) = [
        entry.event
        for entry in Store(script.folder / "store" / "fake").journal()
        if isinstance(entry.event, ServersWarmedUp)
    ]
    assert event.warmth == warmth
    assert Phase.SERVER_WARM_UP in [time.phase for time in first.phases]


def test_a_filled_cluster_is_not_started_twice_and_trials_begin_on_the_restored_copy(script: Script) -> None:
    parts = Parts(script)
    records = conduct(script, one_start(), parts)
    assert [record.data for record in records] == ["restored", "restored"]
    assert parts.kept.wiped == 1, "at the end only"
    cold = Parts(script)
    cold_script = Script(script.folder / "cold")
    cold.script = cold_script
    conduct(cold_script, one_start(mode="off"), cold)
    assert cold.kept.wiped == 2, "without server warm-up it is started anew on the snapshot"


def test_a_compiler_that_does_not_rest_is_waited_for(script: Script) -> None:
    busy = Compiler([1.0] * 6)
    (record, _) = conduct(script, one_start(), Parts(script, compiler=busy))
    assert record.server_warm_up is not None
    assert record.server_warm_up.rounds == 4
    assert record.server_warm_up.reached


def test_what_goes_on_is_said_in_words(script: Script) -> None:
    class Listening(Silent):
        def tell(self, event: Event) -> None:
            told.append(event)

    told: list[Event] = []
    conduct(script, one_start(deadline_s=0.001), Parts(script, compiler=Compiler([1.0] * 100)), Listening())
    said = [event.what for event in told if isinstance(event, Waiting) and "ycsb-a" in event.what]
    assert said == ["ycsb-a, high concurrency", "ycsb-a, the study's own load"]
    (entered,) = [one for one in told if isinstance(one, PhaseEntered) and one.phase is Phase.SERVER_WARM_UP]
    assert entered.expected_s is not None
    (trouble,) = [one for one in told if isinstance(one, Trouble)]
    assert trouble.message.startswith("block 1, all trials: not warm after ")
    assert trouble.message.endswith("; try server_warm_up.deadline_s = 10")
    told.clear()
    conduct(Script(script.folder / "two"), one_start(), Parts(script, compiler=Compiler([1.0] * 6)), Listening())
    said = [event.what for event in told if isinstance(event, Waiting) and "ycsb-a" in event.what]
    assert re.match(r"ycsb-a, high concurrency; compilers used \d+% of a core on n1$", said[2])
    assert said[4].endswith("; service time of ycsb-a as in the round before")


def test_the_deadline_ends_it_and_says_what_was_not_reached(script: Script) -> None:
    never = Compiler([1.0] * 100)
    (record, _) = conduct(script, one_start(deadline_s=0.001), Parts(script, compiler=never))
    assert record.verdict.outcome == "valid"
    warmth = record.server_warm_up
    assert warmth is not None
    assert not warmth.reached
    assert warmth.rounds == 1
    assert any("compilers still used" in reason and "on n1" in reason for reason in warmth.reasons)


def test_off_means_off_and_a_system_that_compiles_nothing_is_left_alone(script: Script) -> None:
    records = conduct(script, one_start(mode="off"), Parts(script))
    assert {record.server_warm_up for record in records} == {None}
    other = Script(script.folder / "other")
    plain: Any = FakeParts(other)
    records = conduct(other, study(design={"starts": 1, "trials": 2}, factors={}, data={"state": "continue"}), plain)
    assert {record.server_warm_up for record in records} == {None}


def test_each_workload_is_driven_at_the_load_with_the_fewest_in_flight(script: Script) -> None:
    chosen = study(
        design={"starts": 1, "trials": 1}, factors={"load.threads": [4, 2], "workload": ["ycsb-a", "ycsb-c"]}
    )
    conduct(script, chosen, Parts(script))
    assert schedules(script)[:4] == [(64, 5), (64, 5), (2, 2), (2, 2)]


def test_seconds_are_whole_and_without_a_warm_up_of_the_load(script: Script) -> None:
    """Also in the last round before the deadline: some engines take no fractions."""
    chosen = one_start(deadline_s=1.7, steady_s=0.2).model_copy(
        update={"load": Load(duration_s=5, operations=None, warm_up_s=30)}
    )
    conduct(script, chosen, Parts(script, compiler=Compiler([1.0] * 100)))
    warming = [order for order in script.driven if order.action == "load" and order.stop.duration_s != 5]
    assert len(warming) >= 2
    assert {order.warm_up_s for order in warming} == {0.0}
    assert all(order.stop.duration_s == int(order.stop.duration_s) >= 1 for order in warming)


def test_the_judged_part_of_each_round_begins_on_restored_data_as_a_trial_does(script: Script) -> None:
    parts = Parts(script)
    (record, _) = conduct(script, one_start(), parts)
    assert record.server_warm_up is not None
    assert parts.kept.restored == record.server_warm_up.rounds + 2, "one each, and one before each of two trials"


def test_an_engine_that_refuses_leaves_the_start_cold_and_its_data_restored(script: Script) -> None:
    class PickyEngine(FakeEngine):
        def check(self, order: Order, load_nodes: int) -> None:
            raise EngineError("no such threads")

    records = conduct(script, one_start(), Parts(script, engine_of=PickyEngine))
    assert [record.data for record in records] == ["restored", "restored"]
    warmth = records[0].server_warm_up
    assert warmth is not None
    assert (warmth.reached, warmth.rounds, warmth.reasons) == (
        False,
        0,
        ("the engine cannot warm the servers up: no such threads",),
    )


def test_who_finishes_waits_for_no_further_round(script: Script) -> None:
    chosen = one_start()
    plan = plan_of(chosen)
    parts: Any = Parts(script, compiler=Compiler([1.0] * 100))
    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        conductor = Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        script.on_drive = lambda count, order: conductor.finish() if order.action == "load" else None
        outcome = asyncio.run(conductor.run())
    assert outcome.missing == 2
    assert schedules(script) == [(64, 9), (1, 3)]


def test_one_round_may_take_longer_than_the_deadline() -> None:
    assert ServerWarmUp().longest_s == 60
    assert ServerWarmUp(steady_s=100).longest_s == 400
