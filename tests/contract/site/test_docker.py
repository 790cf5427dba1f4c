"""Site `docker` keeps the contract of a site; limits, networks, and a daemon of our own that ends in any case."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from steelyard.disruption import partition
from steelyard.disruption.base import Stage
from steelyard.disruption.partition import Partition
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.link.ping import measure_link
from steelyard.model.errors import NodeError
from steelyard.model.node_limits import NodeLimits
from steelyard.node import kept
from steelyard.node.command import run, spawn
from steelyard.node.processor import census
from steelyard.site import docker, local
from steelyard.site.base import Request
from steelyard.site.docker import containers
from steelyard.site.docker import daemon as docker_daemon
from steelyard.site.kernel import cgroup, mountinfo
from steelyard.testing.disruption import holding
from steelyard.testing.site import SiteContract
from tests.contract.site.killed_at_step import kill_at
from tests.docker_daemon import image_or_skip

pytestmark = [pytest.mark.docker, pytest.mark.agent]

REQUEST = Request("contract", 2, 1)
TIMEOUT_S = 60.0
OWN = docker.Settings(daemon="own")


def traces(lease: Lease) -> list[str]:
    """What a lease has left beside its record, folders and processes."""
    left = [str(group) for group in cgroup.present(cgroup.detect(), lease.id).get(lease.id, [])]
    left += [str(folder) for node in lease.nodes for folder in node.cgroups if folder.exists()]
    looked = docker_daemon.running("docker")
    if looked.daemon is not None:
        left += [thing.name for thing in asyncio.run(containers.labelled(looked.daemon, lease.id))]
    link = Path("/sys/class/net", containers.bridge_name(lease.id))
    left += [link.name] if link.exists() else []
    return left + ([lease.id] if lease.id in lease_register.known() else [])


@pytest.mark.usefixtures("daemon")
class DockerContract(SiteContract):
    module = "docker"
    leases_at_once = False

    def remains(self, lease: Lease) -> list[str]:
        return [*super().remains(lease), *traces(lease)]


class TestDockerHost(DockerContract):
    settings: ClassVar = {"network": "host", "storage": "volume"}


class TestDockerBridge(DockerContract):
    settings: ClassVar = {"network": "bridge", "storage": "overlay"}
    load_nodes = 2


@contextmanager
def leased(state: Path, settings: docker.Settings, request: Request = REQUEST) -> Iterator[tuple[Any, Lease]]:
    site = docker.create(settings, state)
    lease = asyncio.run(site.lease(request, lease_records.utc_now() + timedelta(hours=1)))
    try:
        yield site, lease
    finally:
        asyncio.run(site.release(lease))
        assert traces(lease) == []


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize(("settings", "cpus"), [(docker.Settings(), 0.5), (docker.Settings(cpu_limit="cpuset"), 1.0)])
def test_limits_are_in_force(tmp_path: Path, settings: docker.Settings, cpus: float) -> None:
    """As the kernel reports them, and a server is held to them."""
    request = replace(REQUEST, limits=NodeLimits(cpus=cpus, memory_mb=64))
    with leased(tmp_path, settings, request) as (site, lease):
        facts = asyncio.run(site.facts(lease.databases[0]))
        assert facts["limit_memory_bytes"] == str(64 * 2**20)
        assert facts["limit_cpus"] == ("0.5" if settings.cpu_limit == "quota" else "none")
        assert facts.get("container_cores", "") == ("" if settings.cpu_limit == "quota" else "0")
        assert facts["container_engine"].startswith("Docker ")
        assert "limit_cpus" not in asyncio.run(site.facts(lease.loaders[0])) or not lease.loaders[0].cpus
        greedy = ["sh", "-c", "head -c 200m /dev/zero | tail"]
        done = asyncio.run(run(lease.databases[0], greedy, timeout_s=TIMEOUT_S, check=False))
        assert done.exit_code != 0


@pytest.mark.usefixtures("daemon")
def test_processors_are_limited_while_containers_run(tmp_path: Path) -> None:
    """Lifted, limited, lifted: as the kernel reports it."""
    request = replace(REQUEST, limits=NodeLimits(cpus=0.5, cpus_from="warm"))
    with leased(tmp_path, docker.Settings(), request) as (site, lease):
        seen = []
        for limited in (False, True, False):
            asyncio.run(site.throttle(lease, request.limits, limited=limited))
            seen.append(asyncio.run(site.facts(lease.databases[0]))["limit_cpus"])
        assert seen == ["none", "0.5", "none"]
    bound = docker.create(docker.Settings(cpu_limit="cpuset"), tmp_path)
    whole = replace(REQUEST, limits=NodeLimits(cpus=1.0, cpus_from="warm"))
    assert 'node.cpus_from = "start"' in (bound.refuse(whole, None) or "")


@pytest.mark.usefixtures("daemon")
def test_a_server_is_confined_and_an_instrument_is_not_charged(tmp_path: Path) -> None:
    """What is started through Docker has its seccomp filter and its control group; what watches has neither."""
    filters = ["sh", "-c", "grep -E '^(Seccomp|CapEff):' /proc/self/status; cat /proc/self/cgroup"]
    with leased(tmp_path, docker.Settings()) as (_, lease):
        node = lease.databases[0]
        inside, watching = (
            asyncio.run(run(node, filters, timeout_s=TIMEOUT_S, watch=watch)).stdout.decode() for watch in (False, True)
        )
        assert "Seccomp:\t2" in inside
        name = node.cgroups[0].name
        assert name in inside
        assert name not in watching
        assert "Seccomp:\t2" not in watching


@pytest.mark.usefixtures("daemon")
def test_a_kept_process_is_asked_and_stopped_from_outside(tmp_path: Path) -> None:
    async def body(lease: Lease) -> None:
        node = lease.databases[0]
        record = node.folder / "sleeper.json"
        await kept.launch(node, ["sleep", "600"], record)
        living = await kept.living(node, record)
        assert living is not None
        assert living.argv == ("sleep", "600")
        folder = next(folder for folder in node.cgroups if "memory" in folder.parts or len(node.cgroups) == 1)
        members = {int(line) for line in (folder / "cgroup.procs").read_text().split()}
        commands = {Path("/proc", str(pid), "cmdline").read_bytes() for pid in members}
        assert b"sleep\x00600\x00" in commands
        await kept.stop(node, record, 2.0)
        assert await kept.living(node, record) is None

    with leased(tmp_path, docker.Settings()) as (_, lease):
        asyncio.run(body(lease))


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("network", ["host", "bridge"])
def test_load_nodes_reach_databases_beside_a_lease_of_site_local(tmp_path: Path, network: str) -> None:
    """Neither site's network cuts the other's."""
    bare = local.create(local.Settings(mode="namespaces"), tmp_path / "local")
    until = lease_records.utc_now() + timedelta(hours=1)
    beside = asyncio.run(bare.lease(REQUEST, until))
    try:
        settings = docker.Settings.model_validate({"network": network})
        with leased(tmp_path / "docker", settings) as (_, lease):
            for each in (lease, beside):
                path = asyncio.run(measure_link(each.loaders[0], each.databases[1]))
                assert path["rtt_ms_min"] < 1000
    finally:
        asyncio.run(bare.release(beside))


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("network", ["host", "bridge"])
def test_whoever_enters_a_container_goes_by_its_name(tmp_path: Path, network: str) -> None:
    """The container's table of hosts has it, so that no name server is asked; Java asks for it by itself."""
    with leased(tmp_path, docker.Settings.model_validate({"network": network})) as (_, lease):
        node = lease.databases[0]
        seen = [
            asyncio.run(run(node, ["hostname"], timeout_s=20.0, watch=watch)).stdout.split() for watch in (False, True)
        ]
        names = asyncio.run(run(node, ["cat", "/etc/hosts"], timeout_s=20.0)).stdout.split()
        assert seen[0] == seen[1]
        assert network == "host" or seen[0][0] in names


