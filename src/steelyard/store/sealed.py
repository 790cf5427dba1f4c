"""Sealed attempts: which folders of a store count as trials, and why the others do not.

A folder counts if its record can be read, if it has the name of the record's id and attempt (a copy under another name
would be counted twice), and if the record is the one that the journal says was sealed. A record that the journal does
not know counts too: it was copied from another store, or its process was killed before it wrote the line.

Where record and journal contradict each other, the line of the journal is to blame if the line itself proves it
(`_line_changed`): then the trial counts, and the next writer corrects the line. Otherwise the trial does not count, and
both are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from steelyard import no_links
from steelyard.events.kept import FolderMissed, FolderSetAside, SealCorrected, TrialSealed
from steelyard.model.damage import Damage
from steelyard.model.errors import OtherFormatError, StoreError
from steelyard.model.file_format import OTHER_VERSION, READS, other_format
from steelyard.model.secret import redacted
from steelyard.model.trial import TrialRecord
from steelyard.store import journal, layout
from steelyard.store.measured_again import reason_words
from steelyard.store.plain_file import MOST_RECORD_BYTES, json_of, problem_of, sha256_of

FREE_TEXT = ("settings", "treatment", "verdict")
"""Fields of a trial's record that hold text from the study's author or from nodes: secrets in them are redacted."""
NOT_COUNTED = "not counted"
RESTORE = "restore it from a copy; otherwise the next `steelyard run` sets it aside and measures the trial again"
RESTORE_EITHER = (
    "restore the changed one of the two from a copy; otherwise the next `steelyard run` sets the trial's folder aside, "
    "keeps it, and measures the trial again"
)
CORRECTED_BY_RUN: Final = (
    f"restore {layout.EVENTS} from a copy; otherwise the next `steelyard run` corrects it by a new line"
)
SHA256: Final = re.compile(r"[0-9a-f]{64}")
DIGITS_ALIKE: Final = 32
"""Equal digits of two SHA-256 from which one was made of the other by hand: 4 of the 64 are equal by chance, and of
10^15 pairs not one has 32."""


@dataclass(frozen=True)
class Seal:
    """One sealed attempt by the journal."""

    line: int
    """Line of the journal."""
    event: TrialSealed
    sha256: str | None
    """SHA-256 of its record; None if the journal says it of a measurement that is gone."""
    missed: bool = False
    """Whether a session has since found it missing."""


@dataclass(frozen=True)
class ChangedLine:
    """A line of the journal that was changed after it was written, as it proves itself."""

    seal: Seal
    record: TrialRecord
    """The record that the line is about: it counts."""
    sha256: str
    """SHA-256 of that record."""
    why: str

    @property
    def damage(self) -> Damage:
        """The line as a damage of the journal."""
        trial = f"{layout.TRIALS}/{layout.trial_folder(self.record.id, self.record.attempt)}"
        what = f"line {self.seal.line} was changed: {self.why}"
        effect = f"{trial} counts as its record says"
        return Damage(file=layout.EVENTS, what=what, effect=effect, hint=CORRECTED_BY_RUN, harmless=True)

    @property
    def correction(self) -> SealCorrected:
        """Line that the next writer notes instead."""
        verdict, written = self.record.verdict, self.seal.event
        return SealCorrected(
            line=self.seal.line,
            instead_of=layout.trial_folder(written.trial, written.attempt),
            trial=self.record.id,
            attempt=self.record.attempt,
            outcome=verdict.outcome,
            reasons=tuple(reason.kind.name for reason in verdict.reasons),
            record_sha256=self.sha256,
            why=self.why,
        )


@dataclass(frozen=True)
class Attempts:
    """Content of the folder `trials`."""

    records: tuple[TrialRecord, ...]
    """Attempts that count, in order of time."""
    unfit: Mapping[str, Damage]
    """Other entries by their name."""
    gone: Mapping[str, Damage]
    """Folders that were sealed according to the journal but are missing."""
    changed_lines: tuple[ChangedLine, ...] = ()
    """Lines of the journal that were changed, although their trials were not."""

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Everything that is wrong."""
        return (*self.unfit.values(), *self.gone.values(), *(line.damage for line in self.changed_lines))


