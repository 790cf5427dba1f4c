"""Tables of statistics: the statistic's row type defines each column and how to read it.

A new statistic therefore appears on the page by itself, and a column means the same in files and on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.analysis.results import Results
from steelyard.analysis.row import IN_UNIT, Kind, Row, TableColumn
from steelyard.analysis.statistic import Section
from steelyard.analysis.tables import Source, sources, titles
from steelyard.analysis.treatments import Treatment
from steelyard.format import NONE, number, p_value, with_interval
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of
from steelyard.report.data.presentation import View, view
from steelyard.report.tables.generic import Cell, Column, Table

LEVELS: Final = ("factor", "baseline", "level")
MOST_ROWS: Final = 400
"""Most rows of a table on the page; files and downloads have all."""
MOST_TRIALS: Final = 60
"""Most rows of a table with one row per trial."""
OF_TRIALS: Final = "trial_id"
NO_VALUES: Final = (None, "")
LONG: Final = 40
"""A text with more letters wraps."""


def grids(this: View) -> dict[Section, list[Table]]:
    """Tables by section, in order, without empty tables and those that the page lays out itself."""
    captions = titles(this.results)
    by_section: dict[Section, list[Table]] = {}
    for name, source in sources(this.results).items():
        if source.rows and not source.statistic.own_form:
            by_section.setdefault(source.statistic.section, []).append(_table(this, source, captions[name]))
    return by_section


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
    factors = [factor for factor in this.results.factors if any(factor in of for of in levels)]
    heads = [Column(factor, term="factor", numeric=_numeric(this, factor)) for factor in factors]
    heads += [Column("compared", term="comparison", numeric=False)] if contrast else []
    heads += [_column(this, column, values) for column in kept]
    rows = tuple(
        (
            *_cells_of_levels(factors, levels[index], [values[one][index] for one in LEVELS] if contrast else None),
            *(_cell(this, column, values[column.name][index], row) for column in kept),
        )
        for index, row in enumerate(shown)
    )
    caption = f"{title}{_confidence(this, kept)}. {'; '.join(note.capitalize() for note in notes)}".strip().rstrip(";")
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
        if same and isinstance(shown[0], str):
            notes.append(f"{column.called}: {shown[0]}")
            continue
        kept.append(column)
    return kept, notes


def _cells_of_levels(factors: Sequence[str], levels: Treatment, compared: Sequence[Any] | None) -> list[Cell]:
    cells = [Cell(str(levels.get(factor, NONE))) for factor in factors]
    if compared is not None:
        factor, baseline, level = compared
        cells.append(Cell(f"{factor} {baseline} → {level}"))
    return cells


def _numeric(this: View, factor: str) -> bool:
    return all(isinstance(level, int | float) for level in this.results.factors[factor])


def _confidence(this: View, kept: Sequence[TableColumn]) -> str:
    intervals = any(column.kind is Kind.ESTIMATE for column in kept)
    return f"; brackets are {100 * this.results.confidence:g}% intervals" if intervals else ""


def _in_unit(column: TableColumn) -> bool:
    return column.unit.startswith(IN_UNIT)


def _column(this: View, column: TableColumn, values: Mapping[str, Sequence[Any]]) -> Column:
    numeric = column.kind in (Kind.WHOLE, Kind.NUMBER, Kind.ESTIMATE)
    unit = ""
    if _in_unit(column):
        units = {_unit(this, response, unit) for response, unit in _responses(this, values)}
        unit = units.pop() if len(units) == 1 else ""
    about = column.meaning if column.unit == IN_UNIT else column.about
    return Column(column.called, unit, numeric=numeric, about=about)


def _responses(this: View, values: Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    if "response" in values and "unit" in values:
        return list(zip(values["response"], values["unit"], strict=True))
    return [(this.results.response, this.results.unit)]


def _unit(this: View, response: str, unit: str) -> str:
    return this.scale.unit if response == this.results.response and unit == this.results.unit else unit


def _cell(this: View, column: TableColumn, value: Any, row: Row) -> Cell:
    factor = 1.0
    if _in_unit(column) and getattr(row, "response", this.results.response) == this.results.response:
        factor = this.scale.factor
    if isinstance(value, Estimate):
        return Cell(with_interval(_times(value, factor)), repr(value.value * factor))
    if value is None:
        return Cell(NONE)
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, float):
        return Cell(p_value(value) if column.is_p else number(value * factor), repr(value * factor))
    if isinstance(value, int):
        return Cell(f"{value:,}", str(value))
    text = label_of(str(value)) if column.name == "response" else str(value)
    return Cell(text, tone="long" if len(text) > LONG else "")


def _times(estimate: Estimate, factor: float) -> Estimate:
    ends = {end: None if value is None else value * factor for end, value in _ends(estimate)}
    return estimate.model_copy(update={"value": estimate.value * factor, **ends})


def _ends(estimate: Estimate) -> tuple[tuple[str, float | None], ...]:
    return ("low", estimate.low), ("high", estimate.high)