@contextmanager
def alone(places: docker_daemon.Own) -> Iterator[docker_daemon.Own]:
    """No daemon of our own before, and none after, whatever fails."""
    image_or_skip()
    if docker_daemon.processes(places):
        pytest.fail("a daemon of Steelyard's own runs on this machine: steelyard clean docker")

    async def stop() -> None:
        async with docker_daemon.locked(places):
            await docker_daemon.stop(places)

    try:
        yield places
    finally:
        asyncio.run(stop())


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[docker_daemon.Own]:
    """The places of a daemon of our own, empty; what the machine keeps stays as it is."""
    empty = docker_daemon.Own(lease_register.FOLDER / "docker", tmp_path / "data")
    # The daemon of our own has one place on a machine, and other studies may use it.
    monkeypatch.setattr(docker_daemon, "ours", lambda: empty)
    with alone(empty) as places:
        yield places


def mounted(own: docker_daemon.Own) -> list[Path]:
    return mountinfo.below(mountinfo.here(), own.folder, own.data)


def gone(places: docker_daemon.Own) -> bool:
    """Whether no process of a daemon is left, once the system has waited for those that ended, which takes a second."""
    deadline = time.monotonic() + 10
    while docker_daemon.processes(places) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not docker_daemon.processes(places)


def test_a_daemon_of_our_own_ends_with_the_last_lease(own: docker_daemon.Own, tmp_path: Path) -> None:
    with leased(tmp_path, OWN) as (_, lease):
        record = lease_records.read(lease.record)
        assert record is not None
        assert (record.daemon, record.network) == ("own", "host")
        before = docker_daemon.processes(own)
        assert {"dockerd", "containerd", "containerd-shim"} <= {name[:15] for name in before.values()}
        assert docker_daemon.time_s(census())["dockerd"] > 0
        bridged = docker.Settings(daemon="own", network="bridge")
        with leased(tmp_path, bridged) as (_, second):
            done = asyncio.run(run(second.databases[0], ["hostname"], timeout_s=TIMEOUT_S))
            assert done.stdout
        assert docker_daemon.lives(own), "the first lease still uses it"
        assert asyncio.run(run(lease.databases[0], ["true"], timeout_s=TIMEOUT_S)).exit_code == 0
    assert gone(own)
    assert mounted(own) == []


