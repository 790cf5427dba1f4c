"""Writer of a store: an append-only journal; each trial is drafted in a separate folder and sealed by one rename.

A draft lives in a folder whose name begins with a dot; readers ignore it. A kill at any moment leaves at most one
draft, which the next `StoreWriter` removes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from steelyard import no_links
from steelyard.atomic_file import replace_file, sync_folder
from steelyard.events.base import Kept
from steelyard.events.kept import DraftRemoved, FolderMissed, FolderSetAside, StudyWritten
from steelyard.file_errors import of_the_disk
from steelyard.heavy import pl
from steelyard.judging.noise_floor import KeptFloor
from steelyard.model.damage import Damage
from steelyard.model.errors import StoreError
from steelyard.model.plan import Plan
from steelyard.model.sample import Sample
from steelyard.model.secret import Concealer
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.store import journal, layout, sealed
from steelyard.store.plain_file import content_of, problem_of, sha256_of
from steelyard.store.read import Store
from steelyard.wire.record import Interval

CORRECTED: Final = "corrected now, by a new line of the journal; `steelyard verify` reports both"
MISSING: Final = (
    "if the plan still has the trial, it is measured again now; to keep the former one, stop and restore it"
)


def record_sha256(record: TrialRecord) -> str:
    """Hex SHA-256 of `trial.json` as written by `seal`: the one file whose checksum its record cannot hold."""
    return hashlib.sha256(record.model_dump_json(indent=1).encode("utf-8")).hexdigest()


class TrialDraft:
    """One attempt at a trial while it is being measured."""

    def __init__(self, trials: Path, trial_id: str, attempt: int, conceal: Concealer) -> None:
        self._conceal = conceal
        name = layout.trial_folder(trial_id, attempt)
        self.final = trials / name
        self.folder = trials / f"{layout.PARTIAL_PREFIX}{name}{layout.PARTIAL_SUFFIX}"
        if self.final.exists():
            raise StoreError(f"trial {name} is sealed already", path=str(self.final))
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in (layout.FACTS, layout.INTERVALS, layout.SAMPLES, layout.LOGS):
            (self.folder / part).mkdir(parents=True)

    def intend(self, record: TrialRecord) -> None:
        """Record what is about to be done, before it is done."""
        replace_file(self.folder / layout.TRIAL_JSON, record.model_dump_json(indent=1), sync=False)

    def facts(self, name: str, facts: Mapping[str, str]) -> None:
        """Write facts under a name: about a node, or about the system on it; see `steelyard.model.facts`."""
        path = self.folder / layout.FACTS / layout.facts_file(name)
        concealed = self._conceal.tree(dict(facts))
        replace_file(path, json.dumps(concealed, indent=1, sort_keys=True))

    def links(self, links: Sequence[Mapping[str, Any]]) -> None:
        """Write the measured paths between nodes."""
        concealed = self._conceal.tree(list(links))
        replace_file(self.folder / layout.LINKS_JSON, json.dumps(concealed, indent=1))

    def intervals(self, node: str, intervals: Iterable[Interval]) -> None:
        """Write the intervals of one load node, as received."""
        columns: dict[str, list[Any]] = {name: [] for name in layout.INTERVAL_SCHEMA}
        for interval in intervals:
            for counts in interval.counts:
                for low, high, count in counts.buckets:
                    row = (interval.phase, interval.t_s, interval.seconds, counts.operation)
                    values = (*row, counts.outcome, counts.measure, low, high, count)
                    for column, value in zip(columns.values(), values, strict=True):
                        column.append(value)
        frame = pl.DataFrame(columns, schema=layout.INTERVAL_SCHEMA)
        replace_file(self.folder / layout.INTERVALS / f"{node}.parquet", _parquet(frame))

    def samples(self, node: str, samples: Sequence[Sample]) -> None:
        """Write the samples of one node."""
        frame = pl.DataFrame(
            {
                "t_s": [sample.t_s for sample in samples],
                "metric": [sample.metric for sample in samples],
                "value": [sample.value for sample in samples],
            },
            schema=layout.SAMPLE_SCHEMA,
        )
        replace_file(self.folder / layout.SAMPLES / f"{node}.parquet", _parquet(frame))

    def log(self, node: str, name: str, content: bytes) -> None:
        """Write a log of a node."""
        folder = self.folder / layout.LOGS / node
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / name, self._conceal.content(content))

    def seal(self, record: TrialRecord) -> TrialRecord:
        """Seal the attempt: compute checksums, then rename once. Returns the record as written."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name != layout.TRIAL_JSON)
        checksums = {str(path.relative_to(self.folder)): sha256_of(path) for path in files}
        verdict = type(record.verdict).model_validate(self._conceal.tree(record.verdict.model_dump()))
        sealed = record.model_copy(update={"checksums": checksums, "verdict": verdict})
        replace_file(self.folder / layout.TRIAL_JSON, sealed.model_dump_json(indent=1))
        self.put_in_place()
        return sealed

    def put_in_place(self) -> None:
        """Make it an attempt, with a record that is sealed already."""
        self.folder.rename(self.final)
        sync_folder(self.final.parent)

    def discard(self) -> None:
        """Discard the attempt."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def _theirs(path: Path) -> Iterator[None]:
    """Refuse whatever is in the place of a file or folder of the store and is neither, or a link. Raises StoreError."""
    try:
        yield
    except OSError as error:
        if of_the_disk(error) or isinstance(error, FileNotFoundError | PermissionError):
            raise
        hint = "a store from elsewhere? Look at it and move it away, or name another store with --store"
        raise StoreError(f"{path}: {problem_of(error)}", hint, path=str(path)) from error


def _make(root: Path) -> None:
    """Make the folder of studies unless it is there. Raises StoreError where it cannot be, or is a study's own."""
    _, study = no_links.place_of(root / layout.TRIALS)
    if study is not None:
        hint = f"name the folder that holds the studies, {study.parent}"
        raise StoreError(f"{root}: these are the results of a study", hint, path=str(root))
    try:
        root.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        what = "not a folder" if isinstance(error, FileExistsError) else problem_of(error)
        raise StoreError(f"{root}: {what}", "name a folder for the results of studies", path=str(root)) from error


