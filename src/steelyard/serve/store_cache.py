"""Cache of the stores in a folder: read in the background, and again only where something changed."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.judging.looks import later
from steelyard.judging.stopping import Decision, decide, rule_of
from steelyard.model.errors import StoreError
from steelyard.model.plan import Plan
from steelyard.model.secret import redacted_text
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.progress import live_file
from steelyard.progress.state import Live
from steelyard.store import Store, layout
from steelyard.store.journal import Entry
from steelyard.store.looks import looks, number_of
from steelyard.store.modelled import ModelledStore
from steelyard.store.read import as_planned

LEAST_S: Final = 0.5
"""Least time between two looks at one store, however many requests ask for it."""
READERS: Final = 2
SIGNS: Final = (layout.STUDY_JSON, layout.EVENTS, layout.LOCK)
"""A folder with one of these is a store, or is about to be one."""
PROBLEM_CHARS: Final = 400
REMARKS: Final = 20
"""Attempts that cannot be read are named up to this number."""
TRIES: Final = 2
"""A study that is about to begin replaces files while they are read."""

UNREADABLE: Final = (StoreError, OSError, ValueError, AttributeError, TypeError, RecursionError)
"""Exceptions that reading an untrusted file may raise."""

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class StoreLook:
    """Content of a store's folder at one look."""

    name: str
    folder: Path
    study: Study | None = None
    problem: str = ""
    """Why the study cannot be read, if it cannot."""
    remarks: tuple[str, ...] = ()
    """Other parts that cannot be read: the plan, single trials. The rest is shown."""
    plan: Plan | None = None
    records: tuple[TrialRecord, ...] = ()
    """Sealed attempts that can be read, in order of time."""
    journal: tuple[Entry, ...] = ()
    """Lines of the journal that are whole."""
    live: Live | None = None
    """Status of a study in progress."""
    decision: Decision | None = None
    """Decision of the study's stopping rule, if it has one."""
    changed: str = ""
    """Fingerprint of everything that a report rests on; `live` is left out."""


