"""Tables with a row per treatment: the summary of the main response, and values of the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from steelyard.analysis.narrative.answer_table import AnswerRow
from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.search import SearchRow
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.wording import capital, mean_of
from steelyard.format import NONE, note_letter, number
from steelyard.model import responses
from steelyard.report.data.presentation import View
from steelyard.report.tables.generic import Cell, ShownColumn, Table, estimate_cell, factor_columns, level_cells, plain

WITH_INTERVAL: Final = ("response_ms_p50", "response_ms_p95", "response_ms_p99")
"""Responses that a figure draws with intervals, so that the table shows intervals too."""


def cells(this: View) -> Table:
    """Every cell of the study with its n, its exclusions and its summary."""
    unit = this.scale.unit
    columns = (
        *factor_columns(this.results),
        ShownColumn("n", "trials", about=meaning(Summary, "n")),
        ShownColumn("starts", about=meaning(Summary, "starts")),
        ShownColumn("left out", term="left out"),
        ShownColumn(mean_of(this.results.response), unit, about=meaning(AnswerRow, "value")),
        ShownColumn("sd", unit, about=meaning(Summary, "sd")),
        ShownColumn("min", unit, about=meaning(Summary, "min")),
        ShownColumn("25%", unit, about=meaning(Summary, "q1")),
        ShownColumn("median", unit, about=meaning(Summary, "median")),
        ShownColumn("75%", unit, about=meaning(Summary, "q3")),
        ShownColumn("max", unit, about=meaning(Summary, "max")),
    )
    letters = _letters(this.results.of(Exclusion))
    rows = []
    for summary in this.results.main(Summary):
        sd = this.scale.of(summary.sd.value if summary.sd else None)
        cell = partial(estimate_cell, spread=sd, resolution=responses.of(summary.response).resolution)
        mean = summary.value
        values, upper = (
            [cell(this.scale.estimate(value) if value else None) for value in pair]
            for pair in ((summary.min, summary.q1), (summary.q3, summary.max))
        )
        rows.append(
            (
                *level_cells(this.results, summary.treatment),
                plain(summary.n, "" if summary.n else "alert"),
                plain(summary.starts),
                plain(" ".join(f"{why.trials}{letters[why.reason]}" for why in summary.exclusions) or NONE),
                cell(this.scale.estimate(mean) if mean else None),
                cell(this.scale.estimate(summary.sd) if summary.sd else None),
                *values,
                cell(this.scale.estimate(summary.median) if summary.median else None),
                *upper,
            )
        )
    caption = (
        f"{capital(this.results.response_label)} of every treatment. The {mean_of(this.results.response)} is over "
        "start means, as the answer quotes it; it has an interval with three or more starts. Everything else is over "
        "used trials."
    )
    if letters:
        caption += f" Left out: {'; '.join(f'{letter} – {reason}' for reason, letter in letters.items())}."
    return Table("cells", caption, columns, tuple(rows))


def response_values(this: View) -> Table | None:
    """Value of every other response, one row per treatment; None without other responses, and of searches, whose
    trials are of many rates."""
    if this.results.of(SearchRow):
        return None
    summaries = this.results.others(Summary)
    present = {one.response for one in summaries}
    shown = [one for one in responses.every().values() if one.on_page and one.name in present]
    names = [one.name for one in shown]
    if not names:
        return None
    units = {one.response: one.unit for one in summaries}
    columns = (
        *factor_columns(this.results),
        *(ShownColumn(one.called, _short(units[one.name]), about=one.definition) for one in shown),
    )
    by_cell = {(tuple(one.treatment.items()), one.response): one for one in summaries}
    rows = []
    for summary in this.results.main(Summary):
        row = list(level_cells(this.results, summary.treatment))
        for name in names:
            other = by_cell.get((tuple(summary.treatment.items()), name))
            middle = other.geometric_mean if other else None
            if middle is not None and name in WITH_INTERVAL:
                row.append(estimate_cell(middle))
                continue
            value = middle.value if middle else None
            row.append(Cell(number(value, digits=3), "" if value is None else repr(value)))
        rows.append(tuple(row))
    return Table(
        "responses",
        "Geometric means of start means of each trial's own value, so p99 is not that of all operations together, "
        "which the percentile curves have. Intervals, with three or more starts, where a figure draws them; "
        "mean to max are of response time. All responses are in the tables to download.",
        columns,
        tuple(rows),
    )


def _letters(exclusions: Sequence[Exclusion]) -> dict[str, str]:
    """One letter per reason, for cells such as `1a 2b`."""
    return {exclusion.reason: note_letter(place) for place, exclusion in enumerate(exclusions)}


def _short(unit: str) -> str:
    return unit.replace("operations", "op").replace("operation", "op")