def test_a_daemon_that_was_killed_leaves_nothing(own: docker_daemon.Own, tmp_path: Path) -> None:
    with leased(tmp_path, OWN):
        for pid, name in docker_daemon.processes(own).items():
            if name == "dockerd":
                os.kill(pid, signal.SIGKILL)
    assert gone(own)
    assert mounted(own) == []
    with leased(tmp_path, OWN) as (_, lease):
        assert asyncio.run(run(lease.databases[0], ["true"], timeout_s=TIMEOUT_S)).exit_code == 0


@pytest.mark.parametrize("step", ["record", "daemon", "containers"])
def test_a_conductor_that_is_killed_at_a_step_leaves_no_daemon(tmp_path: Path, step: str) -> None:
    """Its places are those of this machine: the child knows no other."""
    with alone(docker_daemon.ours()) as places:
        left = _killed_at(places, tmp_path, step)
        assert traces(left) == []
        assert gone(places)


def _killed_at(places: docker_daemon.Own, tmp_path: Path, step: str) -> Lease:
    kill_at(step, "docker", OWN, REQUEST, tmp_path)
    assert docker_daemon.lives(places) == (step != "record")
    site = docker.create(docker.Settings(), tmp_path)
    (left,) = [lease for lease in asyncio.run(site.leftovers()) if lease.record.exists()]
    asyncio.run(site.release(left))
    assert traces(left) == []
    assert lease_processes.of(left.id) == set()
    assert gone(places)
    assert mounted(places) == []
    return left


@pytest.mark.usefixtures("daemon")
def test_a_command_ends_with_its_client(tmp_path: Path) -> None:
    async def body(lease: Lease) -> None:
        node = lease.databases[0]
        process = await spawn(node, ["sleep", "601"])
        deadline = time.monotonic() + TIMEOUT_S
        while not await _sleeping(node):
            assert time.monotonic() < deadline
        process.kill()
        await process.wait()
        while await _sleeping(node):
            assert time.monotonic() < deadline

    async def _sleeping(node: Any) -> bool:
        argv = ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]
        return "sleep 601" in (await run(node, argv, timeout_s=TIMEOUT_S, watch=True)).stdout.decode()

    with leased(tmp_path, docker.Settings()) as (_, lease):
        asyncio.run(body(lease))


@pytest.mark.root
@pytest.mark.nft
@pytest.mark.usefixtures("daemon")
def test_links_between_containers_can_be_cut_from_outside(tmp_path: Path) -> None:
    """Where no program inside may filter packets."""
    with leased(tmp_path, docker.Settings(network="bridge")) as (site, lease):
        nodes, unused = lease.databases, cast("Any", None)

        async def reached() -> bool:
            try:
                await measure_link(nodes[1], nodes[0], count=1)
            except NodeError:
                return False
            return True

        async def body() -> list[bool]:
            seen = [await reached()]
            cut = Partition(partition.Settings())
            async with holding(cut, Stage(unused, nodes[:1], nodes, 60.0, lambda *_: None, site)):
                seen.append(await reached())
            return [*seen, await reached()]

        assert site.uncuttable() == ""
        assert asyncio.run(body()) == [True, False, True]
