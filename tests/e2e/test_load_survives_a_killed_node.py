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

import pytest

from steelyard.node import agent
from steelyard.testing import cluster
from tests.e2e.agent_load import SCHEMA, Ended, ask, fill, finish, order, start

pytestmark = [pytest.mark.agent, pytest.mark.usefixtures("brief_java")]

RATE_PER_S = 500
KINDS = {"connection", "timeout", "server", "overloaded", "unavailable", "read-timeout", "write-timeout"}
DEADLINE_S = 30.0
PORTS = {"native_port": 27_042, "storage_port": 27_700, "jmx_port": 27_199}
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


def all_accounted_for(ended: Ended, operations: int) -> None:
    """Every operation is answered or an error; the errors are of kinds that a lost node explains."""
    done = ended.done
    assert done["operations"] + done["errors"] == operations, done
    assert done["errors"] == sum(done["errors_by_kind"].values())
    assert set(done["errors_by_kind"]) <= KINDS, done
    assert done["reconnections"] >= 1, done
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


@pytest.mark.cassandra
def test_a_real_node(tmp_path: Path) -> None:
    operations = 14 * RATE_PER_S
    ended = asyncio.run(_killed_and_started(tmp_path, operations))
    all_accounted_for(ended, operations)
    assert ended.done["operations"] > operations / 2, json.dumps(ended.done)


async def _killed_and_started(folder: Path, operations: int) -> Ended:
    """A load on a real node that is killed and started again meanwhile; how the load ended."""
    async with cluster.running(folder / "state", system_settings=PORTS) as running:
        (node,) = running.nodes
        said = order(
            running.contacts,
            schedule={"kind": "constant", "rate_per_s": RATE_PER_S, "in_flight": 128},
            stop={"operations": operations, "duration_s": None},
            timeout_ms=2000,
        )
        await asyncio.to_thread(fill, folder, said)
        load = await asyncio.to_thread(start, folder, said)
        try:
            await asyncio.sleep(3.0)
            (pid,) = await running.system.process_ids(node)
            os.kill(pid, signal.SIGKILL)
            await running.system.kill(node)
            await running.system.start(node, running.nodes)
            await running.until_ready()
            return await asyncio.to_thread(finish, load)
        finally:
            with contextlib.suppress(ProcessLookupError):
                load.kill()
