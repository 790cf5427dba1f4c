"""Lease records: the file that says what a lease has created and whose it is, and whether that owner lives.

The record is written before anything is created, and removed last, so that all leftovers of a killed conductor can be
found by the lease's id. Everything that a lease creates carries that id in its name or in its environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.process import Server
from steelyard.node.processor import start_ticks

MARKER = "STEELYARD_LEASE"
"""Environment variable that every process of a lease has; its value is the lease's id."""

RECORD_MARKER = "STEELYARD_LEASE_RECORD"
"""Environment variable with the path of the lease's record; a process whose record is gone has no owner."""

ID_PATTERN = re.compile(r"[0-9a-f]{8}")
LOCK_TIMEOUT_S = 10.0
LOCK_POLL_S = 0.02


class Owner(Value):
    """A process, distinguishable from a later one with the same id and from one before a reboot."""

    pid: int
    start_ticks: int
    """Clock ticks from boot to the start of the process, field 22 of /proc/PID/stat."""
    boot_id: str


class Record(Value):
    """The content of a lease's file: owner, end, and the names of everything that is created for it.

    A new field needs a default, so that leases of earlier versions can be taken back."""

    format: Literal[1] = 1
    id: str
    site: str
    mode: str
    study: str
    owner: Owner
    created: datetime
    until: datetime
    nodes: tuple[Node, ...] = ()
    namespaces: tuple[str, ...] = ()
    cgroups: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    disks: tuple[Path, ...] = ()
    """Files with the file systems of nodes that have a disk of their own."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Complete settings of the site, so that the lease can be taken back without the study."""

    def lease(self, path: Path) -> Lease:
        """The lease of this record at `path`."""
        return Lease(id=self.id, site=self.site, nodes=self.nodes, until=self.until, record=path)


def new_id(taken: Collection[str] = ()) -> str:
    """Eight hexadecimal digits that no other lease has."""
    while (identity := secrets.token_hex(4)) in taken:
        pass
    return identity


def record_path(state: Path, identity: str) -> Path:
    """Where the record of a lease is."""
    return state / "leases" / f"{identity}.json"


def nodes_folder(state: Path, identity: str) -> Path:
    """The folder that holds the folders of a lease's nodes."""
    return state / "nodes" / identity


def environment(state: Path, identity: str) -> dict[str, str]:
    """Environment variables that mark every process of a lease."""
    return {MARKER: identity, RECORD_MARKER: str(record_path(state, identity))}


def write(path: Path, record: Record) -> None:
    """Write the record durably (fsync): it survives a power cut after this call. Raises FileError or SiteError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, record.model_dump_json(indent=2) + "\n", draft=path.with_suffix(".draft"))
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot write the lease's record {path}: {error.strerror}") from error


def read(path: Path) -> Record | None:
    """The record at `path`; None if there is none. Raises SiteError if the file is not a record."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return Record.model_validate_json(text)
    except ValidationError as error:
        raise SiteError(
            f"{path} is not a lease's record: {error.error_count()} errors, first: {error.errors()[0]['msg']}",
            "move the file away and say `steelyard clean` again: what it stood for is found by its name",
        ) from error


def records(state: Path, site: str | None = None) -> list[tuple[Path, Record]]:
    """Every record of a site's leases, or of all sites', in a state folder, oldest first."""
    pairs = []
    for path in sorted((state / "leases").glob("*.json")):
        record = read(path)
        if record is not None and site in (None, record.site):
            pairs.append((path, record))
    return sorted(pairs, key=lambda pair: pair[1].created)


@contextlib.contextmanager
def locked(state: Path) -> Iterator[None]:
    """Exclusive lock on the leases of this state folder, held for milliseconds. Raises FileError or SiteError."""
    folder = state / "leases"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        message = f"cannot use the state folder {state}: {error.strerror}"
        raise foreseen(error) or SiteError(message, "set STEELYARD_STATE") from error
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SiteError(f"{folder / '.lock'} is held for more than {LOCK_TIMEOUT_S:g} s") from None
                time.sleep(LOCK_POLL_S)
        # Records are only written under this lock, so a draft belongs to a dead writer.
        for draft in folder.glob("*.draft"):
            draft.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)


def aware(moment: datetime) -> datetime:
    """The moment with a time zone; without one it means this machine's."""
    return moment if moment.tzinfo else moment.astimezone()


def boot_id() -> str:
    """Id of the current boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def owner(pid: int | None = None) -> Owner:
    """This process, or another running one. Raises SiteError if it does not run."""
    number = os.getpid() if pid is None else pid
    ticks = start_ticks(number)
    if ticks is None:
        raise SiteError(f"there is no process {number}")
    return Owner(pid=number, start_ticks=ticks, boot_id=boot_id())


def lives(who: Owner) -> bool:
    """Whether exactly this process still runs."""
    return who.boot_id == boot_id() and Server(who.pid, who.start_ticks).alive


def abandoned(record: Record, now: datetime) -> str:
    """Reason why the lease counts as left over; "" while it may be in use."""
    if not lives(record.owner):
        return f"its owner, process {record.owner.pid}, has exited"
    if aware(record.until) < now:
        return f"its end, {record.until.isoformat(timespec='seconds')}, has passed"
    return ""


def owner_of(lease: Lease) -> Owner | None:
    """The living owner of a lease; None if it is dead or unknown. Raises SiteError if the record is unreadable."""
    record = read(lease.record)
    return record.owner if record is not None and lives(record.owner) else None


def utc_now() -> datetime:
    """Current time, with its time zone."""
    return datetime.now(UTC)
