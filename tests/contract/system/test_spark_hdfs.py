"""The contract of a system over real Spark on real HDFS; and what only these promise."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.lab.probe_processes import watched_nodes
from steelyard.model import job_inputs
from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, STARTED, STREAMED
from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.folders import cache_folder
from steelyard.probe.spark import SparkProbe
from steelyard.system.base import Endpoint
from steelyard.system.one_server import data
from steelyard.system.packaged import CURL
from steelyard.system.spark_hdfs import Settings, SparkHdfs, create
from steelyard.testing.elastic import ElasticContract, ElasticSystem
from steelyard.testing.probe import _readings
from steelyard.testing.system import COMMAND_TIMEOUT_S, OnNodes, SystemContract, until
from tests.contract.system.taken_address import start_where_it_is_taken

pytestmark = [pytest.mark.spark, pytest.mark.agent, pytest.mark.usefixtures("brief_java")]

JOB_TIMEOUT_S = 180.0
SIZE = 2_000_000
FILES = 12
"""Of a block each: enough that each of two DataNodes has some."""
INPUTS = (("/inputs/text", "text", SIZE, 1), ("/inputs/tera", "tera", SIZE, 1))


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    """Jars, jobs and an empty file system, in the cache that everybody shares; slow only the first time."""
    asyncio.run(create(Settings(), cache_folder()).prepare())


class OnHdfs(OnNodes):
    """Not collected: a row is a line of a file, written and read over HTTP."""

    module = "spark-hdfs"
    database_nodes = 2

    def cache_folder(self, tmp_path: Path) -> Path:
        return cache_folder()

    async def _web(self, endpoint: Endpoint, operation: str, *words: str, name: str = "rows") -> str:
        master = endpoint.files.removeprefix("hdfs://").partition(":")[0]
        url = f"http://{master}:9870/webhdfs/v1/contract/{name}?op={operation}"
        argv = ["curl", *CURL, "--location", *words, url]
        return (await run(self.client(), argv, timeout_s=COMMAND_TIMEOUT_S)).stdout.decode()

    async def write(self, endpoint: Endpoint, schema: Schema, keys: Sequence[str]) -> None:
        rows = "".join(f"{key}\n" for key in keys)
        await self._web(endpoint, "CREATE&overwrite=true", "--request", "PUT", "--data-binary", rows)

    async def count(self, endpoint: Endpoint, schema: Schema) -> int:
        return len((await self._web(endpoint, "OPEN")).splitlines())

    def loader(self, tmp_path: Path) -> Node:
        """The node that submits jobs."""
        (folder := tmp_path / "nodes" / "l1").mkdir(exist_ok=True)
        return Node("l1", "load", "127.0.0.1", (), folder)

    async def right(self, system: SparkHdfs, nodes: Sequence[Node], loader: Node, job: str) -> Any:
        """Submit one of the system's own jobs, and compare what it says of its output with its input; returns the
        events of its log."""
        await system.create_schema(nodes, Schema(inputs=INPUTS))
        path, kind, size, seed = INPUTS[job == "terasort"]
        endpoint = system.endpoint(nodes, Schema(inputs=INPUTS))
        submit, remove = ([word.replace("{folder}", str(loader.folder)) for word in words]
                          for words in (endpoint.submit, endpoint.remove))  # fmt: skip
        log, output = loader.folder / "jobs" / job, f"{endpoint.files}/outputs/{job}"
        await files.make_folders(loader, log)
        conf = ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file://{log}"]
        program = str(await files.bring(loader, Path(endpoint.program)))
        argv = [*submit, *conf, program, job, endpoint.files + path, output]
        said = json.loads((await run(loader, argv, timeout_s=JOB_TIMEOUT_S)).stdout.splitlines()[-1])
        of_input = job_inputs.expected(kind, size, seed)  # type: ignore[arg-type]
        assert said == of_input["counts" if job == "wordcount" else "order"]
        for _ in range(2):
            await run(loader, [*remove, output], timeout_s=COMMAND_TIMEOUT_S)
        (name,) = await files.sizes(loader, log)
        lines = (await files.read(loader, log / name, most=64 << 20)).splitlines()
        return [json.loads(line) for line in lines]


class TestOneWorker(OnHdfs, SystemContract):
    module = "spark-hdfs"
    network = "127.99.1"
    settings: ClassVar = {"hdfs": {"dfs.namenode.handler.count": 5}}
    test_a_dead_server_is_a_fault = None  # type: ignore[assignment]
    """Below, of each daemon, on one start."""


class TestTwoWorkers(OnHdfs):
    network = "127.99.2"
    database_nodes = 3
    settings: ClassVar = {"replication_factor": 2, "block_size_mb": 1}

    def test_jobs_are_right_the_probe_reads_and_deaths_are_faults(self, tmp_path: Path) -> None:
        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                assert isinstance(system, SparkHdfs)
                loader = self.loader(tmp_path)
                await system.provide_clients([loader], nodes)
                events = await self.right(system, nodes, loader, "sort")
                starts = [event for event in events if event["Event"] == "SparkListenerJobStart"]
                groups = [event["Properties"].get("spark.jobGroup.id") for event in starts]
                assert set(groups[:-1]) == {None}
                assert groups[-1] == "check"
                await _idle(system, nodes)
                await self._probed(system, nodes, tmp_path)
                # Under a limit of the conductor that dies, nothing of a driver is left.
                assert await files.sizes(loader, loader.folder / "data" / "spark") == {}
                await self._deaths(system, nodes)

        asyncio.run(body())

    async def _probed(self, system: SparkHdfs, nodes: Sequence[Node], tmp_path: Path) -> None:
        probe, metrics = SparkProbe(), set[str]()
        for placement in probe.placements(await watched_nodes(system, nodes), 0.2):
            lines, ended = await _readings(probe, placement, tmp_path / "stderr")
            assert ended
            for line in lines:
                samples = {sample.metric: sample.value for sample in probe.parse(placement.speaks_of[0], line)}
                metrics |= samples.keys()
                if "node_spark_workers" in samples:
                    assert samples["node_spark_workers"] == 2.0
                if "node_hdfs_used_bytes" in samples:
                    assert samples["node_hdfs_used_bytes"] > 2 * 2 * SIZE
        assert metrics == {metric.name for metric in probe.metrics}

    async def _deaths(self, system: SparkHdfs, nodes: Sequence[Node]) -> None:
        """A worker that dies and a DataNode that dies are faults, with name and cause."""
        worker, datanode = (await system.process_ids(nodes[1]))[1], (await system.process_ids(nodes[2]))[0]
        assert [await system.death(node) for node in nodes] == [None] * 3
        os.kill(worker, signal.SIGKILL)
        os.kill(datanode, signal.SIGKILL)

        async def dead() -> bool:
            return None not in [await system.death(node) for node in nodes[1:]]

        await until(dead, 10.0, "both are missed")
        with pytest.raises(
            SystemFault, match=r"n2: its Worker is not running: killed by SIGKILL; last lines: .*Worker"
        ):
            await system.ready(nodes[1], 3)
        with pytest.raises(SystemFault, match=r"n3: its DataNode is not running: killed by SIGKILL; last lines: "):
            await system.ready(nodes[2], 3)
        assert "Worker of n2" in await system.waiting_for(nodes[0])


@pytest.mark.by_hand
class TestGrowth(OnHdfs, ElasticContract):
    network = "127.99.4"
    database_nodes = 4
    interrupted_at = (("killed", STARTED), ("cancelled", STARTED))

    async def joins(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """It has no block until something is written."""
        marks, received = await super().joins(system, joiner, members)
        assert (list(marks), received) == ([STARTED, IN_SERVICE], 0)
        assert await _blocks(joiner) == []
        return marks, received

    async def leaves(
        self, system: ElasticSystem, leaver: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """Blocks of which it has the only copy are on others when it is gone."""
        assert isinstance(system, SparkHdfs)
        endpoint, names = system.endpoint(members, Schema()), [f"part{place}" for place in range(FILES)]
        for name in names:
            await self._web(endpoint, "CREATE", "--request", "PUT", "--data-binary", name, name=name)
        assert await _blocks(leaver)
        marks, sent = await super().leaves(system, leaver, members)
        assert list(marks) == [LEAVING, STREAMED, LEFT]
        assert [await self._web(endpoint, "OPEN", name=name) for name in names] == names
        await _idle(system, members)
        return marks, sent


class SmallestGrowth(TestGrowth):
    """Not collected: a worker joins another, leaves, and joins again, on nodes that a site lends."""

    database_nodes = 3
    interrupted_at: ClassVar = ()


async def _blocks(node: Node) -> list[str]:
    """Files with blocks on a node."""
    return [name for name in await files.sizes(node, data(node) / "blocks") if "/finalized/" in name]


def test_the_first_node_cannot_leave_nor_the_last_datanode_of_a_copy(tmp_path: Path) -> None:
    nodes = [Node(f"n{place}", "database", f"127.99.5.{place}", (), tmp_path) for place in (1, 2, 3)]
    for leaver, why in ((nodes[0], "NameNode and Master are on it"), (nodes[2], "2 copies of each block and 1 other")):
        system = create(Settings(replication_factor=2), tmp_path)
        system._peers |= {(node.name, node.folder): tuple(nodes) for node in nodes}
        with pytest.raises(SystemFault, match=f"{leaver.name} can neither join nor leave: {why}"):
            asyncio.run(system.leave(leaver, nodes, lambda name, t_s: None))


@pytest.mark.parametrize(("port", "daemon"), [(7077, "Master"), (9000, "NameNode")])
def test_a_second_cluster_at_the_same_address_is_refused_with_its_daemon(
    tmp_path: Path, port: int, daemon: str
) -> None:
    node = Node("n1", "database", "127.99.3.1", (), tmp_path)
    with pytest.raises(SystemFault, match=f"(?s)n1: its {daemon} is not running: .*(use|bind)"):
        start_where_it_is_taken(create(Settings(), cache_folder()), node, port, timeout_s=60.0)


def test_addresses_of_version_6_are_refused(tmp_path: Path) -> None:
    node = Node("n1", "database", "::1", (), tmp_path)
    with pytest.raises(SystemFault, match="n1: HDFS does not listen at ::1"):
        asyncio.run(create(Settings(), tmp_path).install(node, (node,)))


class Smallest(OnHdfs):
    """Not collected: one job, wherever a site lends nodes."""

    job: ClassVar = "wordcount"

    def test_a_job_is_right(self, tmp_path: Path) -> None:
        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                assert isinstance(system, SparkHdfs)
                loader = self.loader(tmp_path)
                await system.provide_clients([loader], nodes)
                await self.right(system, nodes, loader, self.job)
                assert [await system.differing(node) for node in nodes] == [{}, {}]

        asyncio.run(body())


async def _idle(system: SparkHdfs, nodes: Sequence[Node]) -> None:
    """The NameNode counts a block to be copied a moment after it was."""

    async def idle() -> bool:
        return await system.busy(nodes) == {"blocks to copy": 0.0, "applications": 0.0}

    await until(idle, 30.0, "no block is to be copied, and no application runs")
