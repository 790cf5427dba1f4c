"""Random id of a state folder: the tag of what is launched from it, and what two laboratories must not share."""

from __future__ import annotations

import secrets
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError


def state_id(state: Path) -> str:
    """The id of a state folder, created on first use. Raises FileError or SiteError."""
    with lease_records.locked(state):
        if not (known := known_state_id(state)):
            keep(state / "id", known := secrets.token_hex(8))
        return known


def known_state_id(state: Path) -> str:
    """The same, if there is one."""
    path = state / "id"
    return path.read_text(encoding="ascii") if path.exists() else ""


def keep(path: Path, text: str) -> None:
    """Write a file of the state folder that survives a power cut. Raises FileError or SiteError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot write {path}: {error.strerror}") from error
