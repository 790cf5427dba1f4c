"""`steelyard clean [SITE]`: find and remove what killed studies left behind."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import ValidationError
from rich.console import Console

from steelyard import plugin
from steelyard.cli import completion
from steelyard.cli.signature import Json
from steelyard.cli.terminal.output import message_console, say
from steelyard.format import count, listed
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError, SteelyardError, StudyError
from steelyard.model.value import Value
from steelyard.node.folders import STATE_VARIABLE, state_folder
from steelyard.plugin import Plugins, any_file
from steelyard.shown_text import json_text
from steelyard.site.base import Site

EXIT_DONE, EXIT_LABORATORY = 0, 3
NO_RECORD = "no record says whose it is"
OWN_FILE = "if it is a file of yours, name that: steelyard clean ./FILE.py"

HIDDEN = (
    "note: this is a mount namespace of its own, where records may be hidden: leases are judged by their owners, and "
    "what cannot be judged from here is left alone"
)


class Found(Value):
    """One lease that is left over, and what became of it."""

    site: str
    lease: str
    study: str
    reason: str
    """Why it counts as left over."""
    nodes: int
    """Nodes of both roles."""
    databases: int = 0
    """How many of them are database nodes; the others drive load."""
    processes: int
    outcome: Literal["found", "removed", "kept", "failed"]
    """found: only looked; kept: its owner lives, so it is not ours to end; failed: see `error`."""
    error: str = ""


def clean(
    sites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SITE",
            help="Sites to look at besides those that a record names; otherwise local.",
            autocompletion=completion.sites,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    as_json: Json = False,
) -> int:
    """Remove leftovers and say so; `as_json` puts data on stdout. Returns 0, or 3 if something could not be removed."""
    return asyncio.run(_clean(sites or ["local"], dry_run=dry_run, console=message_console(), as_json=as_json))


async def _clean(site_names: Sequence[str], *, dry_run: bool, console: Console, as_json: bool) -> int:
    named = [site for name in site_names if (site := _without_settings(name)) is not None]
    leases = await _sweep(named, dry_run=dry_run)
    elsewhere = lease_processes.left_elsewhere(state_folder(), lease_records.utc_now())
    if as_json:
        others = [{"lease": identity, "state_folder": str(folder)} for identity, folder in elsewhere.items()]
        print(json_text({"leases": [entry.model_dump() for entry in leases], "elsewhere": others}, indent=2))
    _say(leases, console)
    for identity, folder in elsewhere.items():
        say(console, f"lease {identity} is left over in {folder}: {command_elsewhere(identity, folder)}")
    if lease_register.hidden_files():
        say(console, HIDDEN)
    if not leases:
        say(console, f"nothing is left over in {state_folder()}: {_looked(site_names, [site.name for site in named])}")
    return EXIT_LABORATORY if any(entry.outcome == "failed" for entry in leases) else EXIT_DONE


def _looked(asked: Sequence[str], looked: Sequence[str]) -> str:
    """Where nothing was found: in the records, and at those sites that can be looked at without settings."""
    besides = f", and site {listed(looked)} found nothing besides" if looked else ""
    others = [name for name in asked if name not in looked]
    only = f"; of site {listed(others)} only records were read, since it needs settings" if others else ""
    return f"it has no record of a lease whose owner is gone, at any site{besides}{only}"


def _without_settings(name: str) -> Site | None:
    """The site with its default settings, to find what no record names; None if it has none, such as one that needs an
    inventory: its leases have records, which hold their settings. Raises StudyError for an unknown site."""
    try:
        return _site(Plugins(trust=any_file), name)
    except SiteError:
        return None


def command_elsewhere(identity: str, folder: Path) -> str:
    """The command that takes back a lease of another state folder."""
    return f"{STATE_VARIABLE}={shlex.quote(str(folder))} steelyard clean {lease_register.site_of(identity)}".rstrip()


async def reclaim(sites: Sequence[Site], *, console: Console) -> None:
    """Before a study on these sites: the same, silent if there is nothing. Raises SiteError if something could not be
    removed from one of them."""
    leases = await _sweep(sites, dry_run=False)
    _say([entry for entry in leases if entry.outcome != "kept"], console)
    names = {site.name for site in sites}
    if failed := [entry for entry in leases if entry.outcome == "failed" and entry.site in names]:
        raise SiteError(failed[0].error, "say `steelyard clean` when the cause is gone")


async def _sweep(sites: Sequence[Site], *, dry_run: bool) -> list[Found]:
    """Leases that a record of this state folder names, at whatever site with whatever settings; then what these sites
    find without a record."""
    state, now = state_folder(), lease_records.utc_now()
    by_path = {site.name: site for site in sites if site.name not in plugin.names("site")}
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
    gone = "; ".join(filter(None, (f"{NO_RECORD}: there is no {lease.record}", lease_processes.described(processes))))
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


def _nodes(entry: Found) -> str:
    """The nodes of a lease by role: `1 database node and 1 load node`."""
    roles = {"database node": entry.databases, "load node": entry.nodes - entry.databases}
    return listed([count(amount, role) for role, amount in roles.items() if amount]) or "no nodes"


def _say(leases: Sequence[Found], console: Console) -> None:
    for entry in leases:
        study = f"study {entry.study}, " if entry.study else ""
        size = f"{_nodes(entry)}, {count(entry.processes, 'process', 'processes')}"
        what = f"lease {entry.lease} of site {entry.site} ({study}{size})"
        line = {
            "found": f"left over: {what}: {entry.reason}",
            "removed": f"removed {what}: {entry.reason}",
            "kept": f"kept {what}: {entry.reason}, but its owner lives",
            "failed": f"could not remove {what}: {entry.error}",
        }[entry.outcome]
        say(console, line)
