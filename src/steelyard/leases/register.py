"""Machine-wide register of leases and their state folders.

Everybody on a machine sees its namespaces and cgroups, but the records that explain them are in a user's state folder.
Before the first of them is created, an entry here says where the record is, and of which site. So a living lease of
another installation is never removed, and a namespace whose record is gone is known to have no owner. A reboot clears
both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError

FOLDER = Path("/run/steelyard")


def usable() -> bool:
    """Whether we may write to the register: only root."""
    return os.access(FOLDER if FOLDER.is_dir() else FOLDER.parent, os.W_OK | os.X_OK)


def enter(identity: str, record: Path, site: str = "") -> None:
    """Enter the path of a lease's record, and its site. Raises FileError or SiteError."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        draft = FOLDER / f"{identity}.draft"
        replace_file(FOLDER / identity, f"{record.absolute()}\n{site}\n", draft, sync=False)
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
    """Write the record of a lease and enter it, unless `claim` raises SiteError because another lease has what this one
    takes. Raises FileError or SiteError."""
    path = lease_records.record_path(state, record.id)
    with lease_records.locked(state):
        claim()
        lease_records.write(path, record)
    if usable():
        enter(record.id, path, record.site)


def others(wanted: lease_records.Record, state: Path) -> Iterator[lease_records.Record]:
    """Records of the other leases of the same site: those of a state folder, and those in the register."""
    paths = {path: path.stem for path in (state / "leases").glob("*.json")}
    paths |= {path: identity for identity, path in known().items()}
    for path, identity in paths.items():
        try:
            other = lease_records.read(path)
        except SiteError:
            continue  # of another version, in a state folder of its own
        if other is not None and identity != wanted.id and other.site == wanted.site:
            yield other


def known() -> dict[str, Path]:
    """Every registered lease and the path of its record."""
    return {identity: record for identity, (record, _) in _entries().items()}


def site_of(identity: str) -> str:
    """The site of a registered lease; empty for one that earlier versions entered, and for an unknown one."""
    return _entries().get(identity, (Path(), ""))[1]


def lost(state: Path, *sites: str) -> dict[str, Path]:
    """Registered leases of these sites whose record was in this state folder and is gone: id -> where it was."""
    return {
        identity: record
        for identity, (record, site) in _entries().items()
        if site in sites and of_state(record, state) and not lease_records.is_there(record)
    }


def _entries() -> dict[str, tuple[Path, str]]:
    """Every registered lease: the path of its record, and its site or nothing."""
    entries = {}
    for path in sorted(FOLDER.glob("*")):
        if lease_records.ID_PATTERN.fullmatch(path.name):
            try:
                record, _, site = path.read_text(encoding="utf-8").strip().partition("\n")
            except FileNotFoundError:
                continue
            entries[path.name] = (Path(record), site.strip())
    return entries


def of_state(record: Path, state: Path) -> bool:
    """Whether a lease's record is, or was, in this state folder. Pure but for the working directory."""
    return record.parent.parent.absolute() == state.absolute()


def abandoned_elsewhere(state: Path, now: datetime) -> dict[str, Path]:
    """Abandoned leases of other state folders, and those whose record is gone: id -> that folder. We only report
    them."""
    others = {identity: path for identity, path in known().items() if not of_state(path, state)}
    return {identity: path.parent.parent for identity, path in others.items() if is_abandoned(path, now)}


def is_abandoned(path: Path, now: datetime) -> bool:
    """Whether the lease with its record at this path is abandoned, or the record is gone. One that cannot be read is of
    another version, or of another user: whoever that is takes it back. Any process can name any path: one that is
    there and no plain file is no record."""
    try:
        if path.exists() and not path.is_file():
            return False
        record = lease_records.read(path)
    except (SiteError, OSError, ValueError):
        return False
    return record is None or bool(lease_records.abandoned(record, now))
