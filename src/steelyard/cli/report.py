"""`steelyard report STORE`: from the store to one page, and to files for a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from steelyard.analysis.analyse import analyse
from steelyard.analysis.tables import columns, tables
from steelyard.model.errors import StoreError, StudyError
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.reading import time_courses
from steelyard.reading.seconds import within_trials
from steelyard.reading.time_courses import Curve, Timeline
from steelyard.report import export
from steelyard.report.data import traces
from steelyard.report.data.presentation import Figure, view
from steelyard.report.data.traces import Trace
from steelyard.report.figures import catalogue, timelines
from steelyard.report.page import PageInput, build
from steelyard.report.prose.methods_paragraph import paragraph
from steelyard.report.tables import analysed
from steelyard.store.read import Store, open_store

EXIT_DONE, EXIT_SOME_INVALID = 0, 1
PAGE = "report.html"
MOST_TIMELINES = 60
"""Trials whose intervals are read for the page; the page may have room for fewer."""
Attempt = tuple[str, int]
"""Trial's id and attempt."""


def report(
    store: Path,
    *,
    output: Path | None,
    tables: Path | None,
    figures: Path | None,
    as_json: bool,
    console: Console,
    methods: bool = False,
) -> int:
    """Write the page (to `output`, else `report.html` in the study's folder) and whatever else is asked for.

    With `as_json` all tables go to stdout, with `methods` the methods text of a paper; the page is then written only
    if `output` names it. Returns 0, or 1 if some attempts are not valid. Raises StoreError if the store has no sealed
    trial, StudyError if both are asked for.
    """
    if as_json and methods:
        raise StudyError(
            "--json and --methods both write to stdout, and one would spoil the other",
            "ask for one at a time",
            key="--methods",
        )
    page_input = gather(
        open_store(store), courses=output is not None or figures is not None or not (as_json or methods)
    )
    if as_json:
        print(export.as_json(page_input.tables, columns(page_input.results)))
    if methods:
        print(paragraph(page_input), end="")
    if output is not None or not (as_json or methods):
        path = output or open_store(store).folder / PAGE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build(page_input), encoding="utf-8")
        console.print(f"report  {path}", highlight=False)
    if tables is not None:
        written = export.tables(page_input.tables, analysed.every(page_input.results), tables)
        console.print(f"tables  {tables} ({len(written)} files)", highlight=False)
    if figures is not None:
        written = export.figures(_figures(page_input), figures)
        console.print(f"figures {figures} ({len(written)} files)", highlight=False)
    invalid = any(record.verdict.outcome != "valid" for record in page_input.records)
    return EXIT_SOME_INVALID if invalid else EXIT_DONE


def gather(store: Store, *, courses: bool = True) -> PageInput:
    """Read a store and analyse it. Samples and facts are read only of the trials that the page shows; without
    `courses` nothing is read of what happened within trials."""
    records, study = store.trials(), store.study
    if not records:
        raise StoreError(
            f"{store.folder} has no sealed trial yet",
            "wait for the first trial, or run the study",
            path=str(store.folder),
        )
    floor, plan = store.noise_floor(records), store.plan
    results = within_trials(store, analyse(records, study, seed=study.design.seed, floor=floor, plan=plan), records)
    used = {(point.trial_id, point.attempt): point.value for point in results.points if point.used}
    shown = traces.chosen(records, used)
    samples = {(record.id, record.attempt): store.samples(record) for record in shown}
    lines, too_short = _timelines(store, records, used, samples) if courses else ((), ())
    largest = max(shown or records, key=lambda record: len(store.facts(record)))
    return PageInput(
        study=study,
        plan=plan,
        results=results,
        records=records,
        traces=tuple(
            Trace(record, samples[record.id, record.attempt], _databases(store.facts(record))) for record in shown
        ),
        timelines=lines,
        too_short=too_short,
        curves=_curves(store, records, used) if courses else (),
        facts=store.facts(largest),
        tables=tables(results),
    )


def _timelines(
    store: Store, records: Sequence[TrialRecord], used: Mapping[Attempt, float], samples: Mapping[Attempt, pl.DataFrame]
) -> tuple[tuple[Timeline, ...], tuple[Attempt, ...]]:
    """The courses of the picked trials, with a strip a node where `samples` has its readings; and the attempts among
    them that are too short to have a course."""
    journal = store.journal()
    found: list[Timeline] = []
    short: list[Attempt] = []
    for record in time_courses.picked(records, used, most=MOST_TIMELINES):
        key = (record.id, record.attempt)
        course = time_courses.timeline(
            record,
            store.intervals(record),
            journal=journal,
            value=used.get(key),
            middle=key in samples,
            samples=samples.get(key),
        )
        if course is None:
            short.append(key)
        else:
            found.append(course)
    return tuple(found), tuple(short)


def _curves(store: Store, records: Sequence[TrialRecord], used: Mapping[Attempt, float]) -> tuple[Curve, ...]:
    """Response and service time of each treatment, from the merged histograms of its used trials."""
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in records:
        if (record.id, record.attempt) in used and not record.control:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    found = []
    for treatment, group in groups.items():
        merged = store.histograms(group, time_courses.measured(group[0]))
        for measure in ("response", "service"):
            histogram = merged.filter(merged["measure"] == measure)
            found.append(time_courses.curve(dict(treatment), measure, histogram, trials=len(group)))
    return tuple(one for one in found if one is not None)


def _databases(facts: dict[str, dict[str, str]]) -> tuple[str, ...]:
    """The nodes that the system has facts about."""
    return tuple(name.removeprefix("system:") for name in facts if name.startswith("system:"))


def _figures(page_input: PageInput) -> dict[str, Figure]:
    found = catalogue.of_results(page_input.results, page_input.records)
    for trace in page_input.traces:
        figure = traces.figure(trace)
        if figure is not None:
            found[figure.name] = figure
    shown = view(page_input.results)
    return found | dict(timelines.all_figures(shown, page_input.timelines, page_input.curves))
