"""Every disruption that is shipped keeps the contract of a disruption."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.disruption import disk_slow, packet
from steelyard.disruption._maintenance import Maintenance
from steelyard.disruption.base import Disruption, Stage
from steelyard.disruption.disk_slow import DiskSlow
from steelyard.disruption.partition import Partition, Settings
from steelyard.leases.records import MARKER, utc_now
from steelyard.model.errors import SystemFault
from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.site import local
from steelyard.site.base import Request
from steelyard.site.kernel import cgroup, disk
from steelyard.testing.disruption import FOR_S, LEASE, DisruptionContract, SleepingServers, holding, left

pytestmark = pytest.mark.agent


class Maintained(DisruptionContract):
    """Ends once it is done."""

    least_s = FOR_S / 2


class TestCompaction(Maintained):
    module = "compaction"


class TestCleanup(Maintained):
    module = "cleanup"


class TestRepair(Maintained):
    module = "repair"


class TestFlush(Maintained):
    module = "flush"


class TestNone(DisruptionContract):
    module = "none"


class TestNoop(DisruptionContract):
    module = "noop"


class TestKill(DisruptionContract):
    module = "kill"


class TestPause(DisruptionContract):
    module = "pause"


class TestStressCpu(DisruptionContract):
    module = "stress-cpu"


class TestStressMemory(DisruptionContract):
    module = "stress-memory"
    settings: ClassVar = {"mb": 16}


@pytest.mark.root
class TestDiskFull(DisruptionContract):
    module = "disk-full"
    settings: ClassVar = {"free_mb": 1}

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """A disk of its own."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", tmp_path], check=True)
        yield tmp_path
        subprocess.run(["umount", tmp_path], check=True)


LIMITS = NodeLimits(disk_gb=0.05, disk_read_mb_per_s=7)
RATES = ("limit_disk_read_bytes_per_s", "limit_disk_write_bytes_per_s")


@contextlib.contextmanager
def lent(folder: Path, number: int = 3) -> Iterator[tuple[local.LocalSite, list[Node]]]:
    """Nodes of site `local` with a disk of their own, which disruptions find by the mark of these tests."""
    if why := disk.lacking(cgroup.detect(), LIMITS):
        pytest.skip(f"this machine has no disks to lend: {why}")
    site = local.create(local.Settings(mode="namespaces"), folder)
    lease = asyncio.run(site.lease(Request("slow", number, 1, LIMITS), utc_now() + timedelta(hours=1)))
    try:
        yield site, [replace(node, environment={**node.environment, MARKER: LEASE}) for node in lease.databases]
    finally:
        asyncio.run(site.release(lease))


@pytest.mark.root
class TestDiskSlow(DisruptionContract):
    """On disks of site `local`."""

    module = "disk-slow"
    settings: ClassVar = {"write_mb_per_s": 2}
    lent: tuple[local.LocalSite, list[Node]]

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """With the nodes."""
        with lent(tmp_path) as self.lent:
            yield tmp_path

    def nodes(self, folder: Path) -> list[Node]:
        return self.lent[1]

    def site(self) -> local.LocalSite:
        return self.lent[0]


async def rates(site: local.LocalSite, nodes: list[Node]) -> list[list[str]]:
    """Of reading and of writing, as the kernel says them."""
    facts = [await site.facts(node) for node in nodes]
    return [[each[name] for name in RATES] for each in facts]


@pytest.mark.root
def test_a_disk_is_slow_while_it_lasts_and_then_as_the_study_limits_it(tmp_path: Path) -> None:
    before, both = ["7000000", "none"], {"read_mb_per_s": 0.5, "write_mb_per_s": 2}

    async def held(disruption: Disruption, *, kill: bool) -> None:
        async with holding(disruption, stage):
            assert await rates(site, nodes) == [["500000", "2000000"], before]
            for record in left() if kill else ():
                os.kill(json.loads(record.read_text())["holder"]["pid"], signal.SIGKILL)
            while kill and left():  # noqa: ASYNC110 - a record has no event
                await asyncio.sleep(0.1)
            assert await rates(site, nodes) == [before if kill else ["500000", "2000000"], before]

    with lent(tmp_path, 2) as (site, nodes):
        stage = stage_of(nodes[:1], nodes)._replace(site=site, limits=LIMITS)
        for kill in (False, True):
            asyncio.run(held(DiskSlow(disk_slow.Settings.model_validate(both)), kill=kill))
            assert asyncio.run(rates(site, nodes)) == [before, before]


@pytest.mark.root
@pytest.mark.nft
class TestPartition(DisruptionContract):
    """In three networks on a bridge, over which each node hears the others."""

    module = "partition"

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """With the networks."""
        with networks(3):
            yield tmp_path

    def nodes(self, folder: Path) -> list[Node]:
        return members(folder, 3)


