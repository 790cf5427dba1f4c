"""Processes of a lease: how they are found on this machine, and their end.

They are known by the lease's mark in their environment, by its cgroups and by its networks, so that they are found
without their conductor and without the lease's record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from steelyard.leases.lease import Lease
from steelyard.leases.records import ID_PATTERN, MARKER, RECORD_MARKER, is_there, utc_now
from steelyard.leases.register import abandoned_elsewhere, entries, is_abandoned, lost, of_state
from steelyard.model.errors import SiteError
from steelyard.node.processor import start_ticks

KILL_TIMEOUT_S = 20.0
"""Time limit for a killed process to disappear; beyond it, something (a dead disk, a debugger) holds it."""
KILL_POLL_S = 0.02
QUIET_LOOKS = 2
DISRUPTIONS = Path(f"/dev/shm/steelyard-disruptions-{os.geteuid()}")
"""Where `steelyard-agent disrupt` keeps its records (`crates/steelyard-agent/src/disrupt/record.rs`)."""
MOST_DESCRIBED = 5
LONGEST_COMMAND = 80
"""Characters of a command line in a message."""


def of(identity: str, cgroups: Collection[Path] = (), networks: Collection[Path] = ()) -> set[int]:
    """Every living process of a lease except this one: marked by its environment, in its cgroups, or in its
    networks."""
    pids = {pid for folder in cgroups for pid in _cgroup_members(folder)}
    files = {key for path in networks if (key := _file_identity(path)) is not None}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (pid := int(entry)) not in pids and _belongs(pid, identity, files):
            pids.add(pid)
    return {pid for pid in pids if pid != os.getpid() and start_ticks(pid) is not None}


def strays(site: str, state: Path) -> list[Lease]:
    """Leases of a state folder without a record: those that the register has of this site, and those with a living
    process. It was starting when its conductor was killed, and got its mark after the lease had been released. What had
    its record in another state folder is that installation's to judge (`left_elsewhere`)."""
    marked = marked_by()
    recorded = {identity for identity, (_, there) in marked.items() if there}
    gone = {**lost(state, site), **{identity: record for identity, (record, _) in marked.items()}}
    return [
        Lease(identity, site, (), utc_now(), record)
        for identity, record in sorted(gone.items())
        if identity not in recorded and of_state(record, state)
    ]


def left_elsewhere(state: Path, now: datetime) -> dict[str, Path]:
    """Leases that are left over in other state folders, or whose record there is gone: id -> that folder. They are
    known by the register, which only root writes, and by living processes."""
    marked = {
        identity: record.parent.parent
        for identity, (record, there) in marked_by().items()
        if not of_state(record, state) and (not there or (is_there(record) and is_abandoned(record, now)))
    }
    return marked | abandoned_elsewhere(state, now)


def marked_by() -> dict[str, tuple[Path, bool]]:
    """Leases of any state folder with a living process: id -> the path of its record, and whether that is there:
    as we see files, or as its process or its owner does, which may be in a container."""
    record_by_lease: dict[str, Path] = {}
    there = {identity for identity, entry in entries().items() if entry.is_kept}
    for entry in os.listdir("/proc"):
        variables = dict(line.partition("=")[::2] for line in _environment_of(entry)) if entry.isdigit() else {}
        identity, record = variables.get(MARKER, ""), variables.get(RECORD_MARKER, "")
        if record and ID_PATTERN.fullmatch(identity):
            record_by_lease[identity] = Path(record)
            if is_there(Path(record)) or is_there(Path(f"/proc/{entry}/root{record}")):
                there.add(identity)
    return {identity: (record, identity in there) for identity, record in sorted(record_by_lease.items())}


def described(pids: Collection[int]) -> str:
    """Processes with their commands, for messages: `process 12 (sleep 60)`; empty if there are none."""
    shown = [f"{pid} ({_command_of(pid)})" for pid in sorted(pids)[:MOST_DESCRIBED]]
    more = f" and {len(pids) - len(shown)} more" if len(pids) > len(shown) else ""
    return f"{'process' if len(pids) == 1 else 'processes'} {', '.join(shown)}{more}" if shown else ""


def _command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return " ".join(words).strip()[:LONGEST_COMMAND] or "no command line"
    return "just ended"


async def kill(
    identity: str,
    cgroups: Collection[Path] = (),
    networks: Collection[Path] = (),
    timeout_s: float = KILL_TIMEOUT_S,
) -> None:
    """End every process of a lease with SIGKILL and wait until it is gone, and remove the records of its disruptions,
    of which nothing is left to undo then. Raises SiteError after `timeout_s`.

    Two searches in a row must find nothing, because a process that is being started gets its mark only when it is
    executed."""
    files = {key for path in networks if (key := _file_identity(path)) is not None}
    deadline = time.monotonic() + timeout_s
    quiet = 0
    while quiet < QUIET_LOOKS:
        alive = of(identity, cgroups, networks)
        quiet = 0 if alive else quiet + 1
        if alive and time.monotonic() > deadline:
            raise SiteError(
                f"processes {sorted(alive)} of lease {identity} did not die within {timeout_s:g} s of SIGKILL",
                "check `ps -o pid,stat,wchan,args`; state D waits for a disk",
            )
        for pid in alive:
            _kill_verified(pid, identity, cgroups, files)
        await asyncio.sleep(KILL_POLL_S)
    with contextlib.suppress(OSError):  # a folder of another user, who got there first: it has none of ours
        for record in () if DISRUPTIONS.is_symlink() else DISRUPTIONS.glob(f"{identity}.*.json"):
            record.unlink(missing_ok=True)


def _kill_verified(pid: int, identity: str, cgroups: Collection[Path], files: Collection[tuple[int, int]]) -> None:
    """Open a pidfd, which pins the process, then check it again, because its id may have been reused."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if _belongs(pid, identity, files) or any(pid in _cgroup_members(folder) for folder in cgroups):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _belongs(pid: int, identity: str, networks: Collection[tuple[int, int]]) -> bool:
    if f"{MARKER}={identity}" in _environment_of(str(pid)):
        return True
    return bool(networks) and _file_identity(Path(f"/proc/{pid}/ns/net")) in networks


def _environment_of(pid: str) -> list[str]:
    # Processes of other users and those that have just ended cannot be read: they are not ours.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return []


def _cgroup_members(folder: Path) -> set[int]:
    """Processes in a cgroup and in the cgroups below it. Id 0 means a process of another pid namespace."""
    pids: set[int] = set()
    for place, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            pids.update(int(line) for line in Path(place, "cgroup.procs").read_text(encoding="ascii").split())
    return pids - {0}


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
