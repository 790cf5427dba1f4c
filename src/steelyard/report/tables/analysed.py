"""Tables of statistics: the statistic's row type defines each column and how to read it.

A new statistic therefore appears on the page automatically, and a column means the same in files and on the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.analysis import statistics
from steelyard.analysis.results import Results
from steelyard.analysis.row import IN_UNIT, Kind, Row, TableColumn
from steelyard.analysis.tables import Source, source_of, sources, titles
from steelyard.analysis.treatments import Treatment, factor_label
from steelyard.format import NONE, number, p_value, with_interval
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of
from steelyard.report.data.presentation import View, view
from steelyard.report.tables.generic import Cell, ShownColumn, Table

UNKNOWN: Final = "none"
"""The verdict of a statistic that had too little to judge."""
LEVELS: Final = ("factor", "baseline", "level")
MOST_ROWS: Final = 400
"""Most rows of a table on the page; files and downloads have all."""
MOST_TRIALS: Final = 60
"""Most rows of a table with one row per trial."""
OF_TRIALS: Final = "trial_id"
NO_VALUES: Final = (None, "")
APPENDIX: Final = "appendix"
"""Anchor of the section with the tables that have no place in another."""
FORMS: Final = {"over": ("start means", "trials"), "form": ("honest", "published")}
"""Columns that say which form a row has: that over starts, and the published one over trials, which is in the files."""
GREATEST: Final = 1e9
"""Ends of intervals from here on are shown as a power of ten: their digits say nothing."""
MANY_ROWS: Final = 60
"""Beyond this many rows the page shows those of the main response only; the files have all."""
MOST_LETTERS: Final = 6
LONG: Final = 40
"""A text with more letters wraps."""


def grids(this: View, own: frozenset[type[Row]], *, published: bool) -> dict[str, list[Table]]:
    """Tables by the anchor of their section, in order: without `own`, those with their own form, and those that
    say nothing on a page. `published`: whether the study names a publication."""
    by_anchor: dict[str, list[Table]] = {}
    for statistic in statistics.every():
        aside = statistic.appendix or (statistic.published_form and not published)
        table = None if statistic.row in own else grid(this, statistic.row, further=aside)
        if table is not None and len(this.positions.levels) >= statistic.least_sizes:
            by_anchor.setdefault(APPENDIX if aside else statistic.section.value, []).append(table)
    return by_anchor


def grid(this: View, row: type[Row], *, further: bool = False) -> Table | None:
    """The table of a statistic as the page shows it, of the `further` responses, too, or not; None if it says
    nothing."""
    results = this.results if further else this.results.model_copy(update={"further": ()})
    statistic = statistics.by_row()[row]
    shown = telling(source_of(results, statistic), this.results.response)
    return _table(this, shown, titles(results)[statistic.name]) if shown.rows else None


def telling(source: Source, response: str) -> Source:
    """The table without rows that have no result, without the form over trials where there is one over starts, and, if
    it is long, with the main response only."""
    results = [column for column in source.columns if column.kind in (Kind.ESTIMATE, Kind.NUMBER)]
    if all(getattr(row, "verdict", "") == UNKNOWN for row in source.rows):
        return source._replace(rows=())
    rows = [row for row in source.rows if not results or any(column.read(row) is not None for column in results)]
    for name, (own, published) in FORMS.items():
        values = {getattr(row, name, None) for row in rows}
        if {own, published} <= values:
            rows = [row for row in rows if getattr(row, name, None) != published]
    if len(rows) > MANY_ROWS and any(getattr(row, "response", None) == response for row in rows):
        rows = [row for row in rows if getattr(row, "response", response) == response]
    return source._replace(rows=tuple(rows))


def every(results: Results) -> dict[str, Table]:
    """Every table that is not empty, with all rows, for a paper."""
    captions, this = titles(results), view(results)
    return {
        name: _table(this, source, captions[name], most=len(source.rows))
        for name, source in sources(results).items()
        if source.rows
    }


def _table(this: View, source: Source, title: str, *, most: int | None = None) -> Table:
    if most is None:
        most = MOST_TRIALS if any(column.name == OF_TRIALS for column in source.columns) else MOST_ROWS
    shown = source.rows[:most]
    levels = [source.levels(row) for row in shown]
    values = {column.name: [column.read(row) for row in shown] for column in source.columns}
    contrast = all(level in values for level in LEVELS)
    kept, notes = _kept(source.columns, values, contrast)
    letters = {column.name: _lettered(column, values[column.name]) for column in kept}
    marks: list[str] = []
    for column in kept:
        marks += [f"{column.called.capitalize()} {letter}: {text}" for text, letter in letters[column.name].items()]
        values[column.name] = [letters[column.name].get(value, value) for value in values[column.name]]
    factors = [factor for factor in this.results.factors if any(factor in of for of in levels)]
    heads = [ShownColumn(factor, term="factor", numeric=_numeric(this, factor)) for factor in factors]
    heads += [ShownColumn("compared", term="comparison", numeric=False)] if contrast else []
    heads += [_column(this, column, values) for column in kept]
    rows = tuple(
        (
            *_cells_of_levels(factors, levels[index], [values[one][index] for one in LEVELS] if contrast else None),
            *(_cell(this, column, values[column.name][index], row) for column in kept),
        )
        for index, row in enumerate(shown)
    )
    same = f" In every row: {', '.join(notes)}." if notes else ""
    legend = "".join(f" {words}." for words in marks)
    caption = f"{title}{_confidence(this, kept)}.{same}{legend}"
    if len(source.rows) > most:
        cut = f"The first {most} of {len(source.rows):,} rows; the files and downloads have all."
        caption = f"{caption.rstrip('.')}. {cut}"
    return Table(f"table-{source.statistic.name.replace('_', '-')}", f"{caption.rstrip('.')}.", tuple(heads), rows)


def _kept(
    columns: Sequence[TableColumn], values: Mapping[str, Sequence[Any]], contrast: bool
) -> tuple[list[TableColumn], list[str]]:
    """The shown columns, and notes for the caption: texts that are the same in every row."""
    kept: list[TableColumn] = []
    notes: list[str] = []
    for column in columns:
        shown = values[column.name]
        if (contrast and column.name in LEVELS) or all(value in NO_VALUES for value in shown):
            continue
        same = len(shown) > 1 and all(value == shown[0] for value in shown)
        if same and column.name in ("response", "unit"):
            continue
        if same and isinstance(shown[0], str | int):
            notes.append(f"{column.called} {_word(shown[0])}")
            continue
        kept.append(column)
    return kept, notes


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else value


def _lettered(column: TableColumn, values: Sequence[Any]) -> dict[str, str]:
    """Long texts that several rows repeat, with a letter for each; empty if rows differ."""
    texts = [value for value in values if isinstance(value, str) and len(value) > LONG]
    distinct = list(dict.fromkeys(texts))
    if column.kind is not Kind.TEXT or len(distinct) == len(texts) or len(distinct) > MOST_LETTERS:
        return {}
    return {text: chr(ord("a") + index) for index, text in enumerate(distinct)}


def _cells_of_levels(factors: Sequence[str], levels: Treatment, compared: Sequence[Any] | None) -> list[Cell]:
    cells = [Cell(str(levels.get(factor, NONE))) for factor in factors]
    if compared is not None:
        factor, baseline, level = compared
        cells.append(Cell(f"{factor_label(factor)} {baseline} → {level}"))
    return cells


def _numeric(this: View, factor: str) -> bool:
    return all(isinstance(level, int | float) for level in this.results.factors[factor])


def _confidence(this: View, kept: Sequence[TableColumn]) -> str:
    intervals = any(column.kind is Kind.ESTIMATE for column in kept)
    return f"; brackets are {100 * this.results.confidence:g}% intervals" if intervals else ""


def _in_unit(column: TableColumn) -> bool:
    return column.unit.startswith(IN_UNIT)


def _column(this: View, column: TableColumn, values: Mapping[str, Sequence[Any]]) -> ShownColumn:
    numeric = column.kind in (Kind.WHOLE, Kind.NUMBER, Kind.ESTIMATE)
    unit = ""
    if _in_unit(column):
        units = {_unit(this, response, unit) for response, unit in _responses(this, values)}
        unit = units.pop() if len(units) == 1 else ""
    about = column.meaning if column.unit == IN_UNIT else column.about
    return ShownColumn(column.called, unit, numeric=numeric, about=about)


def _responses(this: View, values: Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    if "response" in values and "unit" in values:
        return list(zip(values["response"], values["unit"], strict=True))
    if "unit" in values:
        return [("", unit) for unit in values["unit"]]
    return [(this.results.response, this.results.unit)]


def _unit(this: View, response: str, unit: str) -> str:
    return this.scale.unit if response == this.results.response and unit == this.results.unit else unit


def _cell(this: View, column: TableColumn, value: Any, row: Row) -> Cell:
    own = getattr(row, "response", "" if hasattr(row, "unit") else this.results.response)
    shown = _unit(this, own, getattr(row, "unit", this.results.unit))
    of_response = not isinstance(value, Estimate) or value.unit.startswith(this.results.unit)  # no factor of logarithms
    factor = this.scale.factor if _in_unit(column) and shown == this.scale.unit and of_response else 1.0
    resolution = responses.of(own).resolution if own in responses.every() and _in_unit(column) else 0.0
    if isinstance(value, Estimate):
        return Cell(_with_interval(_times(value, factor), resolution), repr(value.value * factor))
    if value is None:
        return Cell(NONE)
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, float):
        shown = p_value(value) if column.is_p else number(value * factor, spread=resolution or None)
        return Cell(shown, repr(value * factor))
    if isinstance(value, int):
        return Cell(f"{value:,}", str(value))
    text = label_of(str(value)) if column.name == "response" else str(value)
    return Cell(text, tone="long" if len(text) > LONG else "")


def _with_interval(estimate: Estimate, resolution: float) -> str:
    """`value [low, high]`; an end that is beyond all measure as a power of ten: `0.9 [0, > 10^12]`."""
    high = estimate.high
    if high is None or high < GREATEST:
        return with_interval(estimate, resolution)
    low = number(estimate.low, digits=2, trim=True)
    return f"{number(estimate.value, digits=2, trim=True)} [{low}, > 10^{math.floor(math.log10(high))}]"


def _times(estimate: Estimate, factor: float) -> Estimate:
    ends = {end: None if value is None else value * factor for end, value in _ends(estimate)}
    return estimate.model_copy(update={"value": estimate.value * factor, **ends})


def _ends(estimate: Estimate) -> tuple[tuple[str, float | None], ...]:
    return ("low", estimate.low), ("high", estimate.high)
