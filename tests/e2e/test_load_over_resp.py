"""A workload over RESP, as the conductor orders it: several load nodes against a null server of that protocol."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard import engine_order
from steelyard.engine.agent import AgentEngine
from steelyard.model.load import Load
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.system.base import Endpoint
from steelyard.wire.order import Order
from steelyard.wire.record import Done, Record
from steelyard.workload import ycsb

pytestmark = pytest.mark.agent

OPERATIONS = 3000


@pytest.fixture
def contact() -> Iterator[str]:
    """Address of a server that answers at once."""
    argv = [str(agent.find()), "sim", "--listen", "127.0.0.1:0", "--null", "--protocol", "resp"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[1]
        finally:
            server.terminate()


def ended(order: Order, folder: Path) -> list[Done]:
    """The ends of an order on two load nodes."""
    dones: list[Done] = []

    def take(_node: str, record: Record) -> None:
        if isinstance(record, Done):
            dones.append(record)

    nodes = [Node(f"l{number}", "load", "127.0.0.1", (), folder / f"l{number}") for number in (1, 2)]
    for node in nodes:
        node.folder.mkdir(exist_ok=True)
    asyncio.run(AgentEngine().drive(order, nodes, take, 60.0))
    return dones


def test_ycsb_fills_and_drives(contact: str, tmp_path: Path) -> None:
    workload = ycsb.Core("a", ycsb.Settings(records=500, read_proportion=0.5, update_proportion=0.5))
    # The server makes its rows up.
    endpoint, schema = Endpoint("resp", (contact,), compared=False), workload.schema()
    filled = ended(engine_order.populate(endpoint, schema, workload, 8), tmp_path)
    assert sum(done.operations for done in filled) == 500
    load = Load(operations=OPERATIONS, threads=16, connections_per_node=2)
    driven = ended(engine_order.measure(load, endpoint, schema, workload, 1), tmp_path)
    assert len(driven) == 2
    assert sum(done.operations for done in driven) == OPERATIONS
    assert [done.errors for done in (*filled, *driven)] == [0, 0, 0, 0]