@pytest.mark.root
@pytest.mark.nft
class TestPacket(TestPartition):
    module = "packet"
    settings: ClassVar = {"loss_percent": 5, "rate_mbit": 10}


NAMESPACE = f"cut-{LEASE}"
SUBNET = "10.99.0"


@contextlib.contextmanager
def networks(number: int) -> Iterator[None]:
    """Network namespaces of nodes, joined by a bridge in another one; their names end with the number of the node."""
    names = [f"{NAMESPACE}-{place}" for place in range(number + 1)]
    lines = [f"netns add {name}" for name in names]
    lines += [f"-n {names[0]} link add br0 type bridge", f"-n {names[0]} link set br0 up"]
    for place, name in enumerate(names[1:], start=1):
        lines += [
            f"-n {name} link add eth0 type veth peer name p{place} netns {names[0]}",
            f"-n {names[0]} link set p{place} master br0 up",
            f"-n {name} address add {SUBNET}.{place}/24 dev eth0", f"-n {name} link set eth0 up",
            f"-n {name} link set lo up",
        ]  # fmt: skip
    try:
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def members(folder: Path, number: int) -> list[Node]:
    def prefix(place: int) -> tuple[str, ...]:
        return (str(agent.find()), "enter", "--netns", f"/run/netns/{NAMESPACE}-{place}", "--")

    return [
        Node(f"n{place}", "database", f"{SUBNET}.{place}", prefix(place), folder, environment={MARKER: LEASE})
        for place in range(1, number + 1)
    ]


def stage_of(targets: Sequence[Node], nodes: Sequence[Node], for_s: float = 60.0) -> Stage:
    return Stage(SleepingServers(), targets, nodes, for_s, lambda *_: None)  # type: ignore[arg-type]


def listening(place: int) -> socket.socket:
    """A socket in the network of a node."""
    found: list[socket.socket] = []

    def enter() -> None:
        # A thread may leave its network; the others stay.
        with open(f"/run/netns/{NAMESPACE}-{place}", "rb") as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0):
                raise OSError(ctypes.get_errno(), "setns")
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((f"{SUBNET}.{place}", 7000))
        made.settimeout(0.05)
        found.append(made)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return found[0]


def joined(sockets: list[socket.socket]) -> set[tuple[int, int]]:
    """All pairs, once each node reaches each other one: on a busy machine, a bridge forwards after a while."""
    everyone = {(a, b) for a in range(1, len(sockets) + 1) for b in range(1, len(sockets) + 1)}
    deadline_s = time.monotonic() + 30
    while heard(sockets) != everyone:
        assert time.monotonic() < deadline_s
    # Packets that had waited for an address come now.
    heard(sockets)
    return everyone


def heard(sockets: list[socket.socket]) -> set[tuple[int, int]]:
    """Pairs of nodes of which the first reaches the second, in one packet."""
    pairs = set()
    for place, sender in enumerate(sockets, start=1):
        for other in range(1, len(sockets) + 1):
            # A filter on the way out says so.
            with contextlib.suppress(PermissionError):
                sender.sendto(str(place).encode(), (f"{SUBNET}.{other}", 7000))
    for place, receiver in enumerate(sockets, start=1):
        with contextlib.suppress(TimeoutError):
            while True:
                pairs.add((int(receiver.recv(10)), place))
    return pairs


@pytest.mark.root
@pytest.mark.nft
@pytest.mark.parametrize(
    ("number", "targets", "direction", "lost"),
    [
        (3, [1], "both", {(1, 2), (1, 3), (2, 1), (3, 1)}),
        (3, [1], "to", {(2, 1), (3, 1)}),
        (3, [1], "from", {(1, 2), (1, 3)}),
        (5, [2, 4], "both", {pair for t in (2, 4) for o in (1, 3, 5) for pair in ((t, o), (o, t))}),
        (5, [1, 2, 3], "both", {pair for t in (1, 2, 3) for o in (4, 5) for pair in ((t, o), (o, t))}),
        (5, [1, 2, 3, 4, 5], "both", {(a, (a + way - 1) % 5 + 1) for a in range(1, 6) for way in (2, 3)}),
    ],
    ids=["one", "to one", "from one", "minority", "majority", "ring"],
)
def test_exactly_the_packets_between_the_sides_are_lost_while_it_lasts(
    tmp_path: Path, number: int, targets: list[int], direction: str, lost: set[tuple[int, int]]
) -> None:
    nodes = members(tmp_path, number)
    stage = stage_of([nodes[place - 1] for place in targets], nodes)

    async def held() -> set[tuple[int, int]]:
        async with holding(Partition(Settings.model_validate({"direction": direction})), stage):
            return heard(sockets)

    with networks(number), contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(listening(place)) for place in range(1, number + 1)]
        everyone = joined(sockets)
        assert everyone - asyncio.run(held()) == lost
        assert heard(sockets) == everyone


