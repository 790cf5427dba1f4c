"""Tables of the page that follow the analysis' own: what a column is and how it is read is said there, once.

So a table that the analysis gains is shown, and no column can mean one thing in the files and another on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.analysis.columns import ESTIMATE, OF_UNIT
from steelyard.analysis.columns import Column as Source
from steelyard.analysis.results import LABELS, Results
from steelyard.analysis.tables import sources, titles
from steelyard.format import NONE, number, p_value, with_interval
from steelyard.model.estimate import Estimate
from steelyard.report.data.presentation import View, view
from steelyard.report.tables.generic import Cell, Column, Table

SECTIONS: Final[Mapping[str, str]] = {
    "effect": "answer", "effect_line": "answer", "differential": "answer", "speedup": "answer",
    "anova": "interactions", "one_way": "interactions", "post_hoc": "interactions", "shape": "spread",
    "other_regression": "size",
}  # fmt: skip
"""Table of the analysis to the section of the page that it stands in."""
ELSEWHERE: Final = frozenset(
    {"summary", "medians", "regression", "comparison", "warm_up", "law", "law_curve", "trials", "exclusions",
     "validity", "steady", "parts"}
)  # fmt: skip
"""Tables that the page shows in a form of its own."""
WORDS: Final[tuple[tuple[str, str], ...]] = (
    ("energy", "energy"), ("cost", "energy"), ("joule", "energy"), ("efficiency", "size"), ("scaling", "size"),
    ("law", "size"), ("noise", "validity"), ("floor", "validity"), ("change_point", "validity"),
    ("component", "interactions"), ("percentile", "response-time"), ("quantile", "response-time"),
    ("sequential", "validity"), ("stopping", "validity"), ("merit", "energy"), ("variance", "spread"),
    ("main_effect", "interactions"), ("coefficient", "size"), ("overall", "answer"),
    ("course", "validity"), ("change", "validity"),
)  # fmt: skip
"""Where a table goes that has no place of its own: by what its name holds."""
LAST: Final = "every-trial"
LEVELS: Final = ("factor", "baseline", "level")
HEADS: Final[Mapping[str, str]] = {
    "cohens_d": "Cohen's d", "hedges_g": "Hedges' g", "cliffs_delta": "Cliff's delta",
    "ratio_fieller": "ratio (Fieller)", "ratio_bootstrap": "ratio (bootstrap)",
    "margin_percent": "margin, %", "tost_p": "p of equivalence",
    "std_err": "std. error", "q1": "25%", "q3": "75%", "eta_squared": "partial η²", "p_holm": "p (Holm)", "f": "F",
    "rank_p_holm": "rank p (Holm)", "ratio_max_to_min": "max / min", "ratio_min_to_max": "min / max",
    "ratio_means": "means", "ratio_medians": "medians", "ratio_sds": "standard deviations", "trial_id": "trial",
}  # fmt: skip
MOST_ROWS: Final = 400
"""Rows of a table on the page; the files and the downloads have all."""
MOST_TRIALS: Final = 60
"""The same of a table with a row for each trial."""
OF_TRIALS: Final = "trial_id"
NO_VALUES: Final = (None, "")


@dataclass(frozen=True)
class _Row:
    """One row: the levels beside the result, and the cells of the columns that are kept."""

    levels: Mapping[str, Any]
    result: Any


def section_of(name: str) -> str:
    """The section of the page in which a table of the analysis stands."""
    if name in SECTIONS:
        return SECTIONS[name]
    return next((section for word, section in WORDS if word in name), LAST)


def grids(this: View) -> dict[str, list[Table]]:
    """Section to its tables, in the analysis' order; empty tables are left out."""
    captions = titles(this.results)
    found: dict[str, list[Table]] = {}
    for name, (spec, rows) in sources(this.results).items():
        if name not in ELSEWHERE and rows:
            table = _table(this, name, captions.get(name, name.replace("_", " ")), spec, rows)
            found.setdefault(section_of(name), []).append(table)
    return found


def every(results: Results) -> dict[str, Table]:
    """Every table of the analysis that has a row, whole, as it goes into a paper."""
    captions, this = titles(results), view(results)
    return {
        name: _table(this, name, captions.get(name, name.replace("_", " ")), spec, rows, most=len(rows))
        for name, (spec, rows) in sources(results).items()
        if rows
    }


