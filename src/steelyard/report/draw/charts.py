"""Line and dot charts over the levels of a factor. The analysis computes the numbers; nothing is estimated here.

Colour, marker and dash all distinguish series, so that colour-blind readers and grey prints need not rely on one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

from steelyard.format import number
from steelyard.report.basics.theme import DASHES, SERIES, SHAPES
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis
from steelyard.report.draw.plot import PANEL_HEIGHT_PX, PANEL_PX, RIGHT_PX, Layers, PlotArea, left_px, plot
from steelyard.report.draw.scales import Domain
from steelyard.report.draw.svg import Element, Picture, fitted, group, text, text_px

LABEL_GAP_PX: Final = 13.0
LABEL_SINK_PX: Final = 3.5
ABOVE_AXIS_PX: Final = 8.0
"""From the foot of a plot to the lowest name next to a line, so that the axis does not cross it out."""
LABEL_BESIDE_PX: Final = 9.0
LABEL_SHARE: Final = 0.38
"""Largest share of a picture's width for the names at the ends of lines."""
BOLD: Final = 1.08
"""Width of bold text, relative to plain text."""
NUDGE_PX: Final = 6.0
MARGIN: Final = 0.12
LEAST_ROOM: Final = 0.03
"""Least margin outside the outer levels, as a share of the axis."""
WIDE_MARGIN: Final = 0.3
POINT_PX, SMALL_POINT_PX, DOT_PX = 4.3, 3.5, 2.4
DOT_OPACITY: Final = 0.45
BAND_OPACITY: Final = 0.13
KEY_WIDTH_PX: Final = 26
IDEAL_DASH: Final = "1 3"


@dataclass(frozen=True)
class Positions:
    """Positions of a factor's levels on the x axis: numbers at their value, words 1 apart."""

    name: str
    levels: tuple[Any, ...]
    numbers: tuple[float, ...] = ()
    """Numbers of the words, in their order, where they have numbers."""
    by_number: bool = False
    """Whether the axis shows these numbers instead of the words: their unit is in the name."""

    @property
    def numeric(self) -> bool:
        """Whether the levels are quantities."""
        if self.numbers:
            return True
        return all(isinstance(level, int | float) and not isinstance(level, bool) for level in self.levels)

    def of(self, level: Any) -> float:
        """Place of a level on the axis."""
        if self.numbers:
            return self.numbers[self.levels.index(level)]
        return float(level) if self.numeric else float(self.levels.index(level))

    @property
    def places(self) -> list[float]:
        """Places of all levels."""
        return [self.of(level) for level in self.levels]

    @property
    def step(self) -> float:
        """Smallest distance between two levels; 1 where there is one level."""
        places = sorted(self.places)
        gaps = [right - left for left, right in pairwise(places)]
        return min(gaps, default=1.0) or 1.0

    def axis(self, *, margin: float = 0.35) -> Axis:
        """The x axis, with `margin` steps outside the outer levels."""
        places = self.places
        room = max(self.step * margin, LEAST_ROOM * (max(places) - min(places)))
        domain = Domain(min(places) - room, max(places) + room)
        words = [number(place, trim=True) for place in places] if self.by_number else map(str, self.levels)
        ticks = sorted(zip(places, words, strict=True))
        return Axis(domain, self.name, tuple(ticks), fixed=True, staggered=not self.numeric)


class Style(NamedTuple):
    """Style of one series."""

    colour: str
    shape: str
    dash: str


def key_picture(colour: str, shape: str, dash: str | None) -> Picture:
    """Symbol of an entry of a figure's key: a piece of the line (`dash` is not None), the marker, or both."""
    stroke = None if dash is None else marks.line([(0, 5), (KEY_WIDTH_PX, 5)], colour, width=2, dash=dash)
    symbol = marks.filled([marks.symbol(shape, KEY_WIDTH_PX / 2, 5, POINT_PX)], colour) if shape else None
    return Picture(KEY_WIDTH_PX, 10, tuple(mark for mark in (stroke, symbol) if mark is not None))


