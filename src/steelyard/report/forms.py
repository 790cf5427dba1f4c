"""Content of each section of the page in its own form, in the order of the page; every other statistic is shown as
the table that its rows define."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from steelyard.analysis.narrative.answer_display import SHOWN_CAVEATS
from steelyard.analysis.narrative.answer_parts import parts_of
from steelyard.analysis.narrative.answer_table import AnswerRow
from steelyard.analysis.statistics import anova
from steelyard.analysis.statistics.activities import NodeActivity
from steelyard.analysis.statistics.activity_phase import ActivityPhase
from steelyard.analysis.statistics.activity_response import ActivityResponse
from steelyard.analysis.statistics.aligned import AlignedSecond
from steelyard.analysis.statistics.anova import AnovaTerm
from steelyard.analysis.statistics.carried import Carried
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.course import Course
from steelyard.analysis.statistics.derived_threshold import DerivedThreshold
from steelyard.analysis.statistics.elasticity import Elasticity, lacking
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.interaction import Interaction
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.law_curve import LawValue
from steelyard.analysis.statistics.look import LookRow
from steelyard.analysis.statistics.parts import PartMean
from steelyard.analysis.statistics.regression import Regression
from steelyard.analysis.statistics.search import SearchRow
from steelyard.analysis.statistics.steady import Steady
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.time_to_event import EventTime
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.statistics.validity import Validity
from steelyard.analysis.statistics.warm_up import WarmUp
from steelyard.format import count
from steelyard.model import responses
from steelyard.model.facts import MACHINE
from steelyard.model.trial import cell_key
from steelyard.report import drawn_trials
from steelyard.report.basics.definitions import WORDS
from steelyard.report.drawing import Drawing, Form, heading, paragraphs
from steelyard.report.figures import node_traces, timelines
from steelyard.report.further_responses import named
from steelyard.report.prose import method_and_facts
from steelyard.report.prose.activity_words import activity_words
from steelyard.report.prose.benchmarking_crimes.commission import crimes
from steelyard.report.prose.method_and_facts import Fact
from steelyard.report.prose.provenance import provenance
from steelyard.report.tables import answers, steadiness, time_courses, validity
from steelyard.report.tables.analysed import APPENDIX, grid
from steelyard.report.tables.cells import cells, response_values
from steelyard.report.tables.comparisons import comparisons
from steelyard.report.tables.interactions import interactions
from steelyard.report.tables.named_levels import named_levels
from steelyard.report.tables.node_limits import node_limits
from steelyard.report.tables.regressions import laws, regressions

NOT_POOLED: Final = (
    "A search tries rates on both sides of its answer. So nothing on this page is pooled over its windows: response "
    "times, throughput and errors are given window by window, at the rate of the window."
)


def _look(page: Drawing) -> Markup:
    """Which look at the study this is, and what the store has lost."""
    look = page.results.look.sentence
    damages = [damage.words() for damage in page.page_input.damages if not damage.harmless]
    first = Markup('<p class="answer"><strong>{}</strong></p>\n').format(look) if look else Markup()
    return first + (page.block("damages", damages) if damages else "")


def _answer(page: Drawing) -> Markup:
    """The answer's table or sentences, how well policies met the demand, the trials behind it, and what limits it: the
    first caveats, and the rest."""
    results = page.results
    table = answers.answers(results.answer_table)
    parts = parts_of(results)
    caveats, more = results.caveats[:SHOWN_CAVEATS], results.caveats[SHOWN_CAVEATS:]
    html = paragraphs(parts.lead, "answer") + page.table(table, look="answers") + paragraphs(parts.beside)
    html += page.named("elasticity")
    html += page.block("in_words", parts.in_words) if parts.in_words else ""
    known = any("left out" in caveat for caveat in caveats)
    left_out = "; ".join(f"{one.reason}: {one.trials}" for one in results.of(Exclusion) if not known)
    others = answers.other_responses(results)
    in_words = [(*named(one), one.answer[0]) for one in answers.uncompared(results)]
    html += page.block("basis", results, left_out, in_words) + page.table(others, look="answers")
    html += page.block("caveats", caveats, more) if caveats else ""
    return html + page.table(grid(page.this, Elasticity), own=False)


def _comparisons(page: Drawing) -> Markup:
    """Every comparison as table and forest plot, and every pair of levels."""
    table = page.table(comparisons(page.this))
    pairs = answers.every_pair(page.results.answer_pairs) if table else None
    return table + page.named("forest") + page.folded(pairs)


def _laws(page: Drawing) -> Markup:
    """Fitted laws as figure and table, and why others are not fitted."""
    refusals = sorted({law.refusal for law in page.results.of(LawFit) if law.refusal})
    return page.named("laws") + page.table(laws(page.this)) + paragraphs(refusals, "note")


def _activities(page: Drawing) -> Markup:
    """Responses before, during and after, and around the decision, seconds of each phase over trials, by whose clock,
    derived thresholds, and every node."""
    nodes = grid(page.this, NodeActivity)
    if nodes is None and not page.results.of(EventTime):
        return page.named("aligned")
    html = paragraphs([lacking(page.page_input.study, page.records)], "note")
    for row in (ActivityResponse, EventTime):
        html += page.table(grid(page.this, row), own=False)
    html += page.named("aligned")
    html += paragraphs(activity_words(page.records) if nodes is not None else ())
    html += page.table(grid(page.this, ActivityPhase), own=False) + page.table(
        grid(page.this, DerivedThreshold), own=False
    )
    return html + page.folded(nodes, own=False)


def _interactions(page: Drawing) -> Markup:
    if not page.this.crossed:
        return Markup()
    words = paragraphs(anova.interactions(page.results.of(AnovaTerm)))
    return words + page.folded(interactions(page.this)) + page.named("profiles")


def _response_time(page: Drawing) -> Markup:
    """Percentiles over treatments, and the curves of all operations together; of searches why there are none."""
    curves = page.page_input.curves
    html = paragraphs([NOT_POOLED] if page.results.of(SearchRow) else ())
    html += page.named("percentiles") + page.figure(timelines.curves(page.this, curves))
    html += page.folded(time_courses.curves(curves))
    return html + page.table(response_values(page.this), sortable=True)


def _nodes(page: Drawing) -> Markup:
    """CPU, memory, disk and network of the nodes during one trial of each treatment, in the order of the cells."""
    places = {cell_key(summary.treatment): index for index, summary in enumerate(page.results.main(Summary))}
    traces = sorted(page.page_input.traces, key=lambda trace: places.get(trace.record.cell, len(places)))
    most = node_traces.most_seconds(traces)
    figures = [figure for trace in traces if (figure := node_traces.figure(trace, most=most)) is not None]
    numbers = page.folded(time_courses.nodes(traces)) + page.folded(time_courses.servers(traces))
    if not figures and not numbers:
        return Markup()
    what = "CPU, memory, disk and network of each node during one trial of each treatment."
    if few := len(traces) - len(figures):
        what += (
            f" {few} of these {count(len(traces), 'trial')} {'has' if few == 1 else 'have'} fewer than "
            f"{node_traces.FEWEST_READINGS} readings of a node, too few to draw; the table has their means."
        )
    html = paragraphs([what])
    for figure in figures:
        html += page.block("trace", figure.title, page.figure(figure), figure is figures[-1])
    return html + numbers + paragraphs([drawn_trials.pauses_note(page.page_input)], "note")


def _drift(page: Drawing) -> Markup:
    """Shared resources, and drift over the hours."""
    shared = method_and_facts.shared(page.records)
    (row,) = page.results.of(Validity)
    words = [f"The nodes share {shared}: what one of them does costs the others." if shared else "", row.sentence]
    return paragraphs(words)


def _left_out(page: Drawing) -> Markup:
    lost = page.results.of(Exclusion)
    reasons = page.block("exclusions", lost) if lost else Markup()
    return reasons + page.table(validity.exclusions(page.records), sortable=True)


def _steady(page: Drawing) -> Markup:
    """Trials dropped as warm-up, and three answers: within a trial, over the trials of a start, over the study."""
    html = heading("Steady state") + paragraphs([steadiness.warm_up_words(page.this)])
    for level in steadiness.levels(page.this):
        html += paragraphs([level]) if isinstance(level, str) else page.folded(level)
    return html


def _generator(page: Drawing) -> Markup:
    """The load generator's checks, and the noise floor."""
    (row,) = page.results.of(Validity)
    floor = heading("Noise floor") + paragraphs([row.floor.sentence])
    return heading("The load generator") + page.table(validity.generator(page.records)) + floor


