"""Journals of several stores of one study as one, see `steelyard.store.merge`.

Sessions are in order of time, each with its lines together, because those that overlap could not be separated. A line
that several stores have is one event. What only the merge knows is at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final, TypeGuard

from steelyard.events.base import Kept, Unknown
from steelyard.events.kept import (
    DraftRemoved,
    FolderMissed,
    FolderSetAside,
    NoiseFloorSought,
    SealCorrected,
    SessionBegan,
    SessionEnded,
    SessionFailed,
    SessionInterrupted,
    StudyWritten,
    TrialSealed,
)
from steelyard.format import count
from steelyard.model.errors import StoreError
from steelyard.model.plan import Plan
from steelyard.model.plausible import read_json_leniently
from steelyard.store import journal, layout, sealed
from steelyard.store.plain_file import content_of, loaded, problem_of, sha256_of
from steelyard.store.read import CHANGED, Store

OF_THE_STUDY: Final = (layout.STUDY_TOML, layout.STUDY_JSON, layout.PLAN)
ENDS: Final = (SessionEnded, SessionFailed, SessionInterrupted)
OF_THE_NEXT: Final = (StudyWritten, DraftRemoved, FolderSetAside, FolderMissed, SealCorrected)
"""Events that a session writes before it begins: they end one that was killed."""

LeftOut = Mapping[str, tuple[Path, str]]
"""Name of a damaged attempt to its folder, and why it cannot be used."""
Placed = tuple[float, "Source", Kept | Unknown | None, str]
"""A line of a journal: when its session began, its store, its event, its text."""


@dataclass(frozen=True)
class Source:
    """A store to merge, as it was read."""

    folder: Path
    lines: tuple[tuple[journal.Entry, str], ...]
    """The journal, with each line as it is written."""
    attempts: sealed.Attempts
    plan: Plan
    files: Mapping[str, str]
    """Name of a file of the study to its SHA-256."""

    @property
    def floor(self) -> str | None:
        """SHA-256 of the noise floor; None without one, or if it is not the journal's."""
        floors = [entry.event.sha256 for entry, _ in self.lines if _has_floor(entry.event)]
        with contextlib.suppress(OSError):
            sha256 = sha256_of(self.folder / layout.NOISE_FLOOR, self.folder)
            return sha256 if sha256 in floors[-1:] else None
        return None


