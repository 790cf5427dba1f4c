"""One page while it is drawn: figures and tables become HTML one after the other, and are numbered as they come."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import jinja2
from markupsafe import Markup

from steelyard.analysis.row import Row
from steelyard.format import count
from steelyard.reading.report_input import ReportInput
from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.basics.theme import VARIABLES
from steelyard.report.data.presentation import Figure, Key, Panel, view
from steelyard.report.draw.charts import key_picture
from steelyard.report.draw.svg import Picture
from steelyard.report.figures import catalogue
from steelyard.report.prose.provenance import coded
from steelyard.report.tables.generic import Table

SOURCE_FOLDER: Final = "templates"


@dataclass(frozen=True)
class DrawnPanel:
    """A panel as it is in the page."""

    title: str
    wide: Markup
    narrow: Markup | None
    values: str = ""
    """JSON of the hover texts."""


@dataclass(frozen=True)
class Numbered:
    """A figure with its number and its drawn panels."""

    figure: Figure
    number: str
    pictures: tuple[DrawnPanel, ...]


class Drawing:
    """Input of a page, and its pen."""

    def __init__(self, page_input: ReportInput, own: frozenset[type[Row]]) -> None:
        """`own`: row types of the statistics that have their own forms."""
        self.page_input, self.results, self.records = page_input, page_input.results, page_input.records
        self.own, self.published = own, bool(page_input.study.study.source)
        self.this = view(page_input.results)
        self.figures = catalogue.of_results(page_input.results)
        self.drawn: list[Figure] = []
        """Figures of the page so far."""
        self.texts = HoverTexts()
        self.explained: list[Table] = []
        """Tables that the page lays out itself; the end of the page explains their heads."""
        self.environment = _environment()
        self.on_request = False
        """Whether the section being drawn is printed only if asked for."""
        self._last = Counter[str]()

    def _number(self, kind: str, *, folded: bool = False) -> str:
        """`3`, or `S3` for what the short print leaves out, so that printed numbers have no gaps."""
        apart = "S" if folded or self.on_request else ""
        self._last[kind + apart] += 1
        return f"{apart}{self._last[kind + apart]}"

    def block(self, name: str, *values: Any, template: str = "blocks", **named: Any) -> Markup:
        """A macro of a template, filled in."""
        return Markup(getattr(self.environment.get_template(f"{template}.html.j2").module, name)(*values, **named))

    def figure(self, figure: Figure | None) -> Markup:
        """The next figure of the page; empty if there is none."""
        if figure is None:
            return Markup()
        self.drawn.append(figure)
        numbered = Numbered(figure, self._number("figure"), tuple(self._panels(figure)))
        return self.block("figure", numbered, template="parts")

    def named(self, name: str) -> Markup:
        """The next figure, by its name in the catalogue; empty if the results do not support it."""
        return self.figure(self.figures.get(name))

    def _panels(self, figure: Figure) -> Iterable[DrawnPanel]:
        for index, panel in enumerate(figure.panels):
            name, narrow = f"{figure.name}-{index}", panel.narrow
            wide = self._drawn(panel.picture, figure, panel, name)
            small = self._drawn(narrow, figure, panel, f"{name}-narrow") if narrow else None
            yield DrawnPanel(panel.title, wide, small, panel.values)

    def _drawn(self, picture: Picture, figure: Figure, panel: Panel, identity: str) -> Markup:
        parts = (figure.title, panel.title, "The numbers are in the tables of this section")
        title = ". ".join(part for part in parts if part)
        # `in_page` escapes all text and attributes of a picture, so the markup is safe.
        return Markup(picture.in_page(self.texts, title=title, identity=identity))

    def table(self, table: Table | None, *, macro: str = "table", own: bool = True, **look: Any) -> Markup:
        """The next table of the page, without empty columns unless its columns are those of a statistic; empty if
        there is none."""
        if table is None:
            return Markup()
        if own:
            table = table.without_empty_columns()
            self.explained.append(table)
        return self.block(macro, (self._number("table", folded=macro == "folded"), table), template="parts", **look)

    def folded(self, table: Table | None, **look: Any) -> Markup:
        """The next table, folded."""
        return self.table(table, macro="folded", **look)


@dataclass(frozen=True)
class Form:
    """Content of a section of the page in its own form."""

    section: str
    """Anchor of the section."""
    html: Callable[[Drawing], Markup]
    of: tuple[type[Row], ...] = ()
    """Row types of the statistics that it shows: they have no other table on the page."""
    last: bool = False
    """It follows the section's other figures and tables."""


def paragraphs(texts: Iterable[str], kind: str = "") -> Markup:
    """Each text that is not empty as a paragraph, with code between backticks."""
    begin = Markup('<p class="{}">').format(kind) if kind else Markup("<p>")
    return Markup().join(begin + coded(text) + Markup("</p>\n") for text in texts if text)


def heading(text: str) -> Markup:
    """A heading within a section."""
    anchor = "-".join(text.lower().split())
    return Markup('<h3 id="{0}">{1} <a class="anchor" href="#{0}" aria-label="Link to {1}">#</a></h3>\n').format(
        anchor, text
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steelyard.report", SOURCE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["count"] = count
    environment.filters |= {"coded": coded, "themed": _themed, "drawn": _key}
    return environment


def _key(key: Key) -> Markup:
    return Markup(key_picture(key.colour, key.shape, key.dash).beside_words())


def _themed(colour: str) -> str:
    """The page's variable for a colour of the light theme."""
    return f"var({VARIABLES[colour]})" if colour in VARIABLES else colour
