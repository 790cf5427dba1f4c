"""Box plots of trials with their points, and the standard deviation over the levels of the axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital
from steelyard.format import number, with_interval
from steelyard.report.basics.theme import INK, MAX_LINES, PAPER
from steelyard.report.data.chart_rows import n_range, series_keys, thinned, thinning, tip, trial_dots
from steelyard.report.data.presentation import Figure, Panel, View, panels_of
from steelyard.report.draw import marks
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import DOT_PX, CellPoint, Dot, Positions, Styles, ends_of, levels_chart
from steelyard.report.draw.plot import NARROW_PX, PANEL_HEIGHT_PX, WIDE_PX, Layers, PlotArea, plot
from steelyard.report.draw.scales import around, from_zero
from steelyard.report.draw.svg import Element, Picture, element, group, place

BOX_AT, HALF_BOX, MEAN_AT, DOTS_FROM, DOTS_WIDE = -0.16, 0.13, 0.04, 0.14, 0.2
"""Horizontal places within a level; levels are 1 apart."""
MEDIAN_PX: Final = 2.75
MEAN_PX: Final = 3.2
HEIGHT_PX: Final = 220


@dataclass(frozen=True)
class Box:
    """A box in the shown unit; `low` and `high` are the ends of the whiskers."""

    level: str
    n: int
    low: float
    q1: float
    median: float
    q3: float
    high: float
    mean: float
    sd: tuple[float, float] | None
    """Mean minus and plus one standard deviation; None if n is 1."""
    tip: str


def boxes(this: View) -> Figure | None:
    """Box plots with their raw points, one panel per series; None without trials."""
    panels, most = [], 1
    counts: list[int] = []
    trials = trial_dots(this)
    for name in this.series:
        drawn = list(drawn_boxes(this, name))
        if not drawn:
            continue
        dots, step = thinned([dot for dot in trials if dot.series == name])
        counts, most = [*counts, *(box.n for box in drawn)], max(most, step)
        panels.append((name, partial(_picture, drawn, dots, this.positions, this.y_title, this.colour(name))))
    if not panels:
        return None
    caption = (
        f"{capital(this.results.response_label)} of the used trials, n = "
        f"{n_range(counts)} per "
        "box. Box: quartiles and median; whiskers: to the last trial within 1.5 interquartile ranges. Diamond: mean, "
        "with one "
        f"standard deviation to each side. Dots: the trials, left to right by time.{thinning(most)} Each panel has its "
        "own axis, which does not start at 0, to show the spread."
    )
    return Figure("boxes", f"Spread of {this.results.response_label}", caption, panels_of(panels), zoom="each")


def drawn_boxes(this: View, series: str) -> Iterator[Box]:
    """The boxes of a series: one for each treatment that has a used trial."""
    for summary in this.results.main(Summary):
        if this.of(summary.treatment) != series or summary.whiskers is None:
            continue
        of_box = (summary.q1, summary.median, summary.q3, summary.mean)
        ends = [*summary.whiskers, *(part.value for part in of_box if part is not None)]
        low, high, q1, median, q3, mean = (end * this.scale.factor for end in ends)
        sd = None if summary.sd is None else summary.sd.value * this.scale.factor
        hover = tip(
            label(summary.treatment),
            f"quartiles {number(q1)}, {number(median)}, {number(q3)} {this.scale.unit}",
            f"mean {number(mean)}, sd {number(sd, digits=3)}",
            f"n = {summary.n}",
        )
        around_mean = None if sd is None else (max(mean - sd, 0.0), mean + sd)
        yield Box(str(this.level(summary.treatment)), summary.n, low, q1, median, q3, high, mean, around_mean, hover)


def _picture(
    boxes: Sequence[Box], dots: Sequence[Dot], positions: Positions, y_title: str, colour: str, width: float
) -> Picture:
    """Levels are 1 apart even if they are numbers, so that no box covers another."""
    order = Positions(positions.name, tuple(str(level) for level in positions.levels))
    ends = [end for box in boxes for end in (box.low, box.high, *(box.sd or ()))]
    y = measured(around([*ends, *(dot.y for dot in dots)]), y_title, 6)

    def draw(area: PlotArea) -> Layers:
        drawn = [mark for box in boxes for mark in _box(area, order.of(box.level), box, colour)]
        trials = (
            marks.symbol(
                "circle", *area.at(order.of(str(dot.level)) + DOTS_FROM + DOTS_WIDE * dot.part, dot.y), DOT_PX,
                tip=dot.tip,
            )
            for dot in dots
        )  # fmt: skip
        return Layers([*drawn, marks.filled(trials, colour, 0.55)])

    return plot(order.axis(margin=0.5), y, draw, width=width, height=PANEL_HEIGHT_PX)


def _box(area: PlotArea, at: float, box: Box, colour: str) -> list[Element | None]:
    left, middle, right = (area.x.of(at + BOX_AT + side * HALF_BOX) for side in (-1, 0, 1))
    mean = area.x.of(at + MEAN_AT)
    y = area.y.of
    size = {"width": place(right - left), "height": place(y(box.q1) - y(box.q3))}
    body = element("rect", x=place(left), y=place(y(box.q3)), **size, fill=PAPER, data_tip=box.tip)
    deviation = [(mean, y(box.sd[0]), y(box.sd[1]))] if box.sd else []
    return [
        group(
            [
                marks.uprights([(middle, y(box.low), y(box.high))], colour, width=1.25),
                body,
                marks.path(f"M{place(left)},{place(y(box.median))}H{place(right)}", colour, width=MEDIAN_PX),
            ],
            stroke=colour,
            stroke_width=1.5,
        ),
        marks.uprights(deviation, INK, width=1),
        marks.filled([marks.symbol("diamond", mean, y(box.mean), MEAN_PX)], INK),
    ]


def deviations(this: View) -> Figure | None:
    """Standard deviation of the trials over the levels of the axis; None if no cell has two trials."""
    points = [point for summary in this.results.main(Summary) if (point := _deviation(this, summary)) is not None]
    if not points:
        return None
    bare = all(point.low is None for point in points)
    caption = (
        f"Standard deviation of {this.results.response_label} over used trials (n − 1) over {this.positions.name}, "
        f"n = {n_range(point.n for point in points)} trials per point"
        f"{'' if bare else f'; vertical lines are {100 * this.results.confidence:g}% intervals'}. Trials of one start "
        "are repeated measures of it, so this is the spread within and between starts together. The axis starts at 0."
    )
    title = f"standard deviation of {this.y_title}"
    if len(this.series) <= MAX_LINES:
        y = measured(from_zero(ends_of(points)), title)
        wide, narrow = (
            levels_chart(points, this.positions, this.styles(), y, width=width, height=HEIGHT_PX)
            for width in (WIDE_PX, NARROW_PX)
        )
        panels: tuple[Panel, ...] = (Panel("", wide, narrow),)
    else:
        panels = tuple(_deviation_panel(this, name, points, title) for name in this.series)
    name = f"Standard deviation of {this.results.response_label}"
    return Figure("deviations", name, caption, panels, series_keys(this), zoom="xy")


def _deviation_panel(this: View, name: str, points: Sequence[CellPoint], title: str) -> Panel:
    mine = [point for point in points if point.series == name]
    y = measured(from_zero(ends_of(mine)), title)
    return Panel(name, levels_chart(mine, this.positions, Styles((name,)), y, label=False))


def _deviation(this: View, summary: Summary) -> CellPoint | None:
    if summary.sd is None:
        return None
    shown = this.scale.estimate(summary.sd)
    hover = tip(
        label(summary.treatment), f"standard deviation {with_interval(shown)} {this.scale.unit}", f"n = {summary.n}"
    )
    series = this.of(summary.treatment)
    return CellPoint(this.level(summary.treatment), series, shown.value, shown.low, shown.high, summary.n, hover)
