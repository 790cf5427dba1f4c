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
from markupsafe import Markup, escape

import steelyard
from steelyard.analysis.narrative.answer_display import SHOWN_CAVEATS, repeats_a_caveat
from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Section
from steelyard.analysis.statistics import anova
from steelyard.analysis.statistics.anova import AnovaTerm
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.validity import Validity
from steelyard.analysis.treatments import NODES
from steelyard.analysis.wording import capital
from steelyard.format import FORM, FORM_NAME, count, moment
from steelyard.heavy import pl
from steelyard.model import responses
from steelyard.model.facts import MACHINE
from steelyard.model.trial import cell_key
from steelyard.reading.node_traces import Trace
from steelyard.reading.report_input import ReportInput
from steelyard.report import drawn_trials
from steelyard.report.basics import embedded_data
from steelyard.report.basics.definitions import WORDS
from steelyard.report.basics.theme import SERIES, SERIES_DARK, VARIABLES
from steelyard.report.data.presentation import Figure, Key, View, view
from steelyard.report.draw.charts import key_picture
from steelyard.report.figures import catalogue, node_traces, timelines
from steelyard.report.further_responses import further_responses
from steelyard.report.numbering import Numbered, Numbers
from steelyard.report.prose import method_and_facts, provenance
from steelyard.report.prose.benchmarking_crimes.commission import crimes
from steelyard.report.tables import analysed, answers, generic, time_courses
from steelyard.report.tables import validity as validity_grids
from steelyard.report.tables.generic import Table
from steelyard.report.tables.interactions import interactions
from steelyard.report.tables.named_levels import named_levels
from steelyard.report.tables.node_limits import node_limits
from steelyard.shown_text import visible

PAGE: Final = "report.html"
"""Name of the page in the study's folder."""
SOURCE_FOLDER: Final = "templates"
OF_RESPONSE_TIME: Final = (
    "percentiles_figure", "curves_figure", "responses_table", "further_response_time", "more_response_time",
)  # fmt: skip
"""Context keys of the section on response times."""
OF_SIZE: Final = ("regression_table", "laws_table", "further_size", "more_size")
"""Context keys of the section on sizes."""
OF_INTERACTIONS: Final = ("profiles_figure", "interactions_table", "further_interactions", "more_interactions")
"""Context keys of the section on interactions."""
FEWEST_SIZES: Final = 3
"""Sizes that a line or a law over sizes needs on the page: two points always make a line."""


Tables = Mapping[Section, list[Table]]
"""Tables by section."""


def build(page_input: ReportInput) -> str:
    """The whole page as HTML."""
    this = view(page_input.results)
    drawing = _Drawing(
        page_input, this, catalogue.of_results(page_input.results, page_input.records), analysed.grids(this), Numbers()
    )
    context = {**_head(page_input), **_answer(drawing), **_effects(drawing), **_cells(drawing), **_size(drawing)}
    context["further_responses"] = further_responses(page_input.results, page_input.records, drawing.numbers)
    context |= {**_response_time(drawing), **_within(drawing), **_spread(drawing), **_validity(drawing)}
    context["definitions"] = _terms(drawing.numbers.own)
    context["sections"] = _sections(context)
    context["tips"] = drawing.numbers.texts.as_json()
    return visible(_environment().get_template("page.html.j2").render(context), lines=True)


@dataclass(frozen=True)
class _Drawing:
    """What the sections of one page are drawn from."""

    page_input: ReportInput
    this: View
    figures: Mapping[str, Figure]
    tables: Tables
    numbers: Numbers

    @property
    def results(self) -> Results:
        """The results of the page."""
        return self.page_input.results

    def figure(self, name: str) -> Numbered | None:
        """The next figure of the page; None where the results do not support it."""
        return self.numbers.figure(self.figures.get(name))

    def further(self, section: Section) -> list[Numbered]:
        """The figures that name this section for their place."""
        return self.numbers.figures_of(self.figures, section)

    def more(self, section: Section) -> list[tuple[int, Table]]:
        """The tables of the analysis in this section."""
        return self.numbers.tables_of(self.tables, section)


