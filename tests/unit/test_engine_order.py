"""From a load to the agent's order, and what several load nodes make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
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
from steelyard.wire.order import EtcdTarget, HttpTarget, Order, PostgresqlTarget, RespTarget, StopAt, Tls
from steelyard.wire.record import Connected
from steelyard.wire.schedule import Closed, Steady, Trace, in_flight
from steelyard.workload import ycsb
from tests.unit.lab.fakes import SCHEMA, FakeWorkload
from tests.unit.model.test_load import CONSTANT, RAMP, SINE, STEPS
from tests.unit.wire import orders
from tests.unit.workload.test_order_schema import SCHEMA as ORDER_SCHEMA

ENDPOINT = Endpoint("cql", ("10.0.0.1:9042",), "ks", "t")
PHASES = [
    {"name": "rise", "duration_s": 2, **RAMP},
    {"name": "hold", "duration_s": 3, "threads": 3},
    {"name": "part", "duration_s": 4, "schedule": "poisson", "capacity_fraction": 0.7},
]


def made(**fields: Any) -> Order:
    workload: Any = FakeWorkload()
    return engine_order.measure(Load.model_validate(fields), ENDPOINT, SCHEMA, workload, 1)


def valid(found: Order) -> None:
    jsonschema.validate(orders.sent(found), ORDER_SCHEMA, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("fields", [CONSTANT, RAMP, STEPS, {**SINE, "arrivals": "poisson"}, {}])
def test_every_schedule_is_one_of_the_agents(fields: dict[str, Any]) -> None:
    found = made(threads=5, duration_s=3, **fields)
    valid(found)
    kind = fields.get("schedule", "closed")
    assert (found.schedule.kind, in_flight(found.schedule)) == (kind, 5)
    assert not {"phases", "backlog_limit"} & orders.sent(found).keys()


def test_a_trace_is_found_and_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stamps.txt"
    path.write_text("1\n2\n")
    found = made(schedule="trace", trace=str(path), speed=2)
    valid(found)
    assert found.schedule == Trace(in_flight=1, file=str(path), speed=2.0)
    with pytest.raises(StudyError, match="trace nowhere not found"):
        made(schedule="trace", trace="nowhere")


def test_phases_with_the_rates_that_a_fraction_of_capacity_gives() -> None:
    load = Load.model_validate({"threads": 9, "warm_up_s": 1, "backlog_limit": 5, "phases": PHASES})
    known = engine_order.resolved(load, 1000.0)
    workload: Any = FakeWorkload()
    found = engine_order.measure(known, ENDPOINT, SCHEMA, workload, 1)
    valid(found)
    assert found.backlog_limit == 5
    assert found.schedule == found.phases[0].schedule, "the warm-up is the beginning of the first phase"
    assert [phase.name for phase in found.phases] == ["rise", "hold", "part"]
    assert found.phases[1].schedule == Closed(threads=3)
    assert found.phases[2].schedule == Steady(kind="poisson", in_flight=9, rate_per_s=700.0)
    # 20 operations of the ramp's first 2 s and 2,800 of the last phase, within 6 s.
    assert engine_order.offered_rate_per_s(known) == pytest.approx(2820 / 6)
    with pytest.raises(ValueError, match="was not measured"):
        engine_order.resolved(load, None)


def test_capacity_is_a_closed_loop_whatever_the_load() -> None:
    load = Load.model_validate({"phases": PHASES, "warm_up_s": 2, "capacity_threads": 7, "capacity_s": 5})
    workload: Any = FakeWorkload()
    found = engine_order.capacity(load, ENDPOINT, SCHEMA, workload, 1)
    valid(found)
    assert found.schedule == Closed(threads=7)
    assert (found.stop, found.warm_up_s) == (StopAt(duration_s=5.0), 2.0)
    assert not found.phases


def test_several_load_nodes_start_together_with_their_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Order] = []

    async def carry_out(found: Order, node: Node, on_record: Callable[[str, Any], None], **_: Any) -> None:
        seen.append(found)
        on_record(node.name, Connected(nodes=(), connections=1, server=""))
        await asyncio.sleep(0.05)

    # Orders are compared before any generator runs.
    monkeypatch.setattr(agent, "carry_out", carry_out)
    asked = made(threads=5, phases=[{"name": "a", "duration_s": 1, "threads": 3}, {"name": "b", "duration_s": 1}])

    def drive(count: int) -> list[Order]:
        seen.clear()
        nodes = [Node(f"l{number}", "load", "", (), tmp_path) for number in range(count)]
        asyncio.run(agent.AgentEngine().drive(asked, nodes, lambda *_: None, 10.0))
        return list(seen)

    two = drive(2)
    assert [[in_flight(phase.schedule) for phase in one.phases] for one in two] == [[2, 3], [1, 2]]
    assert [one.go for one in two] == [True, True]
    assert [one.share.index for one in two] == [0, 1]
    assert not drive(1)[0].go


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
    tls = Tls(ca=str(path), verify="chain")
    brought = asyncio.run(agent._with_files(asked.model_copy(update={"tls": tls}), away))
    assert put == [(Path("/far/file-0.txt"), b"1\n2\n")]
    assert {one.schedule.file for one in brought.phases} == {"/far/file-0.txt"}
    assert brought.tls == Tls(ca="/far/file-0.txt", verify="chain")
    assert asked.schedule.file == str(path)


def test_the_protocol_decides_what_the_target_says() -> None:
    workload: Any = FakeWorkload()
    load = Load(operations=1, read_consistency="QUORUM")
    resp = engine_order.measure(load, Endpoint("resp", ("10.0.0.1:6379",)), SCHEMA, workload, 1)
    assert resp.target == RespTarget(index="_indices")
    valid(resp)
    for protocol, said, target in (
        ("http", {"keep_alive": False}, HttpTarget(keep_alive=False)),
        ("etcd", {"serializable": True}, EtcdTarget(serializable=True)),
        ("postgresql", {"read_from": "any"}, PostgresqlTarget(key=SCHEMA.key, read_from="any")),
    ):
        order = engine_order.measure(
            load.model_copy(update=said), Endpoint(protocol, ("10.0.0.1:1",)), SCHEMA, workload, 1
        )
        assert order.target == target
        valid(order)
    with pytest.raises(StudyError, match="no order can be made for protocol smtp"):
        engine_order.measure(load, Endpoint("smtp", ("10.0.0.1:80",)), SCHEMA, workload, 1)


def test_tables_are_filled_at_all_over_connections_as_the_loads() -> None:
    workload: Any = FakeWorkload()
    load = Load(operations=9, compression="lz4", tls=True, connections_per_node=2, routing="round-robin")
    filling = engine_order.populate(ENDPOINT, SCHEMA, workload, 3, connected_as=load)
    assert (filling.action, filling.stop, filling.schedule) == ("populate", StopAt(), Closed(threads=3))
    target = filling.target
    assert (target.write_consistency, target.routing, target.compression) == ("ALL", "token", "lz4")
    assert (filling.tls, filling.connections_per_node) == (Tls(), 2)
    assert engine_order.populate(ENDPOINT, SCHEMA, workload, 3).tls is None


def test_values_are_compared_only_where_they_are_those_that_were_written() -> None:
    workload = ycsb.create(ycsb.Settings(records=10))

    def compared(endpoint: Endpoint) -> float:
        return engine_order.measure(Load(operations=1), endpoint, workload.schema(), workload, 1).work.validate_fraction

    assert compared(ENDPOINT) == 0.1
    assert compared(replace(ENDPOINT, compared=False)) == 0.0


def test_only_what_can_be_compared_is_read_back() -> None:
    def asked(endpoint: Endpoint = ENDPOINT, workload: Any = None, **fields: Any) -> float | None:
        load = Load.model_validate({"duration_s": 3, **fields})
        found = engine_order.measure(load, endpoint, SCHEMA, workload or FakeWorkload(), 1, read_back=True)
        valid(found)
        return found.read_again_s

    assert asked() == engine_order.READ_AGAIN_S
    assert asked(replace(ENDPOINT, compared=False)) is None
    assert made(duration_s=3).read_again_s is None
