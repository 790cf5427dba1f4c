"""Changes of size during a trial: joins and leaves beside the load, what is sealed of them, and what they leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Event
from steelyard.events.shown import Sized
from steelyard.lab.conductor import Outcome
from steelyard.model.errors import SteelyardError, SystemFault
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node.base import Node
from steelyard.system.base import MarkIt
from steelyard.wire.order import Order
from steelyard.wire.record import Done, Hello, Interval, Record, Routed
from tests.unit.lab.fakes import FakeEngine, FakeParts, FakeSystem, Script, records_of, study, without_waiting
from tests.unit.lab.test_conductor import conduct, stored

JOIN_S = 0.05


class ElasticSystem(FakeSystem):
    """Joins take JOIN_S, in which the node is started and comes into service."""

    fails = False
    hangs = False

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.wiped: list[str] = []
        made.append(self)

    async def join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        mark("started", time.time())
        await asyncio.sleep(3600 if self.hangs else JOIN_S)
        if self.fails:
            raise SystemFault("n2 did not join: disk full")
        mark("in-service", None)
        return 1000 * len(members)

    async def leave(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        mark("leaving", None)
        await asyncio.sleep(JOIN_S)
        return None

    def keeps_size(self) -> str:
        return ""

    async def clean_up(self, nodes: Sequence[Node]) -> bool:
        return False

    async def wipe(self, node: Node) -> None:
        self.wiped.append(node.name)


class Failing(ElasticSystem):
    fails = True


class Hanging(ElasticSystem):
    hangs = True


class LastingEngine(FakeEngine):
    """A load that lasts half a second by the clock."""

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        self.script.driven.append(order)
        begun_s = time.time()
        for record in records_of(order):
            match record:
                case Hello():
                    on_record("l1", record)
                case Interval():
                    on_record("l1", replace(record, t_s=begun_s))
                case Done():
                    if order.action != "populate":
                        await asyncio.sleep(0.25)
                        on_record("l1", Routed(t_s=time.time(), contact="10.0.0.2:1"))
                        await asyncio.sleep(0.25)
                    on_record("l1", replace(record, first_sent_s=begun_s, last_done_s=time.time()))


class Listener:
    """Keeps the sizes that are shown."""

    def __init__(self) -> None:
        self.sized: list[Sized] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Sized):
            self.sized.append(event)


made: list[ElasticSystem] = []


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    made.clear()
    return Script(tmp_path)


def growing(*times: tuple[float, int], **changes: Any) -> Study:
    policy = {"name": "scheduled", "times": list(times)}
    design = {"starts": 1, "trials": 2, "seed": 3}
    return study(**{"policy": policy, "design": design, "factors": {"nodes": [1]}, **changes})


def records(script: Script, a_study: Study, system: type[FakeSystem] = ElasticSystem) -> tuple[TrialRecord, ...]:
    outcome = conduct(script, a_study, parts=FakeParts(script, system_of=system, engine_of=LastingEngine))
    assert isinstance(outcome, Outcome)
    assert script.leases == script.released
    return tuple(stored(script).trials())


def test_nodes_join_while_the_load_runs_and_end_the_start(script: Script) -> None:
    found = records(script, growing((0.1, 3)))
    assert len(found) == 2
    assert len(script.leases) == 2, "a start for each trial"
    for record in found:
        (activity,) = record.activities
        assert (activity.kind, activity.nodes, activity.outcome) == ("scale-out", ("n2", "n3"), "done")
        assert activity.streamed_bytes == {"n2": 1000, "n3": 2000}
        names = [(mark.node, mark.name) for mark in activity.marks]
        assert names[:3] == [("n2", "lent"), ("n2", "started"), ("n2", "in-service")]
        assert names[-1] == ("n2", "routed")
        assert ("n3", "in-service") in names
        assert ("n3", "routed") not in names
        assert [mark.t_s for mark in activity.marks] == sorted(mark.t_s for mark in activity.marks)
        assert record.verdict.outcome == "valid"
    driven = [order for order in script.driven if order.action == "load"]
    assert all(order.discover for order in driven)


def test_a_node_leaves(script: Script) -> None:
    (record, _) = records(script, growing((0.1, 1), factors={"nodes": [3]}))
    (activity,) = record.activities
    assert (activity.kind, activity.nodes, activity.outcome) == ("scale-in", ("n3", "n2"), "done")
    assert [mark.name for mark in activity.marks if mark.node == "n3"] == ["leaving", "left"]


def test_a_join_that_fails_is_a_result_and_the_cluster_goes_on(script: Script) -> None:
    (record, _) = records(script, growing((0.1, 2)), Failing)
    (activity,) = record.activities
    assert activity.outcome == "failed"
    assert "disk full" in activity.error
    assert record.responses.operations == 10
    assert record.verdict.system_fault
    assert "scale-out of n2: n2 did not join: disk full" in record.verdict.reasons[0].detail
    assert "n2" in made[-1].wiped


def test_a_policy_is_shown_when_a_change_that_failed_has_ended(script: Script) -> None:
    (record, _) = records(script, growing((0.1, 2), (0.4, 1)), Failing)
    scaling, (activity,) = record.scaling, record.activities
    assert scaling is not None
    assert activity.ended_s is not None
    assert scaling.supply == ((0.1, 1, 0, 0, None), (0.4, 1, 0, 0, activity.ended_s - scaling.begun_s))


def test_what_the_end_of_the_load_interrupts_is_unfinished_and_no_error(script: Script) -> None:
    (record, _) = records(script, growing((0.1, 2)), Hanging)
    (activity,) = record.activities
    assert activity.outcome == "unfinished"
    assert record.verdict.outcome == "valid"
    assert "n2" in made[-1].wiped


def test_a_system_that_cannot_grow_says_so(script: Script) -> None:
    (record, _) = records(script, growing((0.1, 2)), FakeSystem)
    assert "cannot change its size while it runs" in record.activities[0].error


def test_a_trial_of_a_fixed_cluster_records_nothing(script: Script) -> None:
    conduct(script, study(data={"state": "continue"}))
    assert "activities" not in stored(script).trials()[0].model_dump(mode="json")
    assert all(not order.discover for order in script.driven)


def test_what_the_policy_saw_and_said_is_sealed(script: Script) -> None:
    (record, _) = records(script, growing((0.1, 3), (0.3, 2)))
    scaling = record.scaling
    assert scaling is not None
    assert [(one.t_s, one.nodes) for one in scaling.desired] == [(0.0, 1), (0.1, 3), (0.3, 2)]
    assert [one.cause for one in record.activities] == [one.reason for one in scaling.desired[1:]]
    assert (scaling.asked, scaling.late, scaling.points) == (2, 0, ())
    first, second = scaling.supply
    assert (first, second[:4]) == ((0.1, 1, 0, 0, None), (0.3, 3, 0, 0))
    assert second.ended_s == (record.activities[0].ended_s or 0) - scaling.begun_s


def test_actual_and_desired_size_are_shown_while_they_change(script: Script) -> None:
    parts = FakeParts(script, system_of=ElasticSystem, engine_of=LastingEngine)
    conduct(script, growing((0.1, 3)), watcher=(listener := Listener()), parts=parts)
    sizes = [(event.in_service, event.desired.nodes) for event in listener.sized]
    assert sizes == 2 * [(1, 1), (1, 3), (2, 3), (3, 3)], "of two trials"
    assert listener.sized[1].desired.reason == "scheduled: 3 nodes at 0.1 s"


def test_a_size_for_which_too_few_nodes_were_lent_voids_the_trial(script: Script) -> None:
    policy = {"name": "scheduled", "times": [(0.1, 3)], "joins": 1}
    words = r"3 nodes were desired and 2 lent: scheduled: 3 nodes at 0.1 s; see policy\.joins"
    with pytest.raises(SteelyardError, match=words):
        records(script, growing(policy=policy))
    assert [node for one in stored(script).trials()[0].activities for node in one.nodes] == ["n2"]
