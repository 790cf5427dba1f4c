"""Stored noise floors of this machine, and the choice of one for a study."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.judging.noise_floor import NONE, Circumstances, FoundFloor, KeptFloor, mismatch, unlike
from steelyard.model.errors import SteelyardError
from steelyard.model.file_format import refusal
from steelyard.model.plausible import read_json

FOLDER = "noise-floors"
NAME_DIGITS = 12


def folder_in(state: Path) -> Path:
    """The folder, in the state folder, because floors are measurements and not copies."""
    return state / FOLDER


def write(state: Path, floor: KeptFloor) -> Path:
    """Replace the stored floor of the same circumstances. Raises SteelyardError if it cannot be written."""
    digest = hashlib.sha256(floor.holds_for.model_dump_json().encode()).hexdigest()[:NAME_DIGITS]
    where = folder_in(state) / f"{floor.study}-{digest}.json"
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        replace_file(where, floor.model_dump_json(indent=1) + "\n")
    except OSError as error:
        message = f"the noise floor cannot be kept at {where}: {error.strerror}"
        raise SteelyardError(message, "set STEELYARD_STATE to a folder that can be written") from error
    return where


def find(state: Path, of: Sequence[Circumstances]) -> FoundFloor:
    """The stored floor for a study in these circumstances: if there are several, the one whose settings differ least
    from the study's, then the newest; if there is none, the reason. An unreadable file is skipped and named."""
    held: list[KeptFloor] = []
    reasons: list[str] = []
    for path in sorted(folder_in(state).glob("[!.]*.json")):
        try:
            floor = KeptFloor.model_validate(read_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError) as error:  # torn, of another user, or in another format
            what = refusal(error) or f"cannot be read ({type(error).__name__})"
            reasons.append(f"{path} {what} and was skipped")
            continue
        if why := mismatch(floor, of):
            reasons.append(f"the floor of study {floor.study} does not hold: {why}")
        else:
            held.append(floor)
    if held:
        return FoundFloor(floor=min(held, key=lambda one: (len(unlike(one, of)), -one.made_s)), why="")
    return FoundFloor(why="; ".join([NONE, *dict.fromkeys(reasons)]))