def _crimes(page: Drawing) -> Markup:
    given = page.page_input
    checks = crimes(
        given.study, page.results, page.records, given.facts, page.drawn, given.measured_again, given.machines,
        given.lost_blocks,
    )  # fmt: skip
    guilty, clear = validity.crimes(checks), validity.clear_crimes(checks)
    return heading("Benchmarking crimes") + page.table(guilty) + page.folded(clear, sortable=False)


def _facts(page: Drawing) -> Markup:
    """Settings that differ, limits of the nodes, and facts of machine, nodes, levels and system."""
    given = page.page_input
    shared = method_and_facts.shared(page.records)
    by_level = frozenset(fact.name for fact in given.level_facts)
    of_nodes, of_system = (
        method_and_facts.grouped(given.facts, system=system, by_level=by_level) for system in (False, True)
    )
    machine = [Fact(name, value) for name, value in given.facts.get(MACHINE, {}).items()]
    machine += [fact for fact in of_nodes if not fact.nodes]
    machine = [*method_and_facts.grouped(given.machines, system=False)] or machine
    several = "" if shared and not given.machines else "s"
    nodes = [fact for fact in of_nodes if fact.nodes]
    levels = [Fact(fact.name, fact.value, "; ".join(fact.levels)) for fact in given.level_facts]
    differ = "Settings that differ from the defaults"
    asked = method_and_facts.asked(given.study)
    html = heading(differ) + (
        page.block("facts", asked, differ) if asked else paragraphs(["Every setting has its default."])
    )
    limits = page.table(node_limits(given.gaugings, given.facts, page.records))
    html += heading("Limits of the nodes") + limits if limits else ""
    for facts, label, fold in (
        (machine, "Facts of the machine", f"The machine{several} ({count(len(machine), 'fact')})"),
        (nodes, "Facts of the nodes", f"What differs between the nodes ({len(nodes)})"),
        (levels, "Facts of levels", f"What differs between levels of the factors ({len(levels)})"),
        (of_system, "Settings in force", f"Settings in force, as the system says them ({len(of_system)})"),
    ):
        html += page.block("facts", facts, label, fold) if facts else ""
    return html


