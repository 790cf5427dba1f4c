"""Limits of nodes on site `local` for real: processors, memory, disks of their own, and what a kill leaves of them."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from steelyard.lab.gauging import gauge_nodes
from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.leases.steps import Step
from steelyard.model.errors import SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run, spawn
from steelyard.probe import os as os_probe
from steelyard.site import local
from steelyard.site.base import Request
from steelyard.site.kernel import cgroup, disk, mountinfo
from tests.contract.site.killed_at_step import Moment, kill_at
from tests.contract.site.test_local import ids, leased, traces

pytestmark = [pytest.mark.root, pytest.mark.agent]

DISK = NodeLimits(disk_gb=0.1, disk_read_mb_per_s=50, disk_write_mb_per_s=40, disk_read_ops_per_s=900)
REQUEST = Request("limits", 1, 1, DISK)
LOOPBACK = local.Settings(mode="loopback")
DISK_STEPS = ("file system of n1", "loop device of n1", "mount of n1")


@pytest.fixture(autouse=True)
def _able() -> None:
    if why := disk.lacking(cgroup.detect(), DISK):
        pytest.skip(f"this machine has no disks to lend: {why}")


def disk_traces(identity: str, state: Path) -> list[str]:
    nodes = lease_records.nodes_folder(state, identity)
    mounts = [line for line in mountinfo.MOUNTINFO.read_text().splitlines() if str(nodes) in line]
    return [*traces(identity, state), *map(str, disk.present().get(identity, [])), *mounts]


def throttled(device: str) -> list[str]:
    """Lines of the kernel's throttles of a device."""
    blkio, number = cgroup.detect().blkio, disk._number(device)
    names = disk.VERSION_1_FILES.values() if blkio else ()
    lines = [line for name in names if blkio for line in (blkio / name).read_text().splitlines()]
    return [line for line in lines if line.startswith(f"{number} ")]


def test_a_disk_is_in_force_and_goes(tmp_path: Path) -> None:
    with leased(tmp_path, LOOPBACK, REQUEST) as (site, lease):
        node = lease.databases[0]
        facts = asyncio.run(site.facts(node))
        assert int(facts["node_disk_bytes"]) == pytest.approx(1e8, rel=0.01)
        assert os.stat(node.folder).st_dev != os.stat(tmp_path).st_dev
        assert list(node.folder.iterdir()) == []
        if cgroup.detect().blkio:
            assert facts["limit_disk_read_bytes_per_s"] == "50000000"
            assert facts["limit_disk_write_bytes_per_s"] == "40000000"
            assert facts["limit_disk_read_ops_per_s"] == "900"
            assert facts["limit_disk_write_ops_per_s"] == "none"
        assert "node_disk_device" not in asyncio.run(site.facts(lease.loaders[0]))
        filling = ["dd", "if=/dev/zero", f"of={node.folder / 'x'}", "bs=1M", "count=200"]
        assert b"No space left" in asyncio.run(run(node, filling, timeout_s=60, check=False)).stderr
        device = facts["node_disk_device"]
    assert disk_traces(lease.id, tmp_path) == []
    assert throttled(device) == []


def test_a_disk_below_a_symbolic_link_is_the_node_s(tmp_path: Path) -> None:
    real, state = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    state.symlink_to(real)
    with leased(state, LOOPBACK, REQUEST) as (site, lease):
        assert asyncio.run(site.facts(lease.databases[0]))["node_disk_device"].startswith("loop")
    assert disk_traces(lease.id, real) == []


def test_rates_of_a_disk_are_lifted_and_set_while_its_node_runs(tmp_path: Path) -> None:
    """What was written meanwhile is on the disk before they are set: a writer would wait for it otherwise."""
    hierarchies = cgroup.detect()
    request = replace(REQUEST, limits=NodeLimits(disk_gb=0.1, disk_write_mb_per_s=1, disk_rates_from="warm"))
    with leased(tmp_path, LOOPBACK, request) as (site, lease):
        node = lease.databases[0]
        device = asyncio.run(site.facts(node))["node_disk_device"]
        strict, seen = disk.BACKING_DEVICES / disk._number(device) / "strict_limit", []
        for limited in (False, True, True, False):
            asyncio.run(site.throttle(lease, request.limits, limited=limited))
            seen.append(asyncio.run(site.facts(node))["limit_disk_write_bytes_per_s"])
            if not limited:
                filling = ["dd", "if=/dev/zero", f"of={node.folder / 'x'}", "bs=1M", "count=20"]
                assert asyncio.run(run(node, filling, timeout_s=10)).exit_code == 0
            else:
                written = int((disk.BLOCK_DEVICES / device / "stat").read_text().split()[6]) * 512
                assert written >= 20 << 20, "what was written meanwhile was on the disk before the rates were set"
            if hierarchies.blkio is not None and strict.exists():
                assert strict.read_text().strip() == str(int(limited))
        assert seen == ["none", "1000000", "1000000", "none"]
    assert throttled(device) == []