def read(folder: Path) -> Source:
    """Read a store. Raises StoreError where its study, plan or journal is not as it was written."""
    plan = Store(folder).read_plan()
    name = layout.EVENTS
    try:
        text = content_of(folder / name).decode("utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise unusable(folder / name, problem_of(error)) from error
    entries = tuple(journal.entries(text))
    files = {}
    for name in OF_THE_STUDY:
        try:
            files[name] = sha256_of(folder / name, folder)
        except OSError as error:
            raise unusable(folder / name, problem_of(error)) from error
        if files[name] not in (journal.written(entries, name) or files.values()):
            raise unusable(folder / name, CHANGED)
    attempts = sealed.attempts(folder, sealed.seals(entries))
    return Source(folder, tuple(zip(entries, text.splitlines(), strict=True)), attempts, plan, files)


def unusable(path: Path, what: str) -> StoreError:
    """The error of a file without which a store cannot be merged."""
    return StoreError(f"{path}: {what}", "restore it from a copy, or merge without this store", path=str(path))


def unreadable(source: Source) -> list[int]:
    """Numbers of the lines that are left out."""
    return [entry.number for entry, _ in source.lines if not _is_readable(entry.event)]


@dataclass
class _Session:
    where: str
    line: str
    begun_s: float
    ended_s: float
    boot: str


def overlaps(sources: Sequence[Source]) -> tuple[list[str], list[str]]:
    """Conflicts: sessions of different stores that ran on one machine at the same time. Notes: those of which journals
    do not say the machine."""
    of_store = [{one.line: one for one in _sessions(source)} for source in sources]
    conflicts, unknown = [], 0
    for a, b in combinations({line: one for sessions in of_store for line, one in sessions.items()}.values(), 2):
        of_one_store = any({a.line, b.line} <= sessions.keys() for sessions in of_store)
        if of_one_store or a.begun_s >= b.ended_s or b.begun_s >= a.ended_s:
            continue
        if a.boot and a.boot == b.boot:
            where = f"{a.where} and {b.where}"
            conflicts.append(f"two sessions ran on one machine at the same time: {where} (boot {a.boot})")
        unknown += not (a.boot and b.boot)
    pairs = f"{count(unknown, 'pair')} of sessions ran at the same time, and the journals do not say on which machines"
    return conflicts, [pairs] if unknown else []


def _sessions(source: Source) -> list[_Session]:
    sessions: list[_Session] = []
    goes_on = False
    for entry, line in source.lines:
        event, t_s = entry.event, entry.t_s or 0.0
        if isinstance(event, SessionBegan):
            where = f"{source.folder / layout.EVENTS} line {entry.number}"
            sessions.append(_Session(where, line, t_s, t_s, event.boot))
        elif goes_on and not isinstance(event, OF_THE_NEXT):
            sessions[-1].ended_s = max(sessions[-1].ended_s, t_s)
        goes_on = isinstance(event, SessionBegan) or (goes_on and not isinstance(event, (*ENDS, *OF_THE_NEXT)))
    return sessions


def merged_lines(
    sources: Sequence[Source], taken: Mapping[str, TrialSealed], left_out: LeftOut, floor: str | None, folder: Path
) -> list[str]:
    """The journal of the merged store in `folder`. `taken`: what it says of each attempt, by its folder's name.
    `floor`: SHA-256 of the noise floor."""
    now_s = time.time()
    placed = [line for source in sources for line in _placed(source, taken, floor, now_s)]
    placed.sort(key=lambda one: one[0])
    numbers = {line: number for number, line in enumerate(dict.fromkeys(one[3] for one in placed), start=1)}
    firsts = {line: (source, event) for _, source, event, line in reversed(placed)}
    lines = [_renumbered(line, *firsts[line], numbers) for line in numbers]
    own = _own_events(lines, sources[0], taken, left_out, folder)
    return [*lines, *(journal.line(event, now_s).rstrip() for event in own)]


def _placed(source: Source, taken: Mapping[str, TrialSealed], floor: str | None, now_s: float) -> Iterator[Placed]:
    """The lines of a store that hold in the merged one."""
    began_s = 0.0
    sha256: dict[str, str] = {}
    for entry, line in source.lines:
        match entry.event:
            case SessionBegan():
                began_s = max(began_s, entry.t_s or 0.0)
            case TrialSealed(trial=trial, attempt=attempt) | SealCorrected(trial=trial, attempt=attempt) as event:
                sha256[layout.trial_folder(trial, attempt)] = event.record_sha256
            case FolderMissed(folder=name) | FolderSetAside(folder=name) if name in taken:
                if sha256.get(name) == taken[name].record_sha256:
                    continue  # another store still has that measurement
        if _is_readable(entry.event) and not (_has_floor(entry.event) and entry.event.sha256 != floor):
            yield began_s, source, entry.event, line
    for changed in source.attempts.changed_lines:
        yield began_s, source, changed.correction, journal.line(changed.correction, now_s).rstrip()


def _renumbered(line: str, source: Source, event: Kept | Unknown | None, numbers: Mapping[str, int]) -> str:
    """A line of the journal; one that corrects another names the number that this has now."""
    if not isinstance(event, SealCorrected) or not 0 < event.line <= len(source.lines):
        return line
    return json.dumps(
        {**loaded(line, read_json_leniently), "line": numbers.get(source.lines[event.line - 1][1], event.line)}
    )


def _own_events(
    lines: Sequence[str], first: Source, taken: Mapping[str, TrialSealed], left_out: LeftOut, folder: Path
) -> Iterator[Kept]:
    """Events of the merged store that no journal has."""
    entries = tuple(journal.entries("\n".join(lines)))
    known = sealed.seals(entries)
    if any(first.files[name] not in journal.written(entries, name) for name in OF_THE_STUDY):
        yield StudyWritten(sha256=dict(first.files))
    for name in sorted(known.keys() & left_out.keys()):
        path, why = left_out[name]
        yield FolderSetAside(folder=name, to=os.path.relpath(path, folder), why=f"not merged: {why}")
    for name, line in taken.items():
        if name not in known or known[name].missed or known[name].event != line:
            yield line


def _is_readable(event: Kept | Unknown | None) -> bool:
    return event is not None and not (isinstance(event, Unknown) and event.problem)


def _has_floor(event: Kept | Unknown | None) -> TypeGuard[NoiseFloorSought]:
    return isinstance(event, NoiseFloorSought) and event.found
