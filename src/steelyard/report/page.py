"""HTML report: one self-contained page from a study, its results and its trial records.

Everything the reader needs is inside: style, pictures, tables, data. No text from the store can become markup: the
template escapes all of it, and the page's content security policy allows no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import jinja2
import polars as pl
from markupsafe import Markup

import steelyard
from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Section
from steelyard.analysis.statistics import anova
from steelyard.analysis.statistics.anova import AnovaTerm
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.validity import Validity
from steelyard.analysis.treatments import label
from steelyard.format import FORM, FORM_NAME, count, moment
from steelyard.model import responses
from steelyard.model.facts import MACHINE
from steelyard.reading.node_traces import Trace
from steelyard.reading.report_input import ReportInput
from steelyard.reading.time_courses import Timeline
from steelyard.report.basics import embedded_data
from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.basics.theme import SERIES, SERIES_DARK, VARIABLES
from steelyard.report.data.presentation import Figure, Key, Panel, View, view
from steelyard.report.draw.charts import key_picture
from steelyard.report.draw.svg import Picture
from steelyard.report.figures import catalogue, node_traces, timelines
from steelyard.report.prose import method_and_facts
from steelyard.report.prose.benchmarking_crimes.commission import crimes
from steelyard.report.tables import analysed, generic, time_courses
from steelyard.report.tables import validity as validity_grids
from steelyard.report.tables.generic import Table

PAGE: Final = "report.html"
"""Name of the page in the study's folder."""
SOURCE_FOLDER: Final = "templates"
TOO_SHORT: Final = "too short to have a course"
NO_ROOM: Final = "left out for the page's size"
CONTROL: Final = "control"
OF_RESPONSE_TIME: Final = (
    "percentiles_figure", "curves_figure", "responses_table", "further_response_time", "more_response_time",
)  # fmt: skip
"""Context keys of the section on response times."""
TIMELINE_BYTES: Final = 500_000
"""Size limit of the pictures of single trials; the rest of a page with 1,000 trials takes five times as much."""


Tables = Mapping[Section, list[Table]]
"""Tables by section."""


@dataclass(frozen=True)
class Shown:
    """A panel as it stands in the page."""

    title: str
    wide: Markup
    narrow: Markup | None
    values: str = ""
    """JSON of the hover texts."""


@dataclass(frozen=True)
class Chosen:
    """The drawn trials of one treatment, each with its name in the list."""

    treatment: str
    trials: tuple[tuple[str, Numbered], ...]


@dataclass(frozen=True)
class NotDrawn:
    """Attempts of one treatment that have no time course on the page, and the reason."""

    treatment: str
    why: str
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Numbered:
    """A figure with its number and its drawn panels."""

    figure: Figure
    number: int
    pictures: tuple[Shown, ...]


class _Numbers:
    """Counter that numbers figures and tables in page order."""

    def __init__(self) -> None:
        self.figures = 0
        self.tables = 0
        self.texts = HoverTexts()
        self.own: list[Table] = []
        """Tables that the page lays out itself; the end of the page explains their heads."""

    def figure(self, figure: Figure | None) -> Numbered | None:
        if figure is None:
            return None
        self.figures += 1
        pictures = tuple(
            Shown(
                panel.title,
                self._drawn(panel.picture, figure, panel, f"{figure.name}-{index}"),
                self._drawn(panel.narrow, figure, panel, f"{figure.name}-{index}-narrow") if panel.narrow else None,
                panel.values,
            )
            for index, panel in enumerate(figure.panels)
        )
        return Numbered(figure, self.figures, pictures)

    def _drawn(self, picture: Picture, figure: Figure, panel: Panel, identity: str) -> Markup:
        parts = (figure.title, panel.title, "The numbers are in the tables of this section")
        title = ". ".join(part for part in parts if part)
        # `in_page` escapes all text and attributes of a picture, so the markup is safe.
        return Markup(picture.in_page(self.texts, title=title, identity=identity))

    def figures_of(self, figures: Mapping[str, Figure], section: Section) -> list[Numbered]:
        """The figures that name this section for their place."""
        numbered = (self.figure(figure) for figure in figures.values() if figure.section is section)
        return [figure for figure in numbered if figure is not None]

    def tables_of(self, by_section: Mapping[Section, Sequence[Table]], section: Section) -> list[tuple[int, Table]]:
        """The numbered tables of the analysis in a section."""
        return [self._next(table) for table in by_section.get(section, ())]

    def table(self, table: Table | None) -> tuple[int, Table] | None:
        if table is None:
            return None
        self.own.append(table)
        return self._next(table)

    def _next(self, table: Table) -> tuple[int, Table]:
        self.tables += 1
        return self.tables, table


