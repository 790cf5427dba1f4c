"""Tables of the results as data frames, with the meaning of each column: for `--json`, CSV and reference.

A table has the rows of a statistic; its columns are the fields of the rows, so every column has a meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from steelyard.analysis import statistics
from steelyard.analysis.results import Results
from steelyard.analysis.row import Kind, Row, TableColumn, columns_of, factors_field
from steelyard.analysis.statistic import Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.format import listed
from steelyard.heavy import pl
from steelyard.model.estimate import Estimate

TYPES: dict[Kind, Any] = {
    Kind.TEXT: pl.String,
    Kind.WHOLE: pl.Int64,
    Kind.NUMBER: pl.Float64,
    Kind.YES_NO: pl.Boolean,
}
"""Kind of column to the data frame's type; an estimate has four columns."""
LIMITS: Final = "limits"


class Source(NamedTuple):
    """A table before it becomes a data frame or HTML."""

    statistic: Statistic[Any]
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]

    def levels(self, row: Row) -> Treatment:
        """The factor levels of a row's treatment."""
        name = factors_field(self.statistic.row)
        levels: Treatment = getattr(row, name) if name else {}
        return levels


def sources(results: Results) -> dict[str, Source]:
    """Every table by its name, by every response that the study names: what data frames and exports are made from."""
    return {statistic.name: source_of(results, statistic) for statistic in statistics.every()}


def source_of(results: Results, statistic: Statistic[Any]) -> Source:
    """The table of one statistic, by every response that the study names."""
    return Source(statistic, columns_of(statistic.row), results.every(statistic.row))


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """Every table; factors come first, in the order of the study.

    An estimate x takes four columns: x, x_low, x_high, x_method. `LIMITS` has no statistic: what limits the answer, in
    order of weight.
    """
    frames = {name: _frame(source, factors_of(results, source.statistic)) for name, source in sources(results).items()}
    limits = pl.Series("limit", results.caveats, dtype=pl.String)
    return {**frames, LIMITS: pl.DataFrame([limits])}


def columns(results: Results) -> dict[str, dict[str, str]]:
    """Meaning and unit of each column of each table."""
    by_table: dict[str, dict[str, str]] = {}
    for statistic in statistics.every():
        about = {factor: f"Level of the factor {factor}." for factor in factors_of(results, statistic)}
        for column in columns_of(statistic.row):
            about[column.name] = column.about
            if column.kind is Kind.ESTIMATE:
                about[f"{column.name}_low"] = f"Low end of the interval of {column.name}, in its unit."
                about[f"{column.name}_high"] = f"High end of the interval of {column.name}, in its unit."
                about[f"{column.name}_method"] = f"How {column.name} and its interval were computed."
        by_table[statistic.name] = about
    return {**by_table, LIMITS: {"limit": "What limits the answer: a sentence per row, the most important first."}}


def titles(results: Results) -> dict[str, str]:
    """A caption for each table, naming the responses that the study names."""
    labels = listed([results.response_label, *(one.response_label for one in results.further)])
    words = {"response": labels, "size": results.size_factor or "sizes"}
    return {statistic.name: statistic.title.format(**words) for statistic in statistics.every()}


def factors_of(results: Results, statistic: Statistic[Any]) -> tuple[str, ...]:
    """The factors that a table has a column for."""
    if factors_field(statistic.row) is None:
        return ()
    return tuple(name for name in results.factors if not (statistic.without_size and name == results.size_factor))


def _frame(source: Source, factors: Sequence[str]) -> pl.DataFrame:
    data: dict[str, pl.Series] = {}
    for factor in factors:
        levels = [source.levels(row).get(factor) for row in source.rows]
        data[factor] = pl.Series(factor, levels, dtype=_type_of(levels), strict=False)
    for column in source.columns:
        values = [column.read(row) for row in source.rows]
        if column.kind is Kind.ESTIMATE:
            data.update(_estimates(column.name, values))
        else:
            data[column.name] = pl.Series(column.name, values, dtype=TYPES[column.kind])
    return pl.DataFrame(data)


def _type_of(levels: Sequence[object]) -> Any:
    kinds = {type(level) for level in levels if level is not None}
    if kinds == {bool}:
        return pl.Boolean
    if kinds and kinds <= {int, float}:
        whole = all(level is None or float(str(level)).is_integer() for level in levels)
        return pl.Int64 if whole else pl.Float64
    return pl.String


def _estimates(name: str, values: Sequence[Estimate | None]) -> dict[str, pl.Series]:
    def series(suffix: str, field: str, dtype: Any) -> pl.Series:
        return pl.Series(f"{name}{suffix}", [None if v is None else getattr(v, field) for v in values], dtype=dtype)

    return {
        name: series("", "value", pl.Float64),
        f"{name}_low": series("_low", "low", pl.Float64),
        f"{name}_high": series("_high", "high", pl.Float64),
        f"{name}_method": series("_method", "method", pl.String),
    }
