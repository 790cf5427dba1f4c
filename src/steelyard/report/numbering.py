"""Numbers of figures and tables, in page order, and figures drawn for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steelyard.analysis.statistic import Section
from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.data.presentation import Figure, Panel
from steelyard.report.draw.svg import Picture
from steelyard.report.tables.generic import Table


@dataclass(frozen=True)
class Shown:
    """A panel as it stands in the page."""

    title: str
    wide: Markup
    narrow: Markup | None
    values: str = ""
    """JSON of the hover texts."""


@dataclass(frozen=True)
class Numbered:
    """A figure with its number and its drawn panels."""

    figure: Figure
    number: int
    pictures: tuple[Shown, ...]


class Numbers:
    """Counter that numbers figures and tables in page order."""

    def __init__(self) -> None:
        self.figures = 0
        self.tables = 0
        self.texts = HoverTexts()
        self.own: list[Table] = []
        """Tables that the page lays out itself; the end of the page explains their heads."""

    def figure(self, figure: Figure | None) -> Numbered | None:
        if figure is None:
            return None
        self.figures += 1
        pictures = tuple(
            Shown(
                panel.title,
                self._drawn(panel.picture, figure, panel, f"{figure.name}-{index}"),
                self._drawn(panel.narrow, figure, panel, f"{figure.name}-{index}-narrow") if panel.narrow else None,
                panel.values,
            )
            for index, panel in enumerate(figure.panels)
        )
        return Numbered(figure, self.figures, pictures)

    def _drawn(self, picture: Picture, figure: Figure, panel: Panel, identity: str) -> Markup:
        parts = (figure.title, panel.title, "The numbers are in the tables of this section")
        title = ". ".join(part for part in parts if part)
        # `in_page` escapes all text and attributes of a picture, so the markup is safe.
        return Markup(picture.in_page(self.texts, title=title, identity=identity))

    def figures_of(self, figures: Mapping[str, Figure], section: Section) -> list[Numbered]:
        """The figures that name this section for their place."""
        numbered = (self.figure(figure) for figure in figures.values() if figure.section is section)
        return [figure for figure in numbered if figure is not None]

    def tables_of(self, by_section: Mapping[Section, Sequence[Table]], section: Section) -> list[tuple[int, Table]]:
        """The numbered tables of the analysis in a section."""
        return [self._next(table) for table in by_section.get(section, ())]

    def table(self, table: Table | None) -> tuple[int, Table] | None:
        if table is None:
            return None
        shown = table.without_empty_columns()
        self.own.append(shown)
        return self._next(shown)

    def _next(self, table: Table) -> tuple[int, Table]:
        self.tables += 1
        return self.tables, table
