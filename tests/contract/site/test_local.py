"""Site `local` beyond the common contract: limits, networks, and every step of a lease failing or being killed."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.steps import Step
from steelyard.link.ping import measure_link
from steelyard.model.errors import NodeError, SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node.base import Node
from steelyard.node.command import run, spawn
from steelyard.site import local
from steelyard.site.base import Request
from steelyard.site.kernel import cgroup, network
from tests.contract.site.killed_at_step import Moment, kill_at

pytestmark = [pytest.mark.root, pytest.mark.agent]

REQUEST = Request("contract", 2, 1)
NAMESPACES = local.Settings(mode="namespaces")
STEPS = (
    "record",
    "folders",
    "cgroups of n1",
    "cgroups of n2",
    "cgroups of l1",
    "namespaces",
    "switch",
    "addresses",
)


SERVER = """
import socket, sys
with socket.create_server((sys.argv[1], 7000)) as server:
    print("listening", flush=True)
    with server.accept()[0] as one:
        one.sendall(one.recv(100).upper())
"""

CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], 7000), timeout=5) as one:
    one.sendall(b"hello")
    print(one.recv(100).decode(), one.getsockname()[0])
"""


@contextmanager
def leased(
    state: Path, settings: local.Settings, request: Request = REQUEST
) -> Iterator[tuple[local.LocalSite, Lease]]:
    site = local.create(settings, state)
    lease = asyncio.run(site.lease(request, lease_records.utc_now() + timedelta(hours=1)))
    try:
        yield site, lease
    finally:
        asyncio.run(site.release(lease))


def traces(identity: str, state: Path) -> list[str]:
    groups = cgroup.present(cgroup.detect(), identity).get(identity, [])
    networks = network.present(identity).get(identity, [])
    files = [
        path
        for path in (lease_records.record_path(state, identity), lease_records.nodes_folder(state, identity))
        if path.exists()
    ]
    entered = [identity] if identity in lease_register.known() else []
    return [*map(str, groups), *networks, *map(str, files), *entered, *map(str, lease_processes.of(identity))]


def ids(state: Path) -> list[str]:
    return [path.stem for path in (state / "leases").glob("*.json")]


def test_steps_are_those_that_the_tests_try(tmp_path: Path) -> None:
    done: list[str] = []

    async def perform(step: Step) -> None:
        done.append(step.name)
        await step.act()

    site = local.LocalSite(NAMESPACES, tmp_path, perform)
    lease = asyncio.run(site.lease(REQUEST, lease_records.utc_now() + timedelta(hours=1)))
    asyncio.run(site.release(lease))
    assert tuple(done) == STEPS


@pytest.mark.parametrize("failing", STEPS)
def test_a_step_that_fails_takes_everything_back(tmp_path: Path, failing: str) -> None:
    seen: list[str] = []

    async def perform(step: Step) -> None:
        await step.act()
        seen.extend(identity for identity in ids(tmp_path) if identity not in seen)
        if step.name == failing:
            raise SiteError(f"{failing} went wrong")

    site = local.LocalSite(NAMESPACES, tmp_path, perform)
    with pytest.raises(SiteError, match=f"{failing} went wrong"):
        asyncio.run(site.lease(REQUEST, lease_records.utc_now() + timedelta(hours=1)))
    assert len(seen) == 1
    assert traces(seen[0], tmp_path) == []
    assert list((tmp_path / "nodes").glob("*")) == []


def test_a_cancelled_lease_is_taken_back(tmp_path: Path) -> None:
    async def perform(step: Step) -> None:
        await step.act()
        if step.name == "switch":
            await asyncio.sleep(60)

    async def cancelled() -> None:
        site = local.LocalSite(NAMESPACES, tmp_path, perform)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await site.lease(REQUEST, lease_records.utc_now() + timedelta(hours=1))

    asyncio.run(cancelled())
    assert ids(tmp_path) == []
    assert list((tmp_path / "nodes").glob("*")) == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(tmp_path: Path, step: str, moment: Moment) -> None:
    kill_at(step, "local", NAMESPACES, REQUEST, tmp_path, moment)
    recorded = ids(tmp_path)
    assert len(recorded) == (0 if (step, moment) == ("record", "before") else 1)
    site = local.create(NAMESPACES, tmp_path)
    for lease in asyncio.run(site.leftovers()):
        if lease.id in recorded:
            asyncio.run(site.release(lease))
    assert [trace for identity in recorded for trace in traces(identity, tmp_path)] == []
    assert ids(tmp_path) == []


def test_resources_without_a_record_are_found(tmp_path: Path) -> None:
    with leased(tmp_path, NAMESPACES) as (site, lease):
        lease.record.unlink()
        other = local.create(NAMESPACES, tmp_path / "other")
        assert lease.id not in [left.id for left in asyncio.run(other.leftovers())], "another installation's"
        (orphan,) = [left for left in asyncio.run(site.leftovers()) if left.id == lease.id]
        asyncio.run(site.release(orphan))
        assert traces(lease.id, tmp_path) == []
        assert network.present(lease.id) == {}


