"""Merge: the attempts of several stores of one study in one store, each once and with its checksums proved.

Everything is planned before anything is written: after a conflict, all stores are as they were. A new store is built
under a hidden name and renamed. To a store that is there already, attempts are only added, each by one rename; what is
damaged in it is set aside, as `steelyard run` does it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from pathlib import Path
from typing import Final

from steelyard import no_links
from steelyard.atomic_file import NAME_CHARS, replace_file, sync_folder
from steelyard.events.kept import TrialSealed
from steelyard.format import count
from steelyard.model.damage import Damage
from steelyard.model.errors import StoreError
from steelyard.model.trial import TrialRecord
from steelyard.store import layout, merged_journal
from steelyard.store.merged_journal import OF_THE_STUDY, LeftOut, Source
from steelyard.store.plain_file import MOST_FILE_BYTES, MOST_RECORD_BYTES, content_of, problem_of, sha256_of
from steelyard.store.write import StoreWriter

LEFT_OUT: Final = "left out"
AGAIN: Final = "merge the stores again"


@dataclass
class Merged:
    """Outcome of a merge; if it has conflicts, nothing was written."""

    folder: Path
    planned: int
    """Number of trials of the plan."""
    trials: int = 0
    """Number of those that have a final attempt."""
    attempts: dict[Path, int] = field(default_factory=dict)
    """Store to the number of attempts taken from it."""
    twice: int = 0
    """Number of attempts that several stores have, and that were taken once."""
    conflicts: list[str] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    """Files that are not as they were written, with their paths, and what was done without them."""
    lost: list[str] = field(default_factory=list)
    """Planned trials without a final attempt of which a damaged attempt was left out."""
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> Iterator[str]:
        """The merge for people, without its damages."""
        yield from (f"conflict: {conflict}" for conflict in self.conflicts)
        if self.conflicts:
            conflicts = count(len(self.conflicts), "conflict")
            yield f"nothing was written to {self.folder}: {conflicts}; move one side of each out of its store"
            return
        yield from (f"note: {note}" for note in self.notes)
        for store, attempts in self.attempts.items():
            yield f"{store}: {count(attempts, 'attempt')}"
        lost = f"; lost by damage: {', '.join(self.lost)}" if self.lost else ""
        same = f"; {count(self.twice, 'attempt')} in several stores, taken once" if self.twice else ""
        yield f"{self.folder}: {self.trials} of {count(self.planned, 'planned trial')}{same}{lost}"


@dataclass(frozen=True)
class _Held:
    """An attempt that counts in a store."""

    store: Path
    record: TrialRecord
    sha256: str
    """SHA-256 of `trial.json`."""

    @property
    def name(self) -> str:
        return layout.trial_folder(*self.record.key)

    @property
    def folder(self) -> Path:
        return self.store / layout.TRIALS / self.name

    @property
    def line(self) -> TrialSealed:
        """The journal's line about it."""
        return TrialSealed.of_record(self.record, self.sha256)


def merge(stores: Sequence[Path], into: Path, held_by: StoreWriter | None = None) -> Merged:
    """Merge the stores into the folder `into`: a new or empty one, or a store of the same study, such as an earlier
    merge. `held_by`: the writer of `into`, if the caller has it. Raises StoreError for stores of different studies, a
    store that is being written, and what is not a store."""
    target = held_by.folder if held_by else no_links.place_of(into)[0]
    there = no_links.is_there(target / layout.STUDY_JSON)
    if not there and no_links.is_there(target) and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{into}: neither empty nor a study's folder", "name a new folder", path=str(into))
    others = {folder.resolve(): folder for folder in stores if folder.resolve() != target.resolve()}
    if not others:
        raise StoreError(f"{into}: nothing to merge into it", "name at least one other store", path=str(into))
    with contextlib.ExitStack() as held:
        for folder in others.values():
            held.enter_context(_unchanging(folder))
        sources = [merged_journal.read(folder) for folder in (*([target] if there else []), *others.values())]
        _refuse_other_studies(sources)
        merged = Merged(target, len(sources[0].plan.trials), attempts={source.folder: 0 for source in sources})
        taken, left_out = _choose(sources, merged)
        sessions, merged.notes = merged_journal.overlaps(sources)
        merged.conflicts += [*_valid_twice(sources, taken.values()), *sessions]
        if not merged.conflicts:
            name = target.name if there else f".{target.name[:NAME_CHARS]}.{secrets.token_hex(8)}.merge"
            writing = contextlib.nullcontext(held_by) if held_by else StoreWriter(target.parent, name)
            with writing as writer:
                try:
                    _write(sources, taken, left_out, writer, merged)
                    if not there:
                        writer.folder.rename(target)
                        sync_folder(target.parent)
                except BaseException:  # an interrupt too leaves no store that is half merged
                    if not there:
                        shutil.rmtree(writer.folder, ignore_errors=True)
                    raise
    return merged