def test_the_probe_counts_what_reaches_the_disk(tmp_path: Path) -> None:
    """A writer that has ended is no process of the node any more, but its bytes are on the disk."""
    written_bytes, operations = 8 << 20, 8

    async def watched(node: Node) -> list[float]:
        """Bytes and operations that the probe saw written, from its second reading on."""
        argv = list(os_probe.create().command(node, 0.5, ()))
        assert argv[argv.index("--disk") + 1] == str(node.folder)
        probe = await spawn(node, [*argv, "--lines", "6"], stdout=asyncio.subprocess.PIPE, watch=True)
        assert probe.stdout is not None
        lines = [await probe.stdout.readline(), await probe.stdout.readline()]
        file = f"of={node.folder / 'x'}"
        await run(node, ["dd", "if=/dev/zero", file, "bs=1M", f"count={operations}", "oflag=direct"], timeout_s=60)
        lines += (await probe.stdout.read()).splitlines()
        await probe.wait()
        every = [list(os_probe.create().parse(node.name, line)) for line in lines]
        readings = [(line[0].t_s, {sample.metric: sample.value for sample in line}) for line in every if line]
        return [
            sum(values[f"node_disk_write_{what}_per_s"] * (t_s - before_s) for (before_s, _), (t_s, values) in pairs)
            for what in ("bytes", "operations")
            if (pairs := list(itertools.pairwise(readings)))
        ]

    with leased(tmp_path, LOOPBACK, REQUEST) as (_, lease):
        assert [node.own_disk for node in (*lease.databases, *lease.loaders)] == [True, False]
        counted = asyncio.run(watched(lease.databases[0]))
    assert counted[0] > 0.9 * written_bytes
    assert counted[1] >= operations - 1


def test_steps_of_a_disk_are_those_that_the_tests_try(tmp_path: Path) -> None:
    done: list[str] = []

    async def perform(step: Step) -> None:
        done.append(step.name)
        await step.act()

    site = local.LocalSite(LOOPBACK, tmp_path, perform)
    lease = asyncio.run(site.lease(REQUEST, lease_records.utc_now() + timedelta(hours=1)))
    asyncio.run(site.release(lease))
    assert tuple(done[-3:]) == DISK_STEPS


@pytest.mark.parametrize("failing", DISK_STEPS)
def test_a_step_that_fails_takes_everything_back(tmp_path: Path, failing: str) -> None:
    seen: list[str] = []

    async def perform(step: Step) -> None:
        await step.act()
        seen.extend(identity for identity in ids(tmp_path) if identity not in seen)
        if step.name == failing:
            raise SiteError(f"{failing} went wrong")

    site = local.LocalSite(LOOPBACK, tmp_path, perform)
    with pytest.raises(SiteError, match=f"{failing} went wrong"):
        asyncio.run(site.lease(REQUEST, lease_records.utc_now() + timedelta(hours=1)))
    assert [trace for identity in seen for trace in disk_traces(identity, tmp_path)] == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", DISK_STEPS)
def test_killed_at_a_step(tmp_path: Path, step: str, moment: Moment) -> None:
    limits = NodeLimits(disk_gb=0.1, disk_write_mb_per_s=40)
    kill_at(step, "local", LOOPBACK, Request("victim", 1, 1, limits), tmp_path, moment)
    (identity,) = ids(tmp_path)
    site = local.create(LOOPBACK, tmp_path)
    (left,) = [lease for lease in asyncio.run(site.leftovers()) if lease.id == identity]
    asyncio.run(site.release(left))
    assert disk_traces(identity, tmp_path) == []


def test_a_disk_without_a_record_is_found(tmp_path: Path) -> None:
    with leased(tmp_path, LOOPBACK, REQUEST) as (site, lease):
        lease.record.unlink()
        (orphan,) = [left for left in asyncio.run(site.leftovers()) if left.id == lease.id]
        asyncio.run(site.release(orphan))
        assert disk.present().get(lease.id) is None


def test_a_disk_that_another_mount_namespace_has_a_copy_of_is_given_up(tmp_path: Path) -> None:
    """A command under `ip netns exec` has copies of all mounts. The device goes with it; the lease need not wait."""
    with leased(tmp_path, LOOPBACK, REQUEST) as (site, lease):
        private = ["unshare", "--mount", "--propagation", "private", "sleep", "60"]
        with subprocess.Popen(private) as holder:
            try:
                copies = Path(f"/proc/{holder.pid}/mountinfo")
                end = time.monotonic() + 5
                own = os.readlink("/proc/self/ns/mnt")
                while os.readlink(f"/proc/{holder.pid}/ns/mnt") == own and time.monotonic() < end:
                    time.sleep(0.01)
                assert str(lease.databases[0].folder) in copies.read_text()
                asyncio.run(site.release(lease))
                assert not lease.record.exists()
                assert disk_traces(lease.id, tmp_path) == []
            finally:
                holder.kill()