@dataclass(frozen=True)
class Styles:
    """Colour, marker and dash of each series, the same in every chart of a page."""

    names: tuple[str, ...]

    def of(self, name: str) -> Style:
        """The style of a series."""
        return style(self.names.index(name))


def style(index: int) -> Style:
    """The style of the series at an index; styles repeat if there are more series."""
    return Style(SERIES[index % len(SERIES)], SHAPES[index % len(SHAPES)], DASHES[index % len(DASHES)])


@dataclass(frozen=True)
class CellPoint:
    """An estimate of a cell with its interval; `low` and `high` are None if n is too small."""

    level: Any
    series: str
    y: float
    low: float | None
    high: float | None
    n: int
    tip: str


@dataclass(frozen=True)
class Dot:
    """One trial. `part` is its horizontal place among the trials of its cell, 0 to 1."""

    level: Any
    series: str
    y: float
    part: float = 0.5
    tip: str = ""


@dataclass(frozen=True)
class FittedPoint:
    """A point of a fitted curve with its band."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    series: str = ""


Row = TypeVar("Row", CellPoint, Dot, FittedPoint)


@dataclass(frozen=True)
class Series:
    """Data of one series: points with their intervals and, optionally, trials, a fitted law and the ideal."""

    name: str
    style: Style
    points: tuple[CellPoint, ...]
    """In the order of the axis."""
    dots: tuple[Dot, ...]
    curve: tuple[FittedPoint, ...]
    ideal: tuple[FittedPoint, ...]
    aside: float
    """Horizontal offset in pixels of the series' points from their level."""


def levels_chart(
    points: Sequence[CellPoint],
    positions: Positions,
    styles: Styles,
    y: Axis,
    *,
    width: float = PANEL_PX,
    height: float = PANEL_HEIGHT_PX,
    label: bool = True,
    joined: bool = False,
    margin: float = MARGIN,
    nudge: float = NUDGE_PX,
    radius: float = POINT_PX,
    dots: Sequence[Dot] = (),
    curves: Sequence[FittedPoint] = (),
    ideals: Sequence[FittedPoint] = (),
) -> Picture:
    """One line per series over the levels of a factor, with the interval of each point and the name of each line.

    Dots are faint. Points of different series at one level are offset, so that no interval hides another. Lines join
    words, or two levels, only if `joined`. Curves (a fitted law) replace the straight lines; ideals are dotted.
    """
    names = [name for name in styles.names if any(point.series == name for point in points)]
    series = [
        Series(
            name,
            styles.of(name),
            tuple(sorted(_of(points, name), key=lambda point: positions.of(point.level))),
            _of(dots, name),
            _of(curves, name),
            _of(ideals, name),
            (index - (len(names) - 1) / 2) * nudge,
        )
        for index, name in enumerate(names)
    ]
    shown = [fitted(name, LABEL_SHARE * width) for name in names] if label else []
    straight = (joined or (positions.numeric and len(positions.levels) > 2)) and not curves

    def draw(area: PlotArea) -> Layers:
        behind = [mark for one in series for mark in _law(area, one)]
        drawn = [mark for one in series for mark in _points(area, positions, one, straight, radius)]
        return Layers([*behind, *drawn], words=_end_labels(area, positions, series, shown))

    x = positions.axis(margin=margin)
    beside = max((text_px(name) * BOLD + LABEL_BESIDE_PX for name in shown), default=0.0)
    # Names begin at the last level, which is not quite at the right end of the plot.
    inside = 1 - x.domain.share(max(positions.places))
    right = max(RIGHT_PX, (RIGHT_PX / 2 + beside - inside * (width - left_px([y]))) / (1 - inside))
    return plot(x, y, draw, width=width, height=height, right=right)


def _of(rows: Iterable[Row], name: str) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.series == name)


def _law(area: PlotArea, series: Series) -> list[Element | None]:
    ideal = [area.at(point.x, point.y) for point in series.ideal]
    return [
        marks.band(_ends(area, series.curve), series.style.colour, BAND_OPACITY),
        marks.line(ideal, series.style.colour, width=1.25, dash=IDEAL_DASH),
    ]


