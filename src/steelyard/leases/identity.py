"""Random id of a state folder: the tag of what is launched from it, and what two laboratories must not share."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.file_errors import foreseen
from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError


def state_id(state: Path) -> str:
    """The id of a state folder; made if need be, and then it survives a power cut. Raises FileError or SiteError."""
    with lease_records.locked(state):
        return known_state_id(state) or written(_path(state), [secrets.token_hex(8)])[0]


def known_state_id(state: Path) -> str:
    """The same, if there is one."""
    return next(iter(lines(_path(state))), "")


def lines(path: Path) -> list[str]:
    """Words of a file of the state folder; none if it is not there."""
    try:
        return path.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []


def written(path: Path, words: list[str]) -> list[str]:
    """Write such a file. Returns the words. Raises FileError or SiteError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, "".join(f"{word}\n" for word in words), draft=path.with_suffix(f".{os.getpid()}"))
    except OSError as error:
        raise foreseen(error) or SiteError(f"cannot write {path}: {error.strerror}") from error
    return words


def _path(state: Path) -> Path:
    return state / "id"
