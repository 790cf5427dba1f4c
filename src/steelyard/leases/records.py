"""Lease records: the file that lists a lease's resources and its owner, and whether that owner lives.

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
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from steelyard import no_links
from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError
from steelyard.model.file_format import FileFormat, refusal
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.process import KnownProcess
from steelyard.node.processor import start_ticks

MARKER = "STEELYARD_LEASE"
"""Environment variable that every process of a lease has; its value is the lease's id."""

RECORD_MARKER = "STEELYARD_LEASE_RECORD"
"""Environment variable with the path of the lease's record; a process whose record is gone has no owner."""

ID_PATTERN = re.compile(r"[0-9a-f]{8}")
FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC
"""Inode of the namespace of process ids that a machine begins with (PROC_PID_INIT_INO of the kernel)."""
MOST_BYTES: Final = 8 << 20
"""Maximum size of a record."""
LOCK_TIMEOUT_S = 10.0
LOCK_POLL_S = 0.02


class Owner(Value):
    """A process, distinguishable from a later one with the same id and from one before a reboot."""

    pid: int
    start_ticks: int
    """Clock ticks from boot to the start of the process, field 22 of /proc/PID/stat."""
    boot_id: str
    pid_namespace: int
    """Inode of the process id namespace in which it has this id."""


class Record(Value):
    """The content of a lease's file: owner, end, and the names of everything that is created for it."""

    format: FileFormat = 1
    id: str
    site: str
    study: str
    owner: Owner
    created: datetime
    until: datetime
    nodes: tuple[Node, ...] = ()
    namespaces: tuple[str, ...] = ()
    cgroups: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    disks: tuple[Path, ...] = ()
    """Files with the file systems of nodes that have their own disk."""
    network: Literal["", "namespaces", "loopback", "bridge", "host"] = ""
    """Mechanism of the nodes' link, at a site with several."""
    subnet: str = ""
    """First octets of the nodes' addresses, where another lease with the same ones cannot be lent."""
    daemon: Literal["", "running", "own"] = ""
    """Site `docker`: the daemon that was running, or one of Steelyard's own."""
    accelerator: Literal["", "kvm", "tcg"] = ""
    """Site `vm`: accelerator of the virtual machines; empty before it is chosen."""
    accelerator_why: str = ""
    """Reason for the choice: observation, in words."""
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
    """Path of the record of a lease."""
    return state / "leases" / f"{identity}.json"


def nodes_folder(state: Path, identity: str) -> Path:
    """The folder that holds the folders of a lease's nodes."""
    return state / "nodes" / identity


def make_nodes_folder(state: Path, identity: str) -> None:
    """Create it so that only the owner can enter: below are configurations with secrets, keys and logs. Idempotent.
    Raises FileError or SiteError."""
    folder = nodes_folder(state, identity)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot create {folder}: {error.strerror}") from error


def environment(state: Path, identity: str) -> dict[str, str]:
    """Environment variables that mark every process of a lease."""
    return {MARKER: identity, RECORD_MARKER: str(record_path(state, identity))}


def marked(environment: Mapping[str, str]) -> Node:
    """This machine, with a lease's marks, so that a command that outlives a killed conductor is found and ended."""
    return Node("", "load", "", (), Path("/"), environment=dict(environment))


