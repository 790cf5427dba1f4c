"""`steelyard report STORE`: from the store to one page, and to files for a paper."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from steelyard.analysis.analyse import analyse
from steelyard.analysis.tables import columns, tables, titles
from steelyard.model.errors import StoreError
from steelyard.report import export, figures, traces
from steelyard.report.page import PageInput, build
from steelyard.report.traces import Trace
from steelyard.report.view import Figure
from steelyard.store.read import Store, open_store

EXIT_DONE, EXIT_SOME_INVALID = 0, 1
PAGE = "report.html"


def report(
    store: Path,
    *,
    output: Path | None,
    tables: Path | None,
    figures: Path | None,
    as_json: bool,
    console: Console,
) -> int:
    """Write the page (to `output`, else `report.html` in the study's folder) and whatever else is asked for.

    With `as_json` all tables go to stdout, and the page is written only if `output` names it. Returns 0, or 1 if some
    attempts are not valid. Raises StoreError if the store has no sealed trial.
    """
    page_input = gather(open_store(store))
    if as_json:
        print(export.as_json(page_input.tables, columns(page_input.results)))
    if output is not None or not as_json:
        path = output or open_store(store).folder / PAGE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build(page_input), encoding="utf-8")
        console.print(f"report  {path}", highlight=False)
    if tables is not None:
        written = export.tables(page_input.tables, titles(page_input.results), tables)
        console.print(f"tables  {tables} ({len(written)} files)", highlight=False)
    if figures is not None:
        written = export.figures(_figures(page_input), figures)
        console.print(f"figures {figures} ({len(written)} files)", highlight=False)
    invalid = any(record.verdict.outcome != "valid" for record in page_input.records)
    return EXIT_SOME_INVALID if invalid else EXIT_DONE


def gather(store: Store) -> PageInput:
    """Read a store and analyse it. Samples and facts are read only of the trials that the page shows."""
    records, study = store.trials(), store.study
    if not records:
        raise StoreError(
            f"{store.folder} has no sealed trial yet",
            "wait for the first trial, or run the study",
            path=str(store.folder),
        )
    results = analyse(records, study, seed=study.design.seed)
    used = {(point.trial_id, point.attempt): point.value for point in results.points if point.used}
    shown = traces.chosen(records, used)
    largest = max(shown or records, key=lambda record: len(store.facts(record)))
    return PageInput(
        study=study,
        plan=store.plan,
        results=results,
        records=records,
        traces=tuple(Trace(record, store.samples(record), _databases(store.facts(record))) for record in shown),
        facts=store.facts(largest),
        tables=tables(results),
    )


def _databases(facts: dict[str, dict[str, str]]) -> tuple[str, ...]:
    """The nodes that the system has facts about."""
    return tuple(name.removeprefix("system:") for name in facts if name.startswith("system:"))


def _figures(page_input: PageInput) -> dict[str, Figure]:
    found = figures.of_results(page_input.results, page_input.records)
    for trace in page_input.traces:
        figure = traces.figure(trace)
        if figure is not None:
            found[figure.name] = figure
    return found
