"""`steelyard doctor`: check what this machine can do, and name the command or setting that mends what it cannot."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from steelyard.cli import docker_findings, limit_findings, link_findings, shelf_findings, vm_findings
from steelyard.cli.commands.calibrate import doubts
from steelyard.cli.commands.clean import command_elsewhere
from steelyard.cli.finding import Finding, judged
from steelyard.cli.signature import Json
from steelyard.cli.terminal.output import data_console, say
from steelyard.format import data_size
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.model.errors import SteelyardError
from steelyard.node import agent, calibration, machine_facts
from steelyard.node.command import run
from steelyard.node.folders import cache_folder, state_folder
from steelyard.shown_text import json_text
from steelyard.site import _inventory, _ssh_survey, local
from steelyard.site.base import Request

EXIT_DONE, EXIT_LABORATORY = 0, 3
STEAL_WINDOW_S = 0.5
STEAL_LIMIT_FRACTION = 0.1
"""As the default limit of a trial's verdict."""
VERSION_TIMEOUT_S = 10.0
LEAST_DISK_GB = 5.0
LEAST_MEMORY_MB = 1500
GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter", "timebase", "tod")
"""Clock sources that are read without leaving user space, or nearly so; the others cost microseconds a reading."""
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
    findings = [finding for look in LOOKS for finding in look()] if site is None else _shelf(site)
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


def _shelf(path: Path) -> list[Finding]:
    """Findings about the machines of an inventory. Raises StudyError for a wrong inventory."""
    inventory = _inventory.read(path)
    return shelf_findings.of_inventory(inventory, asyncio.run(_ssh_survey.visit_all(inventory)))


def _print(finding: Finding, console: Console) -> None:
    mark, colour = MARKS[finding.state]
    line = Text(f"{mark} ", style=colour)
    line.append(f"{finding.name:<12} ", style="bold")
    line.append(finding.found)
    say(console, line)
    if finding.mend:
        say(console, Text(f"{'':<15}{finding.mend}", style="dim"))


def _processor() -> list[Finding]:
    facts = machine_facts.facts()
    cores = int(facts["cores"])
    load = os.getloadavg()[0]
    begun = machine_facts.read("/proc/stat")
    time.sleep(STEAL_WINDOW_S)
    steal = _steal_between(begun, machine_facts.read("/proc/stat"))
    shared = f", {facts['virtualisation']}" if "virtualisation" in facts else ""
    findings = [judged("processor", f"{facts['cpu_model']}, {cores} cores{shared}", cores >= 2, "nodes share one core")]
    if governor := machine_facts.governor():
        mend = "as root: cpupower frequency-set -g performance"
        findings.append(judged("frequency", f"governor {governor}", governor == "performance", mend))
    stolen = f"{steal:.1%} stolen by other guests during {STEAL_WINDOW_S:g} s"
    findings.append(
        judged("steal", stolen, steal <= STEAL_LIMIT_FRACTION, "measure at another hour, or on other hardware")
    )
    busy = f"load average {load:.1f} over a minute on {cores} cores"
    findings.append(judged("other load", busy, load < cores / 2, "end what else is running; it is in every number"))
    return findings


def _steal_between(before: str, after: str) -> float:
    first, second = (
        [int(field) for field in text.split("\n", 1)[0].split()[1 : 1 + len(machine_facts.CPU_FIELDS)]]
        for text in (before, after)
    )
    change = [late - early for early, late in zip(first, second, strict=True)]
    return change[machine_facts.CPU_FIELDS.index("steal")] / total if (total := sum(change)) else 0.0


def _size(mib: int) -> str:
    return data_size(mib * 2**20)


