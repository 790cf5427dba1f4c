"""The contract of a system over the simulated cluster; its data live in memory and end with the server."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import ValidationError

from steelyard.model.activity import GOSSIPING, LEFT, OF_JOIN, OF_LEAVE, RING_DELAY, STARTED, STREAMED, STREAMING
from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node import agent, files
from steelyard.node.base import DILATION, START, Node
from steelyard.node.command import run
from steelyard.system.base import Endpoint
from steelyard.system.join_marks import time_s
from steelyard.system.simulated import LEASE, Settings, Simulated, create, start_seed
from steelyard.testing.elastic import ElasticContract, ElasticSystem
from steelyard.testing.system import ROWS, SCHEMA, SystemContract, until

pytestmark = pytest.mark.agent

KEYS = [f"user{index}" for index in range(ROWS)]


class TestOneNode(SystemContract):
    module = "simulated"
    network = "127.94.1"
    settings: ClassVar = {"remember": True, "service_us": 50.0, "port": 19142}

    def test_life(self, tmp_path: Path) -> None:
        """As the contract's, but that stopping empties the tables."""

        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                await self._serves(system, nodes)
                endpoint = system.endpoint(nodes, SCHEMA)
                await self.write(endpoint, SCHEMA, KEYS)
                assert await self.count(endpoint, SCHEMA) == ROWS
                assert isinstance(system, Simulated)
                await system.truncate(nodes, SCHEMA)
                assert await self.count(endpoint, SCHEMA) == 0
                for node in nodes:
                    await system.stop(node)
                    await system.stop(node)
                    assert await system.process_ids(node) == ()
                await self._start(system, nodes)
                logs = [await files.sizes(node, folder) for node in nodes for folder in system.logs(node)]
                assert all("sim.out" in names for names in logs)

        asyncio.run(body())

    def test_takes_a_snapshot_and_restores_it(self, tmp_path: Path) -> None:
        """A cluster that remembers must be filled; one that does not has every row."""
        nodes = self.nodes(tmp_path)
        system = create(Settings(remember=True), tmp_path)
        data = {"records": 5, "seed": 1}
        key = system.snapshot_key(nodes, SCHEMA, data)
        assert key == create(Settings(remember=True, seed=9), tmp_path).snapshot_key(nodes, SCHEMA, data)
        assert key != system.snapshot_key(nodes, SCHEMA, {**data, "records": 6})
        assert not asyncio.run(system.has(nodes, key))
        assert asyncio.run(create(Settings(), tmp_path).has(nodes, key))
        with pytest.raises(SystemFault, match="cannot restore snapshots of its rows"):
            asyncio.run(system.restore(nodes, SCHEMA, key))


class TestThreeNodes(TestOneNode):
    network = "127.94.3"
    database_nodes = 3


