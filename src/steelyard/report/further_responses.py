"""Sections of the further responses of a study: each with its answer, comparisons, cells and spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Section
from steelyard.analysis.wording import capital
from steelyard.model.trial import TrialRecord
from steelyard.report.data.presentation import view
from steelyard.report.figures import catalogue
from steelyard.report.numbering import Numbered, Numbers
from steelyard.report.tables import analysed, answers, generic
from steelyard.report.tables.generic import Table

FIGURES: Final = ("main", "forest", "regression", "laws", "profiles", "boxes", "order")
"""Figures of a section, in its order; those of response time within a trial are of the main response only."""
SECTIONS: Final = (Section.ANSWER, Section.EVERY_CELL, Section.SIZE, Section.INTERACTIONS, Section.SPREAD,
                   Section.VALIDITY)  # fmt: skip
"""Sections of the page whose tables a further response has, too, in the order of the page."""


@dataclass(frozen=True)
class FurtherResponse:
    """One further response as the page shows it."""

    anchor: str
    title: str
    sentences: Sequence[str]
    """The answer by this response; the table says the rest."""
    answer_table: tuple[int, Table] | None
    comparisons: tuple[int, Table] | None
    cells: tuple[int, Table] | None
    figures: Sequence[Numbered]
    tables: Sequence[tuple[int, Table]]


def further_responses(results: Results, records: Sequence[TrialRecord], numbers: Numbers) -> list[FurtherResponse]:
    """The sections of all further responses, in the study's order."""
    return [_section(one, records, numbers) for one in results.further]


def _section(results: Results, records: Sequence[TrialRecord], numbers: Numbers) -> FurtherResponse:
    this, suffix = view(results), f"-{results.response}"
    drawn = catalogue.of_results(results, records)
    by_section = analysed.grids(this)

    def table(shown: Table | None) -> tuple[int, Table] | None:
        return numbers.table(None if shown is None else replace(shown, name=f"{shown.name}{suffix}"))

    answer_table = table(answers.answers(results.answer_table))
    figures = [numbers.figure(replace(drawn[name], name=f"{name}{suffix}")) for name in FIGURES if name in drawn]
    tables = [table(shown) for section in SECTIONS for shown in by_section.get(section, ())]
    return FurtherResponse(
        anchor=f"response{suffix}",
        title=capital(results.response_label),
        sentences=results.answer[:-1],
        answer_table=answer_table,
        comparisons=table(generic.comparisons(this)),
        cells=table(generic.cells(this)),
        figures=[figure for figure in figures if figure is not None],
        tables=[numbered for numbered in tables if numbered is not None],
    )
