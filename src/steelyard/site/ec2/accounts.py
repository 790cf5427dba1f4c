"""Memory of a state folder on EC2, so that instances are found although the record of their lease is lost: whose they
are, and the regions that a lease ever named."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError


def owner(state: Path) -> str:
    """Random id of the state folder, the tag of everything that is launched from it; made if need be. Raises FileError
    or SiteError."""
    path = _folder(state) / "owner"
    with lease_records.locked(state):
        return _lines(path)[0] if path.exists() else _written(path, [secrets.token_hex(8)])[0]


def known_owner(state: Path) -> str:
    """The same, if there is one; otherwise nothing was launched."""
    return next(iter(_lines(_folder(state) / "owner")), "")


def remember(state: Path, region: str) -> None:
    """Note a region before anything is launched there; it survives a power cut. Raises FileError or SiteError."""
    path = _folder(state) / "regions"
    with lease_records.locked(state):
        if region not in (known := _lines(path)):
            _written(path, [*known, region])


def regions(state: Path) -> list[str]:
    """Every region that was noted."""
    return _lines(_folder(state) / "regions")


def _folder(state: Path) -> Path:
    return state / "ec2"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []


def _written(path: Path, lines: list[str]) -> list[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, "".join(f"{line}\n" for line in lines), draft=path.with_suffix(f".{os.getpid()}"))
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot write {path}: {error.strerror}") from error
    return lines
