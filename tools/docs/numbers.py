"""Generated parts of `docs/reference/numbers`: verdict reasons, responses, tables with their columns, and the index.

There is a page for each section of the report. Each generated part stands between two comments. The rest explains the
methods and is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from steelyard.analysis import statistics
from steelyard.analysis.row import NO_UNIT, TableColumn, columns_of, factors_field
from steelyard.analysis.statistic import Section, Statistic
from steelyard.model import responses as registered
from steelyard.model.verdict_reasons import ReasonKind
from tools.docs.marked import cell, with_parts

ROOT: Final = Path(__file__).resolve().parents[2]
INDEX: Final = "docs/reference/numbers.md"
FOLDER: Final = "docs/reference/numbers"
PAGES: Final[Mapping[str, Section | None]] = {
    "trials": Section.EVERY_TRIAL,
    "responses": None,
    **{section.value: section for section in Section if section is not Section.EVERY_TRIAL},
    "page-only": None,
}
"""Name of a page to the section of the report whose tables it has, in the order of the index."""


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


def tables(section: Section | None) -> Iterator[str]:
    """The tables of a section in the order of the report, one row per column."""
    for statistic in _of(section):
        yield from _table(statistic)


def _of(section: Section | None) -> list[Statistic[Any]]:
    return [statistic for statistic in statistics.every() if statistic.section is section]


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


def contents() -> Iterator[str]:
    """The pages with their parts and tables. The anchors are those that the index had as one page."""
    for name, section in PAGES.items():
        text = (ROOT / FOLDER / f"{name}.md").read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        yield f"* **[{title}](numbers/{name}.md)**"
        headings = re.findall(r"^##+ ([^`\n]+)$", text, re.MULTILINE)
        anchors = {
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"): heading
            for heading in headings
            if heading != TABLES
        }
        for anchor, heading in anchors.items():
            yield f'    * <a id="{anchor}"></a>[{heading}](numbers/{name}.md#{anchor})'
        own = [statistic.name for statistic in _of(section)]
        if own:
            yield "    * tables:"
        for table in own:
            anchor = "" if table in anchors else f'<a id="{table}"></a>'
            yield f"      {anchor}[`{table}`](numbers/{name}.md#{table})" + ("," if table != own[-1] else "")


TABLES: Final = "Tables and their columns"
PARTS: Final[Mapping[str, Mapping[str, Callable[[], Iterator[str]]]]] = {
    "responses": {"responses": responses},
    "validity": {"reasons": reasons},
}
"""Generated parts besides tables."""


def text(page: str, name: str) -> str:
    """A page with its generated parts up to date. Raises ValueError if the comments around one are missing."""
    parts = dict(PARTS.get(name, {}))
    if _of(PAGES[name]):
        parts["tables"] = partial(tables, PAGES[name])
    return with_parts(page, parts)


def page(name: str) -> str:
    """The repository's page of this name with its generated parts brought up to date."""
    return text((ROOT / FOLDER / f"{name}.md").read_text(encoding="utf-8"), name)


def index() -> str:
    """The repository's list of pages, brought up to date."""
    return with_parts((ROOT / INDEX).read_text(encoding="utf-8"), {"contents": contents})


FILES: Final[Mapping[str, Callable[[], str]]] = {
    **{f"{FOLDER}/{name}.md": partial(page, name) for name in PAGES},
    INDEX: index,
}