def _head(page_input: ReportInput) -> dict[str, Any]:
    """Context without numbered items: texts, style, script and data."""
    (validity,) = page_input.results.of(Validity)
    by_level = frozenset(fact.name for fact in page_input.level_facts)
    node_facts, system_facts = (
        method_and_facts.grouped(page_input.facts, system=system, by_level=by_level) for system in (False, True)
    )
    script, style = _source("format.js") + _source("zoom.js") + _source("page.js"), _style()
    return {
        "study": page_input.study,
        "damages": [damage.words() for damage in page_input.damages if not damage.harmless],
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
        "drift": validity.sentence,
        "noise_floor": validity.floor,
        "exclusions": page_input.results.of(Exclusion),
        "treatments": len(page_input.results.main(Summary)),
        "hardware": provenance.hardware(page_input),
        "one_trial": provenance.one_trial(page_input.records),
        "provenance": provenance.provenance(page_input),
        "words": WORDS,
        "shared": method_and_facts.shared(page_input.records),
        "machine_facts": (
            *(method_and_facts.Fact(name, value) for name, value in page_input.facts.get(MACHINE, {}).items()),
            *(fact for fact in node_facts if not fact.nodes),
        ),
        "node_facts": tuple(fact for fact in node_facts if fact.nodes),
        "level_facts": tuple(
            method_and_facts.Fact(fact.name, fact.value, "; ".join(fact.levels)) for fact in page_input.level_facts
        ),
        "system_facts": system_facts,
        "asked": method_and_facts.asked(page_input.study),
        "method": method_and_facts.method(page_input.study, page_input.plan, page_input.records, page_input.results),
        "raw_tables": {name: frame.height for name, frame in page_input.tables.items()},
        "data": embedded_data.pack(raw(page_input.tables)),
    }


def _answer(drawing: _Drawing) -> dict[str, Any]:
    """The answer's figure, and its caveats: the first ones, and the rest."""
    results = drawing.results
    table = answers.answers(results.answer_table)
    lines = () if results.answer_table is None else tuple(results.answer_table.by_line())
    caveats = results.caveats[:SHOWN_CAVEATS]
    in_table = [one for one in results.answer if len(lines) > 1 and answers.is_of_line(one, results.answer_table)]
    return {
        "answer_table": drawing.numbers.table(table),
        "lead": [] if table else results.answer,
        "sentences": [
            sentence
            for sentence in results.answer
            if table and sentence not in in_table and not repeats_a_caveat(sentence, caveats)
        ],
        "in_table": in_table,
        "main_figure": drawing.figure("main"),
        "further_answer": drawing.further(Section.ANSWER),
        "left_out": "" if any("left out" in caveat for caveat in caveats) else _left_out(results),
        "caveats": caveats,
        "further_caveats": results.caveats[SHOWN_CAVEATS:],
    }


def _left_out(results: Results) -> str:
    return "; ".join(f"{one.reason}: {one.trials}" for one in results.of(Exclusion))


def _effects(drawing: _Drawing) -> dict[str, Any]:
    """Every comparison: table, forest plot, sizes of effects."""
    return {
        "comparisons": drawing.numbers.table(generic.comparisons(drawing.this)),
        "forest_figure": drawing.figure("forest"),
        "pairs_table": drawing.numbers.table(answers.every_pair(drawing.results.answer_pairs)),
        "more_answer": drawing.more(Section.ANSWER),
    }


def _cells(drawing: _Drawing) -> dict[str, Any]:
    return {
        "cells_table": drawing.numbers.table(generic.cells(drawing.this)),
        "further_every_cell": drawing.further(Section.EVERY_CELL),
        "more_every_cell": drawing.more(Section.EVERY_CELL),
    }


def _size(drawing: _Drawing) -> dict[str, Any]:
    """Lines and laws over at least three sizes, and interactions."""
    this, results = drawing.this, drawing.results
    sized = len(this.positions.levels) >= FEWEST_SIZES
    refusals = sorted({law.refusal for law in results.of(LawFit) if law.refusal}) if sized else []
    factor = results.size_factor
    return {
        "size_words": "cluster size" if factor is None or factor in NODES else factor,
        "regression_figure": drawing.figure("regression") if sized else None,
        "regression_table": drawing.numbers.table(generic.regressions(this)) if sized else None,
        "laws_figure": drawing.figure("laws"),
        "laws_table": drawing.numbers.table(generic.laws(this)),
        "law_refusals": refusals,
        "further_size": drawing.further(Section.SIZE),
        "more_size": drawing.more(Section.SIZE),
        "profiles_figure": drawing.figure("profiles"),
        "interaction_words": anova.interactions(results.of(AnovaTerm)),
        "interactions_table": drawing.numbers.table(interactions(this)),
        "further_interactions": drawing.further(Section.INTERACTIONS),
        "more_interactions": drawing.more(Section.INTERACTIONS),
    }


def _response_time(drawing: _Drawing) -> dict[str, Any]:
    curves = drawing.page_input.curves
    return {
        "percentiles_figure": drawing.figure("percentiles"),
        "curves_figure": drawing.numbers.figure(timelines.curves(drawing.this, curves)),
        "curves_table": drawing.numbers.table(time_courses.curves(curves)),
        "responses_table": drawing.numbers.table(generic.response_medians(drawing.this)),
        "further_response_time": drawing.further(Section.RESPONSE_TIME),
        "more_response_time": drawing.more(Section.RESPONSE_TIME),
    }