def seals(entries: Iterable[journal.Entry]) -> dict[str, Seal]:
    """Folder name of each attempt that was sealed and not set aside since, to what the journal says of it."""
    known: dict[str, Seal] = {}
    for entry in entries:
        match entry.event:
            case TrialSealed(trial=trial, attempt=attempt, record_sha256=sha256) as event:
                known[layout.trial_folder(trial, attempt)] = Seal(entry.number, event, sha256)
            case SealCorrected(instead_of=misread) as event:
                known.pop(misread, None)
                seal = event.sealed()
                known[layout.trial_folder(seal.trial, seal.attempt)] = Seal(entry.number, seal, seal.record_sha256)
            case FolderSetAside(folder=folder):
                known.pop(folder, None)
            case FolderMissed(folder=folder) if folder in known:
                # Anything found there later was measured after that line.
                known[folder] = Seal(known[folder].line, known[folder].event, None, missed=True)
    return known


def attempts(store: Path, sealed: Mapping[str, Seal]) -> Attempts:
    """Read every attempt of the store's folder; `sealed` is what the journal says, see `seals`. Raises OtherFormatError
    for a record of another version, StoreError if the folder itself cannot be read."""
    folder = store / layout.TRIALS
    entries = _Sorted()
    names = _names(folder)
    gone = {name: sealed[name] for name in sorted(sealed.keys() - set(names))}
    for name in names:
        try:
            _look(folder / name, sealed.get(name), gone, entries)
        except OtherFormatError:
            raise
        except StoreError as error:
            file = no_links.name_below(Path(error.path), store)
            entries.unfit[name] = Damage(file=file, what=error.what, effect=NOT_COUNTED, hint=error.hint)
    missed = {
        name: Damage(
            file=f"{layout.TRIALS}/{name}",
            what=f"the journal says that it was sealed as {_as(seal.event)}, but it is missing",
            effect=NOT_COUNTED,
            hint="restore it from a copy; otherwise the next `steelyard run` measures what is missing",
        )
        for name, seal in gone.items()
    }
    records = tuple(sorted(entries.records, key=_in_time))
    return Attempts(records, entries.unfit, missed, tuple(entries.changed_lines))


@dataclass(frozen=True)
class _Sorted:
    records: list[TrialRecord] = field(default_factory=list)
    unfit: dict[str, Damage] = field(default_factory=dict)
    changed_lines: list[ChangedLine] = field(default_factory=list)


def _look(folder: Path, seal: Seal | None, gone: dict[str, Seal], entries: _Sorted) -> None:
    """Enter what one entry of the folder `trials` is. A line that turns out to be about this folder is taken out of
    `gone`. Raises StoreError, see `attempt`."""
    record, sha256 = _read(folder, seal)
    if seal is None:
        # Computed for folders that the journal does not know, and only where it misses some.
        named = next((name for name, line in gone.items() if line.sha256 == sha256), "") if gone else ""
        if named:
            moved = gone.pop(named)
            why = f"it names {named}, with the SHA-256 of the record in {layout.TRIALS}/{folder.name}"
            entries.changed_lines.append(ChangedLine(moved, record, sha256, why))
    elif seal.sha256 is not None and (why := _line_changed(folder, record, sha256, seal)):
        entries.changed_lines.append(ChangedLine(seal, record, sha256, why))
    entries.records.append(record)


def _as(event: TrialSealed) -> str:
    reasons = ", ".join(reason_words(name) for name in event.reasons)
    return f"{event.outcome} ({reasons})" if reasons else event.outcome


def _in_time(record: TrialRecord) -> tuple[float, str, int]:
    return record.begun_s, record.id, record.attempt


