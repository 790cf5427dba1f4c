"""A node killed in the middle of a load and started again: no operation is lost from the count, the load goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine_order import measure, populate
from steelyard.model.load import Load
from steelyard.node import agent
from steelyard.testing import cluster
from steelyard.workload import documents, ycsb
from tests.e2e.agent_load import RECORDS, SCHEMA, Ended, ask, drive, finish, order, start
from tests.unit.wire.orders import sent

pytestmark = [pytest.mark.agent, pytest.mark.usefixtures("brief_java")]

RATE_PER_S = 500
KINDS = {"connection", "timeout", "server", "overloaded", "unavailable", "read-timeout", "write-timeout"}
DEADLINE_S = 30.0
TIMEOUT_MS = 2000
PORTS = {
    "cassandra": {"native_port": 27_042, "storage_port": 27_700, "jmx_port": 27_199},
    "etcd": {"port": 27_380, "peer_port": 27_381},
    "nginx": {"port": 27_080},
    "postgresql": {"port": 27_432},
}
"""Other tests may run at the same time on the same loopback address."""


class Simulated:
    """One simulated node on a port of its own, that can be killed and started again."""

    def __init__(self) -> None:
        self.contact = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        argv = [str(agent.find()), "sim", "--null", "--listen", self.contact]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.contact = self.process.stdout.readline().split()[1]
        assert ask(self.contact, *SCHEMA).returncode == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout and self.process.stdout.close()
            self.process = None


@pytest.fixture
def simulated() -> Iterator[Simulated]:
    node = Simulated()
    node.start()
    yield node
    node.kill()


def all_accounted_for(ended: Ended, operations: int, *, without_handshake: bool = False) -> None:
    """Every operation is answered or an error; the errors are of kinds that a lost node explains. `without_handshake`:
    connections are made by operations, and no reconnection is counted."""
    done = ended.done
    assert done["operations"] + done["errors"] == operations, done
    assert done["errors"] == sum(done["errors_by_kind"].values())
    assert set(done["errors_by_kind"]) <= KINDS, done
    assert done["reconnections"] >= 1 or without_handshake, done
    intervals = [record for record in ended.records if record["record"] == "interval"]
    assert sum(interval["done"] for interval in intervals) == operations, done
    assert sum(interval["errors"] for interval in intervals) == done["errors"], done
    # The load went on: after the last interval with errors, or in it, operations succeeded again.
    last = max(index for index, interval in enumerate(intervals) if interval["errors"] > 0 or index == 0)
    assert sum(interval["done"] - interval["errors"] for interval in intervals[last:]) > 0


def test_a_simulated_node(simulated: Simulated, tmp_path: Path) -> None:
    operations = 6 * RATE_PER_S
    said = order(
        [simulated.contact],
        schedule={"kind": "constant", "rate_per_s": RATE_PER_S, "in_flight": 64},
        stop={"operations": operations, "duration_s": None},
        timeout_ms=1000,
        connections_per_node=2,
    )
    # The server makes its rows up.
    said["work"]["validate_fraction"] = 0.0
    load = start(tmp_path, said)
    try:
        time.sleep(1.5)
        simulated.kill()
        time.sleep(1.0)
        simulated.start()
        ended = finish(load)
    finally:
        load.kill()
    all_accounted_for(ended, operations)
    # Two seconds of six were lost at most, wherever the rest of this machine was meanwhile.
    assert ended.done["operations"] > operations / 3, ended.done


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        pytest.param("cassandra", 14, marks=pytest.mark.cassandra),
        pytest.param("etcd", 6, marks=pytest.mark.etcd),
        pytest.param("nginx", 5, marks=pytest.mark.web),
        pytest.param("postgresql", 6, marks=pytest.mark.postgresql),
    ],
)
def test_a_real_node(name: str, seconds: int, tmp_path: Path) -> None:
    operations = seconds * RATE_PER_S
    ended = asyncio.run(_killed_and_started(name, tmp_path, operations))
    all_accounted_for(ended, operations, without_handshake=name in ("etcd", "nginx"))
    assert ended.done["operations"] > operations / 3, json.dumps(ended.done)
    # Of operations that take a tenth of a millisecond none may be in flight at the kill.
    assert ended.done["errors"] + ended.done["reconnections"] > 0, json.dumps(ended.done)


async def _killed_and_started(name: str, folder: Path, operations: int) -> Ended:
    """A load on a real node that is killed and started again meanwhile; how the load ended."""
    workload: Any = ycsb.Core("a", ycsb.Settings(records=RECORDS, read_proportion=0.5, update_proportion=0.5))
    if name == "nginx":
        workload = documents.create(documents.Settings(bytes=1000))
    schema = workload.schema()
    async with cluster.running(folder / "state", system=name, system_settings=PORTS[name]) as running:
        (node,) = running.nodes
        await running.system.create_schema(running.nodes, schema)
        endpoint = running.system.endpoint(running.nodes, schema)
        if workload.writes:
            filled = await asyncio.to_thread(drive, folder, sent(populate(endpoint, schema, workload, 16)))
            assert (filled.done["operations"], filled.done["errors"]) == (RECORDS, 0), filled
        offered = Load(
            schedule="constant", rate_per_s=RATE_PER_S, threads=128, operations=operations, timeout_ms=TIMEOUT_MS
        )
        said = sent(measure(offered, endpoint, schema, workload, 1))
        load = await asyncio.to_thread(start, folder, said)
        try:
            await asyncio.sleep(2.0)
            for pid in await running.system.process_ids(node):
                # nginx's workers end by themselves once their master is gone.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await running.system.kill(node)
            await running.system.start(node, running.nodes)
            await running.until_ready()
            return await asyncio.to_thread(finish, load)
        finally:
            with contextlib.suppress(ProcessLookupError):
                load.kill()
