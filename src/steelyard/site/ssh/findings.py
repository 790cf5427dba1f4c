"""Findings of `steelyard doctor --site`: conclusions from visits to machines, each with a hint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from steelyard.format import count, data_size, duration, number
from steelyard.model.finding import Finding, judged
from steelyard.node import raspberry_pi
from steelyard.node.java import parse_version
from steelyard.site.ssh.inventory import Inventory, most
from steelyard.site.ssh.scripts import Identity, busy_users, held_by
from steelyard.site.ssh.survey import Visit

LEAST_DISK_BYTES = 5e9
LEAST_MEMORY_BYTES = 700 * 2**20
"""Enough for a small Cassandra node and the agent."""
LARGEST_OFFSET_S = 0.5
"""Steelyard corrects for clock offsets, but Cassandra resolves conflicting writes by its nodes' clocks."""
BUSY_FRACTION = 0.25
"""Load average per core at which other programs are assumed to run."""
JAVA_MAJOR = 17
LEAST_KERNEL = (5, 11)
"""Oldest Linux version that the agent supports; older ones are untested."""


def of_inventory(inventory: Inventory, visits: Sequence[Visit]) -> list[Finding]:
    """Findings about the inventory, then about each machine in its order. Pure."""
    reached = [visit for visit in visits if visit.identity is not None]
    roles = f"{most(inventory, 'database')} may be databases, {most(inventory, 'load')} may drive load"
    machines = count(len(inventory.machines), "machine")
    text = f"{machines}, {len(reached)} reachable; {roles}"
    enough = most(inventory, "database") > 0 and most(inventory, "load") > 0 and len(inventory.machines) > 1
    hint = 'list one machine for a database and another to drive load, or set [load_site] name = "local"'
    findings = [judged("inventory", text, enough, hint, bad=True)]
    for visit in visits:
        findings += of_visit(visit)
        findings += _same_machine(visit, visits)
    return findings


def of_visit(visit: Visit) -> list[Finding]:
    """Findings about one machine. Pure."""
    name = visit.machine.name
    identity = visit.identity
    if identity is None:
        assert visit.error is not None
        return [Finding(name="reachable", state="bad", found=visit.error.message, hint=visit.error.hint, machine=name)]
    findings = [*_way(visit, identity), *_who_is_there(identity), *_room(identity), *_programs(identity)]
    findings += [*_clock(visit), *_processor(identity)]
    return [finding.model_copy(update={"machine": name}) for finding in findings]


def _way(visit: Visit, identity: Identity) -> Iterator[Finding]:
    model = identity.get("model") or visit.machine.hardware
    board = f", {model}" if model else ""
    cores = identity.get("cores")
    text = f"user {identity.user}, {identity.architecture}, {cores} cores{board}"
    yield Finding(name="reachable", state="good", found=text)
    yield _kernel(identity.get("release"))
    if visit.agent_error is not None:
        yield Finding(name="agent", state="bad", found=visit.agent_error.message, hint=visit.agent_error.hint)
    if visit.address_error is not None:
        yield Finding(name="address", state="bad", found=visit.address_error.message, hint=visit.address_error.hint)
        return
    there = not identity.addresses or visit.address in identity.addresses
    own = ", ".join(sorted(identity.addresses))
    text = visit.address if there else f"{visit.address} is not one of its addresses: {own}"
    yield judged("address", text, there, "set `address` in the inventory", bad=True)


def _kernel(release: str) -> Finding:
    numbers = re.match(r"(\d+)\.(\d+)", release)
    new_enough = numbers is not None and (int(numbers[1]), int(numbers[2])) >= LEAST_KERNEL
    least = ".".join(map(str, LEAST_KERNEL))
    hint = f"upgrade to Linux {least} or newer, as older ones are untested; as root there: apt-get full-upgrade; reboot"
    return judged("kernel", f"Linux {release or 'unknown'}", new_enough, hint, bad=True)


def _who_is_there(identity: Identity) -> Iterator[Finding]:
    if identity.holder is not None and identity.holder.until_s >= identity.now_s:
        left = duration(identity.holder.until_s - identity.now_s)
        hint = "wait for it to end; if it was killed, run `steelyard clean` on the machine where it ran"
        yield Finding(name="busy", state="bad", found=f"{held_by(identity.holder)}; {left} left", hint=hint)
    elif identity.holder is not None:
        text = f"{held_by(identity.holder)}, which has expired: the next study will take over the machine"
        yield Finding(name="busy", state="good", found=text)
    if others := busy_users(identity):
        yield Finding(name="busy", state="bad", found=others, hint="wait for it to end, or ask that user")
    load, cores = _float(identity.get("load")), _float(identity.get("cores")) or 1.0
    text = f"load average {number(load)} over a minute on {number(cores)} cores"
    yield judged("other load", text, load < BUSY_FRACTION * cores, "stop other programs: they affect all measurements")


