"""Leftovers: leases whose owner is gone, found and released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from steelyard.format import count, listed
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError, SteelyardError, StudyError
from steelyard.model.value import Value
from steelyard.node.folders import state_folder
from steelyard.plugins import find
from steelyard.plugins.find import Plugins, any_file
from steelyard.site.base import Site

NO_RECORD = "no record says whose it is"
OWN_FILE = "if it is a file of yours, name that: steelyard clean ./FILE.py"


class Found(Value):
    """One lease that is left over, and what became of it."""

    site: str
    lease: str
    study: str
    reason: str
    """Reason why it counts as left over."""
    nodes: int
    """Nodes of both roles."""
    databases: int = 0
    """Database nodes among them; the others drive load."""
    processes: int
    outcome: Literal["found", "removed", "kept", "failed"]
    """found: only looked; kept: its owner lives, so it is not ours to end; failed: see `error`."""
    error: str = ""

    @property
    def line(self) -> str:
        """The leftover and what became of it, for people."""
        study = f"study {self.study}, " if self.study else ""
        roles = {"database node": self.databases, "load node": self.nodes - self.databases}
        nodes = listed([count(amount, role) for role, amount in roles.items() if amount]) or "no nodes"
        processes = count(self.processes, "process", "processes")
        what = f"lease {self.lease} of site {self.site} ({study}{nodes}, {processes})"
        return {
            "found": f"left over: {what}: {self.reason}",
            "removed": f"removed {what}: {self.reason}",
            "kept": f"kept {what}: {self.reason}, but its owner lives",
            "failed": f"could not remove {what}: {self.error}",
        }[self.outcome]


async def reclaim(sites: Sequence[Site], say: Callable[[str], None]) -> None:
    """Release what is left over before a study on these sites; silent without any. Raises SiteError if something
    could not be removed from one of them."""
    leases = await sweep(sites)
    for entry in leases:
        if entry.outcome != "kept":
            say(entry.line)
    names = {site.name for site in sites}
    if failed := [entry for entry in leases if entry.outcome == "failed" and entry.site in names]:
        raise SiteError(failed[0].error, "run `steelyard clean` when the cause is gone")


async def sweep(sites: Sequence[Site], *, dry_run: bool = False) -> list[Found]:
    """Leases that a record of this state folder names, at whatever site with whatever settings; then what these sites
    find without a record."""
    state, now = state_folder(), lease_records.utc_now()
    by_path = {site.name: site for site in sites if site.name not in find.names("site")}
    leases: dict[str, Found] = {}
    for path, record in lease_records.records(state):
        if lease_records.abandoned(record, now):
            lease = record.lease(path)
            try:
                site = by_path.get(record.site) or _site(Plugins(), record.site, record.settings)
                leases[record.id] = await _take_back(site, lease, dry_run=dry_run)
            except SteelyardError as error:
                what = f"{error.message}; {OWN_FILE}" if isinstance(error, StudyError) else error.message
                leases[record.id] = _described(lease).model_copy(update={"outcome": "failed", "error": what})
    for site in sites:
        for lease in await site.leftovers():
            if lease.id not in leases:
                leases[lease.id] = await _take_back(site, lease, dry_run=dry_run)
    return list(leases.values())


def _described(lease: Lease) -> Found:
    record = lease_records.read(lease.record)
    processes = lease_processes.of(lease.id)
    gone = "; ".join(
        filter(None, (f"{NO_RECORD}: {lease.record} does not exist", lease_processes.described(processes)))
    )
    return Found(
        site=lease.site,
        lease=lease.id,
        study=record.study if record else "",
        reason=lease_records.abandoned(record, lease_records.utc_now()) if record else gone,
        nodes=len(lease.nodes),
        databases=len(lease.databases),
        processes=len(processes),
        outcome="found",
    )


async def _take_back(site: Site, lease: Lease, *, dry_run: bool) -> Found:
    lease_found = _described(lease)
    if lease_records.owner_of(lease) is not None:
        return lease_found.model_copy(update={"outcome": "kept"})
    if dry_run:
        return lease_found
    try:
        await site.release(lease)
    except SteelyardError as error:
        return lease_found.model_copy(update={"outcome": "failed", "error": error.message})
    return lease_found.model_copy(update={"outcome": "removed"})


def _site(plugins: Plugins, name: str, asked: Mapping[str, Any] | None = None) -> Site:
    module = plugins.find("site", name)
    try:
        settings = module.Settings.model_validate(asked or {})
    except ValidationError as error:
        missing = ", ".join(str(problem["loc"][0]) for problem in error.errors() if problem["loc"])
        raise SiteError(f"site {name} cannot be cleaned without its settings: {missing}") from error
    site: Site = module.create(settings, state_folder())
    return site


def without_settings(name: str) -> Site | None:
    """The site with its default settings, to find what no record names; None if it has none, such as one that needs an
    inventory: its leases have records, which hold their settings. Raises StudyError for an unknown site."""
    try:
        return _site(Plugins(trust=any_file), name)
    except SiteError:
        return None