def _table(
    this: View,
    name: str,
    title: str,
    spec: Sequence[Source],
    rows: Sequence[tuple[Mapping[str, Any], Any]],
    *,
    most: int | None = None,
) -> Table:
    if most is None:
        most = MOST_TRIALS if any(column.name == OF_TRIALS for column in spec) else MOST_ROWS
    shown = [_Row(levels, result) for levels, result in rows[:most]]
    values = {column.name: [_read(column, row.result) for row in shown] for column in spec}
    contrast = all(level in values for level in LEVELS)
    notes: list[str] = []
    kept: list[Source] = []
    for column in spec:
        found = values[column.name]
        if (contrast and column.name in LEVELS) or all(one in NO_VALUES for one in found):
            continue
        same = len(shown) > 1 and all(one == found[0] for one in found)
        if same and column.name in ("response", "unit"):
            continue
        if same and isinstance(found[0], str):
            notes.append(f"{_head(column.name)}: {found[0]}")
            continue
        kept.append(column)
    factors = [factor for factor in this.results.factors if any(factor in row.levels for row in shown)]
    heads = [Column(factor, term="factor", numeric=_numeric(this, factor)) for factor in factors]
    heads += [Column("compared", term="comparison", numeric=False)] if contrast else []
    heads += [_column(this, column, values) for column in kept]
    cells = []
    for index, row in enumerate(shown):
        levels = [Cell(str(row.levels.get(factor, NONE))) for factor in factors]
        if contrast:
            factor, baseline, level = (values[one][index] for one in LEVELS)
            levels.append(Cell(f"{factor} {baseline} → {level}"))
        cells.append((*levels, *(_cell(this, column, values[column.name][index], row.result) for column in kept)))
    caption = f"{title}{_confidence(this, kept)}. {'; '.join(one.capitalize() for one in notes)}".strip().rstrip(";")
    if len(rows) > most:
        caption = f"{caption.rstrip('.')}. The first {most} of {len(rows):,} rows; the files and downloads have all."
    return Table(f"table-{name.replace('_', '-')}", f"{caption.rstrip('.')}.", tuple(heads), tuple(cells))


def _read(column: Source, result: Any) -> Any:
    return column.read(result) if column.read else getattr(result, column.name)


def _numeric(this: View, factor: str) -> bool:
    return all(isinstance(level, int | float) for level in this.results.factors[factor])


def _confidence(this: View, kept: Sequence[Source]) -> str:
    intervals = any(column.dtype == ESTIMATE for column in kept)
    return f"; brackets are {100 * this.results.confidence:g}% intervals" if intervals else ""


def _head(name: str) -> str:
    return HEADS.get(name, name.replace("_", " "))


def _column(this: View, column: Source, values: Mapping[str, Sequence[Any]]) -> Column:
    numeric = column.dtype == ESTIMATE or column.dtype.is_numeric()
    unit = ""
    if OF_UNIT in column.about:
        units = {_unit(this, response, unit) for response, unit in _responses(this, values)}
        unit = units.pop() if len(units) == 1 else ""
    return Column(_head(column.name), unit, numeric=numeric, about=column.about.replace(f", {OF_UNIT}", ""))


def _responses(this: View, values: Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    if "response" in values and "unit" in values:
        return list(zip(values["response"], values["unit"], strict=True))
    return [(this.results.response, this.results.unit)]


def _unit(this: View, response: str, unit: str) -> str:
    return this.scale.unit if response == this.results.response and unit == this.results.unit else unit


def _cell(this: View, column: Source, value: Any, result: Any) -> Cell:
    factor = 1.0
    if OF_UNIT in column.about and getattr(result, "response", this.results.response) == this.results.response:
        factor = this.scale.factor
    if isinstance(value, Estimate):
        return Cell(with_interval(_times(value, factor)), repr(value.value * factor))
    if value is None:
        return Cell(NONE)
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, float):
        probability = column.name == "p" or column.name.endswith("_p") or column.name.endswith("p_holm")
        return Cell(p_value(value) if probability else number(value * factor), repr(value * factor))
    if isinstance(value, int):
        return Cell(f"{value:,}", str(value))
    text = LABELS.get(str(value), str(value)) if column.name == "response" else str(value)
    return Cell(text, tone="long" if len(text) > 40 else "")


def _times(estimate: Estimate, factor: float) -> Estimate:
    ends = {end: None if value is None else value * factor for end, value in _ends(estimate)}
    return estimate.model_copy(update={"value": estimate.value * factor, **ends})


def _ends(estimate: Estimate) -> tuple[tuple[str, float | None], ...]:
    return ("low", estimate.low), ("high", estimate.high)