def find(root: Path) -> dict[str, Path]:
    """Stores by name: `root` itself if it is one, otherwise those directly below it. Empty if `root` has gone."""
    root = root.resolve()
    if (root / layout.STUDY_JSON).is_file():
        return {root.name: root}
    try:
        below = sorted(one for one in root.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError:
        return {}
    return {one.name: one for one in below if any((one / sign).exists() for sign in SIGNS)}


class Watched:
    """One store's folder, looked at again and again. Sealed attempts never change and are read once, until the study is
    run again or another store is in the folder."""

    def __init__(self, name: str, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.folder = folder
        self._clock = clock
        self._stamps: dict[str, Stamp] = {}
        self._kept: dict[str, Any] = {}
        self._records: dict[str, TrialRecord] = {}
        self._failed: dict[str, tuple[Stamp | None, str]] = {}
        """Attempts that could not be read, and what was said: read again when their file changes."""
        self._records_of: Stamp | None = None
        """The study's file when they were read."""
        self._decided: tuple[object, Decision] | None = None
        self._guard = threading.Lock()
        self._last: StoreLook | None = None
        self._looked_s = float("-inf")
        self._looking: Future[StoreLook] | None = None

    def look(self, readers: ThreadPoolExecutor, patience_s: float) -> StoreLook | None:
        """The store as it is now; as it was at the last look, if reading takes longer than `patience_s`; None if it
        was never read to its end yet."""
        with self._guard:
            if self._last is not None and self._clock() - self._looked_s < LEAST_S:
                return self._last
            if self._looking is None:
                try:
                    self._looking = readers.submit(self._look)
                except RuntimeError:
                    # The server ends.
                    return self._last
            looking = self._looking
        try:
            return looking.result(timeout=patience_s)
        except (Late, CancelledError):
            return self._last

    def _look(self) -> StoreLook:
        """Read, and keep it for the next request, also if none waits for it any more."""
        try:
            look = self.read()
            with self._guard:
                self._last, self._looked_s = look, self._clock()
            return look
        finally:
            with self._guard:
                self._looking = None

    def read(self) -> StoreLook:
        """Look at the folder. Never raises for what is in it."""
        try:
            store = ModelledStore(self.folder)
        except StoreError:
            what = f"{self.folder} has no {layout.STUDY_JSON} yet"
            return StoreLook(self.name, self.folder, problem=what if self.folder.is_dir() else "")
        remarks: list[str] = []
        study, problem = self._study(Store(self.folder), remarks)
        plan = self._plan(store, remarks)
        records = self._attempts(store, plan, remarks)
        journal = self._fresh(layout.EVENTS, store.journal, (), remarks)
        study = later(study, number_of(looks(journal))) if study is not None else None
        return StoreLook(
            name=self.name,
            folder=self.folder,
            study=study,
            problem=problem,
            remarks=tuple(remarks),
            plan=plan,
            records=records,
            journal=journal,
            live=live_file.read(self.folder),
            decision=self._decision(study, plan, records),
            changed=self._changed(),
        )

    def _decision(self, study: Study | None, plan: Plan | None, records: tuple[TrialRecord, ...]) -> Decision | None:
        rule = rule_of(study) if study is not None else None
        if rule is None or plan is None:
            return None
        state = (rule, self._stamps.get(layout.PLAN), self._records_of, frozenset(self._records))
        if self._decided is None or self._decided[0] != state:
            self._decided = state, decide(plan, records, rule)
        return self._decided[1]

    def _study(self, store: Store, remarks: list[str]) -> tuple[Study | None, str]:
        """The study, and why it cannot be read; that it was changed is a remark."""
        problems: list[str] = []
        study, changed = self._fresh(layout.STUDY_JSON, lambda: _study_of(store), (None, ()), problems)
        remarks += changed
        return study, "".join(problems)

    def _plan(self, store: Store, remarks: list[str]) -> Plan | None:
        plan: Plan | None = self._fresh(layout.PLAN, store.read_plan, None, remarks)
        return plan

    def _fresh(self, name: str, read: Callable[[], Any], nothing: Any, remarks: list[str]) -> Any:
        """Content of a file: as it was read, until the file changes."""
        for _ in range(TRIES):
            stamp = _stamp(self.folder / name)
            if stamp is not None and self._stamps.get(name) == stamp:
                return self._kept[name]
            try:
                value = read()
            except UNREADABLE as error:
                message = message_of(self.folder / name, error)
                continue
            if stamp is not None:
                self._stamps[name], self._kept[name] = stamp, value
            return value
        remarks.append(message)
        self._stamps.pop(name, None)
        return nothing

    def _attempts(self, store: Store, plan: Plan | None, remarks: list[str]) -> tuple[TrialRecord, ...]:
        try:
            names = store.attempts()
        except OSError as error:
            remarks.append(message_of(self.folder / layout.TRIALS, error))
            return ()
        of = self._stamps.get(layout.STUDY_JSON)
        if of != self._records_of:
            self._records, self._failed, self._records_of = {}, {}, of
        for gone in self._records.keys() - names:
            del self._records[gone]
        self._failed = {name: kept for name, kept in self._failed.items() if name in names}
        for name in sorted(names - self._records.keys()):
            stamp = _stamp(self.folder / layout.TRIALS / name / layout.TRIAL_JSON)
            if stamp is not None and self._failed.get(name, (None, ""))[0] == stamp:
                continue
            try:
                self._records[name] = store.attempt(name)
                self._failed.pop(name, None)
            except UNREADABLE as error:
                self._failed[name] = stamp, message_of(self.folder / layout.TRIALS / name, error)
        remarks += [said for _, (_, said) in sorted(self._failed.items())[:REMARKS]]
        if len(self._failed) > REMARKS:
            remarks.append(f"{len(self._failed) - REMARKS} other attempts cannot be read either")
        named = {trial.id: trial for trial in plan.trials} if plan else {}
        records = [as_planned(record, named) for record in self._records.values()]
        return tuple(sorted(records, key=lambda record: (record.begun_s, record.id, record.attempt)))

    def _changed(self) -> str:
        parts = [f"{name} {_stamp(self.folder / name)}" for name in (layout.STUDY_JSON, layout.PLAN, layout.EVENTS)]
        return hashlib.sha256("\n".join([*parts, *sorted(self._records)]).encode()).hexdigest()[:16]


def _study_of(store: Store) -> tuple[Study, tuple[str, ...]]:
    study = store.study
    return study, tuple(damage.words() for damage in store.damages if not damage.harmless)


class Shelf:
    """All stores below a folder. Stores that appear later are found, those that go are forgotten."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._guard = threading.Lock()
        self._watched: dict[str, Watched] = {}
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="steelyard-read")

    def names(self) -> tuple[str, ...]:
        """Names of the stores that there are now."""
        folders = find(self.root)
        with self._guard:
            for gone in self._watched.keys() - folders.keys():
                del self._watched[gone]
            for name, folder in folders.items():
                self._watched.setdefault(name, Watched(name, folder))
        return tuple(folders)

    def folder(self, name: str) -> Path | None:
        """Where a store is; None if there is none of this name. Names are compared, never joined to a path."""
        return find(self.root).get(name)

    def look(self, name: str, patience_s: float) -> StoreLook | None:
        """Content of a store; None while it is read for the first time. Raises KeyError if there is none."""
        if name not in self.names():
            raise KeyError(name)
        with self._guard:
            watched = self._watched[name]
        return watched.look(self._readers, patience_s)

    def close(self) -> None:
        """Read nothing more."""
        self._readers.shutdown(wait=False, cancel_futures=True)


def message_of(path: Path, error: BaseException) -> str:
    """Problem of a file, in a line that names it."""
    text = error.message if isinstance(error, StoreError) else f"{path} cannot be read: {error}"
    hint = f" ({error.hint})" if isinstance(error, StoreError) and error.hint else ""
    line = redacted_text(" ".join(text.split()))
    return f"{line[:PROBLEM_CHARS]}{'…' if len(line) > PROBLEM_CHARS else ''}{hint}"


def _stamp(path: Path) -> Stamp | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None