def test_copies_to_a_disk_of_its_own_are_written_and_not_in_memory(tmp_path: Path) -> None:
    """What a snapshot's files become on a node whose file system is another: copies that take no memory of the node."""
    source = tmp_path / "snapshot"
    source.mkdir()
    (source / "data.db").write_bytes(os.urandom(3 << 20))
    with leased(tmp_path / "state", LOOPBACK, REQUEST) as (_, lease):
        node = lease.databases[0]
        asyncio.run(files.clone(node, source, node.folder / "restored"))
        copy = node.folder / "restored" / "data.db"
        assert copy.read_bytes() == (source / "data.db").read_bytes()
        assert copy.stat().st_nlink == 1
        device = disk.device_of(node.folder)
        sectors = int((Path("/sys/block") / str(device) / "stat").read_text().split()[6])
        assert sectors * 512 >= 3 << 20


def test_nodes_get_cores_of_their_own(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    if cores < 2 or not cgroup.detect().has("cpuset"):
        pytest.skip("this machine has no two cores with controller cpuset")
    limits = NodeLimits(cpus=1, cpu_limit="cpuset")
    with leased(tmp_path, LOOPBACK, Request("cores", 2, 1, limits)) as (site, lease):
        every = [asyncio.run(run(node, ["nproc"], timeout_s=10)).stdout.strip() for node in lease.databases]
        assert every == [b"1", b"1"]
        facts = [asyncio.run(site.facts(node)) for node in lease.databases]
        assert [one["limit_cores"] for one in facts] == ["0", "1"]
        assert [one["limit_cpus"] for one in facts] == ["1", "1"]
    assert traces(lease.id, tmp_path) == []


def test_two_leases_do_not_share_cores_and_none_gets_one_that_this_process_may_not_use(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or not cgroup.detect().has("cpuset"):
        pytest.skip("this machine has no two cores with controller cpuset")
    request = Request("cores", 1, 1, NodeLimits(cpus=1, cpu_limit="cpuset"))
    namespaces = local.Settings(mode="namespaces")
    with leased(tmp_path, namespaces, request) as (site, first), leased(tmp_path, namespaces, request) as (_, second):
        bound = [asyncio.run(site.facts(lease.databases[0]))["limit_cores"] for lease in (first, second)]
    assert len(set(bound)) == 2
    os.sched_setaffinity(0, {cores[1]})
    try:
        with leased(tmp_path, namespaces, request) as (site, lease):
            assert asyncio.run(site.facts(lease.databases[0]))["limit_cores"] == str(cores[1])
            assert "2 x 1 whole cores" in (site.refuse(replace(request, database_nodes=2), None) or "")
    finally:
        os.sched_setaffinity(0, cores)


def gauged(lease: Lease, limits: NodeLimits) -> dict[str, float]:
    found = asyncio.run(gauge_nodes(lease.databases, limits, "before"))
    assert found.problems == {}
    return found.measured["n1"]


def test_the_gauge_measures_every_limit(tmp_path: Path) -> None:
    """That each limit bites, and on what; how exactly is a benchmark (benchmarks/limits.py)."""
    limits = NodeLimits(
        cpus=0.3, memory_mb=96, disk_gb=0.1, disk_read_mb_per_s=8, disk_write_mb_per_s=5, disk_read_ops_per_s=200,
        disk_write_ops_per_s=100,
    )  # fmt: skip
    with leased(tmp_path, LOOPBACK, Request("gauge", 1, 1, limits)) as (_, lease):
        measured = gauged(lease, limits)
    assert set(measured) == {
        "cpus", "work_per_cpu_s", "memory_mb", "disk_read_mb_per_s", "disk_write_mb_per_s", "disk_read_ops_per_s",
        "disk_write_ops_per_s",
    }  # fmt: skip
    assert 0 < measured["cpus"] < 0.6
    assert 60 < measured["memory_mb"] <= 96
    for field in ("disk_read_mb_per_s", "disk_write_mb_per_s", "disk_read_ops_per_s", "disk_write_ops_per_s"):
        assert 0 < measured[field] < 1.5 * getattr(limits, field), field


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (NodeLimits(swap_mb=10), "swap_mb = 10 has no effect without memory_mb"),
        (NodeLimits(cpu_limit="cpuset"), "cpu_limit = cpuset has no effect without cpus"),
        (NodeLimits(cpus=0.5, cpu_limit="cpuset"), "whole cores"),
        (NodeLimits(cpus=0.005), "a quota of less than 0.01 cannot be enforced"),
        (NodeLimits(memory_mb=10**8), "memory_mb = 100000000, but this machine has "),
    ],
)
def test_what_limits_nothing_is_refused(tmp_path: Path, limits: NodeLimits, reason: str) -> None:
    assert reason in (local.create(LOOPBACK, tmp_path).refuse(Request("s", 1, 1, limits), None) or "")