@pytest.mark.root
@pytest.mark.nft
@pytest.mark.parametrize(("targets", "lossy"), [([1], {1}), ([1, 2, 3], {1, 2, 3})], ids=["one", "all"])
def test_a_share_of_the_packets_is_lost(tmp_path: Path, targets: list[int], lossy: set[int]) -> None:
    """Each once, also where both ends are targets."""
    packets = 400
    nodes = members(tmp_path, 3)
    stage = stage_of([nodes[place - 1] for place in targets], nodes)

    async def received() -> Counter[int]:
        found = Counter[int]()
        async with holding(packet.Packet(packet.Settings(loss_percent=20)), stage):
            for _ in range(packets):
                for place in (1, 3):
                    with contextlib.suppress(PermissionError):
                        sockets[place - 1].sendto(str(place).encode(), (f"{SUBNET}.2", 7000))
                with contextlib.suppress(TimeoutError):
                    found.update(int(sockets[1].recv(10)) for _ in range(2))
        return found

    with networks(3), contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(listening(place)) for place in (1, 2, 3)]
        joined(sockets)
        found = asyncio.run(received())
    for place in (1, 3):
        share = 0.8 if {place, 2} & lossy else 1.0
        assert found[place] / packets == pytest.approx(share, abs=0.1)


def test_in_a_ring_every_node_sees_a_majority_and_no_two_the_same() -> None:
    peers = Partition(Settings()).peers
    for number in range(4, 12):
        names = [f"n{place}" for place in range(number)]
        seen = [frozenset(names) - frozenset(peers(name, names, names)) for name in names]
        assert all(name in group and 2 * len(group) > number for name, group in zip(names, seen, strict=True))
        assert len(set(seen)) == number
    assert peers("n1", ["n1", "n2", "n3"], ["n1", "n2", "n3"]) == []


REUSED = 100
LAST_ID = Path("/proc/sys/kernel/ns_last_pid")


def born_as(pid: int) -> subprocess.Popen[bytes] | None:
    """A process of this id; None if another one has it."""
    while not Path(f"/proc/{pid}").exists():
        LAST_ID.write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "600"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    return None


@pytest.mark.root
def test_processes_with_the_ids_of_paused_ones_are_never_signalled() -> None:
    """Whether a pause is let go or its holder is killed."""
    if not LAST_ID.exists():
        pytest.skip("this kernel does not let anybody choose the next process id")
    program, pipe = str(agent.find()), subprocess.PIPE
    former = [subprocess.Popen(["sleep", "600"]) for _ in range(REUSED)]
    ids = [f"--pid={process.pid}" for process in former]
    identified = subprocess.run([program, "disrupt", "identify", *ids], stdout=pipe, check=True).stdout
    named = json.loads(identified)
    words = [program, "disrupt", "pause", "--lease", LEASE, "--for-s", "600"]
    words += ["--boot-id", named["boot_id"], "--process"]
    holders = [subprocess.Popen([*words, process], stdin=pipe, stdout=pipe) for process in named["processes"]]
    later: list[subprocess.Popen[bytes]] = []
    try:
        for holder in holders:
            assert holder.stdout is not None
            assert b"began" in holder.stdout.readline()
        for process in former:
            process.kill()
            process.wait()
        later += filter(None, (born_as(process.pid) for process in former))
        for process in later:
            process.send_signal(signal.SIGSTOP)
        for number, holder in enumerate(holders):
            if number % 2:
                holder.kill()
            holder.communicate()
        deadline_s = time.monotonic() + 60
        while left():
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        assert len(later) > REUSED / 2
        stats = [Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8") for process in later]
        assert {stat.rpartition(")")[2].split()[0] for stat in stats} == {"T"}
    finally:
        for process in (*former, *holders, *later):
            process.kill()
            process.wait()


@pytest.mark.parametrize("task", ["compaction", "cleanup", "repair", "flush"])
def test_maintenance_is_asked_of_the_targets_and_ends_in_its_time(tmp_path: Path, task: str) -> None:
    nodes, system = members(tmp_path, 3), SleepingServers()
    stage = stage_of(nodes[:2], nodes)._replace(system=system)  # type: ignore[arg-type]
    asyncio.run(Maintenance(task).hold(stage))
    assert sorted(system.maintained) == [("n1", task), ("n2", task)]
    with pytest.raises(SystemFault, match=rf"its {task} is not done after 0.01 s"):
        asyncio.run(Maintenance(task).hold(stage._replace(for_s=0.01)))