def _within(drawing: _Drawing) -> dict[str, Any]:
    """Trials over time, nodes, energy."""
    page_input, numbers = drawing.page_input, drawing.numbers
    context = drawn_trials.chosen(page_input, drawing.this, numbers)
    context["parts_table"] = numbers.table(time_courses.parts(drawing.this))
    context["further_within"] = drawing.further(Section.WITHIN)
    context["more_within"] = drawing.more(Section.WITHIN)
    shown = _in_order(page_input.traces, page_input.results)
    most = node_traces.most_seconds(page_input.traces)
    drawn = (numbers.figure(node_traces.figure(trace, most=most)) for trace in shown)
    context["trace_figures"] = [numbered for numbered in drawn if numbered is not None]
    context["node_table"] = numbers.table(time_courses.nodes(shown))
    context["pauses_note"] = drawn_trials.pauses_note(page_input)
    context["server_table"] = numbers.table(time_courses.servers(shown))
    context["further_energy"] = drawing.further(Section.ENERGY)
    context["more_energy"] = drawing.more(Section.ENERGY)
    return context


def _spread(drawing: _Drawing) -> dict[str, Any]:
    return {
        "boxes_figure": drawing.figure("boxes"),
        "deviations_figure": drawing.figure("deviations"),
        "further_spread": drawing.further(Section.SPREAD),
        "more_spread": drawing.more(Section.SPREAD),
    }


def _validity(drawing: _Drawing) -> dict[str, Any]:
    """Order, exclusions, steady states, generator, crimes and every trial, in the order of the page."""
    page_input, numbers, this = drawing.page_input, drawing.numbers, drawing.this
    results, records = page_input.results, page_input.records
    suspicions = crimes(
        page_input.study, results, records, page_input.facts, drawing.figures, page_input.measured_again
    )
    return {
        "order_figure": drawing.figure("order"),
        "exclusions_table": numbers.table(validity_grids.exclusions(records)),
        "warm_up_figure": drawing.figure("warm-up"),
        "steadiness_words": [
            words for words in (generic.warm_up_words(this), time_courses.steady_words(this)) if words
        ],
        "warm_up_table": numbers.table(generic.warm_ups(this)),
        "steady_table": numbers.table(time_courses.steady(this)),
        "generator_table": numbers.table(validity_grids.generator(records)),
        "further_validity": drawing.further(Section.VALIDITY),
        "more_validity": drawing.more(Section.VALIDITY),
        "crimes_table": numbers.table(validity_grids.crimes(suspicions)),
        "clear_crimes_table": numbers.table(validity_grids.clear_crimes(suspicions)),
        "limits_table": numbers.table(node_limits(page_input.gaugings, page_input.facts, records)),
        "levels_table": numbers.table(named_levels(page_input.study)),
        "further_last": drawing.further(Section.EVERY_TRIAL),
        "more_last": drawing.more(Section.EVERY_TRIAL),
        "trials_table": numbers.table(generic.trials(this, records)),
    }


def _sections(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that the page has."""
    sections = (
        ("answer", "The answer", True),
        ("provenance", "Reproduce, data, cite", True),
        ("effects", "Every comparison", _any(context, "comparisons", "more_answer")),
        ("every-cell", "Every cell", True),
        ("size", capital(context["size_words"]), _any(context, *OF_SIZE)),
        ("interactions", "Interactions", _any(context, *OF_INTERACTIONS)),
        *((one.anchor, one.title, True) for one in context["further_responses"]),
        ("response-time", "Response time", _any(context, *OF_RESPONSE_TIME)),
        ("within", "Within a trial", _any(context, "chosen", "further_within", "more_within")),
        ("nodes", "What the nodes did", context["trace_figures"]),
        ("energy", "Energy and cost", _any(context, "further_energy", "more_energy")),
        ("spread", "Spread of the trials", _any(context, "boxes_figure", "further_spread", "more_spread")),
        ("validity", "Validity", True),
        ("facts", "Machine and system", True),
        ("method", "Method", True),
        ("every-trial", "Every trial and the data", True),
        ("terms", "Words and numbers", True),
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
    places = {cell_key(summary.treatment): index for index, summary in enumerate(results.main(Summary))}
    return sorted(traces, key=lambda trace: places.get(trace.record.cell, len(places)))


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
    environment.filters["coded"] = _coded
    environment.filters["themed"] = _themed
    environment.filters["drawn"] = _key
    return environment


def _coded(text: str) -> Markup:
    """A text with what stands between backticks as code; everything else is escaped."""
    if "`" not in text:
        return escape(text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if code else escape(part) for code, part in provenance.coded_parts(text)
    )


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