def _names(folder: Path) -> list[str]:
    """Entries of the folder `trials` without drafts."""
    try:
        names = no_links.entries(folder, folder.parent)
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"{folder} cannot be read: {problem_of(error)}"
        raise StoreError(message, "move away what is in the place of the folder", path=str(folder)) from error
    return [name for name in names if not name.startswith(layout.PARTIAL_PREFIX)]


def attempt(folder: Path, seal: Seal | None = None) -> TrialRecord:
    """One sealed attempt, with the treatment as recorded. `seal`: what the journal says of it, if anything.

    Raises StoreError, with the file, if it is incomplete, unreadable, a copy or changed; OtherFormatError if another
    version wrote it.
    """
    return _read(folder, seal)[0]


def _read(folder: Path, seal: Seal | None) -> tuple[TrialRecord, str]:
    """The record of a sealed attempt and its SHA-256. Raises as `attempt` does."""
    path = folder / layout.TRIAL_JSON
    if not folder.is_dir():
        raise _unfit(folder, "a file in the place of a trial's folder", "move it away")
    try:
        read, sha256 = json_of(path, folder.parent.parent, MOST_RECORD_BYTES)
        if not isinstance(read, dict):
            raise ValueError(f"a {type(read).__name__} where a table should be")
        version = read.get("format")
        if version == READS:
            free = {key: redacted(read[key]) for key in FREE_TEXT if key in read}
            record = TrialRecord.model_validate({**read, **free})
            record.settings.check()
    except FileNotFoundError as error:
        raise _unfit(folder, f"it has no {layout.TRIAL_JSON}", RESTORE) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _unfit(path, f"the record cannot be read: {problem_of(error)}", RESTORE) from error
    differs = seal is not None and seal.sha256 not in (None, sha256)
    if version != READS and not differs:
        raise OtherFormatError(f"{path} {other_format(version)}", OTHER_VERSION, path=str(path))
    if seal is not None and differs and (version != READS or not _line_changed(folder, record, sha256, seal)):
        what = f"the record was changed after it was sealed, or line {seal.line} of {layout.EVENTS} was: "
        raise _unfit(path, f"{what}their SHA-256 differ", RESTORE_EITHER)
    name = layout.trial_folder(record.id, record.attempt)
    if folder.name != name:
        what = f"a copy: the record in it is that of {name}"
        raise _unfit(folder, what, f"remove it, or rename it to {name} if that is missing")
    return record, sha256


def _line_changed(folder: Path, record: TrialRecord, sha256: str, seal: Seal) -> str:
    """Proof that the line of the journal, and not the record, was changed; empty if it is not."""
    written = seal.sha256 or ""
    if written == sha256:
        verdict = record.verdict
        same = seal.event.outcome == verdict.outcome
        same = same and list(seal.event.reasons) == [reason.kind.name for reason in verdict.reasons]
        return "" if same else f"it says {_as(seal.event)}, and has the SHA-256 of a record that says otherwise"
    if folder.name != layout.trial_folder(record.id, record.attempt):
        return ""
    alike = sum(mine == theirs for mine, theirs in zip(written, sha256, strict=False))
    if SHA256.fullmatch(written) and alike >= DIGITS_ALIKE:
        return f"its SHA-256 is that of the record in all but {len(sha256) - alike} of the 64 digits"
    if not SHA256.fullmatch(written) and record.checksums and _files_as_sealed(folder, record):
        return "its SHA-256 is none, and every file of the trial is as the record says"
    return ""


def _files_as_sealed(folder: Path, record: TrialRecord) -> bool:
    try:
        return all(sha256_of(folder / name, folder) == sha256 for name, sha256 in record.checksums.items())
    except OSError:
        return False


def _unfit(path: Path, what: str, hint: str) -> StoreError:
    return StoreError(f"{path}: {what}", hint, path=str(path), what=what)