class TestGrowth(ElasticContract):
    module = "simulated"
    network = "127.94.7"
    settings: ClassVar = {
        "port": 19144, "boot_s": 0.1, "ring_delay_s": 0.5, "data_mb": 45.0, "stream_mb_per_s": 10.0, "stream_cost": 2.0,
    }  # fmt: skip
    # At later marks it may be a member already.
    interrupted_at = (
        ("killed", STARTED), ("killed", GOSSIPING), ("killed", RING_DELAY), ("killed", STREAMING),
        ("cancelled", STREAMING),
    )  # fmt: skip
    rows = 1

    async def count(self, endpoint: Endpoint, schema: Schema) -> int:
        """Every key exists, so no table can be counted: the row of one key."""
        client = self.client()
        argv = [str(agent.find()) if client is None else agent.on(client), "cql", "--contact", endpoint.contacts[0]]
        select = f"SELECT * FROM {schema.full_name(schema.table)} WHERE {schema.key} = 'row1'"
        done = await run(client, [*argv, select], timeout_s=30.0)
        return len(json.loads(done.stdout)["rows"])

    async def leaves(
        self, system: ElasticSystem, leaver: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """The ring changes after the data have moved, whatever clock says so."""
        marks, sent = await super().leaves(system, leaver, members)
        assert marks[STREAMED] < marks[LEFT]
        return marks, sent


def test_the_parts_of_a_join_take_the_planted_times(tmp_path: Path) -> None:
    async def body() -> None:
        settings = Settings(port=19145, boot_s=0.5, ring_delay_s=0.7, data_mb=4.0, stream_mb_per_s=2.0)
        system, times_s = create(settings, tmp_path), dict[str, float]()
        nodes = [Node(f"n{last}", "database", f"127.94.9.{last}", (), tmp_path / f"n{last}") for last in (1, 2)]

        def mark(name: str, t_s: float | None) -> None:
            times_s[name] = time.time() if t_s is None else t_s

        try:
            await system.install(nodes[0], nodes[:1])
            await system.start(nodes[0], nodes[:1])
            await until(lambda: system.ready(nodes[0], 1), 30.0, "the first node is ready")
            assert await system.join(nodes[1], nodes[:1], mark) == 2_000_000
            assert await system.facts(nodes[1]) == {
                **await system.facts(nodes[0]), "listen": "127.94.9.2:19145", "join": "127.94.9.1:19145",
                "boot-ms": "500.0",
            }  # fmt: skip
            planted_s = [0.5, 0.0, 0.7, 1.0]
            for (begin, end), planted in zip(pairwise(list(OF_JOIN)[1:]), planted_s, strict=False):
                # Not less but for the milliseconds of the log; more by what a busy machine takes.
                assert planted - 0.002 <= times_s[end] - times_s[begin], (end, times_s)
            assert await system.leave(nodes[1], nodes, mark) == 2_000_000
            planted_s = [0.7, 1.0]
            for (begin, end), planted in zip(pairwise(OF_LEAVE), planted_s, strict=False):
                assert planted - 0.002 <= times_s[end] - times_s[begin], (end, times_s)
        finally:
            for node in nodes:
                await system.wipe(node)

    asyncio.run(body())


DETECT_S = 1.0
TOGETHER_S = 0.5
"""Members notice a death at one instant; a busy machine lets them say so later."""


@pytest.mark.parametrize("place", [0, 2])
def test_the_others_go_on_without_a_node_that_was_killed(tmp_path: Path, place: int) -> None:
    """It joins again when it is started again. The first node is that which watches the others while it lives."""

    async def body() -> None:
        system = create(Settings(port=19149, detect_s=DETECT_S), tmp_path)
        nodes = [Node(f"n{last}", "database", f"127.94.12.{last}", (), tmp_path / f"n{last}") for last in (1, 2, 3)]
        killed, others = nodes[place], [node for node in nodes if node is not nodes[place]]

        async def seen(members: int) -> None:
            async def ready() -> bool:
                return all([await system.ready(node, members) for node in others])

            await until(ready, 30.0, f"the others see {members} nodes")

        def noticed_s() -> list[float]:
            logs = [(node.folder / "logs" / "sim.out").read_text() for node in others]
            line = f"InetAddress /{killed.address}:19149 is now DOWN"
            return [time_s(next(text for text in log.splitlines() if text.endswith(line))) or 0.0 for log in logs]

        try:
            for node in nodes:
                await system.install(node, nodes)
                await system.start(node, nodes)
            await seen(3)
            # A node that could not be reached yet has not begun.
            await asyncio.sleep(1.0)
            killed_s = time.time()
            await system.kill(killed)
            await seen(2)
            first_s, last_s = sorted(noticed_s())
            assert killed_s + DETECT_S - 0.002 <= first_s
            assert last_s - first_s <= TOGETHER_S
            for node in others:
                assert await law_of(node) == 2
            await system.start(killed, nodes)
            await seen(3)
            for node in nodes:
                assert await law_of(node) == 3
        finally:
            for node in nodes:
                await system.wipe(node)

    asyncio.run(body())


async def law_of(node: Node) -> int:
    """Number of nodes in a node's law."""
    select = "SELECT nodes FROM system_views.simulated_load"
    done = await run(None, [str(agent.find()), "cql", "--contact", f"{node.address}:19149", select], timeout_s=30.0)
    return int(json.loads(done.stdout)["rows"][0]["nodes"])


def test_nothing_is_taken_out_of_a_cluster_that_remembers() -> None:
    with pytest.raises(ValidationError, match="detect_s needs a cluster without remember"):
        Settings(remember=True, detect_s=1.0)


def test_nothing_joins_a_cluster_that_remembers(tmp_path: Path) -> None:
    node = _node(tmp_path)
    with pytest.raises(SystemFault, match=r"cannot join: with system\.remember rows stay on the node"):
        asyncio.run(create(Settings(remember=True), tmp_path).join(node, (node,), lambda name, t_s: None))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--join", "127.94.5.2:1", "--remember"], "'--join <ADDRESS:PORT>' cannot be used with '--remember'"),
        (["--join", "127.94.5.2:1", "--listen", "127.94.5.1:0"], "needs a port that the members can be told"),
        (["--join", "127.94.5.2:1"], "127.94.5.1:19146 could not join the cluster: the contact 127.94.5.2:1: "),
        (["--detect-ms", "1000", "--remember"], "'--detect-ms <MS>' cannot be used with '--remember'"),
        (["--data-bytes", "5"], "--stream-bytes-per-s <BYTES>"),
    ],
)
def test_a_node_that_cannot_join_says_why(options: list[str], words: str) -> None:
    listen = [] if "--listen" in options else ["--listen", "127.94.5.1:19146"]
    done = subprocess.run([agent.find(), "sim", *listen, *options], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert words in done.stderr


def test_what_plants_nothing_is_neither_a_setting_nor_an_option(tmp_path: Path) -> None:
    """So trials of clusters that never grow keep their ids, and nodes their command lines."""
    grows = {
        "boot_s": 1.0,
        "ring_delay_s": 2.0,
        "data_mb": 30.0,
        "stream_mb_per_s": 5.0,
        "stream_cost": 1.5,
        "detect_s": 8.0,
    }
    assert not grows.keys() & Settings().model_dump().keys()
    settings = Settings.model_validate(grows)
    assert Settings.model_validate(settings.model_dump()) == settings
    node = dataclasses.replace(_node(tmp_path), environment={DILATION: "2"})
    other = dataclasses.replace(node, name="n2", address="127.94.5.2")
    plain, argv = (
        create(Settings(), tmp_path).argv(node, (node, other)),
        create(settings, tmp_path).argv(node, (other,)),
    )
    added = [
        "--ring-delay-ms", "4000.0", "--data-bytes", "30000000.0", "--stream-bytes-per-s", "2500000.0",
        "--stream-cost", "1.5", "--detect-ms", "16000.0",
    ]  # fmt: skip
    assert argv == [*plain, *added]
    joins = create(settings, tmp_path).argv(node, (other,), joins=True)
    assert joins[2:7] == ["--listen", "127.94.5.1:9042", "--join", "127.94.5.2:9042", "--boot-ms"]
    assert (joins[7], "--peers" in joins) == ("2000.0", False)


def _node(tmp_path: Path, lease: str = "") -> Node:
    return Node("n1", "database", "127.94.5.1", (), tmp_path, environment={LEASE: lease} if lease else {})


def test_argv_says_all_settings(tmp_path: Path) -> None:
    settings = Settings(stall="2:0.5, 7:1", contention=0.1, servers=4, service_distribution="exponential", port=1234)  # type: ignore[arg-type]
    node = _node(tmp_path, "lease-1")
    other = dataclasses.replace(node, name="n2", address="127.94.5.2")
    argv = create(settings, tmp_path).argv(node, (node, other))
    assert argv[1:] == [
        "sim", "--listen", "127.94.5.1:1234", "--peers", "127.94.5.2:1234",
        "--service-us", "500.0", "--contention", "0.1", "--coherency", "0.0", "--start-cv", "0.0", "--trial-cv", "0.0",
        "--servers", "4", "--service-distribution", "exponential", "--seed", str(start_seed(1, "lease-1")),
        "--stall", "2:0.5", "--stall", "7:1",
    ]  # fmt: skip


def test_a_planted_warm_up_is_said(tmp_path: Path) -> None:
    argv = create(Settings(warm_up="3:2000"), tmp_path).argv(_node(tmp_path), ())
    assert argv[-2:] == ["--warm-up", "3:2000"]
    assert Settings(warm_up="3:2000").model_dump()["warm_up"] == "3:2000"
    for wrong in ("3", "0.5:10", "3:0", "a:b"):
        with pytest.raises(ValueError, match="FACTOR:OPERATIONS"):
            Settings(warm_up=wrong)


def test_seeds_differ_by_start_and_not_by_node(tmp_path: Path) -> None:
    seeds = {start_seed(seed, lease) for seed in (1, 2) for lease in ("", "a", "b")}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_study_s_start_draws_the_same_on_every_lease(tmp_path: Path) -> None:
    """The lease's name is made up anew each time; the start's place in the study is not."""
    argvs = [
        create(Settings(), tmp_path).argv(dataclasses.replace(node, environment=node.environment | {START: "7/1/"}), ())
        for node in (_node(tmp_path, "lease-1"), _node(tmp_path, "lease-2"))
    ]
    assert argvs[0] == argvs[1]
    assert str(start_seed(1, "7/1/")) in argvs[0]


@pytest.mark.parametrize("stall", ["2", "a:1", ":", ["1:-1"]])
def test_stalls_are_times(stall: object) -> None:
    with pytest.raises(ValidationError, match="AT_S:FOR_S"):
        Settings(stall=stall)  # type: ignore[arg-type]


def test_no_stall_is_a_level_too() -> None:
    assert Settings(stall="").stall is None  # type: ignore[arg-type]
    assert Settings(stall=("1:2",)).stall == ("1:2",)


def test_a_foreign_process_is_never_ended(tmp_path: Path) -> None:
    """A record whose process id now belongs to somebody else."""
    node = _node(tmp_path)
    (tmp_path / "sim.json").write_text(
        f'{{"pid": {os.getpid()}, "started_ticks": 1, "boot_id": "", "argv": [], "supervisor": 0}}'
    )
    system = create(Settings(), tmp_path)
    assert asyncio.run(system.process_ids(node)) == ()
    asyncio.run(system.kill(node))
    assert not (tmp_path / "sim.json").exists()


def test_an_address_that_is_taken_is_a_fault_with_its_reason(tmp_path: Path) -> None:
    async def body() -> None:
        system = create(Settings(port=19143), tmp_path)
        node = _node(tmp_path / "a")
        await system.install(node, (node,))
        with socket.create_server((node.address, 19143)):
            await system.start(node, (node,))
            for _ in range(500):
                if not await system.process_ids(node):
                    break
                await asyncio.sleep(0.01)
            try:
                await system.ready(node, 1)
            finally:
                await system.kill(node)

    with pytest.raises(SystemFault, match=r"127\.94\.5\.1:19143"):
        asyncio.run(body())