def test_living_leases_of_another_state_folder_are_left_alone(tmp_path: Path) -> None:
    with leased(tmp_path, NAMESPACES) as (_, lease):
        other = local.create(NAMESPACES, tmp_path / "other")
        assert lease.id not in [left.id for left in asyncio.run(other.leftovers())]


@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
def test_processors_are_limited_while_nodes_run(tmp_path: Path, mode: str) -> None:
    """Lifted, limited twice, lifted: as the kernel reports it."""
    hierarchies = cgroup.detect()
    if not hierarchies.has("cpu"):
        pytest.skip(f"this kernel lends no control groups: {hierarchies.problems}")
    request = replace(REQUEST, limits=NodeLimits(cpus=0.25, cpus_from="warm"))
    with leased(tmp_path, local.Settings.model_validate({"mode": mode}), request) as (site, lease):
        seen = [asyncio.run(site.facts(lease.databases[0]))["limit_cpus"]]
        for limited in (False, True, True, False):
            asyncio.run(site.throttle(lease, request.limits, limited=limited))
            seen.append(asyncio.run(site.facts(lease.databases[0]))["limit_cpus"])
        assert seen == ["0.25", "none", "0.25", "0.25", "none"]
        assert asyncio.run(site.facts(lease.loaders[0]))["limit_cpus"] == "none"


@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
def test_limits_are_in_force(tmp_path: Path, mode: str) -> None:
    hierarchies = cgroup.detect()
    if not hierarchies.has("memory") or not hierarchies.has("cpu"):
        pytest.skip(f"this kernel lends no control groups: {hierarchies.problems}")
    settings = local.Settings.model_validate({"mode": mode})
    request = replace(REQUEST, limits=NodeLimits(cpus=0.5, memory_mb=64))
    with leased(tmp_path, settings, request) as (site, lease):
        database, loader = lease.databases[0], lease.loaders[0]
        facts = asyncio.run(site.facts(database))
        assert (facts["limit_cpus"], facts["limit_memory_bytes"]) == ("0.5", str(64 * 2**20))
        assert (database.cpus, database.memory_mb) == (0.5, 64)
        assert asyncio.run(site.facts(loader))["limit_cpus"] == "none"
        greedy = [sys.executable, "-c", "bytearray(200 * 2**20)"]
        killed = asyncio.run(run(database, greedy, timeout_s=20, check=False))
        assert killed.exit_code == -signal.SIGKILL
        assert asyncio.run(run(database, greedy, timeout_s=20, watch=True)).exit_code == 0


def test_nodes_reach_one_another(tmp_path: Path) -> None:
    async def exchange(server: Node, client: Node) -> str:
        listening = await spawn(server, [sys.executable, "-c", SERVER, server.address], stdout=asyncio.subprocess.PIPE)
        assert listening.stdout is not None
        assert await listening.stdout.readline() == b"listening\n"
        said = await run(client, [sys.executable, "-c", CLIENT, server.address], timeout_s=20)
        await listening.wait()
        return said.stdout.decode().strip()

    with leased(tmp_path, NAMESPACES) as (_, lease):
        first, second, loader = lease.nodes
        assert (first.address, second.address, loader.address) == ("10.113.0.1", "10.113.0.2", "10.113.1.1")
        assert asyncio.run(exchange(first, second)) == f"HELLO {second.address}"
        assert asyncio.run(exchange(second, loader)) == f"HELLO {loader.address}"
        assert asyncio.run(exchange(first, first)) == f"HELLO {first.address}"


def test_nodes_do_not_reach_the_outside_nor_another_lease(tmp_path: Path) -> None:
    with leased(tmp_path, NAMESPACES, Request("one", 1)) as (_, one):
        routes = asyncio.run(run(one.nodes[0], ["ip", "route"], timeout_s=10)).stdout.decode()
        assert "default" not in routes
        with leased(tmp_path, NAMESPACES, REQUEST) as (_, two):
            assert two.nodes[1].address == "10.113.0.2"
            # Their addresses overlap, and only lease `two` has a second node.
            with pytest.raises(NodeError, match=r"10\.113\.0\.2"):
                asyncio.run(measure_link(one.nodes[0], two.nodes[1], count=1))


def test_round_trip_between_nodes_is_short(tmp_path: Path) -> None:
    with leased(tmp_path, NAMESPACES) as (_, lease):
        measured = asyncio.run(measure_link(lease.nodes[0], lease.nodes[1], count=10))
    # The mean may hold a time slice of whatever else this machine does.
    assert 0 < measured["rtt_ms_min"] < 50
    assert measured["rtt_ms_min"] <= measured["rtt_ms_mean"]


def test_switch_skips_the_packet_filters(tmp_path: Path) -> None:
    if not Path("/proc/sys/net/bridge").exists():
        pytest.skip("this kernel has no br_netfilter")
    with leased(tmp_path, NAMESPACES) as (_, lease):
        argv = ["ip", "netns", "exec", network.switch(lease.id), "cat", "/proc/sys/net/bridge/bridge-nf-call-iptables"]
        assert asyncio.run(run(None, argv, timeout_s=10)).stdout.strip() in (b"0", b"")
