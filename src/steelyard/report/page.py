"""The page: one self-contained HTML file from a study, its results and its records.

Everything the reader needs is inside: style, pictures, tables, data. No text from the store can become markup: the
template escapes all of it, and the page's content security policy allows no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import jinja2
import polars as pl
from markupsafe import Markup

import steelyard
from steelyard.analysis import pointed
from steelyard.analysis.results import LABELS, Results, label
from steelyard.format import FORM, FORM_NAME, count, moment
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.reading.time_courses import Curve, Timeline
from steelyard.report.basics import embedded_data, hover_text
from steelyard.report.basics.definitions import DEFINITIONS
from steelyard.report.basics.theme import SERIES, SERIES_DARK, VARIABLES
from steelyard.report.data import traces
from steelyard.report.data.presentation import Figure, View, view
from steelyard.report.data.traces import Trace
from steelyard.report.draw import svg
from steelyard.report.figures import catalogue, timelines
from steelyard.report.prose import method_and_facts
from steelyard.report.prose.benchmarking_crimes.commission import crimes
from steelyard.report.tables import analysed, generic, time_courses, validity
from steelyard.report.tables.generic import Table

SOURCE_FOLDER: Final = "templates"
TOO_SHORT: Final = "too short to have a course"
NO_ROOM: Final = "left out for the page's size"
CONTROL: Final = "control"
TIMELINE_BYTES: Final = 500_000
"""What pictures of single trials may take of the page; the rest of a study of 1,000 trials takes five times as much."""


@dataclass(frozen=True)
class PageInput:
    """What a page is made of. Plain values and frames; the page never opens a store."""

    study: Study
    results: Results
    records: Sequence[TrialRecord]
    """Every sealed attempt, in order of time."""
    plan: Plan | None = None
    traces: Sequence[Trace] = ()
    """Samples of the trials whose nodes are drawn: one a treatment."""
    timelines: Sequence[Timeline] = ()
    """Trials over time: the median trial of each treatment, then others that the reader may choose."""
    too_short: Sequence[tuple[str, int]] = ()
    """Id and attempt of trials that were looked at and have too few intervals for a course."""
    curves: Sequence[Curve] = ()
    """Percentile curves of the treatments."""
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Node or `machine` or `system:<node>` to its facts."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Raw tables to download, by name."""
    made_s: float | None = None
    """When the page is made, seconds since the epoch; None leaves it out, so that equal stores give equal pages."""


@dataclass(frozen=True)
class Picture:
    """A panel as it stands in the page."""

    title: str
    wide: Markup
    narrow: Markup | None
    values: str = ""
    """JSON of what is said under the pointer."""


@dataclass(frozen=True)
class Chosen:
    """The drawn trials of one treatment, and what each is called in the list."""

    treatment: str
    trials: tuple[tuple[str, Numbered], ...]


@dataclass(frozen=True)
class NotDrawn:
    """Attempts of one treatment that have no course on the page, and why."""

    treatment: str
    why: str
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Numbered:
    """A figure with its number and its drawn panels."""

    figure: Figure
    number: int
    pictures: tuple[Picture, ...]


class _Numbers:
    """Numbers figures and tables in the order in which the page shows them."""

    def __init__(self) -> None:
        self.figures = 0
        self.tables = 0

    def figure(self, figure: Figure | None) -> Numbered | None:
        if figure is None:
            return None
        self.figures += 1
        pictures = tuple(
            Picture(
                panel.title,
                _drawn(panel.spec, f"{figure.name}-{index}", _spoken(figure, panel.title)),
                _drawn(panel.narrow, f"{figure.name}-{index}-narrow", _spoken(figure, panel.title))
                if panel.narrow is not None
                else None,
                panel.values,
            )
            for index, panel in enumerate(figure.panels)
        )  # fmt: skip
        return Numbered(figure, self.figures, pictures)

    def tables_of(self, found: Mapping[str, Sequence[Table]], section: str) -> list[tuple[int, Table]]:
        """The analysis' own tables of a section."""
        return [numbered for one in found.get(section, ()) if (numbered := self.table(one)) is not None]

    def table(self, table: Table | None) -> tuple[int, Table] | None:
        if table is None:
            return None
        self.tables += 1
        return self.tables, table


def _spoken(figure: Figure, panel: str) -> str:
    return ". ".join(part for part in (figure.title, panel, "The numbers are in the tables of this section") if part)


def _drawn(spec: dict[str, Any] | str, identity: str, title: str) -> Markup:
    # ElementTree escapes all text and attributes of the drawing, so it is safe to set into the page as it is.
    return Markup(svg.inline(svg.draw(spec), title=title, identity=identity))


