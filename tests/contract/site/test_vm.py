"""Site `vm` keeps the contract of a site, and the simulated cluster that of a system on its nodes. A machine is what
was asked for, and nothing of it outlives its lease but its disk for data. One file, as machines run one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.lab import clocks
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.link.ping import measure_link
from steelyard.model.node_limits import NodeLimits
from steelyard.node import files, gauge
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.processor import census
from steelyard.site import vm
from steelyard.site.base import Request, Site, helpers_time_s
from steelyard.site.kernel import cgroup, network
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.vm import steps
from steelyard.testing.site import SiteContract
from tests.contract.site.killed_at_step import kill_at
from tests.contract.system import test_simulated
from tests.virtual_machines import image_or_skip

pytestmark = [pytest.mark.vm, pytest.mark.agent, pytest.mark.usefixtures("image")]

MEMORY_MB = 256
REQUEST = Request("contract", 1, 1)
TIMEOUT_S = 300.0


@pytest.fixture(scope="module")
def image() -> None:
    image_or_skip()


def traces(lease: Lease) -> list[str]:
    """What a lease has left beside its record and processes."""
    left = [str(group) for group in cgroup.present(cgroup.detect(), lease.id).get(lease.id, [])]
    left += network.present(lease.id).get(lease.id, [])
    left += [str(path) for path in ssh_connection.control_folder().glob(f"{lease.id}*")]
    folder = lease_records.nodes_folder(lease.record.parent.parent, lease.id)
    left += [str(folder)] if folder.exists() else []
    left += [f"process {pid}" for pid in lease_processes.of(lease.id)]
    return left + ([lease.id] if lease.id in lease_register.known() else [])


class TestVm(SiteContract):
    module = "vm"
    settings: ClassVar = {"default_memory_mb": MEMORY_MB}
    database_nodes = 1
    leases_at_once = False
    kill_moments = (0.1, 0.3, 0.7)
    # Machines boot slowly: below, one lease is for all tests that leave it as it was, and for its end.
    on_one_lease: ClassVar = (
        SiteContract.test_lends_what_was_asked,
        SiteContract.test_runs_commands,
        SiteContract.test_leases_twice,
        SiteContract.test_hands_a_lease_on,
        SiteContract.test_says_facts,
        SiteContract.test_releases_twice,
    )
    test_lends_what_was_asked = None  # type: ignore[assignment]
    test_runs_commands = None  # type: ignore[assignment]
    test_leases_twice = None  # type: ignore[assignment]
    test_hands_a_lease_on = None  # type: ignore[assignment]
    test_says_facts = None  # type: ignore[assignment]
    test_releases_twice = None  # type: ignore[assignment]
    test_gives_the_same_addresses_again = None  # type: ignore[assignment]
    """With the disk for data, below."""
    held: tuple[Site, Lease] | None = None

    def remains(self, lease: Lease) -> list[str]:
        return [*super().remains(lease), *traces(lease)]

    @contextmanager
    def _leased(self, state: Path) -> Iterator[tuple[Site, Lease]]:
        if self.held is not None:
            yield self.held
            return
        with super()._leased(state) as lent:
            yield lent

    def test_what_needs_no_lease_of_its_own(self, tmp_path: Path) -> None:
        with self._leased(tmp_path) as self.held:
            for test in self.on_one_lease:
                test(self, tmp_path)


@contextmanager
def leased(state: Path, request: Request = REQUEST) -> Iterator[tuple[Any, Lease]]:
    site = vm.create(vm.Settings(default_memory_mb=MEMORY_MB), state)
    lease = asyncio.run(site.lease(request, lease_records.utc_now() + timedelta(hours=1)))
    try:
        yield site, lease
    finally:
        asyncio.run(site.release(lease))
        assert traces(lease) == []


def test_a_machine_is_what_was_asked(tmp_path: Path) -> None:
    """Memory, processors, kernel, clock, network and account of its time."""
    request = replace(REQUEST, limits=NodeLimits(memory_mb=320, cpus=2.0))
    with leased(tmp_path, request) as (site, lease):
        (node,), (loader,) = lease.databases, lease.loaders
        facts = asyncio.run(site.facts(node))
        assert 0.8 * 320 < int(facts["memory_mb"]) <= 320
        assert (facts["cores"], facts["vm_processors"], facts["vm_memory_mb"]) == ("2", "2", "320")
        asked, measured = asyncio.run(gauge.gauge(node, request.limits))
        assert asked == {"cpus": 2.0, "machine_memory_mb": 320.0}
        assert measured["machine_memory_mb"] == pytest.approx(320, abs=2)
        assert facts["vm_accelerator"] in ("kvm", "tcg")
        assert facts["vm_accelerator_reason"]
        assert facts["vm_emulator"].startswith("QEMU ")
        assert facts["kernel"] != asyncio.run(site.facts(loader))["kernel"]
        read = asyncio.run(run(node, ["cat", "/proc/sys/kernel/random/boot_id"], timeout_s=20.0))
        assert read.stdout.decode().strip() != lease_records.boot_id()
        (offset,) = asyncio.run(clocks.read(lease.nodes)).values()
        # On a busy machine an emulated one falls behind by a second and more.
        assert abs(offset.offset_s) < (1.0 if facts["vm_accelerator"] == "kvm" else 10.0)
        assert asyncio.run(measure_link(loader, node))["rtt_ms_min"] < 1000
        before = helpers_time_s([site], census())
        asyncio.run(run(node, ["sh", "-c", "for i in $(seq 20000); do :; done"], timeout_s=60.0))
        assert helpers_time_s([site], census()) > before
        asyncio.run(_stranger_is_refused(tmp_path, lease))


async def _stranger_is_refused(state: Path, lease: Lease) -> None:
    """A machine with another key than the one that was made for it."""
    (node,) = lease.databases
    connection = steps.connection_of(state, lease.id, node)
    await connection.close()
    folder = lease_records.nodes_folder(state, lease.id)
    known, genuine = folder / "known_hosts", (folder / "known_hosts").read_text()
    other = " ".join((folder / "key.pub").read_text().split()[:2])
    known.write_text(f"{node.address} {other}\n")
    with pytest.raises(ssh_connection.Unreachable, match="its key has changed"):
        await connection.shell("true")
    known.write_text(genuine)
    assert (await connection.shell("true")).exit_code == 0


def test_the_disk_for_data_and_the_addresses_outlive_the_lease_and_its_nodes_do_not(tmp_path: Path) -> None:
    content = tmp_path.name.encode()
    with leased(tmp_path) as (_, first):
        (node,) = first.databases
        assert node.cache is not None
        asyncio.run(files.put(node, node.cache / "contract" / "kept", content))
        asyncio.run(files.put(node, node.folder / "data", content))
    with leased(tmp_path) as (_, second):
        assert [node.address for node in first.nodes] == [node.address for node in second.nodes]
        (node,) = second.databases
        assert node.cache is not None
        assert asyncio.run(files.read(node, node.cache / "contract" / "kept")) == content
        assert set(asyncio.run(files.sizes(node, node.cache / "nodes"))) == set()
        asyncio.run(files.remove(node, node.cache / "contract", below=node.cache))


@pytest.mark.parametrize("step", ["record", "files", "network", "machines"])
def test_a_conductor_that_is_killed_at_a_step_leaves_nothing(tmp_path: Path, step: str) -> None:
    kill_at(step, "vm", vm.Settings(default_memory_mb=256), Request("victim", 1, 1), tmp_path)
    site = vm.create(vm.Settings(), tmp_path)
    (left,) = [lease for lease in asyncio.run(site.leftovers()) if lease.record.exists()]
    assert steps.runs(left.id, "n1") == (step == "machines")
    asyncio.run(site.release(left))
    assert traces(left) == []
    assert lease_processes.of(left.id) == set()
    assert not left.record.exists()


@pytest.fixture(scope="class")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lease]:
    """One machine for all tests, because it takes long to boot."""
    site = vm.create(vm.Settings(default_memory_mb=MEMORY_MB), tmp_path_factory.mktemp("vm"))
    lease = asyncio.run(site.lease(Request("contract", 1, 1), lease_records.utc_now() + timedelta(hours=1)))
    try:
        yield lease
    finally:
        asyncio.run(site.release(lease))


class TestSimulatedCluster(test_simulated.TestOneNode):
    """Each test has a folder of its own on the machine; rows are written and counted from the load node."""

    module = "simulated"
    lease: ClassVar[Lease]

    @pytest.fixture(autouse=True)
    def on_the_machine(self, lent: Lease, tmp_path: Path) -> Iterator[None]:
        (node,) = lent.databases
        own = replace(node, folder=node.folder / tmp_path.name)
        type(self).lease = replace(lent, nodes=(own, *lent.loaders))
        asyncio.run(files.make_folders(own, own.folder))
        yield
        asyncio.run(run(node, [node.agent, "sweep", "--lease", lent.id], timeout_s=60.0, check=False))

    def nodes(self, tmp_path: Path) -> tuple[Node, ...]:
        return self.lease.databases

    def client(self) -> Node | None:
        return self.lease.loaders[0]
