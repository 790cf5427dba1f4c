"""HTML report: one self-contained page from a study, its results and its trial records.

Everything the reader needs is inside: style, pictures, tables, data. No text from the store can become markup: the
template escapes all of it, and the page's content security policy allows no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Final

from markupsafe import Markup

import steelyard
from steelyard.analysis import statistics
from steelyard.analysis.row import Row
from steelyard.analysis.statistic import Section
from steelyard.analysis.treatments import NODES
from steelyard.analysis.wording import capital
from steelyard.format import FORM, FORM_NAME, moment
from steelyard.reading.report_input import ReportInput
from steelyard.report import further_responses
from steelyard.report.basics import embedded_data
from steelyard.report.basics.theme import SERIES, SERIES_DARK
from steelyard.report.drawing import SOURCE_FOLDER, Drawing, paragraphs
from steelyard.report.forms import FORMS, OWN
from steelyard.report.prose import provenance
from steelyard.report.tables import analysed
from steelyard.report.tables.generic import Table
from steelyard.shown_text import visible

PAGE: Final = "report.html"
"""Name of the page in the study's folder."""
SCRIPTS: Final = ("format.js", "zoom.js", "page.js")


@dataclass(frozen=True)
class PageSection:
    """A section of the page; one without content is left out."""

    anchor: str
    title: str
    """As the contents have it; `{size}` is the factor of sizes."""
    heading: str = ""
    """Empty: the title; `{response}` is the main response."""
    on_request: bool = False
    """Printed only if asked for."""
    folded: bool = True
    """Whether tables of statistics are."""
    lead: str = ""
    """Text before its content."""
    html: Markup | None = None
    """Its content, once it is drawn."""


FURTHER: Final = PageSection("", "The further responses")
"""The place of the sections of further responses."""
LEAD: Final = (
    "No answer of the page rests on these: second answers to a question that is answered above, tables in the form of "
    "published studies, covariates. Files and downloads have them in full."
)
SENSITIVITY: Final = (
    "No verdict of the page rests on these: each verdict has one test, named above with its comparison. Where another "
    "method decides otherwise, the data do not decide clearly."
)
SECTIONS: Final = (
    PageSection("answer", "The answer"),
    PageSection("provenance", "Reproduce, data, cite", "Reproduce, raw data, cite"),
    PageSection("effects", "Every comparison"),
    PageSection("every-cell", "Every cell"),
    PageSection("size", "{size}", "{response} and {size}"),
    PageSection("activities", "Activities", "Activities: nodes that joined, left or were disrupted"),
    PageSection("interactions", "Interactions", on_request=True),
    PageSection("sensitivity", "Sensitivity", "Sensitivity: the question by other methods", True, lead=SENSITIVITY),
    FURTHER,
    PageSection("response-time", "Response time", "Response time and other responses", on_request=True),
    PageSection("within", "Within a trial", on_request=True),
    PageSection("nodes", "What the nodes did", on_request=True),
    PageSection("energy", "Energy and cost", on_request=True, folded=False),
    PageSection("spread", "Spread of the trials", on_request=True),
    PageSection("validity", "Validity"),
    PageSection("facts", "Machine and system"),
    PageSection("method", "Method"),
    PageSection("every-trial", "Every trial and the data", on_request=True),
    PageSection(analysed.APPENDIX, "Appendix: other tables", on_request=True, lead=LEAD),
    PageSection("terms", "Words and numbers", on_request=True),
)
"""In the order of the page. Figures and tables name a `Section`, whose value is an anchor here."""
TABLES: Final = {Section.ANSWER.value: "effects"}
"""Place of the tables of a section, unless in the section itself."""


def build(page_input: ReportInput) -> str:
    """The whole page as HTML."""
    drawing = Drawing(page_input, OWN)
    context = {**_head(page_input), "sections": list(_sections(drawing))}
    context["tips"] = drawing.texts.as_json()
    return visible(drawing.environment.get_template("page.html.j2").render(context), lines=True)


def _head(page_input: ReportInput) -> dict[str, Any]:
    """Context without sections: texts, style, script and data."""
    script = "".join(map(_source, SCRIPTS))
    return {
        "study": page_input.study,
        "version": steelyard.__version__,
        "made": moment(page_input.made_s) if page_input.made_s is not None else "",
        "begun": moment(min((record.begun_s for record in page_input.records), default=None)),
        "style": Markup(_style()),
        "form_name": FORM_NAME,
        "form": FORM,
        "script": Markup(script),
        "script_hash": _hash(script),
        "hardware": provenance.hardware(page_input),
        "one_trial": provenance.one_trial(page_input.records),
        "data": embedded_data.pack(embedded_data.raw(page_input.tables)),
    }


def _sections(drawing: Drawing) -> Iterator[PageSection]:
    """The sections that have content, drawn in the order of the page."""
    grids = analysed.grids(drawing.this, drawing.own, published=drawing.published)
    tables = {TABLES.get(anchor, anchor): of for anchor, of in grids.items()}
    size = drawing.results.size_factor
    size = "cluster size" if size is None or size in NODES else size
    words = {"size": size, "response": drawing.results.response_label}
    for section in SECTIONS:
        drawing.on_request = section.on_request
        if section is FURTHER:
            for results in drawing.results.further:
                anchor, title = further_responses.named(results)
                yield PageSection(anchor, title, html=further_responses.section(drawing, results))
        elif html := _content(drawing, section, tables.get(section.anchor, ())):
            title, heading = (capital(text.format(**words)) for text in (section.title, section.heading))
            yield replace(section, title=title, heading=heading, html=paragraphs([section.lead]) + html)


def _content(drawing: Drawing, section: PageSection, tables: Sequence[Table]) -> Markup:
    """Parts with their own form, then further figures, then the tables of all other statistics."""
    forms = [form for form in FORMS if form.section == section.anchor and _enough_sizes(drawing, form.of)]
    own = [form.html(drawing) for form in forms if not form.last]
    own += [drawing.figure(one) for one in drawing.figures.values() if one.section == section.anchor]
    macro = "folded" if section.folded else "table"
    own += [drawing.table(table, macro=macro, own=False, sortable=True) for table in tables]
    return Markup().join([*own, *(form.html(drawing) for form in forms if form.last)])


def _enough_sizes(drawing: Drawing, rows: Sequence[type[Row]]) -> bool:
    """Whether the study has the sizes that these statistics need on the page."""
    return all(len(drawing.this.positions.levels) >= statistics.by_row()[row].least_sizes for row in rows)


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