def _room(identity: Identity) -> Iterator[Finding]:
    kilobytes = [word for word in identity.get("disk").split() if word.isdigit()]
    free = float(kilobytes[2]) * 1024 if len(kilobytes) >= 3 else 0.0
    writable = bool(identity.get("writable"))
    text = f"{identity.folder}: {data_size(free)} free" + ("" if writable else ", not writable")
    hint = "set `folder` in the inventory to one on a larger disk" if writable else "set `folder` to a writable one"
    yield judged("space", text, writable and free >= LEAST_DISK_BYTES, hint, bad=not writable)
    total, available, swap = (_float(identity.get(word)) * 1024 for word in ("MemTotal", "MemAvailable", "SwapTotal"))
    text = f"{data_size(available)} available of {data_size(total)}" + (f", {data_size(swap)} of swap" if swap else "")
    hint = f"stop other programs: a small Cassandra node needs {data_size(LEAST_MEMORY_BYTES)}"
    yield judged("memory", text, available >= LEAST_MEMORY_BYTES, hint)


def _programs(identity: Identity) -> Iterator[Finding]:
    versions = {}
    for line in identity.more.get("java", ()):
        path, _, rest = line.partition(" ")
        versions[path] = parse_version(rest)
    right = next((path for path, version in versions.items() if version and version[0] == JAVA_MAJOR), None)
    others = ", ".join(f"{path} is {version[1]}" for path, version in versions.items() if version)
    version = versions.get(right or "")
    text = f"{version[1]}, {right}" if version else f"no Java {JAVA_MAJOR}{f': {others}' if others else ''}"
    hint = f"for Cassandra, run as root there: apt-get install -y openjdk-{JAVA_MAJOR}-jre-headless"
    yield judged("java", text, right is not None, hint)
    words = {"root": "root", "sudo": "sudo without a password", "none": "no sudo without a password"}
    rights = words.get(identity.get("privileges"), "unknown")
    yield Finding(name="privileges", state="good", found=f"{rights}; site ssh needs none")


def _clock(visit: Visit) -> Iterator[Finding]:
    hint = "run as root there: timedatectl set-ntp true"
    if visit.clock is None:
        hint = "install coreutils there: `date` must support %N"
        yield Finding(name="clock", state="poor", found="cannot be read", hint=hint)
        return
    ahead_s, error_s = visit.clock.ahead_s, visit.clock.error_s
    ahead_ms = number(abs(ahead_s) * 1000)
    side = "ahead of" if ahead_s >= 0 else "behind"
    text = f"{ahead_ms} ms {side} this machine's (± {number(error_s * 1000)} ms)"
    yield judged("clock", text, abs(ahead_s) <= LARGEST_OFFSET_S + error_s, hint)


def _processor(identity: Identity) -> Iterator[Finding]:
    if governor := identity.get("governor"):
        hint = "run as root there: echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
        yield judged("frequency", f"governor {governor}", governor == "performance", hint)
    if (bits := raspberry_pi.throttled_bits(identity.get("throttled"))) is not None:
        now, before = raspberry_pi.faults(bits), raspberry_pi.former_faults(bits)
        text = f"{', '.join(now)} now" if now else f"{', '.join(before)} since it was started" if before else "healthy"
        hint = "use a power supply and cable for 5.1 V and at least 3 A, and a fan: trials are voided while it lasts"
        yield judged("health", text, not now and not before, hint)


def _same_machine(visit: Visit, visits: Sequence[Visit]) -> Iterator[Finding]:
    """A finding about a machine that is listed under two names or shares its kernel with another."""
    if visit.identity is None:
        return
    for other in visits:
        if other is visit:
            return
        if other.identity is None or other.identity.kernel != visit.identity.kernel:
            continue
        same = other.identity.folder == visit.identity.folder
        text = f"runs on the same kernel as {other.machine.name}: " + (
            "one machine under two names, or two that share processor, memory and clock"
            if same
            else "they share processor, memory and clock"
        )
        shared = "the report states that they share it"
        remove = "if it is one machine, remove a name: `run` refuses to use a folder twice"
        hint = f"{remove}; otherwise {shared}" if same else shared
        yield judged("machine", text, False, hint, machine=visit.machine.name)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