def _ends(area: PlotArea, curve: Iterable[FittedPoint]) -> list[tuple[float, float, float]]:
    return [
        (area.x.of(point.x), area.y.of(point.low), area.y.of(point.high))
        for point in curve
        if point.low is not None and point.high is not None
    ]


def _points(
    area: PlotArea, positions: Positions, series: Series, straight: bool, radius: float
) -> list[Element | None]:  # fmt: skip
    def spot(row: CellPoint | Dot) -> tuple[float, float]:
        return area.x.of(positions.of(row.level)) + series.aside, area.y.of(row.y)

    colour = series.style.colour
    line = [spot(row) for row in series.points] if straight else [area.at(row.x, row.y) for row in series.curve]
    ends = [
        (spot(row)[0], area.y.of(row.low), area.y.of(row.high))
        for row in series.points
        if row.low is not None and row.high is not None
    ]
    faint = [marks.symbol("circle", *spot(row), DOT_PX, tip=row.tip) for row in series.dots]
    return [
        marks.filled(faint, colour, DOT_OPACITY) if faint else None,
        marks.line(line, colour, dash=series.style.dash),
        marks.uprights(ends, colour, width=marks.LINE),
        marks.filled(
            (marks.symbol(series.style.shape, *spot(row), radius, tip=row.tip) for row in series.points), colour
        ),
    ]


def _end_labels(
    area: PlotArea, positions: Positions, series: Sequence[Series], shown: Sequence[str]
) -> list[Element | None]:  # fmt: skip
    """Names at the right ends of lines, pushed apart where they would overlap."""
    if not shown:
        return []
    edge = max(area.x.of(positions.of(one.points[-1].level)) + one.aside for one in series)
    heights = apart(
        [area.y.of(one.points[-1].y) for one in series], LABEL_GAP_PX, area.top, area.bottom - ABOVE_AXIS_PX
    )
    labels = (
        text(edge, height + LABEL_SINK_PX, name, fill=one.style.colour, dx=LABEL_BESIDE_PX)
        for one, name, height in zip(series, shown, heights, strict=True)
    )
    return [group(labels, font_weight=600)]


def apart(wanted: Sequence[float], gap: float, first: float, last: float) -> list[float]:
    """Places at least `gap` apart and, if there is room, between `first` and `last`, in the order of `wanted` and as
    near to it as possible."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    clusters: list[tuple[float, int]] = []
    for index in order:
        start, size = wanted[index], 1
        while True:
            start = max(min(start, last - (size - 1) * gap), first)
            if not clusters or clusters[-1][0] + clusters[-1][1] * gap <= start:
                break
            before, members = clusters.pop()
            start = (before * members + (start - members * gap) * size) / (members + size)
            size += members
        clusters.append((start, size))
    places = [start + place * gap for start, size in clusters for place in range(size)]
    settled = [0.0] * len(wanted)
    for index, place in zip(order, places, strict=True):
        settled[index] = place
    return settled


def regression_chart(
    dots: Sequence[Dot], fit: Sequence[FittedPoint], positions: Positions, y: Axis, colour: str, width: float = PANEL_PX
) -> Picture:
    """Trials over a numeric factor with the fitted line and, where there is one, the band of its mean."""
    spread = positions.step * 0.16

    def draw(area: PlotArea) -> Layers:
        symbols = (
            marks.symbol("circle", *area.at(positions.of(one.level) + (one.part - 0.5) * spread, one.y), 2.8,
                         tip=one.tip)
            for one in dots
        )  # fmt: skip
        return Layers(
            [
                marks.band(_ends(area, fit), colour, BAND_OPACITY),
                marks.line([area.at(one.x, one.y) for one in fit], colour),
                marks.filled(symbols, colour, 0.55),
            ]
        )

    return plot(positions.axis(margin=WIDE_MARGIN), y, draw, width=width, height=PANEL_HEIGHT_PX)


def ends_of(points: Iterable[CellPoint | FittedPoint]) -> list[float | None]:
    """Values that an axis must include: the points and both ends of their intervals."""
    return [end for one in points for end in (one.y, one.low, one.high)]
