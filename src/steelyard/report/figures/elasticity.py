"""Plane of elasticity: nodes too few and nodes too many, a point for each treatment; the origin is the best place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from steelyard.analysis.narrative.policies import name_of
from steelyard.analysis.statistics.elasticity import Elasticity
from steelyard.analysis.treatments import label
from steelyard.format import with_interval
from steelyard.model.estimate import Estimate
from steelyard.report.basics.theme import MUTED
from steelyard.report.data.chart_rows import n_range, tip
from steelyard.report.data.presentation import Figure, View, panels_of
from steelyard.report.draw import marks
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import BOLD, POINT_PX, Style, style
from steelyard.report.draw.plot import Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain, from_zero
from steelyard.report.draw.svg import Element, Picture, group, place, text, text_px

HEIGHT_PX: Final = 260
RIGHT_PX: Final = 16
LINE_PX: Final = 12.0
GAP_PX: Final = 7.0
SINK_PX: Final = 3.0
LIFTS: Final = (0.8, 0.0, -0.8, *range(2, 12))
"""Lines of text that a label is above its point, in the order in which they are tried."""
PERFECT: Final = "0, 0 is perfect"
X_TITLE: Final = "theta under, % of the demand (too few nodes)"
Y_TITLE: Final = "theta over, % of the demand (too many nodes)"


@dataclass(frozen=True)
class TreatmentPoint:
    """A treatment in the plane."""

    name: str
    style: Style
    under: Estimate
    over: Estimate
    tip: str


@dataclass(frozen=True)
class Box:
    """The place of a label, or of a point that no label may cover."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether they have a place in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def plane(this: View) -> Figure | None:
    """The figure, a panel for each combination of the levels that are not of the policy; None without measures."""
    rows = this.results.of(Elasticity)
    if not rows:
        return None
    names = list(dict.fromkeys(name_of(row) for row in rows))
    groups: dict[str, list[TreatmentPoint]] = {}
    for row in rows:
        groups.setdefault(label(row.others) if row.others else "", []).append(
            _point(row, style(names.index(name_of(row))))
        )
    every = [point for points in groups.values() for point in points]
    x, y = (from_zero(_ends(of)) for of in ([one.under for one in every], [one.over for one in every]))
    caption = (
        "Accuracy of provisioning: the mean over time of the nodes that lacked, and of the nodes in excess, in percent "
        f"of the demand. {PERFECT}: the lower left corner. Lines: {100 * this.results.confidence:g}% intervals over "
        f"starts, n = {n_range(row.starts for row in rows)} starts per treatment; where one is "
        "missing there are too few starts, nothing varied, or the mark hides it. Both axes start at 0."
    )
    panels = panels_of([(title, partial(_picture, points, x, y)) for title, points in groups.items()])
    return Figure("elasticity", "How far the nodes in service were from the demand", caption, panels, zoom="xy")


def _point(row: Elasticity, styled: Style) -> TreatmentPoint:
    under, over = row.theta_under_percent, row.theta_over_percent
    words = f"theta under {with_interval(under)}%, over {with_interval(over)}%"
    return TreatmentPoint(name_of(row), styled, under, over, tip(label(row.treatment), words))


def _ends(values: Sequence[Estimate]) -> list[float]:
    return [end for one in values for end in (one.value, one.high) if end is not None]


def _picture(points: Sequence[TreatmentPoint], x: Domain, y: Domain, width: float) -> Picture:
    def draw(area: PlotArea) -> Layers:
        origin = marks.hollow([marks.symbol("circle", *area.at(0, 0), POINT_PX)], MUTED)
        drawn = [mark for point in points for mark in _marks(area, point)]
        return Layers([origin, *drawn], words=[group(_labels(area, points), font_weight=600)])

    return plot(measured(x, X_TITLE), measured(y, Y_TITLE), draw, width=width, height=HEIGHT_PX, right=RIGHT_PX)


def _marks(area: PlotArea, point: TreatmentPoint) -> list[Element | None]:
    """The cross-hair of both intervals, and the point."""
    (at_x, at_y), colour = area.at(point.under.value, point.over.value), point.style.colour
    under, over = point.under, point.over
    across = upright = ""
    if under.low is not None and under.high is not None:
        across = f"M{place(area.x.of(under.low))},{place(at_y)}H{place(area.x.of(under.high))}"
    if over.low is not None and over.high is not None:
        upright = f"M{place(at_x)},{place(area.y.of(over.low))}V{place(area.y.of(over.high))}"
    symbol = marks.symbol(point.style.shape, at_x, at_y, POINT_PX, tip=point.tip)
    return [marks.path(across + upright, colour, width=marks.LINE), marks.filled([symbol], colour)]


def _labels(area: PlotArea, points: Sequence[TreatmentPoint]) -> Iterator[Element]:
    """The name next to each point, where it covers no point, no interval and no other name."""
    spots = [area.at(point.under.value, point.over.value) for point in points]
    taken = [Box(x - GAP_PX, y - GAP_PX, x + GAP_PX, y + GAP_PX) for x, y in [*spots, area.at(0, 0)]]
    for point, (x, y) in zip(points, spots, strict=True):
        under, over = point.under, point.over
        if under.low is not None and under.high is not None:
            taken.append(Box(area.x.of(under.low), y - 1, area.x.of(under.high), y + 1))
        if over.low is not None and over.high is not None:
            taken.append(Box(x - 1, area.y.of(over.high), x + 1, area.y.of(over.low)))
    wanted = [(point.name, spot, point.style.colour) for point, spot in zip(points, spots, strict=True)]
    for name, spot, colour in [(PERFECT, area.at(0, 0), MUTED), *wanted]:
        box = _free(area, text_px(name) * BOLD, spot, taken)
        taken.append(box)
        yield text(box.left, box.bottom - SINK_PX, name, fill=colour)


def _free(area: PlotArea, width: float, spot: tuple[float, float], taken: Sequence[Box]) -> Box:
    """The first free place for a label: above its point to the right or left, next to it, below it, further up."""
    x, y = spot
    lefts = (x + GAP_PX, x - GAP_PX - width)
    middles = [y - LINE_PX * lift for lift in LIFTS]
    boxes = [
        Box(left, middle - LINE_PX / 2, left + width, middle + LINE_PX / 2) for middle in middles for left in lefts
    ]
    inside = [
        box for box in boxes
        if box.left >= area.left and box.right <= area.right + RIGHT_PX and box.bottom <= area.bottom
    ]  # fmt: skip
    return next((box for box in inside if not any(box.overlaps(other) for other in taken)), boxes[0])
