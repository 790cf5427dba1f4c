"""Tables of the page: results as cells, each column with its unit and definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from steelyard.analysis.results import Results
from steelyard.format import NONE, factor_label, number, with_interval
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.report.basics.definitions import OF_THE_PAGE


@dataclass(frozen=True)
class ShownColumn:
    """Head of a column. `term` is the key of its definition; `numeric` columns are set to the right."""

    name: str
    unit: str = ""
    term: str = ""
    numeric: bool = True
    about: str = ""
    """The definition itself, if a row type or a response has one."""

    @property
    def definition(self) -> str:
        """Definition of the column's numbers."""
        return self.about or OF_THE_PAGE.get(self.term or self.name, "")


@dataclass(frozen=True)
class Cell:
    """The shown text, and the raw value for sorting and downloads."""

    text: str
    raw: str = ""
    tone: str = ""
    link: str = ""
    """Anchor on the page that the text links to."""


@dataclass(frozen=True)
class Table:
    """A table of the page. `name` is its anchor and the name of its download."""

    name: str
    caption: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    """Title of the fold over the table; empty: the first sentence of its caption."""

    def without_empty_columns(self) -> Table:
        """The table without columns that have no value in any row."""
        filled = [
            place
            for place in range(len(self.columns))
            if not self.rows or any(row[place].text not in ("", NONE) for row in self.rows)
        ]
        columns = tuple(self.columns[place] for place in filled)
        return replace(self, columns=columns, rows=tuple(tuple(row[place] for place in filled) for row in self.rows))

    @property
    def called(self) -> str:
        """The title, or the first part of the caption."""
        return self.title or self.caption.partition(";")[0].partition(". ")[0].rstrip(".")


def plain(text: object, tone: str = "") -> Cell:
    """A cell that sorts by its text."""
    return Cell(str(text), tone=tone)


def number_cell(value: float | None, *, spread: float | None = None) -> Cell:
    """A number, and its full precision for sorting."""
    text = number(value, spread=spread)
    raw = "" if value is None else repr(float(value))
    return Cell(text, raw if raw != text else "")


def estimate_cell(estimate: Estimate | None, *, spread: float | None = None, resolution: float = 0.0) -> Cell:
    """An estimate; `spread` sets the digits of one that has no interval, `resolution` the finest."""
    if estimate is None:
        return plain(NONE)
    spread = max(spread or 0.0, resolution) if resolution else spread
    known = estimate.low is not None
    text = with_interval(estimate, resolution) if known else number(estimate.value, spread=spread)
    return Cell(text, repr(estimate.value))


def level_cells(results: Results, treatment: Mapping[str, Level]) -> list[Cell]:
    """A cell per factor of the study."""
    return [plain(treatment.get(name, NONE)) for name in results.factors]


def factor_columns(results: Results) -> list[ShownColumn]:
    """The heads of these cells."""
    return [
        ShownColumn(
            factor_label(name, results.factors),
            term="factor",
            numeric=all(isinstance(level, int | float) for level in levels),
        )
        for name, levels in results.factors.items()
    ]