@contextlib.contextmanager
def _unchanging(folder: Path) -> Iterator[None]:
    """Keep every writer away from a store. Raises StoreError if there is one."""
    try:
        lock = no_links.open_file(folder / layout.LOCK, folder)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise merged_journal.unusable(folder / layout.LOCK, problem_of(error)) from error
    with os.fdopen(lock):
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            hint = "wait for it, or look with `steelyard status`"
            raise StoreError(f"another process is writing {folder}", hint, path=str(folder)) from error
        yield


def _refuse_other_studies(sources: Sequence[Source]) -> None:
    for source in sources[1:]:
        for name in OF_THE_STUDY:
            if source.files[name] != sources[0].files[name]:
                pair = (f"{one.folder / name} (SHA-256 {one.files[name]})" for one in (sources[0], source))
                names = {one.plan.study: None for one in (sources[0], source)}
                what = "different studies" if len(names) > 1 else "different forms of study"
                hint = "only stores of one study file and one plan are merged; `steelyard compare` compares others"
                message = f"{what} {' and '.join(names)}: {' and '.join(pair)}"
                raise StoreError(message, hint, path=str(source.folder))


def _choose(sources: Sequence[Source], merged: Merged) -> tuple[dict[str, _Held], LeftOut]:
    """The attempts to take, by their folder's name, and those that are left out because no store has them whole.
    Conflicts and damages are noted in `merged`."""
    holders: dict[str, list[_Held]] = {}
    damaged: list[tuple[str, Path, str, str]] = []
    for source in sources:
        damages = [*source.attempts.unfit.items(), *source.attempts.gone.items()]
        damaged += [(name, source.folder, one.file, one.what) for name, one in damages]
        for number in merged_journal.unreadable(source):
            merged.damages.append(_of(source.folder, layout.EVENTS, f"line {number} cannot be read", harmless=True))
        for record in source.attempts.records:
            path = source.folder / layout.TRIALS / layout.trial_folder(*record.key) / layout.TRIAL_JSON
            held = _Held(source.folder, record, sha256_of(path, source.folder, MOST_RECORD_BYTES))
            holders.setdefault(held.name, []).append(held)
    taken: dict[str, _Held] = {}
    for name, several in holders.items():
        if len(different := {held.sha256: held for held in several}) > 1:
            merged.conflicts.append(f"{name} was measured more than once: {_paths(different.values())}")
            continue
        merged.twice += len(several) > 1
        for held in several:
            if problem := _problem(held, merged):
                damaged.append((name, held.store, f"{layout.TRIALS}/{name}/{problem[0]}", problem[1]))
            else:
                taken.setdefault(name, held)
    left_out: dict[str, tuple[Path, str]] = {}
    for name, store, file, what in damaged:
        effect = f"taken from {taken[name].store}" if name in taken else LEFT_OUT
        damage = _of(store, file, what, effect, harmless=name in taken)
        merged.damages.append(damage)
        if name not in taken and no_links.is_there(folder := store / layout.TRIALS / name):
            left_out[name] = folder, f"{damage.file}: {what}"
    final = {held.record.id for held in taken.values() if held.record.verdict.final}
    without = {name.partition(".")[0] for name, *_ in damaged if name not in taken} - final
    planned = [trial.id for trial in sources[0].plan.trials]
    merged.trials, merged.lost = len(final.intersection(planned)), [trial for trial in planned if trial in without]
    merged.attempts |= Counter(held.store for held in taken.values())
    return taken, left_out


def _of(store: Path, file: str, what: str, effect: str = LEFT_OUT, *, harmless: bool = False) -> Damage:
    path = f"{store}/{no_links.name_below(store / file, store)}"
    return Damage(file=path, what=what, effect=effect, harmless=harmless)


