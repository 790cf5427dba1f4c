"""Sealed attempts: which folders of a store count as trials, and why the others do not.

A folder counts if its record can be read, if it has the name of the record's id and attempt (a copy under another name
would be counted twice), and if the record is the one that the journal says was sealed. A record that the journal does
not know counts too: it was copied from another store, or its process was killed before it wrote the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.damage import Damage
from steelyard.model.errors import OtherFormatError, StoreError
from steelyard.model.secret import redacted
from steelyard.model.trial import TrialRecord
from steelyard.store import journal, layout
from steelyard.store.plain_file import content_of, problem_of

FREE_TEXT = ("settings", "treatment", "verdict")
"""Fields of a trial's record that hold text from the study's author or from nodes: secrets in them are redacted."""
NOT_COUNTED = "not counted"
RESTORE = "restore it from a copy; otherwise the next `steelyard run` sets it aside and measures the trial again"
OTHER_VERSION = "use the version of Steelyard that wrote it"


@dataclass(frozen=True)
class Attempts:
    """What the folder `trials` holds."""

    records: tuple[TrialRecord, ...]
    """Attempts that count, in order of time."""
    unfit: Mapping[str, Damage]
    """Other entries by their name."""
    gone: Mapping[str, Damage]
    """Folders that the journal says were sealed and that are not there."""

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Everything that is wrong."""
        return (*self.unfit.values(), *self.gone.values())


def seals(entries: Iterable[journal.Entry]) -> dict[str, str | None]:
    """Folder name of each attempt that was sealed and not set aside since, to the SHA-256 of its record; None where
    the journal does not say."""
    known: dict[str, str | None] = {}
    for entry in entries:
        match entry.event:
            case journal.TrialSealed(trial=trial, attempt=attempt, record_sha256=sha256):
                known[layout.trial_folder(trial, attempt)] = sha256
            case journal.FolderSetAside(folder=folder):
                known.pop(folder, None)
            case journal.FolderMissed(folder=folder):
                # What stands there later was measured after the line about the former one.
                known[folder] = None
    return known


def attempts(store: Path, sealed: Mapping[str, str | None]) -> Attempts:
    """Read every attempt of the store's folder; `sealed` is what the journal says, see `seals`. Raises OtherFormatError
    for a record of another version, StoreError if the folder itself cannot be read."""
    folder = store / layout.TRIALS
    records: list[TrialRecord] = []
    unfit: dict[str, Damage] = {}
    names = _names(folder)
    for name in names:
        try:
            records.append(attempt(folder / name, sealed.get(name)))
        except OtherFormatError:
            raise
        except StoreError as error:
            file = str(Path(error.path).relative_to(store))
            unfit[name] = Damage(file=file, what=error.what, effect=NOT_COUNTED, remedy=error.hint)
    gone = {
        name: Damage(
            file=f"{layout.TRIALS}/{name}",
            what="the journal says that it was sealed, and it is not there",
            effect=NOT_COUNTED,
            remedy="restore it from a copy; otherwise the next `steelyard run` measures what is missing",
        )
        for name in sorted(sealed.keys() - set(names))
    }
    return Attempts(tuple(sorted(records, key=_in_time)), unfit, gone)


def _in_time(record: TrialRecord) -> tuple[float, str, int]:
    return record.begun_s, record.id, record.attempt


def _names(folder: Path) -> list[str]:
    """Entries of the folder `trials` without drafts."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"{folder} cannot be read: {problem_of(error)}"
        raise StoreError(message, "move away what is in the place of the folder", path=str(folder)) from error
    return sorted(name for name in names if not name.startswith(layout.PARTIAL_PREFIX))


def attempt(folder: Path, sha256: str | None = None) -> TrialRecord:
    """One sealed attempt, with the treatment as recorded. `sha256`: of its record when it was sealed, if known.

    Raises StoreError, with the file, if it is incomplete, unreadable, a copy or changed; OtherFormatError if another
    version wrote it.
    """
    path = folder / layout.TRIAL_JSON
    if not folder.is_dir():
        raise _unfit(folder, "a file in the place of a trial's folder", "move it away")
    try:
        content = content_of(path)
        read = json.loads(content)
        if not isinstance(read, dict):
            raise ValueError(f"a {type(read).__name__} where a table should be")
        version = read.get("format")
        if version == layout.FORMAT:
            free = {key: redacted(read[key]) for key in FREE_TEXT if key in read}
            record = TrialRecord.model_validate({**read, **free})
    except FileNotFoundError as error:
        raise _unfit(folder, f"it has no {layout.TRIAL_JSON}", RESTORE) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _unfit(path, f"the record cannot be read: {problem_of(error)}", RESTORE) from error
    changed = sha256 is not None and hashlib.sha256(content).hexdigest() != sha256
    if version != layout.FORMAT and not changed:
        message = f"{path} has format {version}, this version reads {layout.FORMAT}"
        raise OtherFormatError(message, OTHER_VERSION, path=str(path))
    if changed:
        raise _unfit(path, "the record was changed after it was sealed: its SHA-256 is not the journal's", RESTORE)
    name = layout.trial_folder(record.id, record.attempt)
    if folder.name != name:
        what = f"a copy: the record in it is that of {name}"
        raise _unfit(folder, what, f"remove it, or rename it to {name} if that is missing")
    return record


def _unfit(path: Path, what: str, hint: str) -> StoreError:
    return StoreError(f"{path}: {what}", hint, path=str(path), what=what)
