"""`steelyard clean [SITE]`: find and remove what killed studies left behind."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from steelyard.cli import completion
from steelyard.cli.signature import Json
from steelyard.cli.terminal.output import message_console, say
from steelyard.format import listed
from steelyard.lab import leftovers
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.node.folders import STATE_VARIABLE, state_folder
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard clean --dry-run", "What is left over?"),
    ("steelyard clean", "Remove it."),
)
EXIT_DONE, EXIT_LABORATORY = 0, 3

HIDDEN = (
    "note: this is a separate mount namespace, where records may be hidden: leases are judged by their owners, and "
    "those that cannot be judged from here are left alone"
)


def clean(
    sites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SITE",
            help="Further sites to look at, in addition to those that a record names; local by default.",
            autocompletion=completion.sites,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    as_json: Json = False,
) -> int:
    """Remove leftovers and report them; `as_json` puts data on stdout. Returns 0, or 3 if something could not be
    removed."""
    return asyncio.run(_clean(sites or ["local"], dry_run=dry_run, console=message_console(), as_json=as_json))


async def _clean(site_names: Sequence[str], *, dry_run: bool, console: Console, as_json: bool) -> int:
    named = [site for name in site_names if (site := leftovers.without_settings(name)) is not None]
    leases = await leftovers.sweep(named, dry_run=dry_run)
    elsewhere = lease_processes.left_elsewhere(state_folder(), lease_records.utc_now())
    if as_json:
        others = [{"lease": identity, "state_folder": str(folder)} for identity, folder in elsewhere.items()]
        print(json_text({"leases": [entry.model_dump() for entry in leases], "elsewhere": others}, indent=2))
    for entry in leases:
        say(console, entry.line)
    for identity, folder in elsewhere.items():
        say(console, f"lease {identity} is left over in {folder}: {command_elsewhere(identity, folder)}")
    if lease_register.hidden_files():
        say(console, HIDDEN)
    if not leases:
        say(console, f"nothing is left over in {state_folder()}: {_looked(site_names, [site.name for site in named])}")
    return EXIT_LABORATORY if any(entry.outcome == "failed" for entry in leases) else EXIT_DONE


def _looked(asked: Sequence[str], looked: Sequence[str]) -> str:
    """Places where nothing was found: the records, and those sites that can be looked at without settings."""
    elsewhere = f", and site {listed(looked)} found nothing else" if looked else ""
    others = [name for name in asked if name not in looked]
    only = f"; of site {listed(others)} only records were read, since it needs settings" if others else ""
    return f"it has no record of a lease whose owner is gone, at any site{elsewhere}{only}"


def command_elsewhere(identity: str, folder: Path) -> str:
    """The command that takes back a lease of another state folder."""
    return f"{STATE_VARIABLE}={shlex.quote(str(folder))} steelyard clean {lease_register.site_of(identity)}".rstrip()
