"""Sections of the further responses of a study: each with its answer, comparisons, cells and spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from markupsafe import Markup

from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Section
from steelyard.analysis.statistics.course import Course
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.wording import capital
from steelyard.report.data.presentation import view
from steelyard.report.drawing import Drawing, paragraphs
from steelyard.report.figures import catalogue
from steelyard.report.tables import analysed, answers
from steelyard.report.tables.cells import cells
from steelyard.report.tables.comparisons import comparisons
from steelyard.report.tables.generic import Table

FIGURES: Final = ("main", "forest", "regression", "laws", "profiles", "dots")
"""Figures of a section, in its order; those of response time within a trial are of the main response only."""
SECTIONS: Final = (Section.ANSWER, Section.EVERY_CELL, Section.SIZE, Section.INTERACTIONS, Section.SENSITIVITY,
                   Section.SPREAD, Section.VALIDITY)  # fmt: skip
"""Sections of the page whose tables a further response has, too, in the order of the page."""
PLAIN: Final = frozenset((Trend, Course))
"""Statistics that have their own form for the main response only."""


def named(results: Results) -> tuple[str, str]:
    """Anchor and title of a further response's section."""
    return f"response-{results.response}", capital(results.response_label)


def section(page: Drawing, results: Results) -> Markup:
    """The section of one further response: its answer, and what the page has of the main response, too."""
    this, drawn = view(results), catalogue.of_results(results)
    rest = analysed.grids(this, page.own - PLAIN, published=page.published)

    def own(shown: Table | None) -> Table | None:
        return None if shown is None else replace(shown, name=f"{shown.name}-{results.response}")

    figures = [replace(drawn[name], name=f"{name}-{results.response}") for name in FIGURES if name in drawn]
    answer = answers.answers(results.answer_table)
    html = page.table(own(answer), look="answers")
    sentences = results.answer[:-1]
    html += page.block("in_words", sentences) if answer and sentences else paragraphs(sentences)
    html += Markup().join(map(page.figure, figures[:1])) + page.table(own(comparisons(this)))
    html += page.folded(own(cells(this))) + Markup().join(map(page.figure, figures[1:]))
    return html + Markup().join(page.folded(own(table)) for place in SECTIONS for table in rest.get(place.value, ()))
