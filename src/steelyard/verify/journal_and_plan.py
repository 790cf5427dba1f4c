"""Consistency of the journal and the plan with the sealed trials."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from steelyard import no_links
from steelyard.events.base import Unknown
from steelyard.events.kept import FolderMissed, FolderSetAside, NoiseFloorSought, SealCorrected, TrialSealed
from steelyard.judging.settings_hash import settings_hash
from steelyard.model.errors import StoreError
from steelyard.model.plan import PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.progress.reason_words import other_limits
from steelyard.store import layout, sealed
from steelyard.store.journal import Entry, read, why_unreadable, written
from steelyard.store.measured_again import measured_again
from steelyard.store.plain_file import content_of, problem_of, sha256_of
from steelyard.verify.checklist import Book
from steelyard.verify.recompute import measured_here

Key = tuple[str, int]
SAME = ("seed", "block", "start_replicate", "replicate", "control")
"""Fields other than the settings that a trial takes from the plan and keeps; position and factors may change when a
study is widened."""


def study(folder: Path, book: Book) -> None:
    """Check that `study.json` is a study, and that study and plan are as a session wrote them."""
    try:
        name = Study.model_validate_json(content_of(folder / layout.STUDY_JSON)).study.name
        book.check("format", bool(name), layout.STUDY_JSON, "the study's name", name)
    except (OSError, ValueError) as error:
        book.check("format", False, layout.STUDY_JSON, "the study cannot be read", problem_of(error))
    entries = entries_of(folder)
    for file in (layout.STUDY_TOML, layout.STUDY_JSON, layout.PLAN):
        known = written(entries, file)
        if not no_links.is_there(folder / file):
            book.check("written", False, file, "a file that a session wrote", "no such file")
        else:
            sha256 = _sha256_in(folder, file)
            wanted = " or ".join(sorted(known)) or "one that the journal says"
            book.check("written", sha256 in known, file, "SHA-256", sha256, wanted)


def _sha256_in(folder: Path, name: str) -> str:
    """SHA-256 of a file of the store, or why it has none."""
    try:
        return sha256_of(folder / name, folder)
    except OSError as error:
        return problem_of(error)


def limits(folder: Path, records: Mapping[Key, tuple[TrialRecord, str]], book: Book) -> None:
    """Remark on attempts that were judged by other limits than the study has now. A study that cannot be read is a
    finding of `study`."""
    try:
        now = Study.model_validate_json(content_of(folder / layout.STUDY_JSON)).limits
    except (OSError, ValueError):
        return
    for sentence in other_limits((record for record, _ in records.values()), now):
        book.remark("verdict", layout.STUDY_JSON, "limits were changed in mid-study", sentence)


def entries_of(folder: Path) -> tuple[Entry, ...]:
    """The journal; empty if it is not a file, which is a finding of `journal`."""
    try:
        return read(folder / layout.EVENTS)
    except StoreError:
        return ()


def ids(records: Mapping[Key, tuple[TrialRecord, str]], book: Book) -> None:
    """Check that ids follow from settings and replicate numbers."""
    for record, where in records.values():
        wanted = f"{settings_hash(record.settings.root)}-s{record.start_replicate}-t{record.replicate}"
        book.equal("id", where, "id", record.id, wanted)


def machines(records: Mapping[Key, tuple[TrialRecord, str]], book: Book) -> None:
    """Check that every block lies whole on one machine, if the store has trials of several."""
    known = [(record, where) for record, where in records.values() if record.machine_id and record.verdict.final]
    of_blocks: dict[int, dict[str, str]] = {}
    for record, where in known:
        of_blocks.setdefault(record.block, {}).setdefault(record.machine_id, where)
    if len({record.machine_id for record, _ in known}) > 1:
        for block, named in sorted(of_blocks.items()):
            whole = len(named) == 1
            book.check("machine", whole, [*named.values()][-1], f"machines of block {block}", ", ".join(named), "one")


def plan(
    folder: Path, records: Mapping[Key, tuple[TrialRecord, str]], book: Book, not_needed: Collection[str] = ()
) -> None:
    """Check each trial against its entry in the plan. `not_needed`: ids that the stopping rule made unnecessary."""
    planned = _planned(folder, book)
    if planned is None:
        return
    for record, where in records.values():
        wanted = planned.get(record.id)
        if wanted is None:
            book.remark(
                "plan", where, "a trial that the plan no longer has, of an earlier form of the study", record.id
            )
            continue
        book.equal("plan", where, "settings as planned", record.settings.root, wanted.settings.root)
        for name in SAME:
            book.equal("plan", where, f"{name} as planned", getattr(record, name), getattr(wanted, name))
        shared = set(record.treatment) & set(wanted.treatment)
        book.equal(
            "plan", where, "treatment as planned",
            {name: record.treatment[name] for name in sorted(shared)},
            {name: wanted.treatment[name] for name in sorted(shared)},
        )  # fmt: skip
    done = {trial for trial, _ in records}
    for trial in planned:
        if trial in not_needed:
            book.skip("trials that are planned and, by the stopping rule, not needed")
        elif trial not in done:
            book.skip("trials that are planned and not yet sealed")


def _planned(folder: Path, book: Book) -> dict[str, PlannedTrial] | None:
    path = folder / layout.PLAN
    if not no_links.is_there(path):
        book.remark("plan", layout.PLAN, "the plan", "no such file")
        return None
    planned: dict[str, PlannedTrial] = {}
    try:
        head, *lines = content_of(path).decode("utf-8").splitlines() or [""]
        json.loads(head)
    except (OSError, ValueError, RecursionError) as error:
        book.check("format", False, layout.PLAN, "the plan cannot be read", problem_of(error))
        return None
    for number, line in enumerate(lines, start=2):
        try:
            trial = PlannedTrial.model_validate_json(line)
        except ValidationError:
            book.check("format", False, layout.PLAN, f"line {number}", "no planned trial", "a planned trial")
            continue
        wanted = f"{settings_hash(trial.settings.root)}-s{trial.start_replicate}-t{trial.replicate}"
        book.equal("id", layout.PLAN, f"line {number}: id", trial.id, wanted)
        planned[trial.id] = trial
    return planned


def journal(
    folder: Path, records: Mapping[Key, tuple[TrialRecord, str]], unreadable: Sequence[str], book: Book
) -> None:
    """Check that every trial that the journal reports as sealed exists, with the same verdict. `unreadable`: folders
    without a readable record."""
    entries = entries_of(folder)
    if not entries:
        read_as = "nothing in it" if no_links.is_there(folder / layout.EVENTS) else "no such file"
        if records:
            book.check("journal", False, layout.EVENTS, "the journal", read_as, "a line for each sealed trial")
        else:
            book.remark("journal", layout.EVENTS, "the journal", read_as)
        return
    _remarks(entries, book)
    lines = _last_lines(entries)
    for changed in _changed_lines(folder, entries):
        written, record = changed.seal.event, changed.record
        lines.pop((written.trial, written.attempt), None)
        lines[record.key] = changed.correction.sealed(), changed.seal.line, False
        expected = f"what the record in {layout.TRIALS}/{layout.trial_folder(record.id, record.attempt)} says"
        what = f"line {changed.seal.line}: trial {record.id}"
        book.check("journal", False, layout.EVENTS, what, f"a changed line: {changed.why}", expected)
    missed = {key for key, (_, _, gone) in lines.items() if gone}
    for key, (event, number, _) in lines.items():
        if key not in missed or key not in records:
            _sealed(event, number, folder, records, unreadable, book)
    for key, (_, where) in records.items():
        if key not in lines or key in missed:
            book.remark("journal", where, "a trial", "the journal does not know it: copied from another store?")


def _remarks(entries: Sequence[Entry], book: Book) -> None:
    """Unusual events in the journal."""
    for entry in entries:
        match entry.event:
            case None:
                why = why_unreadable([entry.number], entries[-1].number)
                book.remark("journal", layout.EVENTS, f"line {entry.number}", f"cannot be read: {why}")
            case Unknown(name=TrialSealed.name, problem=problem):
                book.check("journal", False, layout.EVENTS, f"line {entry.number}: a sealed trial", problem)
            case FolderSetAside(folder=name, to=to, why=why):
                book.remark("journal", layout.EVENTS, f"line {entry.number}: {name} was set aside as {to}", why)
            case SealCorrected(line=line, why=why):
                book.remark("journal", layout.EVENTS, f"line {line} was changed, line {entry.number} corrects it", why)
    for again in measured_again(entries):
        book.remark("journal", layout.EVENTS, "a trial that was measured again", again.sentence)


def _changed_lines(folder: Path, entries: Sequence[Entry]) -> tuple[sealed.ChangedLine, ...]:
    """Lines of the journal that were changed although their trials were not. What cannot be read is a finding of other
    checks."""
    try:
        return sealed.attempts(folder, sealed.seals(entries)).changed_lines
    except StoreError:
        return ()


def _last_lines(entries: Sequence[Entry]) -> dict[Key, tuple[TrialSealed, int, bool]]:
    """The last line about each attempt that was not set aside since: one that was measured again was sealed more
    than once. With its number, and whether a session has missed the attempt since. Independent of `store.sealed.seals`,
    which is checked by it."""
    lines: dict[str, tuple[TrialSealed, int, bool]] = {}
    for entry in entries:
        match entry.event:
            case TrialSealed(trial=trial, attempt=attempt) as event:
                lines[layout.trial_folder(trial, attempt)] = event, entry.number, False
            case SealCorrected(instead_of=misread) as corrected:
                lines.pop(misread, None)
                event = corrected.sealed()
                lines[layout.trial_folder(event.trial, event.attempt)] = event, entry.number, False
            case FolderSetAside(folder=name):
                lines.pop(name, None)
            case FolderMissed(folder=name) if name in lines:
                lines[name] = (*lines[name][:2], True)
    return {(line[0].trial, line[0].attempt): line for line in lines.values()}


def _sealed(
    event: TrialSealed,
    number: int,
    folder: Path,
    records: Mapping[Key, tuple[TrialRecord, str]],
    unreadable: Sequence[str],
    book: Book,
) -> None:
    """Check one line of the journal about a sealed trial."""
    key = (event.trial, event.attempt)
    name = layout.trial_folder(*key)
    if key in records:
        _event(event, *records[key], folder, number, book)
    elif name not in unreadable:
        what = f"line {number}: trial {name} was sealed as {event.outcome}"
        book.check("journal", False, layout.EVENTS, what, "no such folder", f"{layout.TRIALS}/{name}")


def noise_floor(folder: Path, book: Book) -> None:
    """Check that the noise floor in the store is the one that the laboratory wrote last."""
    path = folder / layout.NOISE_FLOOR
    sought = [entry.event for entry in entries_of(folder) if isinstance(entry.event, NoiseFloorSought)]
    events = [event for event in sought if event.found]
    if not no_links.is_there(path):
        if events:
            book.check("floor", False, layout.NOISE_FLOOR, "the noise floor", "no such file", "the one of the journal")
        return
    wanted = events[-1].sha256 if events else None
    if wanted is None:
        book.remark("floor", layout.NOISE_FLOOR, "the noise floor", "the journal does not know its SHA-256")
        return
    book.equal("floor", layout.NOISE_FLOOR, "SHA-256, as the journal says", _sha256_in(folder, path.name), wanted)


def _event(event: TrialSealed, record: TrialRecord, where: str, folder: Path, number: int, book: Book) -> None:
    line = f"as line {number} of the journal says"
    reasons = [reason.kind.name for reason in record.verdict.reasons]
    wanted, sha256 = event.record_sha256, _sha256_in(folder, where)
    if sha256 != wanted:
        what = f"SHA-256 of the record (it was changed, or line {number} of {layout.EVENTS} was)"
        book.check("record", False, where, what, sha256, wanted)
    else:
        book.check("record", True, where, "SHA-256 of the record", sha256)
    book.equal("journal", where, f"outcome, {line}", record.verdict.outcome, event.outcome)
    book.equal("journal", where, f"reasons, {line}", reasons, list(event.reasons))


def capacities(records: Mapping[Key, tuple[TrialRecord, str]], book: Book) -> None:
    """Check capacities that were measured by another trial against that trial's record."""
    measured = {
        (record.id, record.capacity.measured_s): record.capacity
        for record, _ in records.values()
        if record.capacity is not None and measured_here(record)
    }
    for record, where in records.values():
        if record.capacity is None or measured_here(record):
            continue
        source = measured.get((record.capacity.trial, record.capacity.measured_s))
        if source is None:
            book.remark("capacity", where, "the trial that measured the capacity", record.capacity.trial)
        else:
            book.equal("capacity", where, "capacity", record.capacity.rate_per_s, source.rate_per_s)
