"""Tables for a paper: those of the page as it shows them, and further statistics that fit a page's width."""

from __future__ import annotations

from steelyard.analysis.results import Results
from steelyard.report.data.presentation import view
from steelyard.report.tables import analysed, answers, latex
from steelyard.report.tables.cells import cells, response_values
from steelyard.report.tables.comparisons import comparisons
from steelyard.report.tables.generic import Table
from steelyard.report.tables.interactions import interactions
from steelyard.report.tables.regressions import laws, regressions


def for_paper(results: Results) -> dict[str, Table]:
    """Each table by the name of its files, which is the statistic's if it has one.

    A statistic without its own form, whose LaTeX would be cut into stacked parts, is left out: its CSV has it.
    """
    this = view(results)
    further = {f"answer-{one.response}": answers.answers(one.answer_table) for one in results.further}
    own = {
        "answer": answers.answers(results.answer_table),
        **further,
        answers.OTHERS: answers.other_responses(results),
        "every-pair": answers.every_pair(results.answer_pairs),
        "comparison": comparisons(this),
        "summary": cells(this),
        "responses": response_values(this),
        "interaction": interactions(this),
        "regression": regressions(this),
        "law": laws(this),
    }
    rest = {
        name: table for name, table in analysed.every(results).items() if name not in own and not latex.is_cut(table)
    }
    return {name: table.without_empty_columns() for name, table in own.items() if table is not None} | rest
