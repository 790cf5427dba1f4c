"""Presentation of results: x axis, unit, series and styles, the same in every figure and table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Section
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import factor_label, label
from steelyard.format import UnitScale, scale_for
from steelyard.model.named_level import Level
from steelyard.report.basics.theme import MAX_LINES, SERIES
from steelyard.report.draw.charts import Positions, Styles
from steelyard.report.draw.plot import NARROW_PX, PANEL_PX, WIDE_PX
from steelyard.report.draw.svg import Picture

FEWEST_SIZES: Final = 3
"""Fewest levels of a number that a line joins: two are two categories."""


@dataclass(frozen=True)
class Key:
    """One entry of a figure's key: the meaning of a colour, a marker and a dash."""

    text: str
    colour: str
    shape: str = ""
    """Empty: a line without a marker."""
    dash: str | None = None
    """Empty: a full line; None: a marker without a line."""


@dataclass(frozen=True)
class Panel:
    """One picture of a figure; `narrow` is drawn for small screens where the picture is wide."""

    title: str
    picture: Picture
    narrow: Picture | None = None
    values: str = ""
    """JSON of the time axis' place in the picture; hover texts take their numbers from the figure's course."""


def panels_of(drawn: Sequence[tuple[str, Callable[[float], Picture]]]) -> tuple[Panel, ...]:
    """Panels from titles and functions that draw at a width in pixels: two side by side, but a single one as wide as
    the page, with a narrow picture for small screens."""
    if len(drawn) == 1:
        ((title, draw),) = drawn
        return (Panel("" if title == label({}) else title, draw(WIDE_PX), draw(NARROW_PX)),)
    return tuple(Panel(title, draw(PANEL_PX)) for title, draw in drawn)


@dataclass(frozen=True)
class SeriesRows:
    """The numbers of a time series, as rows: for hover texts, print and screen readers."""

    heads: tuple[tuple[str, str], ...]
    """Name and unit of each column."""
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A figure: panels, key and caption. `name` is its file name and anchor."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    keys: tuple[Key, ...] = ()
    key_title: str = ""
    dense: bool = False
    """Whether three panels are side by side instead of two."""
    course: SeriesRows | None = None
    zoom: str = ""
    """`xy` or `x`: the axes that the page's zoom scales, in all panels together; `each`: both axes, panel by panel, as
    axes differ; empty: no zoom."""
    section: Section | None = None
    """Section of the page at whose end it is; None if a form of `report/forms.py` draws it."""


@dataclass(frozen=True)
class View:
    """Input of every figure: the results, the factor on the x axis, and the scale of the response."""

    results: Results
    axis: str
    """The factor on the x axis; empty if the study has none."""
    scale: UnitScale
    series: tuple[str, ...]
    """Labels of the combinations of the other factors, in the study's order."""

    @property
    def positions(self) -> Positions:
        """Positions of the levels on the axis."""
        levels = self.results.factors.get(self.axis, ("all trials",))
        name = "number of nodes" if self.axis == "nodes" else factor_label(self.axis, self.results.factors) or "study"
        unit = self.results.number_units.get(self.axis, "")
        numbers = self.results.numbers.get(self.axis, ())
        by_number = bool(numbers and unit)
        return Positions(f"{name}, {unit}" if unit else name, tuple(levels), numbers, by_number=by_number)

    @property
    def y_title(self) -> str:
        """The main response with its unit."""
        return f"{self.results.response_label}, {self.scale.unit}"

    @property
    def crossed(self) -> bool:
        """Whether two factors or more vary, so that they can interact."""
        return sum(len(levels) > 1 for levels in self.results.factors.values()) > 1

    @property
    def by_size(self) -> bool:
        """Whether the axis has enough sizes for a curve over them."""
        return self.positions.numeric and len(self.positions.levels) >= FEWEST_SIZES

    def styles(self) -> Styles:
        """Style of each series."""
        return Styles(self.series)

    def level(self, treatment: Mapping[str, Level]) -> Level:
        """The treatment's level on the x axis."""
        return treatment.get(self.axis, "all trials")

    def of(self, treatment: Mapping[str, Level]) -> str:
        """The series that a treatment belongs to."""
        return label({name: level for name, level in treatment.items() if name != self.axis})

    def colour(self, series: str) -> str:
        """Colour of a series: its own, or one for all if there are too many series."""
        return SERIES[self.series.index(series) % len(SERIES)] if len(self.series) <= MAX_LINES else SERIES[0]


def view(results: Results) -> View:
    """Choose the axis and the unit of a page."""
    several = [name for name, levels in results.factors.items() if len(levels) > 1]
    axis = results.size_factor or (several[0] if several else next(iter(results.factors), ""))
    greatest = max((point.value for point in results.of(Point)), default=0.0)
    seen: list[str] = []
    for summary in sorted(results.main(Summary), key=lambda summary: _place(results, summary.treatment)):
        name = label({factor: level for factor, level in summary.treatment.items() if factor != axis})
        if name not in seen:
            seen.append(name)
    return View(results, axis, scale_for(results.unit, greatest), tuple(seen))


def _place(results: Results, treatment: Mapping[str, Level]) -> tuple[int, ...]:
    return tuple(
        list(levels).index(treatment[name]) if treatment.get(name) in levels else len(levels)
        for name, levels in results.factors.items()
    )
