"""Verification of a whole store: all checks in order, read only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Final

from steelyard import no_links
from steelyard.analysis.tables import tables
from steelyard.format import count
from steelyard.model.errors import SteelyardError
from steelyard.model.trial import TrialRecord
from steelyard.reading.parallel import mapped
from steelyard.reading.reading import reading_of
from steelyard.report.export import as_json
from steelyard.report.page import PAGE, build
from steelyard.store import layout
from steelyard.store.read import Store
from steelyard.verify import files, journal_and_plan, page, recompute, scaling, stopping
from steelyard.verify.checklist import MAKE_AGAIN, Book, Verification

MOST_NAMED: Final = 3


def verification(store: Store, reports: Sequence[Path] = (), executor: Executor | None = None) -> Verification:
    """Run every check; nothing is written. `executor`: checks trials; None: this process does."""
    book, folder = Book(), store.folder
    journal_and_plan.study(folder, book)
    records: dict[journal_and_plan.Key, tuple[TrialRecord, str]] = {}
    unreadable = []
    folders = files.sealed_folders(folder)
    names = [trial_folder.name for trial_folder in folders]
    for name, (record, of_record, of_files) in zip(names, mapped(_trial, folder, names, executor), strict=True):
        book.take(of_record)
        where = no_links.name_below(folder / layout.TRIALS / name / layout.TRIAL_JSON, folder)
        if record is None:
            unreadable.append(name)
        elif record.key in records:
            book.check("format", False, where, "id and attempt", "those of another folder too", "its own")
        else:
            records[record.key] = (record, where)
            book.take(of_files)
    scaling.thresholds(store, records, book)
    journal_and_plan.ids(records, book)
    journal_and_plan.machines(records, book)
    journal_and_plan.plan(folder, records, book, stopping.stopping(folder, records, book))
    journal_and_plan.journal(folder, records, unreadable, book)
    journal_and_plan.limits(folder, records, book)
    journal_and_plan.noise_floor(folder, book)
    journal_and_plan.capacities(records, book)
    _reports(store, reports, book, executor)
    return Verification(
        store=str(folder),
        trials=len(folders),
        made=dict(book.made),
        findings=book.causes_first(),
        not_checked=dict(book.not_checked),
    )


def _trial(folder: Path, name: str) -> tuple[TrialRecord | None, Book, Book]:
    """The record of an attempt, the checks of it alone, and those of its files and numbers."""
    trial_folder, of_record, book = folder / layout.TRIALS / name, Book(), Book()
    record = files.read_record(folder, trial_folder, of_record)
    if record is None:
        return None, of_record, book
    where = no_links.name_below(trial_folder / layout.TRIAL_JSON, folder)
    files.checksums(folder, trial_folder, record, book)
    given = files.facts(folder, trial_folder, record, book)
    samples = files.frames(folder, trial_folder, layout.SAMPLES, book)
    if samples is not None and given is not None:
        recompute.measures(record, samples, *given, where, book)
    intervals = files.frames(folder, trial_folder, layout.INTERVALS, book)
    if intervals is not None:
        recompute.trial(record, intervals, where, book)
        if samples is not None and given is not None:
            scaling.scaling(record, samples, given[0], intervals, where, book)
    return record, of_record, book


def _reports(store: Store, reports: Sequence[Path], book: Book, executor: Executor | None) -> None:
    own = store.folder / PAGE
    chosen = list(reports) or ([own] if no_links.is_there(own) else [])
    if not chosen:
        book.skip("a report: there is none, `steelyard report` creates one")
        return
    try:
        now = reading_of(store, executor).report_input()
    except SteelyardError as error:
        book.check("report", False, str(chosen[0]), "the report cannot be made again", error.message)
        return
    again = json.loads(as_json(tables(now.results), {}))
    damaged = any(finding.weight == "difference" for finding in book.findings)
    for path in chosen:
        where = str(path.relative_to(store.folder)) if path.is_relative_to(store.folder) else str(path)
        reported, lines = page.read(path, where, book)
        if reported is None:
            continue
        late = page.older(reported, again)
        if late:
            sealed = f"{count(late, 'trial was', 'trials were')} sealed since: {MAKE_AGAIN}"
            book.remark("report", where, "made before trials were sealed, so not compared", sealed)
            continue
        compared = Book()
        page.compare_tables(reported, again, where, compared)
        if lines and not page.same_form(reported, again):
            compared.remark("report", where, "text of the page", "made by another version: not compared")
        elif lines:
            page.compare_lines(lines, page.lines_of(build(now)), where, compared)
        why = _why_other(store, reported, again, damaged=damaged) if compared.differences else ""
        book.take(compared, findings=not why)
        if why:
            values = count(compared.differences, "value is", "values are")
            book.remark("report", where, f"made before {why}", f"{values} not those of the store now: {MAKE_AGAIN}")


def _why_other(store: Store, reported: page.Tables, again: page.Tables, *, damaged: bool) -> str:
    """Changes of the store since a report was made that explain why its numbers are others; empty if nothing
    did."""
    moved = page.other_measurements(reported, again)
    since = [one.folder for one in store.measured_again if one.folder in moved]
    if since:
        return f"{count(len(since), 'trial was', 'trials were')} measured again ({', '.join(since[:MOST_NAMED])})"
    return "the store was damaged (see the differences)" if damaged else ""