def _chosen(page_input: PageInput, this: View, numbers: _Numbers) -> dict[str, Any]:
    """The trials over time that fit into the page, by treatment, and the names of those that do not."""
    room = TIMELINE_BYTES
    fitting: list[Timeline] = []
    for one in page_input.timelines:
        room -= timelines.bytes_of(one)
        if room > 0 or not fitting:
            fitting.append(one)
    made = [
        Chosen(
            choice.treatment,
            tuple(
                (name, numbered)
                for name, figure in zip(choice.names, choice.figures, strict=True)
                if (numbered := numbers.figure(figure)) is not None
            ),
        )
        for choice in timelines.choices(this, fitting)
    ]
    lost = page_input.results.trials - len(fitting)
    note = (
        "The middle trial of each treatment by the main response comes first, then its fastest and its slowest; "
        "attempts that no number rests on come last."
    )
    if lost > 0:
        note += (
            f" {len(fitting):,} of {count(page_input.results.trials, 'attempt')} are drawn; the others are named "
            "below; the store has them all."
        )
    return {"chosen": made, "chosen_note": note, "not_drawn": _not_drawn(page_input, fitting) if made else ()}


def _not_drawn(page_input: PageInput, fitting: Sequence[Timeline]) -> tuple[NotDrawn, ...]:
    """Attempts without a course, by treatment and reason, in order of time."""
    drawn = {(one.record.id, one.record.attempt) for one in fitting}
    short = set(page_input.too_short)
    groups: dict[tuple[str, str], list[str]] = {}
    for record in page_input.records:
        key = (record.id, record.attempt)
        if key in drawn:
            continue
        why = TOO_SHORT if key in short else CONTROL if record.control else NO_ROOM
        name = record.id + (f" (attempt {record.attempt})" if record.attempt > 1 else "")
        groups.setdefault((label(record.treatment), why), []).append(name)
    return tuple(NotDrawn(treatment, why, tuple(names)) for (treatment, why), names in groups.items())


def build(page_input: PageInput) -> str:
    """The whole page as HTML."""
    this = view(page_input.results)
    found = catalogue.of_results(page_input.results, page_input.records)
    numbers = _Numbers()
    sections = analysed.grids(this)
    context = {**_head(page_input), **_answers(page_input, this, found, sections, numbers)}
    context |= _within(page_input, this, found, sections, numbers)
    context |= _validity(page_input, this, found, sections, numbers)
    context["sections"] = _sections(context)
    return hover_text.interned(_environment().get_template("page.html.j2").render(context))


def _head(page_input: PageInput) -> dict[str, Any]:
    """What needs no numbering: texts, style, script and data."""
    node_facts = method_and_facts.grouped(page_input.facts, system=False)
    script, style = _source("format.js") + _source("zoom.js") + _source("page.js"), _style()
    return {
        "study": page_input.study,
        "results": page_input.results,
        "version": steelyard.__version__,
        "made": moment(page_input.made_s) if page_input.made_s is not None else "",
        "begun": moment(min((record.begun_s for record in page_input.records), default=None)),
        "style": Markup(style),
        "form_name": FORM_NAME,
        "form": FORM,
        "script": Markup(script),
        "script_hash": _hash(script),
        "count": count,
        "law_refusals": sorted({law.refusal for law in page_input.results.laws if law.refusal}),
        "shared": method_and_facts.shared(page_input.records),
        "machine_facts": (
            *(method_and_facts.Fact(name, value) for name, value in page_input.facts.get("machine", {}).items()),
            *(fact for fact in node_facts if not fact.nodes),
        ),
        "node_facts": tuple(fact for fact in node_facts if fact.nodes),
        "system_facts": method_and_facts.grouped(page_input.facts, system=True),
        "asked": method_and_facts.asked(page_input.study),
        "method": method_and_facts.method(page_input.study, page_input.plan, page_input.records, page_input.results),
        "definitions": {LABELS.get(term, term): text for term, text in DEFINITIONS.items()},
        "raw_tables": {name: frame.height for name, frame in page_input.tables.items()},
        "data": embedded_data.pack(raw(page_input.tables)),
    }


def _answers(
    page_input: PageInput, this: View, found: Mapping[str, Figure], more: Mapping[str, list[Table]], numbers: _Numbers
) -> dict[str, Any]:
    """Figures and tables of the answer, in the order of the page: main chart, size, interactions, spread, cells."""
    return {
        "main_figure": numbers.figure(found.get("medians")),
        "comparisons": numbers.table(generic.comparisons(this)),
        "forest_figure": numbers.figure(found.get("forest")),
        "more_answer": numbers.tables_of(more, "answer"),
        "regression_figure": numbers.figure(found.get("regression")),
        "regression_table": numbers.table(generic.regressions(this)),
        "laws_figure": numbers.figure(found.get("laws")),
        "laws_table": numbers.table(generic.laws(this)),
        "more_size": numbers.tables_of(more, "size"),
        "profiles_figure": numbers.figure(found.get("profiles")),
        "interaction_words": pointed.interactions(page_input.results.anova),
        "more_interactions": numbers.tables_of(more, "interactions"),
        "boxes_figure": numbers.figure(found.get("boxes")),
        "deviations_figure": numbers.figure(found.get("deviations")),
        "more_spread": numbers.tables_of(more, "spread"),
        "cells_table": numbers.table(generic.cells(this)),
    }