def _remove(path: Path, kind: no_links.Kind) -> None:
    """Remove a draft, or whatever has the name of one: a link itself, never what it leads to."""
    if kind is no_links.Kind.FOLDER:
        shutil.rmtree(path)
    else:
        path.unlink()


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


class StoreWriter:
    """The only writer of a study's folder, guarded by a lock that is released when the process dies. Output of nodes,
    logs and errors is written without secrets: those that `conceal` knows, and those under keys that look secret."""

    def __init__(self, root: Path, study: str, conceal: Concealer | None = None) -> None:
        self.conceal = conceal or Concealer()
        self.folder = root / study
        self.trials = self.folder / layout.TRIALS
        _make(root)
        with _theirs(self.trials):
            os.close(no_links.open_folder(self.trials, root, make=True))
        with _theirs(self.folder / layout.LOCK):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._lock = os.fdopen(no_links.open_file(self.folder / layout.LOCK, self.folder, flags), "a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise StoreError(
                f"another process is writing {self.folder}",
                "wait for it, or look with `steelyard status`",
                path=str(self.folder),
            ) from error
        self.damages: tuple[Damage, ...] = ()
        """Damages of the store as it was opened. What is not a sealed attempt has been set aside."""
        try:
            self.damages = self._repair()
        except BaseException:
            self._lock.close()
            raise
        for name, kind in no_links.entries(self.trials, self.folder).items():
            if name.startswith(layout.PARTIAL_PREFIX) and name.endswith(layout.PARTIAL_SUFFIX):
                _remove(self.trials / name, kind)
                self.event(DraftRemoved(folder=name))
        for name, kind in no_links.entries(self.folder, self.folder).items():
            if name.startswith(layout.PARTIAL_PREFIX) and name.endswith(".tmp"):
                _remove(self.folder / name, kind)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock, and leave no folder of a study of which nothing was written. Idempotent."""
        with contextlib.suppress(OSError):  # trials that are not empty, a folder that is gone
            if not self._lock.closed and {*os.listdir(self.folder)} == {layout.TRIALS, layout.LOCK}:
                self.trials.rmdir()
                (self.folder / layout.LOCK).unlink()
                self.folder.rmdir()
        self._lock.close()

    def _repair(self) -> tuple[Damage, ...]:
        """Make the store fit to be written: files that are not regular are refused, a torn journal is terminated, what
        is no sealed attempt is set aside. Returns all damages."""
        for name in (layout.STUDY_TOML, layout.STUDY_JSON, layout.PLAN, layout.EVENTS, layout.NOISE_FLOOR):
            with _theirs(self.folder / name), contextlib.suppress(FileNotFoundError):
                os.close(no_links.open_file(self.folder / name, self.folder, to_write=True))
        self._repair_journal()
        seals = sealed.seals(journal.read(self.folder / layout.EVENTS))
        kept = sealed.attempts(self.folder, seals)
        damages = list(kept.damages)
        if (self.folder / layout.STUDY_JSON).is_file():
            store = Store(self.folder)
            store.trials()
            with contextlib.suppress(StoreError):
                # Whoever compares the study with the stored one reads it again, and refuses.
                store.study  # noqa: B018
            damages += [damage for damage in store.damages if damage not in damages]
        after = {kept.unfit[name]: self.put_aside(name, kept.unfit[name]) for name in kept.unfit}
        for changed in kept.changed_lines:
            self.event(changed.correction)
            after[changed.damage] = changed.damage.model_copy(update={"hint": CORRECTED})
        for name in kept.gone:
            if not seals[name].missed:
                self.event(FolderMissed(folder=name))
        for damage in kept.gone.values():
            after[damage] = damage.model_copy(update={"hint": MISSING})
        return tuple(sorted((after.get(damage, damage) for damage in damages), key=lambda damage: damage.file))

    def put_aside(self, name: str, damage: Damage) -> Damage:
        """Set an entry of the folder `trials` aside and note it. Returns its damage as it is now."""
        to = self._set_aside(name)
        self.event(FolderSetAside(folder=name, to=to, why=damage.what))
        return damage.model_copy(update={"effect": f"set aside, kept as {to}", "hint": ""})

    def _set_aside(self, name: str) -> str:
        """Move an entry of the folder `trials` out of the way. Returns its new place in the study's folder."""
        aside = self.folder / layout.SET_ASIDE
        with _theirs(aside):
            os.close(no_links.open_folder(aside, self.folder, make=True))
        target, number = aside / name, 1
        while target.exists() or target.is_symlink():
            number += 1
            target = aside / f"{name}~{number}"
        (self.trials / name).rename(target)
        sync_folder(aside)
        sync_folder(self.trials)
        return str(target.relative_to(self.folder))

    def _repair_journal(self) -> None:
        """Terminate a line torn by a power cut, so that the next one is whole."""
        path = self.folder / layout.EVENTS
        if not no_links.is_there(path):
            return
        with _theirs(path):
            content = content_of(path)
        if content and not content.endswith(b"\n"):
            with self._appended(path) as handle:
                handle.write(b"\n")

    def _appended(self, path: Path) -> io.FileIO:
        handle = no_links.open_file(path, self.folder, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        return io.FileIO(handle, "ab")

    def event(self, event: Kept) -> None:
        """Append one line to the journal, whole or not at all. Raises OSError."""
        rest = journal.line(event, time.time(), self.conceal.tree).encode("utf-8")
        path = self.folder / layout.EVENTS
        with self._appended(path) as handle:
            size = os.fstat(handle.fileno()).st_size
            try:
                while rest:
                    rest = rest[handle.write(rest) :]
            except OSError as error:
                os.ftruncate(handle.fileno(), size)
                raise type(error)(error.errno, error.strerror, str(path)) from error

    def intend(self, study: Study, text: str, plan: Plan) -> None:
        """Write the study, as its original file and as parsed, and its plan. Their checksums are in the journal before
        they are written: a file that no session wrote was changed by someone else."""
        head = plan.model_dump_json(exclude={"trials"})
        lines = [head, *(trial.model_dump_json() for trial in plan.trials)]
        files = {
            layout.STUDY_TOML: text,
            layout.STUDY_JSON: study.model_dump_json(indent=1),
            layout.PLAN: "\n".join(lines) + "\n",
        }
        sha256 = {name: hashlib.sha256(content.encode("utf-8")).hexdigest() for name, content in files.items()}
        self.event(StudyWritten(sha256=sha256))
        for name, content in files.items():
            replace_file(self.folder / name, content)

    def noise_floor(self, floor: KeptFloor) -> str:
        """Copy this machine's noise floor into the store, so that a reader needs nothing else. Returns the file's
        SHA-256."""
        path = self.folder / layout.NOISE_FLOOR
        replace_file(path, floor.model_dump_json(indent=1) + "\n")
        return sha256_of(path)

    def draft(self, trial_id: str, attempt: int) -> TrialDraft:
        """Begin an attempt."""
        return TrialDraft(self.trials, trial_id, attempt, self.conceal)
