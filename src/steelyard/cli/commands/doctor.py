"""`steelyard doctor`: check what this machine can do, and name the command or setting that fixes what it cannot.

The machine is examined first (`node/machine_findings.py`), then each engine, system and site says what it needs.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from steelyard.cli.commands.clean import command_elsewhere
from steelyard.cli.signature import Json
from steelyard.cli.terminal.output import data_console, say
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.model.errors import SteelyardError
from steelyard.model.finding import Diagnoses, Finding, failed, judged
from steelyard.node import machine_findings
from steelyard.node.command import run
from steelyard.node.folders import state_folder
from steelyard.plugins import find
from steelyard.plugins.parts import default_plug_in
from steelyard.shown_text import json_text
from steelyard.site.base import Request, Site

EXAMPLES = (
    ("steelyard doctor", "What this machine can do, and how to fix what it cannot."),
    ("steelyard doctor --site shelf.toml", "Can the machines of this inventory be used? Changes nothing there."),
    ("steelyard doctor --json", "The same as JSON."),
)
JSON_TYPE = tuple[Finding, ...]
EXIT_DONE, EXIT_LABORATORY = 0, 3
COMMAND_TIMEOUT_S = 10.0
SEAMS = ("engine", "system", "site")
DEFAULT_SITE = "local"
"""Asked first among the sites, and lends a node for a trial."""
MARKS = {"good": ("✓", "green"), "poor": ("!", "yellow"), "bad": ("✗", "red")}


def doctor(
    site: Annotated[
        Path | None,
        typer.Option(
            "--site",
            metavar="INVENTORY",
            help="Check the machines of an inventory of site ssh instead: TOML, or Ansible's host lines.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Look at everything and print it. Returns 0, or 3 if something is bad."""
    findings = list(_this_machine()) if site is None else _shelf(site)
    if as_json:
        print(json_text([finding.model_dump() for finding in findings], indent=2))
    else:
        console = data_console()
        for machine, its_findings in itertools.groupby(findings, key=lambda finding: finding.machine):
            if machine:
                say(console, Text(machine, style="bold underline"))
            for finding in its_findings:
                _print(finding, console)
    return EXIT_LABORATORY if any(finding.state == "bad" for finding in findings) else EXIT_DONE


def _this_machine() -> Iterator[Finding]:
    yield from machine_findings.of_this_machine()
    for seam, name in asked():
        yield from _said_by(seam, name)
    yield _lease_for_real()
    yield _leftovers()


def asked() -> list[tuple[str, str]]:
    """Seam and name of the plug-ins that are asked, in order."""
    named = [(seam, sorted(find.names(seam), key=lambda name: (name != DEFAULT_SITE, name))) for seam in SEAMS]
    return [(seam, name) for seam, names in named for name in names]


def _said_by(seam: str, name: str) -> Sequence[Finding]:
    """Findings of a plug-in, unless it needs settings or has no findings."""
    try:
        plug_in = default_plug_in(seam, name)
    except ValidationError:
        return ()  # it has settings without a default
    except (SteelyardError, ImportError) as error:
        return [Finding(name=f"{seam} {name}", state="poor", found=str(error), hint="fix or remove this plug-in")]
    return asyncio.run(plug_in.findings()) if isinstance(plug_in, Diagnoses) else ()


def _shelf(inventory: Path) -> Sequence[Finding]:
    """Findings about the machines of an inventory. Raises StudyError for a wrong inventory."""
    ssh = find.find("site", "ssh")
    site: Diagnoses = ssh.create(ssh.Settings(inventory=str(inventory)), state_folder())
    return asyncio.run(site.findings())


def _print(finding: Finding, console: Console) -> None:
    mark, colour = MARKS[finding.state]
    line = Text(f"{mark} ", style=colour)
    line.append(f"{finding.name:<12} ", style="bold")
    line.append(finding.found)
    say(console, line)
    if finding.hint:
        say(console, Text(f"{'':<15}{finding.hint}", style="dim"))


def _lease_for_real() -> Finding:
    """Lend one node and take it back: a test of function, not of installed programs."""
    name, module = f"site {DEFAULT_SITE}", find.find("site", DEFAULT_SITE)
    with tempfile.TemporaryDirectory(prefix="steelyard-doctor-") as folder:
        site: Site = module.create(module.Settings(), Path(folder))
        request = Request("doctor", 1, 1)
        if reason := site.refuse(request, None):
            return Finding(name=name, state="bad", found=reason, hint="see above")
        try:
            network, lent_s, returned_s = asyncio.run(_lend(site, request))
        except SteelyardError as error:
            return failed(name, error)
    shared = ", ".join(sorted(site.shares))
    text = f"{network}: 1 + 1 nodes leased in {lent_s:.2f} s, returned in {returned_s:.2f} s; they share {shared}"
    return Finding(name=name, state="good", found=text)


async def _lend(site: Site, request: Request) -> tuple[str, float, float]:
    """Link between the nodes of a lease, and the seconds of lending and of returning them."""
    begun = time.monotonic()
    lease = await site.lease(request, lease_records.utc_now() + timedelta(minutes=5))
    lent = time.monotonic()
    record = lease_records.read(lease.record)
    try:
        await run(lease.nodes[0], ["true"], timeout_s=COMMAND_TIMEOUT_S)
    finally:
        ran = time.monotonic()
        await site.release(lease)
    return record.network if record else "", lent - begun, time.monotonic() - ran


def _leftovers() -> Finding:
    """Leases of this state folder at any site, and those of others as far as they can be known."""
    state, now = state_folder(), lease_records.utc_now()
    site: Site = default_plug_in("site", DEFAULT_SITE)
    try:
        left = {lease.id for lease in asyncio.run(site.leftovers())}
        left |= {record.id for _, record in lease_records.records(state) if lease_records.abandoned(record, now)}
    except SteelyardError as error:
        return failed("leftovers", error, "poor")
    return leftovers(state, sorted(left), lease_processes.left_elsewhere(state, now))


def leftovers(state: Path, left: Sequence[str], elsewhere: Mapping[str, Path]) -> Finding:
    """Leases that are left over in this state folder, and in others: id -> folder."""
    texts = [f"{', '.join(left)} in {state}"] if left else []
    texts += [f"{identity} in {folder}" for identity, folder in elsewhere.items()]
    none = f"none in {state}, nor in other state folders that {lease_register.FOLDER} or a living process names"
    commands = ["steelyard clean"] if left else []
    commands += [command_elsewhere(identity, folder) for identity, folder in elsewhere.items()]
    return judged("leftovers", "; ".join(texts) or none, not texts, "; ".join(dict.fromkeys(commands)))
