"""Plot area: a rectangle with two scales, axes around it and marks within it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.report.draw.axes import BESIDE_PX, Axis, foot_px, x_axis, y_axis
from steelyard.report.draw.scales import Scale
from steelyard.report.draw.svg import Element, Picture, group, place

WIDE_PX: Final = 740
NARROW_PX: Final = 330
"""A phone's page."""
PANEL_PX: Final = 350
"""Two panels fit side by side, and one fits a phone."""
PANEL_HEIGHT_PX: Final = 180
TOP_PX: Final = 28
"""Above a plot, for the title of its y axis."""
RIGHT_PX: Final = 8
HALF_LINE_PX: Final = 6


@dataclass(frozen=True)
class PlotArea:
    """The rectangle of a plot in the picture, with its scales."""

    left: float
    top: float
    right: float
    bottom: float
    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Place of a pair of values."""
        return self.x.of(x), self.y.of(y)

    def marks(self, elements: Iterable[Element | None], *, words: bool = False) -> Element:
        """Marks that the page's zoom moves within the plot; `words` may be outside it."""
        box = (self.left, self.top, self.right - self.left, self.bottom - self.top)
        return group(elements, data_marks=" ".join(map(place, box)), data_words="" if words else None)


def placed(x: Axis, y: Axis, left: float, top: float, right: float, bottom: float) -> PlotArea:
    """A plot area with the scales of its axes; pixels count downwards, so that the low end of y is at the bottom."""
    return PlotArea(left, top, right, bottom, Scale(x.domain, left, right), Scale(y.domain, bottom, top))


def left_px(axes: Iterable[Axis]) -> int:
    """Room for the labels of y axes at the left."""
    return math.ceil(max(axis.label_px for axis in axes)) + BESIDE_PX


@dataclass(frozen=True)
class Layers:
    """Layers of a plot: marks in front of the grid, marks behind it, and words that may be outside the plot."""

    marks: Sequence[Element | None]
    behind: Sequence[Element | None] = ()
    words: Sequence[Element | None] = ()


def plot(
    x: Axis, y: Axis, draw: Callable[[PlotArea], Layers], *, width: float, height: float, right: float = RIGHT_PX
) -> Picture:
    """A picture of one plot: `width` is the picture's, `height` the plot's, `right` the room right of it."""
    top = TOP_PX if y.title else HALF_LINE_PX
    area = placed(x, y, left_px([y]), top, width - right, top + height)
    layers = draw(area)
    elements = [
        *((area.marks(layers.behind),) if any(layers.behind) else ()),
        *y_axis(y, area.y, area.left, area.right),
        *x_axis(x, area.x, area.bottom),
        area.marks(layers.marks),
        *((area.marks(layers.words, words=True),) if any(layers.words) else ()),
    ]
    return Picture(width, area.bottom + foot_px(x, area.x), tuple(elements), (y.domain,))
