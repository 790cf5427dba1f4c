"""From a load to the agent's order, and what several load nodes make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from steelyard import engine_order
from steelyard.engine import agent
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.node.base import Node
from steelyard.system.base import Endpoint
from steelyard.wire.record import Connected
from tests.unit.lab.fakes import SCHEMA, FakeWorkload
from tests.unit.model.test_load import CONSTANT, RAMP, SINE, STEPS
from tests.unit.workload.reference import EXAMPLE
from tests.unit.workload.test_order_schema import SCHEMA as ORDER_SCHEMA

ENDPOINT = Endpoint("cql", ("10.0.0.1:9042",), "ks", "t")
PHASES = [
    {"name": "rise", "duration_s": 2, **RAMP},
    {"name": "hold", "duration_s": 3, "threads": 3},
    {"name": "part", "duration_s": 4, "schedule": "poisson", "capacity_fraction": 0.7},
]


def made(**fields: Any) -> dict[str, Any]:
    workload: Any = FakeWorkload()
    return engine_order.measure(Load.model_validate(fields), ENDPOINT, SCHEMA, workload, 1)


def valid(found: Mapping[str, Any]) -> None:
    jsonschema.validate({**found, "workload": EXAMPLE["workload"]}, ORDER_SCHEMA, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("fields", [CONSTANT, RAMP, STEPS, {**SINE, "arrivals": "poisson"}, {}])
def test_every_schedule_is_one_of_the_agents(fields: dict[str, Any]) -> None:
    found = made(threads=5, duration_s=3, **fields)
    valid(found)
    kind = fields.get("schedule", "closed")
    assert found["schedule"]["kind"] == kind
    assert found["schedule"]["threads" if kind == "closed" else "in_flight"] == 5
    assert ("phases" in found, "backlog_limit" in found) == (False, False)


def test_a_trace_is_found_and_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stamps.txt"
    path.write_text("1\n2\n")
    found = made(schedule="trace", trace=str(path), speed=2)
    valid(found)
    assert found["schedule"] == {"kind": "trace", "in_flight": 1, "file": str(path), "speed": 2.0}
    with pytest.raises(StudyError, match="trace nowhere not found"):
        made(schedule="trace", trace="nowhere")


def test_phases_with_the_rates_that_a_fraction_of_capacity_gives() -> None:
    load = Load.model_validate({"threads": 9, "warm_up_s": 1, "backlog_limit": 5, "phases": PHASES})
    known = engine_order.resolved(load, 1000.0)
    workload: Any = FakeWorkload()
    found = engine_order.measure(known, ENDPOINT, SCHEMA, workload, 1)
    valid(found)
    assert found["backlog_limit"] == 5
    assert found["schedule"] == found["phases"][0]["schedule"], "the warm-up is the beginning of the first phase"
    assert [phase["name"] for phase in found["phases"]] == ["rise", "hold", "part"]
    assert found["phases"][1]["schedule"] == {"kind": "closed", "threads": 3}
    assert found["phases"][2]["schedule"] == {"kind": "poisson", "in_flight": 9, "rate_per_s": 700.0}
    # 20 operations of the ramp's first 2 s and 2,800 of the last phase, within 6 s.
    assert engine_order.offered_rate_per_s(known) == pytest.approx(2820 / 6)
    with pytest.raises(ValueError, match="was not measured"):
        engine_order.resolved(load, None)


def test_capacity_is_a_closed_loop_whatever_the_load() -> None:
    load = Load.model_validate({"phases": PHASES, "warm_up_s": 2, "capacity_threads": 7, "capacity_s": 5})
    workload: Any = FakeWorkload()
    found = engine_order.capacity(load, ENDPOINT, SCHEMA, workload, 1)
    valid(found)
    assert found["schedule"] == {"kind": "closed", "threads": 7}
    assert (found["stop"], found["warm_up_s"]) == ({"operations": None, "duration_s": 5.0}, 2.0)
    assert "phases" not in found


def test_several_load_nodes_start_together_with_their_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Mapping[str, Any]] = []

    async def carry_out(found: Mapping[str, Any], node: Node, on_record: Callable[[str, Any], None], **_: Any) -> None:
        orders.append(found)
        on_record(node.name, Connected(nodes=(), connections=1, server=""))
        await asyncio.sleep(0.05)

    # Orders are compared before any generator runs.
    monkeypatch.setattr(agent, "carry_out", carry_out)
    asked = made(threads=5, phases=[{"name": "a", "duration_s": 1, "threads": 3}, {"name": "b", "duration_s": 1}])

    def drive(count: int) -> list[Mapping[str, Any]]:
        orders.clear()
        nodes = [Node(f"l{number}", "load", "", (), tmp_path) for number in range(count)]
        asyncio.run(agent.AgentEngine().drive(asked, nodes, lambda *_: None, 10.0))
        return orders

    two = drive(2)
    assert [[phase["schedule"]["threads"] for phase in one["phases"]] for one in two] == [[2, 3], [1, 2]]
    assert [one.get("go") for one in two] == [True, True]
    assert [one["share"]["index"] for one in two] == [0, 1]
    assert "go" not in drive(1)[0]


def test_files_are_brought_to_nodes_that_are_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stamps.txt"
    path.write_text("1\n2\n")
    put: list[tuple[Path, bytes]] = []

    async def take(node: Node, where: Path, content: bytes, mode: int | None = None) -> None:
        put.append((where, content))

    # The node is elsewhere.
    monkeypatch.setattr(agent, "put", take)
    phase = {"name": "a", "duration_s": 1, "schedule": "trace", "trace": str(path)}
    asked = made(phases=[phase, {**phase, "name": "b"}])
    away = Node("l1", "load", "", ("ssh", "l1"), Path("/far"), programs="own", files="through")
    tls = {"ca": str(path), "certificate": None, "verify": "chain"}
    brought = asyncio.run(agent._with_files({**asked, "tls": tls}, away))
    assert put == [(Path("/far/file-0.txt"), b"1\n2\n")]
    assert {one["schedule"]["file"] for one in brought["phases"]} == {"/far/file-0.txt"}
    assert brought["tls"] == {**tls, "ca": "/far/file-0.txt"}
    assert asked["schedule"]["file"] == str(path)