def write(path: Path, record: Record) -> None:
    """Write the record durably (fsync): it survives a power cut after this call. Raises FileError or SiteError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, record.model_dump_json(indent=2) + "\n", draft=path.with_suffix(".draft"))
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot write the lease's record {path}: {error.strerror}") from error


def is_there(path: Path) -> bool:
    """Whether there is a record, as far as we may look."""
    try:
        return path.exists()
    except OSError:
        return False


def read(path: Path) -> Record | None:
    """The record at `path`; None if there is none. Raises SiteError if the file is not a record."""
    try:
        content = no_links.content(path, path.parent, MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        if foreseen(error):
            raise
        raise SiteError(f"{path} is not a lease record: {error.strerror}", "inspect it and move it aside") from error
    try:
        return Record.model_validate_json(content)
    except ValidationError as error:
        if other := refusal(error):
            hint = "run `steelyard clean` of the version of Steelyard that wrote it"
            raise SiteError(f"the lease's record {path} {other}", hint) from error
        raise SiteError(
            f"{path} is not a lease record: {error.error_count()} errors, first: {error.errors()[0]['msg']}",
            "move the file aside and run `steelyard clean` again; it finds the resources by name",
        ) from error


def records(state: Path, site: str | None = None) -> list[tuple[Path, Record]]:
    """Every record of a site's leases, or of all sites', in a state folder, oldest first."""
    pairs = []
    for path in sorted((state / "leases").glob("*.json")):
        record = read(path)
        if record is not None and site in (None, record.site):
            pairs.append((path, record))
    return sorted(pairs, key=lambda pair: pair[1].created)


def left_over(state: Path, site: str, now: datetime) -> list[Lease]:
    """Leases of a site in a state folder that count as left over, oldest first."""
    return [record.lease(path) for path, record in records(state, site) if abandoned(record, now)]


@contextlib.contextmanager
def locked(state: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Exclusive lock on the leases of this state folder, held for milliseconds. Raises FileError or SiteError."""
    folder = state / "leases"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        message = f"cannot use the state folder {state}: {error.strerror}"
        raise foreseen(error) or SiteError(message, "set STEELYARD_STATE") from error
    try:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SiteError(f"{folder / '.lock'} has been locked for more than {timeout_s:g} s") from None
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
        raise SiteError(f"process {number} does not exist")
    return Owner(pid=number, start_ticks=ticks, boot_id=boot_id(), pid_namespace=_pid_namespace())


def lives(who: Owner, first_namespace: int = FIRST_PID_NAMESPACE) -> bool:
    """Whether exactly this process still runs; also if that is unknown, because it is in a namespace of process ids
    that this one does not see into."""
    if who.boot_id != boot_id():
        return False
    if who.pid_namespace == _pid_namespace():
        return KnownProcess(who.pid, who.start_ticks).alive
    # The first namespace sees the processes of all others; any other one only those within itself.
    return _id_here(who) is not None or _pid_namespace() != first_namespace


def as_seen_by(who: Owner, path: Path) -> Path:
    """Path of a file that a living process sees at `path`, perhaps in another mount namespace; `path` itself if the
    process has ended."""
    pid = _id_here(who) if lives(who) else None
    return path if pid is None else Path(f"/proc/{pid}/root{path.absolute()}")


def is_hidden(who: Owner) -> bool:
    """Whether a process lives, and we may not look how it sees files."""
    if not lives(who):
        return False
    pid = _id_here(who)
    try:
        return pid is None or not os.stat(f"/proc/{pid}/root/").st_ino
    except OSError:
        return True


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _id_here(who: Owner) -> int | None:
    """The id of a process in this namespace of process ids; None if it is not seen from here."""
    if who.pid_namespace == _pid_namespace():
        return who.pid
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            same = entry.isdigit() and os.stat(f"/proc/{entry}/ns/pid").st_ino == who.pid_namespace
            if same and start_ticks(int(entry)) == who.start_ticks:
                status = Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace")
                ids = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
                if int(ids[-1]) == who.pid:
                    return int(entry)
    return None


def abandoned(record: Record, now: datetime) -> str:
    """Reason why the lease counts as left over; "" while it may be in use."""
    if not lives(record.owner):
        return f"its owner, process {record.owner.pid}, has exited"
    if aware(record.until) < now:
        return f"its end, {record.until.isoformat(timespec='seconds')}, has passed"
    return ""


def claimed(other: Record, has: str, otherwise: str, left: str) -> SiteError:
    """The error for something that two leases cannot share: that another lease `has` it, or that it was killed and has
    `left` something. `otherwise`: alternative to waiting."""
    if lives(other.owner):
        who = f"study {other.study} (lease {other.id}, process {other.owner.pid})"
        return SiteError(f"{who} {has}", f"wait for it, or {otherwise}")
    return SiteError(
        f"study {other.study} (lease {other.id}) was killed and left {left}", f"run `steelyard clean {other.site}`"
    )


def owner_of(lease: Lease) -> Owner | None:
    """The living owner of a lease; None if it is dead or unknown. Raises SiteError if the record is unreadable."""
    record = read(lease.record)
    return record.owner if record is not None and lives(record.owner) else None


def utc_now() -> datetime:
    """Current time, with its time zone."""
    return datetime.now(UTC)
