"""Machine-wide register of leases and their state folders.

Everybody on a machine sees its namespaces and cgroups, but the records that explain them are in a user's state folder.
Before the first of them is created, an entry here says where the record is, and of which site. So a living lease of
another installation is never removed, and a namespace whose record is gone is known to have no owner. A reboot clears
both.

A record may be hidden from its reader: in a separate mount namespace, as services and containers have, the path
leads nowhere or to other files. So an entry says who its owner is, and a record that is not seen here is looked for as
that owner sees it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError

FOLDER = Path("/run/steelyard")


def usable() -> bool:
    """Whether we may write to the register: only root."""
    return os.access(FOLDER if FOLDER.is_dir() else FOLDER.parent, os.W_OK | os.X_OK)


class Entry(NamedTuple):
    """Entry of a lease in the register."""

    record: Path
    """The path of its record, as its owner sees files."""
    site: str
    owner: lease_records.Owner | None
    """None if the entry cannot be read."""

    @property
    def seen(self) -> Path:
        """The path of the record as this process sees files; that of `record` where nothing else is known."""
        if self.owner is None or lease_records.is_there(self.record):
            return self.record
        return lease_records.as_seen_by(self.owner, self.record)

    @property
    def is_kept(self) -> bool:
        """Whether the record is there; also true if unknown here."""
        if lease_records.is_there(self.seen):
            return True
        return hidden_files() if self.owner is None else lease_records.is_hidden(self.owner)


def hidden_files() -> bool:
    """Whether this process may see other files than the first process of the machine: it is in a mount namespace of its
    own."""
    try:
        return os.stat("/proc/1/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return False  # not root, who alone sees the namespaces of others


def enter(identity: str, record: Path, site: str, owner: lease_records.Owner) -> None:
    """Enter the path of a lease's record, its site and its owner. Raises FileError or SiteError."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        draft = FOLDER / f"{identity}.draft"
        lines = f"{record.absolute()}\n{site}\n{owner.model_dump_json()}\n"
        replace_file(FOLDER / identity, lines, draft, sync=False)
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot write {FOLDER / identity}: {error.strerror}") from error


def leave(identity: str) -> None:
    """Forget a lease. Idempotent. Raises FileError or SiteError."""
    try:
        for path in (FOLDER / identity, FOLDER / f"{identity}.draft"):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot remove {FOLDER / identity}: {error.strerror}") from error


def new_id(state: Path) -> str:
    """An id that no lease has in this state folder or in the register."""
    return lease_records.new_id({path.stem for path in (state / "leases").glob("*.json")} | known().keys())


def begin(record: lease_records.Record, state: Path, claim: Callable[[], None]) -> None:
    """Write the record of a lease, enter it and create the folder of its nodes, unless `claim` raises SiteError because
    another lease has what this one takes. Raises FileError or SiteError."""
    path = lease_records.record_path(state, record.id)
    with lease_records.locked(state):
        claim()
        lease_records.write(path, record)
    if usable():
        enter(record.id, path, record.site, record.owner)
    lease_records.make_nodes_folder(state, record.id)


def others(wanted: lease_records.Record, state: Path) -> Iterator[lease_records.Record]:
    """Records of the other leases of the same site: those of a state folder, and those in the register."""
    paths = {path: path.stem for path in (state / "leases").glob("*.json")}
    paths |= {entry.seen: identity for identity, entry in entries().items()}
    for path, identity in paths.items():
        try:
            other = lease_records.read(path)
        except SiteError:
            continue  # of another format, or damaged
        if other is not None and identity != wanted.id and other.site == wanted.site:
            yield other


def known() -> dict[str, Path]:
    """Every registered lease and the path of its record."""
    return {identity: entry.record for identity, entry in entries().items()}


def is_kept(identity: str, record: Path) -> bool:
    """Whether a lease whose resources name this record has it; also true if unknown here."""
    return entries().get(identity, Entry(record, "", None)).is_kept


def site_of(identity: str) -> str:
    """The site of a registered lease; empty for an unknown one."""
    entry = entries().get(identity)
    return entry.site if entry else ""


def lost(state: Path, site: str) -> dict[str, Path]:
    """Registered leases of a site whose record was in this state folder and is gone: id -> where it was."""
    return {
        identity: entry.record
        for identity, entry in entries().items()
        if entry.site == site and of_state(entry.record, state) and not entry.is_kept
    }


def entries() -> dict[str, Entry]:
    """Every registered lease."""
    entry_by_id = {}
    for path in sorted(FOLDER.glob("*")):
        if lease_records.ID_PATTERN.fullmatch(path.name):
            try:
                record, site, who, *_ = [*path.read_text(encoding="utf-8").split("\n"), "", ""]
            except FileNotFoundError:
                continue
            entry_by_id[path.name] = Entry(Path(record), site.strip(), _owner_of(who))
    return entry_by_id


def _owner_of(text: str) -> lease_records.Owner | None:
    try:
        return lease_records.Owner.model_validate_json(text)
    except ValidationError:
        return None


def of_state(record: Path, state: Path) -> bool:
    """Whether a lease's record is, or was, in this state folder. Pure but for the working directory."""
    return record.parent.parent.absolute() == state.absolute()


def abandoned_elsewhere(state: Path, now: datetime) -> dict[str, Path]:
    """Abandoned leases of other state folders, and those whose record is gone: id -> that folder. We only report
    them."""
    others = {identity: entry for identity, entry in entries().items() if not of_state(entry.record, state)}
    return {
        identity: entry.record.parent.parent
        for identity, entry in others.items()
        if (lease_records.is_there(entry.seen) or not entry.is_kept) and is_abandoned(entry.seen, now)
    }


def is_abandoned(path: Path, now: datetime) -> bool:
    """Whether the lease with its record at this path is abandoned, or the record is gone. One that cannot be read is of
    another format, or of another user: its owner takes it back. Any process can name any path: one that is there and no
    plain file is not a record."""
    try:
        if path.exists() and not path.is_file():
            return False
        record = lease_records.read(path)
    except (SiteError, OSError, ValueError):
        return False
    return record is None or bool(lease_records.abandoned(record, now))
