"""Contract tests of a site; authors of sites inherit them.

    class TestMySite(SiteContract):
        module = "my-site"              # module name, entry point or path, as in a study
        settings = {"rack": "b"}

The tests kill a real conductor: a child process leases, starts a process on a node, and is killed with SIGKILL. Run
as a program, this module is that child.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError
from steelyard.node import files, kept
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.kept import Kept
from steelyard.plugins import find
from steelyard.site.base import EstimatesLeaseTimes, Request, Reuses, Site
from steelyard.testing.findings import check_findings

COMMAND_TIMEOUT_S = 20.0
VICTIM_TIMEOUT_S = 60.0
SLEEP_S = "600"
KILL_MOMENTS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05)


def make_site(module: str, settings: Mapping[str, Any], state: Path) -> Site:
    """The site that a study with these settings would get."""
    site_plugin = find.find("site", module)
    site: Site = site_plugin.create(site_plugin.Settings(**settings), state)
    return site


class SiteContract:
    """Inherit it and set `module`; override `remains` to look for everything else that your site creates."""

    module: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    database_nodes: ClassVar[int] = 2
    load_nodes: ClassVar[int] = 1
    leases_at_once: ClassVar[bool] = True
    """Whether two leases can be held at the same time."""
    same_addresses: ClassVar[bool] = True
    """Whether a node's name has the same address in every lease. What outlives a lease, such as snapshots, needs it."""
    kill_moments: ClassVar[Sequence[float]] = KILL_MOMENTS
    """When the conductor is killed, as fractions of the time that a lease takes."""

    def remains(self, lease: Lease) -> list[str]:
        """All remains of a lease; must be empty after its release."""
        places = [lease.record, *(node.folder for node in lease.nodes if node.files == "same")]
        left = [str(place) for place in places if place.exists()]
        return left + [f"process {pid}" for pid in lease_processes.of(lease.id)]

    def request(self) -> Request:
        """The request of the tests."""
        return Request("contract", self.database_nodes, self.load_nodes)

    def test_lends_what_was_asked(self, tmp_path: Path) -> None:
        """Names, roles, addresses and empty folders are right, and the lease is recorded."""
        with self._leased(tmp_path) as (site, lease):
            names = [f"n{index + 1}" for index in range(self.database_nodes)]
            assert [node.name for node in lease.databases] == names
            assert [node.name for node in lease.loaders] == [f"l{index + 1}" for index in range(self.load_nodes)]
            assert len({node.address for node in lease.nodes}) == len(lease.nodes)
            assert len({node.folder for node in lease.nodes}) == len(lease.nodes)
            assert all(asyncio.run(files.sizes(node, node.folder)) == {} for node in lease.nodes)
            for node in lease.nodes:
                # A mount may hide the folder from the node itself.
                argv = ["stat", "-c", "%a", str(node.folder.parent)]
                done = asyncio.run(run(None if node.files == "same" else node, argv, timeout_s=COMMAND_TIMEOUT_S))
                assert done.stdout.split() == [b"700"], f"other accounts can enter the folders of {node.name}"
            assert lease.record.exists()
            assert lease.site == site.name
            assert _recorded(site) == []

    def test_runs_commands(self, tmp_path: Path) -> None:
        """Commands run through both prefixes, carry the lease's mark, and give their own exit code."""
        with self._leased(tmp_path) as (_, lease):
            for watch in (False, True):
                done = asyncio.run(run(lease.nodes[0], ["env"], timeout_s=COMMAND_TIMEOUT_S, watch=watch))
                assert all(
                    f"{key}={value}" in done.stdout.decode() for key, value in lease.nodes[0].environment.items()
                )
                argv = ["sh", "-c", "exit 7"]
                failed = asyncio.run(run(lease.nodes[0], argv, timeout_s=COMMAND_TIMEOUT_S, watch=watch, check=False))
                assert failed.exit_code == 7

    def test_leases_twice(self, tmp_path: Path) -> None:
        """A second lease gets the same addresses, others if names may have others, or is refused with a reason."""
        with self._leased(tmp_path) as (site, first):
            if not self.leases_at_once:
                refusal = _refusal(site, self.request())
                assert "contract" in refusal
                return
            second = asyncio.run(site.lease(self.request(), _in_an_hour()))
            try:
                assert first.id != second.id
                pairs = zip(first.nodes, second.nodes, strict=True)
                assert all((one.address == other.address) == self.same_addresses for one, other in pairs)
                assert not {node.folder for node in first.nodes} & {node.folder for node in second.nodes}
            finally:
                asyncio.run(site.release(second))
            assert self.remains(second) == []
            assert first.record.exists()

    def test_gives_the_same_addresses_again(self, tmp_path: Path) -> None:
        """Snapshots contain the addresses of their nodes, so the next lease must have them, too."""
        if not self.same_addresses:
            return
        with self._leased(tmp_path) as (_, first):
            pass
        with self._leased(tmp_path) as (_, second):
            assert [node.address for node in first.nodes] == [node.address for node in second.nodes]

    def test_releases_twice(self, tmp_path: Path) -> None:
        """Release removes running processes and files, and a second release finds nothing to do."""
        with self._leased(tmp_path) as (site, lease):
            asyncio.run(_use_and_release(site, lease))
            assert self.remains(lease) == []
            asyncio.run(site.release(lease))
            assert self.remains(lease) == []

    def test_hands_a_lease_on(self, tmp_path: Path) -> None:
        """A site that `Reuses` hands on the same nodes, empty and with nothing running, and records the new end of the
        lease; it does not hand on nodes that cannot fulfil the request."""
        with self._leased(tmp_path) as (site, lease):
            if not isinstance(site, Reuses):
                return
            pids = asyncio.run(_use(lease))
            later = _in_an_hour() + timedelta(hours=1)
            handed_on = asyncio.run(site.recycle(lease, self.request(), later))
            assert handed_on is not None
            assert (handed_on.id, handed_on.record, handed_on.until) == (lease.id, lease.record, later)
            assert handed_on.nodes == lease.nodes
            record = lease_records.read(lease.record)
            assert record is not None
            assert record.until == later
            for node, pid in zip(handed_on.nodes, pids, strict=True):
                assert asyncio.run(files.sizes(node, node.folder)) == {}
                assert not asyncio.run(_runs(node, pid))
            larger = Request("contract", 100_000, self.load_nodes)
            assert asyncio.run(site.recycle(lease, larger, later)) is None

    def test_says_facts(self, tmp_path: Path) -> None:
        """Facts are text about the node; the address is among them."""
        with self._leased(tmp_path) as (site, lease):
            facts = asyncio.run(site.facts(lease.nodes[0]))
            assert facts["address"] == lease.nodes[0].address
            assert all(isinstance(value, str) and value for value in facts.values())

    def test_says_how_long_lending_takes(self, tmp_path: Path) -> None:
        """Estimated times, if any, are usable by a plan."""
        site = make_site(self.module, self.settings, tmp_path)
        if isinstance(site, EstimatesLeaseTimes):
            times = site.times(self.request())
            assert times == site.times(self.request())
            assert min(times.lease_s, times.release_s) >= 0

    def test_says_what_it_needs(self, tmp_path: Path) -> None:
        """A site that `Diagnoses` reports what is there, and gives a hint for the rest."""
        check_findings(make_site(self.module, self.settings, tmp_path))

    def test_refuses_too_many_nodes(self, tmp_path: Path) -> None:
        """A request that cannot be met is refused before anything is created."""
        site = make_site(self.module, self.settings, tmp_path)
        request = Request("contract", 100_000, 1)
        assert site.refuse(request, None)
        assert _refusal(site, request)
        assert list(tmp_path.rglob("*.json")) == []

    def test_expired_lease_is_left_over(self, tmp_path: Path) -> None:
        """A lease has an end, even if its owner is alive."""
        site = make_site(self.module, self.settings, tmp_path)
        lease = asyncio.run(site.lease(self.request(), lease_records.utc_now() - timedelta(seconds=1)))
        try:
            assert [left.id for left in _recorded(site)] == [lease.id]
        finally:
            asyncio.run(site.release(lease))
        assert _recorded(site) == []

    def test_killed_while_it_uses_the_lease(self, tmp_path: Path) -> None:
        """A conductor that dies by SIGKILL leaves a lease that is found and completely taken back."""
        with _victim(self, tmp_path) as child:
            assert _line(child) == "ready"
            assert _line(child).startswith("leased ")
            sleeper = int(_line(child).removeprefix("spawned "))
            os.kill(child.pid, signal.SIGKILL)
        if sleeper:
            assert Path(f"/proc/{sleeper}").exists()
        assert len(self._clean_up(tmp_path)) == 1

    def test_killed_at_any_moment(self, tmp_path: Path) -> None:
        """The record is written first: whenever the conductor dies, everything that it created is found."""
        begun = time.monotonic()
        with self._leased(tmp_path):
            duration_s = time.monotonic() - begun
        for part in self.kill_moments:
            with _victim(self, tmp_path) as child:
                assert _line(child) == "ready"
                time.sleep(part * duration_s)
                os.kill(child.pid, signal.SIGKILL)
            self._clean_up(tmp_path)

    @contextmanager
    def _leased(self, state: Path) -> Iterator[tuple[Site, Lease]]:
        site = make_site(self.module, self.settings, state)
        lease = asyncio.run(site.lease(self.request(), _in_an_hour()))
        try:
            yield site, lease
        finally:
            asyncio.run(site.release(lease))
        assert self.remains(lease) == []

    def _clean_up(self, state: Path) -> Sequence[Lease]:
        """Release the leases of a dead conductor in this state folder, and check that nothing remains."""
        site = make_site(self.module, self.settings, state)
        leases = _recorded(site)
        for lease in leases:
            asyncio.run(site.release(lease))
            if lease_processes.of(lease.id):
                # Forked before the death, it had no mark before it executed its program: the next `clean` finds it.
                asyncio.run(site.release(lease))
            assert self.remains(lease) == []
        assert _recorded(site) == []
        assert list((state / "leases").glob("*.json")) == []
        return leases