def _chosen(page_input: ReportInput, this: View, numbers: _Numbers) -> dict[str, Any]:
    """Time courses that fit into the page, by treatment, and the names of the trials that do not."""
    room = TIMELINE_BYTES
    fitting: list[Timeline] = []
    for timeline in page_input.timelines:
        room -= timelines.bytes_of(timeline)
        if room > 0 or not fitting:
            fitting.append(timeline)
    chosen = [
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
    return {"chosen": chosen, "chosen_note": note, "not_drawn": _not_drawn(page_input, fitting) if chosen else ()}


def _not_drawn(page_input: ReportInput, fitting: Sequence[Timeline]) -> tuple[NotDrawn, ...]:
    """Attempts without a time course, by treatment and reason, in order of time."""
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


def build(page_input: ReportInput) -> str:
    """The whole page as HTML."""
    this = view(page_input.results)
    figures = catalogue.of_results(page_input.results, page_input.records)
    numbers = _Numbers()
    sections = analysed.grids(this)
    context = {**_head(page_input), **_answers(page_input, this, figures, sections, numbers)}
    context |= _within(page_input, this, figures, sections, numbers)
    context |= _validity(page_input, this, figures, sections, numbers)
    context["definitions"] = _terms(numbers.own)
    context["sections"] = _sections(context)
    context["tips"] = numbers.texts.as_json()
    return _environment().get_template("page.html.j2").render(context)


def _head(page_input: ReportInput) -> dict[str, Any]:
    """Context without numbered items: texts, style, script and data."""
    (validity,) = page_input.results.of(Validity)
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
        "law_refusals": sorted({law.refusal for law in page_input.results.of(LawFit) if law.refusal}),
        "drift": validity.drift,
        "noise_floor": validity.floor,
        "exclusions": page_input.results.of(Exclusion),
        "treatments": len(page_input.results.main(Summary)),
        "shared": method_and_facts.shared(page_input.records),
        "machine_facts": (
            *(method_and_facts.Fact(name, value) for name, value in page_input.facts.get(MACHINE, {}).items()),
            *(fact for fact in node_facts if not fact.nodes),
        ),
        "node_facts": tuple(fact for fact in node_facts if fact.nodes),
        "system_facts": method_and_facts.grouped(page_input.facts, system=True),
        "asked": method_and_facts.asked(page_input.study),
        "method": method_and_facts.method(page_input.study, page_input.plan, page_input.records, page_input.results),
        "raw_tables": {name: frame.height for name, frame in page_input.tables.items()},
        "data": embedded_data.pack(raw(page_input.tables)),
    }


def _answers(
    page_input: ReportInput, this: View, figures: Mapping[str, Figure], more: Tables, numbers: _Numbers
) -> dict[str, Any]:
    """Figures and tables of the answer, in the order of the page: main chart, size, interactions, spread, cells."""
    return {
        "main_figure": numbers.figure(figures.get("medians")),
        "comparisons": numbers.table(generic.comparisons(this)),
        "forest_figure": numbers.figure(figures.get("forest")),
        "further_answer": numbers.figures_of(figures, Section.ANSWER),
        "more_answer": numbers.tables_of(more, Section.ANSWER),
        "regression_figure": numbers.figure(figures.get("regression")),
        "regression_table": numbers.table(generic.regressions(this)),
        "laws_figure": numbers.figure(figures.get("laws")),
        "laws_table": numbers.table(generic.laws(this)),
        "further_size": numbers.figures_of(figures, Section.SIZE),
        "more_size": numbers.tables_of(more, Section.SIZE),
        "profiles_figure": numbers.figure(figures.get("profiles")),
        "interaction_words": anova.interactions(page_input.results.of(AnovaTerm)),
        "further_interactions": numbers.figures_of(figures, Section.INTERACTIONS),
        "more_interactions": numbers.tables_of(more, Section.INTERACTIONS),
        "boxes_figure": numbers.figure(figures.get("boxes")),
        "deviations_figure": numbers.figure(figures.get("deviations")),
        "further_spread": numbers.figures_of(figures, Section.SPREAD),
        "more_spread": numbers.tables_of(more, Section.SPREAD),
        "cells_table": numbers.table(generic.cells(this)),
        "further_every_cell": numbers.figures_of(figures, Section.EVERY_CELL),
        "more_every_cell": numbers.tables_of(more, Section.EVERY_CELL),
    }


