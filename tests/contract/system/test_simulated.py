"""The contract of a system over the simulated cluster; its data live in memory and end with the server."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import ValidationError

from steelyard.model.errors import SystemFault
from steelyard.node import files
from steelyard.node.base import START, Node
from steelyard.system.simulated import LEASE, Settings, Simulated, create, start_seed
from steelyard.testing.system import ROWS, SCHEMA, SystemContract

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