def _in_an_hour() -> datetime:
    return lease_records.utc_now() + timedelta(hours=1)


def _recorded(site: Site) -> list[Lease]:
    """Leftovers in this state folder only; the machine may have others."""
    return [lease for lease in asyncio.run(site.leftovers()) if lease.record.exists()]


def _refusal(site: Site, request: Request) -> str:
    try:
        lease = asyncio.run(site.lease(request, _in_an_hour()))
    except SiteError as error:
        return error.message
    asyncio.run(site.release(lease))
    raise AssertionError(f"site {site.name} lent what it should have refused: {request}")


async def _use_and_release(site: Site, lease: Lease) -> None:
    await _use(lease)
    await site.release(lease)


async def _use(lease: Lease) -> list[int]:
    """Start a process and write a file on every node; the ids of the processes, as the nodes' kernels name them."""
    pids = []
    for node in lease.nodes:
        pids.append((await _sleeper(node)).pid)
        await files.put(node, node.folder / "data", b"x")
    return pids


async def _runs(node: Node, pid: int) -> bool:
    """Whether a process of the node's kernel is alive; a zombie is not."""
    texts = await files.texts(node, Path(f"/proc/{pid}/stat"))
    return any(text.rpartition(")")[2].split()[0] not in "ZX" for text in texts.values())