def _within(
    page_input: ReportInput, this: View, figures: Mapping[str, Figure], more: Tables, numbers: _Numbers
) -> dict[str, Any]:
    """Response times, trials over time, nodes, energy, in the order of the page."""
    context: dict[str, Any] = {
        "percentiles_figure": numbers.figure(figures.get("percentiles")),
        "curves_figure": numbers.figure(timelines.curves(this, page_input.curves)),
        "curves_table": numbers.table(time_courses.curves(page_input.curves)),
        "responses_table": numbers.table(generic.response_medians(this)),
        "further_response_time": numbers.figures_of(figures, Section.RESPONSE_TIME),
        "more_response_time": numbers.tables_of(more, Section.RESPONSE_TIME),
    }
    context |= _chosen(page_input, this, numbers)
    context["parts_table"] = numbers.table(time_courses.parts(this))
    context["further_within"] = numbers.figures_of(figures, Section.WITHIN)
    context["more_within"] = numbers.tables_of(more, Section.WITHIN)
    shown = _in_order(page_input.traces, page_input.results)
    most = node_traces.most_seconds(page_input.traces)
    drawn = (numbers.figure(node_traces.figure(trace, most=most)) for trace in shown)
    context["trace_figures"] = [numbered for numbered in drawn if numbered is not None]
    context["node_table"] = numbers.table(time_courses.nodes(shown))
    context["energy_figure"] = numbers.figure(figures.get("energy"))
    context["further_energy"] = numbers.figures_of(figures, Section.ENERGY)
    context["more_energy"] = numbers.tables_of(more, Section.ENERGY)
    return context


def _validity(
    page_input: ReportInput, this: View, figures: Mapping[str, Figure], more: Tables, numbers: _Numbers
) -> dict[str, Any]:
    """Order, crimes, exclusions, steady states, generator and every trial, in the order of the page."""
    results, records = page_input.results, page_input.records
    suspicions = crimes(page_input.study, results, records, page_input.facts, figures)
    return {
        "order_figure": numbers.figure(figures.get("order")),
        "exclusions_table": numbers.table(validity_grids.exclusions(records)),
        "warm_up_figure": numbers.figure(figures.get("warm-up")),
        "warm_up_table": numbers.table(generic.warm_ups(this)),
        "steady_table": numbers.table(time_courses.steady(this)),
        "generator_table": numbers.table(validity_grids.generator(records)),
        "further_validity": numbers.figures_of(figures, Section.VALIDITY),
        "more_validity": numbers.tables_of(more, Section.VALIDITY),
        "crimes_table": numbers.table(validity_grids.crimes(suspicions)),
        "further_last": numbers.figures_of(figures, Section.EVERY_TRIAL),
        "more_last": numbers.tables_of(more, Section.EVERY_TRIAL),
        "trials_table": numbers.table(generic.trials(this, records)),
    }


def _sections(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that the page has."""
    sections = (
        ("answer", "The answer", True),
        ("size", "Cluster size", _any(context, "regression_table", "laws_table", "further_size", "more_size")),
        ("interactions", "Interactions", _any(context, "profiles_figure", "further_interactions", "more_interactions")),
        ("spread", "Spread of the trials", _any(context, "boxes_figure", "further_spread", "more_spread")),
        ("every-cell", "Every cell", True),
        ("response-time", "Response time", _any(context, *OF_RESPONSE_TIME)),
        ("within", "Within a trial", _any(context, "chosen", "further_within", "more_within")),
        ("nodes", "What the nodes did", context["trace_figures"]),
        ("energy", "Energy and cost", _any(context, "energy_figure", "further_energy", "more_energy")),
        ("validity", "Validity", True),
        ("facts", "Machine and system", True),
        ("method", "Method", True),
        ("every-trial", "Every trial and the data", True),
        ("terms", "What these numbers mean", True),
    )
    return [(anchor, title) for anchor, title, present in sections if present]


def _terms(tables: Sequence[Table]) -> dict[str, str]:
    """Definitions by label: the heads of these tables and every response."""
    meanings = {response.label: response.definition for response in responses.every().values()}
    for column in (column for table in tables for column in table.columns):
        if column.name and column.definition:
            meanings.setdefault(column.name, column.definition)
    return meanings


def _any(context: Mapping[str, Any], *names: str) -> bool:
    return any(context[name] for name in names)


def _in_order(traces: Sequence[Trace], results: Results) -> list[Trace]:
    """Traces in the order of the table of cells."""
    places = {tuple(sorted(summary.treatment.items())): index for index, summary in enumerate(results.main(Summary))}
    return sorted(traces, key=lambda trace: places.get(tuple(sorted(trace.record.treatment.items())), len(places)))


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
    environment.filters["drawn"] = _key
    return environment


def _key(key: Key) -> Markup:
    return Markup(key_picture(key.colour, key.shape, key.dash).beside_words())


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
