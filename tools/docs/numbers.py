"""Generated parts of `docs/reference/numbers.md`: verdict reasons, responses, and tables with their columns.

Each part stands between two comments. The rest of the page explains the methods and is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from steelyard.analysis import statistics
from steelyard.analysis.row import NO_UNIT, TableColumn, columns_of, factors_field
from steelyard.analysis.statistic import Statistic
from steelyard.model import responses as registered
from steelyard.model.verdict_reasons import ReasonKind
from tools.docs.marked import cell, with_parts

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "numbers.md"


def reasons() -> Iterator[str]:
    """A row for each reason of a verdict."""
    yield "| reason | measurement, and when it counts against the trial | void |"
    yield "| --- | --- | --- |"
    for kind in ReasonKind:
        yield f"| {kind.value} | {cell(kind.about.measured)} | {'yes ' if kind.about.void else ''}|"


def responses() -> Iterator[str]:
    """A row for each response."""
    yield "| response | definition | unit |"
    yield "| --- | --- | --- |"
    for name, response in registered.every().items():
        yield f"| `{name}` | {cell(response.definition)} | {response.unit} |"


def tables() -> Iterator[str]:
    """Every table in the order of the report, one row per column."""
    for statistic in statistics.every():
        yield from _table(statistic)


def _table(statistic: Statistic[Any]) -> Iterator[str]:
    yield f"### `{statistic.name}`"
    yield ""
    yield f"{statistic.title.format(response='the main response', size='the factor of sizes')}.{_factors(statistic)}"
    yield ""
    yield "| column | meaning | unit |"
    yield "| --- | --- | --- |"
    for column in columns_of(statistic.row):
        yield f"| `{column.name}` | {cell(column.meaning)} | {_unit(column)}|"
    yield ""


def _factors(statistic: Statistic[Any]) -> str:
    if factors_field(statistic.row) is None:
        return ""
    return " First a column for each factor" + (" except cluster size." if statistic.without_size else ".")


def _unit(column: TableColumn) -> str:
    return "" if column.unit == NO_UNIT else f"{column.unit} "


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "reasons": reasons,
    "responses": responses,
    "tables": tables,
}


def text(page: str) -> str:
    """The page with its generated parts up to date. Raises ValueError if the comments around one are missing."""
    return with_parts(page, PARTS)


def page() -> str:
    """The repository's page with its generated parts brought up to date."""
    return text(PAGE.read_text(encoding="utf-8"))