async def _start_sleeper(node: Node) -> int:
    """Id of a process that outlives the conductor; 0 if it is not a process of this machine."""
    server = await _sleeper(node)
    return server.pid if node.processes == "same" else 0


async def _sleeper(node: Node) -> Kept:
    record = node.folder / "sleeper.json"
    await kept.launch(node, ["sleep", SLEEP_S], record)
    server = await kept.living(node, record)
    assert server is not None
    return server


@contextmanager
def _victim(contract: SiteContract, state: Path) -> Iterator[subprocess.Popen[str]]:
    """A conductor that will be killed."""
    asked = json.dumps([contract.module, dict(contract.settings), contract.database_nodes, contract.load_nodes])
    argv = [sys.executable, "-m", "steelyard.testing.site", str(state), asked]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()
            child.wait(VICTIM_TIMEOUT_S)


def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


async def _be_victim(state: Path, asked: str) -> None:
    """Lease, start a process on every node, report it, and wait for the end."""
    module, settings, database_nodes, load_nodes = json.loads(asked)
    site = make_site(module, settings, state)
    print("ready", flush=True)
    lease = await site.lease(Request("victim", database_nodes, load_nodes), _in_an_hour())
    print(f"leased {lease.id}", flush=True)
    pids = [await _start_sleeper(node) for node in lease.nodes]
    print(f"spawned {pids[0]}", flush=True)
    await asyncio.sleep(VICTIM_TIMEOUT_S)


if __name__ == "__main__":
    asyncio.run(_be_victim(Path(sys.argv[1]), sys.argv[2]))