def _paths(several: Iterable[_Held]) -> str:
    return " and ".join(f"{held.folder} (SHA-256 of its record {held.sha256})" for held in several)


def _problem(held: _Held, merged: Merged) -> tuple[str, str] | None:
    """The first file of an attempt that is not as it was sealed, and why. Files that its record does not know are noted
    as damages."""
    for name, sha256 in held.record.checksums.items():
        try:
            if Path(name).is_absolute():
                return name, no_links.NO_NAME
            if sha256_of(held.folder / name, held.store) != sha256:
                return name, "it was changed after it was sealed: its SHA-256 is not the record's"
        except OSError as error:
            return name, problem_of(error)
    unknown = sorted(set(no_links.files(held.folder, held.store)) - {layout.TRIAL_JSON, *held.record.checksums})
    if unknown and not held.record.checksums:
        return unknown[0], "the record of the trial has no checksums"
    for name in unknown:
        what = "the record of the trial does not know it"
        merged.damages.append(_of(held.store, f"{layout.TRIALS}/{held.name}/{name}", what, harmless=True))
    return None


def _valid_twice(sources: Sequence[Source], taken: Iterable[_Held]) -> Iterator[str]:
    """Conflicts: trials with final attempts of different numbers, of which no store has both."""
    known = [{record.key for record in source.attempts.records} for source in sources]
    final = sorted((one for one in taken if one.record.verdict.final), key=lambda one: one.record.key)
    for trial, several in groupby(final, key=lambda one: one.record.id):
        for pair in combinations(several, 2):
            keys = {held.record.key for held in pair}
            if not any(keys <= of_store for of_store in known):
                yield f"trial {trial} was measured in two stores: {_paths(pair)}"


def _write(
    sources: list[Source], taken: Mapping[str, _Held], left_out: LeftOut, writer: StoreWriter, merged: Merged
) -> None:
    """Attempts first: a reader counts one that the journal does not know yet, and misses one that only it knows."""
    first = sources[0].folder
    is_there = first == writer.folder
    if is_there and merged_journal.read(first).attempts.records != sources[0].attempts.records:
        raise StoreError(f"{first}: it was changed meanwhile", AGAIN, path=str(first))
    for held in taken.values():
        if held.store != writer.folder:
            _set_aside(held.name, "a file of it is damaged, and another store has it whole", writer)
            _copy(held, writer)
    for name, (_, why) in left_out.items():
        _set_aside(name, why, writer)
    floors = {source.floor for source in sources}
    floor = floors.pop() if len(floors) == 1 else None
    if floors:
        merged.notes.append("the stores do not have one noise floor in common: none is kept")
        (writer.folder / layout.NOISE_FLOOR).unlink(missing_ok=True)
    if is_there:
        sources[0] = merged_journal.read(first)  # its journal says now what was set aside
    else:
        for name in (*OF_THE_STUDY, *([layout.NOISE_FLOOR] if floor else [])):
            replace_file(writer.folder / name, content_of(first / name, first))
    lines = {name: held.line for name, held in taken.items()}
    text = "\n".join((*merged_journal.merged_lines(sources, lines, left_out, floor, merged.folder), ""))
    replace_file(writer.folder / layout.EVENTS, text)


def _set_aside(name: str, why: str, writer: StoreWriter) -> None:
    """Set an attempt aside that the store has already, if it has it."""
    if no_links.is_there(writer.trials / name):
        writer.put_aside(name, Damage(file=f"{layout.TRIALS}/{name}", what=why))


def _copy(held: _Held, writer: StoreWriter) -> None:
    draft = writer.draft(*held.record.key)
    try:
        for name, sha256 in {**held.record.checksums, layout.TRIAL_JSON: held.sha256}.items():
            path, to = held.folder / name, draft.folder / name
            content = content_of(path, held.store, MOST_FILE_BYTES)
            if hashlib.sha256(content).hexdigest() != sha256:
                raise StoreError(f"{path}: it was changed while it was copied", AGAIN, path=str(path))
            to.parent.mkdir(parents=True, exist_ok=True)
            replace_file(to, content)
        draft.put_in_place()
    except BaseException:
        draft.discard()
        raise
