"""`steelyard verify STORE`: checksums, forms, plan, journal, every number that the raw files give, and the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.tables import tables
from steelyard.format import count
from steelyard.model.errors import SteelyardError, StoreError
from steelyard.model.trial import TrialRecord
from steelyard.store import layout
from steelyard.store.read import Store, open_store
from steelyard.verify import files, journal_and_plan, page, recompute, stopping
from steelyard.verify.checklist import CHECKS, Book, Verification

EXIT_SOUND, EXIT_DIFFERENCE = 0, 1
MOST_FINDINGS = 50
"""On the screen; `--json` has all."""


def verify(store: Path, *, reports: Sequence[Path], as_json: bool, console: Console) -> int:
    """Check a store and tell what was checked. Returns 0, or 1 if something differs (remarks do not count).

    `reports`: pages or `report --json` output to check too; without, the store's own page if there is one. Raises
    StoreError where there is no store, or a report that was named is not there.
    """
    opened = open_store(store)
    for path in reports:
        if not path.is_file():
            raise StoreError(f"{path}: no such report", "name a page, or what `report --json` printed", path=str(path))
    found = check(opened, reports)
    if as_json:
        told = {**found.model_dump(mode="json"), "sound": found.sound, "checks": CHECKS}
        print(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        draw(found, console)
    return EXIT_SOUND if found.sound else EXIT_DIFFERENCE


def check(store: Store, reports: Sequence[Path] = ()) -> Verification:
    """Everything that can be checked; nothing is written."""
    book, folder = Book(), store.folder
    journal_and_plan.study(folder, book)
    records: dict[journal_and_plan.Key, tuple[TrialRecord, str]] = {}
    unreadable = []
    folders = files.sealed_folders(folder)
    for one in folders:
        record = files.read_record(folder, one, book)
        if record is None:
            unreadable.append(one.name)
            continue
        where = str((one / layout.TRIAL_JSON).relative_to(folder))
        if (record.id, record.attempt) in records:
            book.check("format", False, where, "id and attempt", "those of another folder too", "its own")
            continue
        records[record.id, record.attempt] = (record, where)
        files.checksums(folder, one, record, book)
        files.facts(folder, one, book)
        files.frames(folder, one, layout.SAMPLES, book)
        intervals = files.frames(folder, one, layout.INTERVALS, book)
        if intervals is not None:
            recompute.trial(record, intervals, where, book)
    journal_and_plan.ids(records, book)
    journal_and_plan.plan(folder, records, book, stopping.stopping(folder, records, book))
    journal_and_plan.journal(folder, records, unreadable, book)
    journal_and_plan.noise_floor(folder, book)
    journal_and_plan.capacities(records, book)
    _reports(store, reports, book)
    return Verification(
        store=str(folder),
        trials=len(folders),
        made=dict(book.made),
        findings=tuple(book.findings),
        not_checked=dict(book.not_checked),
    )


def _reports(store: Store, reports: Sequence[Path], book: Book) -> None:
    from steelyard.cli.report import PAGE, gather
    from steelyard.report.export import as_json
    from steelyard.report.page import build

    own = store.folder / PAGE
    chosen = list(reports) or ([own] if own.is_file() else [])
    if not chosen:
        book.skip("a report: there is none, `steelyard report` makes one")
        return
    try:
        now = gather(store)
    except SteelyardError as error:
        book.check("report", False, str(chosen[0]), "the report cannot be made again", error.message)
        return
    again = json.loads(as_json(tables(now.results), {}))
    for path in chosen:
        where = str(path.relative_to(store.folder)) if path.is_relative_to(store.folder) else str(path)
        found, lines = page.read(path, where, book)
        if found is None:
            continue
        late = page.older(found, again)
        if late:
            book.remark("report", where, "made before trials were sealed, so not compared", f"{late} trials since")
            continue
        page.compare_tables(found, again, where, book)
        if lines and not page.same_form(found, again):
            book.remark("report", where, "text of the page", "made by another version: not compared")
        elif lines:
            page.compare_lines(lines, page.lines_of(build(now)), where, book)


def draw(found: Verification, console: Console) -> None:
    """Findings, then the checks by kind, what could not be checked, and the sentence."""
    for one in found.findings[:MOST_FINDINGS]:
        style = "bold red" if one.weight == "difference" else "bold yellow"
        console.print(Text.assemble((f"{one.weight}, {one.kind}  ", style), one.words()), soft_wrap=True)
    if len(found.findings) > MOST_FINDINGS:
        console.print(Text(f"and {len(found.findings) - MOST_FINDINGS:,} more: --json"), soft_wrap=True)
    if found.findings:
        console.print()
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("kind", no_wrap=True)
    grid.add_column("checks", justify="right", no_wrap=True)
    grid.add_column("differ", justify="right", no_wrap=True)
    grid.add_column("what holds where nothing differs")
    for kind, told in CHECKS.items():
        if kind in found.made:
            differ = sum(one.kind == kind and one.weight == "difference" for one in found.findings)
            grid.add_row(kind, f"{found.made[kind]:,}", str(differ or "-"), told)
    console.print(grid)
    for why, times in found.not_checked.items():
        console.print(Text(f"not checked ({times:,}): {why}", style="dim"), soft_wrap=True)
    differ = sum(one.weight == "difference" for one in found.findings)
    remarks = len(found.findings) - differ
    said = "nothing differs" if found.sound else f"{count(differ, 'difference')}"
    said += f", {count(remarks, 'remark')}" if remarks else ""
    checks = sum(found.made.values())
    trials = count(found.trials, "trial")
    console.print(
        Text(f"{found.store}: {said} in {checks:,} checks of {trials}", style="green" if found.sound else "bold red"),
        soft_wrap=True,
    )