def _memory_and_disk() -> list[Finding]:
    memory = machine_facts.memory_mb(machine_facts.read("/proc/meminfo"))
    available, total, swap = (memory.get(key, 0) for key in ("MemAvailable", "MemTotal", "SwapTotal"))
    findings = [
        judged(
            "memory",
            f"{_size(available)} available of {_size(total)}" + (f", {_size(swap)} of swap" if swap else ""),
            available >= LEAST_MEMORY_MB,
            f"three small Cassandra nodes and the laboratory take {_size(LEAST_MEMORY_MB)}",
        )
    ]
    for name, folder in (("state", state_folder()), ("cache", cache_folder())):
        there = next(place for place in (folder, *folder.parents) if place.exists())
        free_gb = shutil.disk_usage(there).free / 1e9
        writable = os.access(there, os.W_OK)
        text = f"{folder}: {free_gb:.1f} GB free" + ("" if writable else ", not writable")
        mend = f"set STEELYARD_{name.upper()} to a folder on a larger disk"
        findings.append(judged(name, text, writable and free_gb >= LEAST_DISK_GB, mend, bad=not writable))
    return findings


def _clock() -> list[Finding]:
    source = machine_facts.facts().get("clock_source", "unknown")
    mend = "/sys/devices/system/clocksource/clocksource0 lists others; this one makes every reading of the time slow"
    return [judged("clock", source, source in GOOD_CLOCKS, mend)]


def _agent() -> list[Finding]:
    try:
        program = agent.find()
        done = asyncio.run(run(None, [str(program), "--version"], timeout_s=VERSION_TIMEOUT_S))
    except SteelyardError as error:
        return [Finding(name="agent", state="bad", found=error.message, mend=error.hint)]
    return [Finding(name="agent", state="good", found=f"{done.stdout.decode(errors='replace').strip()}, {program}")]


def _engine() -> list[Finding]:
    """What the load engine can do here, by the last calibration."""
    mend = "steelyard calibrate (20 s): without it, the generator's limit can pass for the system's"
    try:
        ceilings = calibration.read(calibration.path_in(state_folder()))
    except SteelyardError as error:
        return [Finding(name="load engine", state="poor", found=error.message, mend=mend)]
    if ceilings is None:
        return [Finding(name="load engine", state="poor", found="never calibrated on this machine", mend=mend)]
    peaks = ", ".join(
        f"{max(one.per_s for one in ceilings.ceilings if one.kind == kind):,.0f} {kind}s of 1 KB"
        for kind in ("read", "write")
        if any(one.kind == kind for one in ceilings.ceilings)
    )
    text = (
        f"{peaks} a second for each worker at most, {ceilings.slip.pacing_ms_p99 * 1000:,.0f} us late at p99, "
        f"{data_size(ceilings.memory_bytes)}; {datetime.fromtimestamp(ceilings.made_s):%Y-%m-%d %H:%M}"
    )
    try:
        why = calibration.stale(ceilings, machine_facts.facts(), calibration.fingerprint(agent.find()))
    except (SteelyardError, OSError) as error:
        why = str(error)
    if why:
        return [Finding(name="load engine", state="poor", found=f"{text}; {why}", mend=mend)]
    return [judged("load engine", "; ".join([text, *doubts(ceilings)]), not doubts(ceilings), mend)]


def _java() -> list[Finding]:
    try:
        from steelyard.system.cassandra import _java as java
    except ImportError:
        return []
    try:
        virtual_machine = asyncio.run(java.find())
    except SteelyardError as error:
        return [Finding(name="java", state="bad", found=error.message, mend=error.hint)]
    return [Finding(name="java", state="good", found=f"{virtual_machine.version}, {virtual_machine.path}")]


def _maven() -> list[Finding]:
    path = shutil.which("mvn")
    mend = "as root: apt-get install -y maven; or name a folder of Cassandra's jars in the study"
    return [judged("maven", path or "no mvn in PATH", path is not None, mend)]