def _method(page: Drawing) -> Markup:
    given = page.page_input
    html = paragraphs(method_and_facts.method(given.study, given.plan, page.records, page.results, given.facts))
    return html + page.table(named_levels(given.study)) + paragraphs([given.study.study.notes], "note")


def _data(page: Drawing) -> Markup:
    """Every trial, and every table to download."""
    html = page.folded(validity.trials(page.this, page.records), summary=f"All {count(page.results.trials, 'attempt')}")
    rows = {name: frame.height for name, frame in page.page_input.tables.items()}
    return html + (page.block("downloads", rows) if rows else "")


def _terms(page: Drawing) -> Markup:
    """The page's words; definitions by label: every response, and the heads of the page's own tables."""
    labels = {response.label: response.definition for response in responses.every().values()}
    for column in (column for table in page.explained for column in table.columns if column.name):
        if column.definition:
            labels.setdefault(column.name, column.definition)
    meanings: dict[str, list[str]] = {}
    for name, text in labels.items():
        meanings.setdefault(text, []).append(name)
    words = page.block("terms", "The words of this page", WORDS, "words")
    return words + page.block(
        "terms", "Definitions of every column", {"; ".join(of): text for text, of in meanings.items()}
    )


FORMS: Final[tuple[Form, ...]] = (
    Form("answer", _look, (LookRow,)),
    Form("answer", _answer, (AnswerRow, Carried, Elasticity)),
    Form("answer", lambda page: page.named("main") + page.named("capacity")),
    Form("provenance", lambda page: page.block("provenance", provenance(page.page_input))),
    Form("effects", _comparisons, (Comparison,)),
    Form("every-cell", lambda page: page.table(cells(page.this), sortable=True), (Summary,)),
    Form("size", lambda page: page.named("regression") + page.table(regressions(page.this)), (Regression,)),
    Form("size", _laws, (LawFit, LawValue)),
    Form(
        "activities",
        _activities,
        (ActivityResponse, EventTime, AlignedSecond, ActivityPhase, DerivedThreshold, NodeActivity),
    ),
    Form("interactions", _interactions, (Interaction,)),
    Form("response-time", _response_time),
    Form("within", drawn_trials.over_time),
    Form("nodes", _nodes),
    Form("spread", lambda page: page.named("dots")),
    Form("validity", _drift, (Validity,)),
    Form("validity", _left_out, (Exclusion,)),
    Form("validity", _steady, (Steady, Trend, Course)),
    Form("validity", _generator),
    Form("validity", _crimes, last=True),
    Form("facts", _facts),
    Form("method", _method),
    Form("every-trial", _data, (Point,), last=True),
    Form(APPENDIX, lambda page: page.folded(time_courses.parts(page.this)), (PartMean,)),
    Form(APPENDIX, lambda page: page.folded(steadiness.warm_ups(page.this)), (WarmUp,)),
    Form("terms", _terms),
)
"""In the order of the page within each section."""
OWN: Final = frozenset(row for form in FORMS for row in form.of)
"""Row types of the statistics that have their own form."""