def _within(
    page_input: PageInput, this: View, found: Mapping[str, Figure], more: Mapping[str, list[Table]], numbers: _Numbers
) -> dict[str, Any]:
    """Response times, trials over time, nodes, energy, in the order of the page."""
    context: dict[str, Any] = {
        "percentiles_figure": numbers.figure(found.get("percentiles")),
        "curves_figure": numbers.figure(timelines.curves(this, page_input.curves)),
        "curves_table": numbers.table(time_courses.curves(page_input.curves)),
        "responses_table": numbers.table(generic.responses(this)),
        "more_response_time": numbers.tables_of(more, "response-time"),
    }
    context |= _chosen(page_input, this, numbers)
    context["parts_table"] = numbers.table(time_courses.parts(this))
    shown = _in_order(page_input.traces, page_input.results)
    most = traces.most_seconds(page_input.traces)
    drawn = (numbers.figure(traces.figure(trace, most=most)) for trace in shown)
    context["trace_figures"] = [numbered for numbered in drawn if numbered is not None]
    context["node_table"] = numbers.table(time_courses.nodes(shown))
    context["energy_figure"] = numbers.figure(found.get("energy"))
    context["more_energy"] = numbers.tables_of(more, "energy")
    return context


def _validity(
    page_input: PageInput, this: View, found: Mapping[str, Figure], more: Mapping[str, list[Table]], numbers: _Numbers
) -> dict[str, Any]:
    """Order, crimes, exclusions, steady states, generator and every trial, in the order of the page."""
    results, records = page_input.results, page_input.records
    suspicions = crimes(page_input.study, results, records, page_input.facts, found)
    return {
        "order_figure": numbers.figure(found.get("order")),
        "exclusions_table": numbers.table(validity.exclusions(records)),
        "warm_up_figure": numbers.figure(found.get("warm-up")),
        "warm_up_table": numbers.table(generic.warm_ups(this)),
        "steady_table": numbers.table(time_courses.steady(this)),
        "generator_table": numbers.table(validity.generator(records)),
        "more_validity": numbers.tables_of(more, "validity"),
        "crimes_table": numbers.table(validity.crimes(suspicions)),
        "more_last": numbers.tables_of(more, analysed.LAST),
        "trials_table": numbers.table(generic.trials(this, records)),
    }


def _sections(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that the page has."""
    sections = (
        ("answer", "The answer", True),
        ("size", "Cluster size", _any(context, "regression_table", "laws_table", "more_size")),
        ("interactions", "Interactions", _any(context, "profiles_figure", "more_interactions")),
        ("spread", "Spread of the trials", context["boxes_figure"]),
        ("every-cell", "Every cell", True),
        ("response-time", "Response time", _any(context, "percentiles_figure", "curves_figure", "responses_table")),
        ("within", "Within a trial", context["chosen"]),
        ("nodes", "What the nodes did", context["trace_figures"]),
        ("energy", "Energy and cost", _any(context, "energy_figure", "more_energy")),
        ("validity", "Validity", True),
        ("facts", "Machine and system", True),
        ("method", "Method", True),
        ("every-trial", "Every trial and the data", True),
        ("terms", "What these numbers mean", True),
    )
    return [(anchor, title) for anchor, title, present in sections if present]


def _any(context: Mapping[str, Any], *names: str) -> bool:
    return any(context[name] for name in names)


def _in_order(found: Sequence[Trace], results: Results) -> list[Trace]:
    """Traces in the order of the table of cells."""
    places = {tuple(sorted(summary.treatment.items())): index for index, summary in enumerate(results.summaries)}
    return sorted(found, key=lambda trace: places.get(tuple(sorted(trace.record.treatment.items())), len(places)))


def raw(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, Any]]:
    """Tables as columns and rows, ready for JSON."""
    return {
        name: {"columns": frame.columns, "rows": [[_plain(value) for value in row] for row in frame.iter_rows()]}
        for name, frame in tables.items()
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, pl.Series | tuple) else value


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steelyard.report", SOURCE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["themed"] = _themed
    return environment


def _themed(colour: str) -> str:
    """The page's variable for a colour of the light theme."""
    return f"var({VARIABLES[colour]})" if colour in VARIABLES else colour


def _source(name: str) -> str:
    return resources.files("steelyard.report").joinpath(SOURCE_FOLDER, name).read_text(encoding="utf-8")


def _style() -> str:
    """The style sheet with the palette of both themes put in."""

    def palette(colours: Sequence[str]) -> str:
        return "; ".join(f"--s{index}: {colour}" for index, colour in enumerate(colours, start=1))

    return (
        _source("page.css")
        .replace("--series-light: 0", palette(SERIES))
        .replace("--series-dark: 0", palette(SERIES_DARK))
    )


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