def _root() -> list[Finding]:
    needed = ("sys_admin", "net_admin", "setpcap")
    lacking = [name for name in needed if not machine_facts.capable(name)]
    text = f"user {os.geteuid()}" + (f" without {', '.join(lacking)}" if lacking else " with what namespaces take")
    mend = "as root each node gets a network and limits of its own; without, nodes are processes on loopback addresses"
    findings = [judged("privileges", text, not lacking, mend)]
    for program in ("ip", "tc"):
        path = shutil.which(program)
        needs = "as root: apt-get install -y iproute2"
        findings.append(judged(program, path or f"no {program} in PATH", path is not None, needs))
    return findings


def _limits() -> list[Finding]:
    hierarchies = local.enforceable()
    able = [name for name in ("cpu", "memory") if hierarchies.has(name)]
    text = f"version {hierarchies.version}, limits of {' and '.join(able) or 'nothing'}"
    why = "; ".join(hierarchies.problems)
    mend = f"{why}; as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes steelyard ..."
    return [judged("cgroups", text, len(able) == 2, mend)]


def _lease_for_real() -> list[Finding]:
    """Lend one node and take it back: what counts is whether it works, not what is installed."""
    with tempfile.TemporaryDirectory(prefix="steelyard-doctor-") as folder:
        site = local.create(local.Settings(), Path(folder))
        request = Request("doctor", 1, 1)
        if reason := site.refuse(request, None):
            return [Finding(name="site local", state="bad", found=reason, mend="see above")]
        try:
            seconds = asyncio.run(_lend(site, request))
        except SteelyardError as error:
            return [Finding(name="site local", state="bad", found=error.message, mend=error.hint)]
    shared = ", ".join(sorted(site.shares))
    text = f"{site.mode}: 1 + 1 nodes leased in {seconds[0]:.2f} s, returned in {seconds[1]:.2f} s; they share {shared}"
    return [Finding(name="site local", state="good", found=text)]


async def _lend(site: local.LocalSite, request: Request) -> tuple[float, float]:
    begun = time.monotonic()
    lease = await site.lease(request, lease_records.utc_now() + timedelta(minutes=5))
    lent = time.monotonic()
    try:
        await run(lease.nodes[0], ["true"], timeout_s=VERSION_TIMEOUT_S)
    finally:
        ran = time.monotonic()
        await site.release(lease)
    return lent - begun, time.monotonic() - ran


def _leftovers() -> list[Finding]:
    """Leases of this state folder at any site, and those of others as far as they can be known."""
    state, now = state_folder(), lease_records.utc_now()
    site = local.create(local.Settings(), state)
    try:
        left = {lease.id for lease in asyncio.run(site.leftovers())}
        left |= {record.id for _, record in lease_records.records(state) if lease_records.abandoned(record, now)}
    except SteelyardError as error:
        return [Finding(name="leftovers", state="poor", found=error.message, mend=error.hint)]
    return [leftovers(state, sorted(left), lease_processes.left_elsewhere(state, now))]


def leftovers(state: Path, left: Sequence[str], elsewhere: Mapping[str, Path]) -> Finding:
    """Leases that are left over in this state folder, and in others: id -> folder."""
    texts = [f"{', '.join(left)} in {state}"] if left else []
    texts += [f"{identity} in {folder}" for identity, folder in elsewhere.items()]
    none = f"none in {state}, nor in other state folders that {lease_register.FOLDER} or a living process names"
    commands = ["steelyard clean"] if left else []
    commands += [command_elsewhere(identity, folder) for identity, folder in elsewhere.items()]
    return judged("leftovers", "; ".join(texts) or none, not texts, "; ".join(dict.fromkeys(commands)))


LOOKS: tuple[Callable[[], list[Finding]], ...] = (
    _processor,
    _memory_and_disk,
    _clock,
    _agent,
    _engine,
    _java,
    _maven,
    _root,
    _limits,
    limit_findings.look,
    link_findings.of_this_machine,
    docker_findings.of_this_machine,
    vm_findings.of_this_machine,
    _lease_for_real,
    _leftovers,
)
