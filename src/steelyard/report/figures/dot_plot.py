"""Dot plot of every trial: per level, the starts of a cluster in order of time, and next to them the answer's value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Final

from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.wording import capital, mean_of
from steelyard.format import count
from steelyard.report.basics.theme import INK
from steelyard.report.data.chart_rows import (
    MOST_POINTS,
    TOO_FEW,
    AnswerPoint,
    amount,
    answer_points,
    point_tip,
    thinning,
    without_interval,
    without_trials,
)
from steelyard.report.data.presentation import Figure, View, panels_of
from steelyard.report.draw import marks, svg
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import POINT_PX, Positions, Style, style
from steelyard.report.draw.plot import WIDE_PX, Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain, around, from_zero
from steelyard.report.draw.svg import Element, Picture

STARTS_FROM, STARTS_WIDE, ANSWER_AT = -0.44, 0.72, 0.38
"""Horizontal places around a level; levels are 1 apart."""
TRIALS_WIDE: Final = 0.8
"""Share of a start's place that its trials take."""
DOT_PX: Final = 2.9
DOT_OPACITY: Final = 0.7
MEAN_PX: Final = 2
FARTHEST: Final = 2.0
"""The axis ends at this multiple of the highest trial, and at its part of the lowest: intervals are cut there."""
NEAR_ZERO: Final = 0.5
"""The axis begins at 0 if the lowest value is below this share of the highest."""
WIDE_HEIGHT_PX, PANEL_HEIGHT_PX = 240, 200


@dataclass(frozen=True)
class Trial:
    """A trial of a start, in the unit that is shown."""

    y: float
    used: bool
    tip: str


@dataclass(frozen=True)
class Start:
    """The drawn trials of a start, and the mean of its used ones; None without any."""

    trials: tuple[Trial, ...]
    mean: float | None


@dataclass(frozen=True)
class Group:
    """The trials of one level, by start, both in order of time, and the answer's value for it."""

    level: str
    style: Style
    starts: tuple[Start, ...]
    answer: AnswerPoint | None


def dots(this: View, name: str) -> Figure | None:
    """The dot plot under this name, one panel per series; None without trials."""
    drawn, most = [], 1
    for series in this.series:
        groups, step = _groups(this, series)
        drawn += [(series, groups)] if groups else []
        most = max(most, step)
    if not drawn:
        return None
    every = [group for _, groups in drawn for group in groups]
    domains = [_domain(groups) for _, groups in drawn]
    panels = [
        (series, partial(_picture, groups, this.positions, domain, this.y_title))
        for (series, groups), domain in zip(drawn, domains, strict=True)
    ]
    hollow = sum(not one.used for group in every for start in group.starts for one in start.trials)
    warm = f" Hollow: {count(hollow, 'warm-up trial')}, not used." if hollow else ""
    caption = (
        f"{capital(this.results.response_label)} of every {'valid' if hollow else 'used'} trial; per level one column "
        "per start of a cluster, starts and their trials in order of time, and the mean of each start as a line."
        f"{warm}{thinning(most)}"
        f"{_of_answers(this, every)}{_of_axes(domains)}{without_trials(this)}"
    )
    title = f"Trials of {this.results.response_label}" if name != "main" else capital(this.results.response_label)
    return Figure(name, title, caption, panels_of(panels), zoom="each" if len(panels) > 1 else "xy")


def _groups(this: View, series: str) -> tuple[list[Group], int]:
    """The levels of a series that have a trial, and k: every k-th trial of each start is drawn."""
    starts: dict[str, dict[str, list[Point]]] = {str(level): {} for level in this.positions.levels}
    valid = [
        one
        for one in this.results.of(Point)
        if (one.used or one.warm_up) and not one.control and this.of(one.treatment) == series
    ]
    for point in valid:
        starts[str(this.level(point.treatment))].setdefault(point.start, []).append(point)
    step = -(-len(valid) // MOST_POINTS) or 1
    answers = {str(one.drawn.level): one for one in answer_points(this) if one.drawn.series == series}
    return [
        Group(level, style(index), tuple(_start(this, one, step) for one in of.values()), answers.get(level))
        for index, (level, of) in enumerate(starts.items())
        if of
    ], step


def _start(this: View, points: Sequence[Point], step: int) -> Start:
    factor = this.scale.factor
    used = [one.value * factor for one in points if one.used]
    trials = tuple(Trial(one.value * factor, one.used, point_tip(this, one)) for one in points[::step])
    return Start(trials, fmean(used) if used else None)


def _domain(groups: Sequence[Group]) -> Domain:
    """From 0 where that costs little room; intervals that reach far beyond the trials are cut."""
    trials = [one.y for group in groups for start in group.starts for one in start.trials]
    low, high = min(trials), max(trials)
    ends = [end for group in groups for end in _interval(group) or () if low / FARTHEST <= end <= high * FARTHEST]
    seen = [*trials, *ends]
    return from_zero(seen) if min(seen) < NEAR_ZERO * max(seen) else around(seen)


def _interval(group: Group) -> tuple[float, float] | None:
    point = group.answer.drawn if group.answer else None
    return (point.low, point.high) if point and point.low is not None and point.high is not None else None


def _of_answers(this: View, groups: Sequence[Group]) -> str:
    answers = [group.answer for group in groups if group.answer]
    if not answers:
        return ""
    sizes = f"n = {amount([one.starts for one in answers], 'start')} and "
    sizes += f"{amount([one.drawn.n for one in answers], 'trial')} per level"
    bare = without_interval(answers)
    intervals = (
        f" with its {100 * this.results.confidence:g}% interval over starts" if bare.number < len(answers) else ""
    )
    few = f"; {count(bare.number, 'level has', 'levels have')} {bare.words}" if bare.number else ""
    if bare.number == len(answers):
        few = f"; there are {TOO_FEW} for an interval" if bare.few else "; none has an interval"
    mean = mean_of(this.results.response)
    return f" Right of them: the answer's value, the {mean} of start means{intervals}, {sizes}{few}."


def _of_axes(domains: Sequence[Domain]) -> str:
    zero = sum(domain.low == 0 for domain in domains)
    if len(domains) == 1:
        return f" The axis {'starts' if zero else 'does not start'} at 0."
    start = (
        "which starts at 0" if zero == len(domains) else "not always from 0" if zero else "which does not start at 0"
    )
    return f" Each panel has its own axis, {start}."


def _picture(
    groups: Sequence[Group], positions: Positions, domain: Domain, y_title: str, width: float
) -> Picture:  # fmt: skip
    """Levels are 1 apart even if they are numbers, so that none covers another."""
    order = Positions(positions.name, tuple(str(level) for level in positions.levels))
    y = measured(domain, y_title, 6)

    def draw(area: PlotArea) -> Layers:
        return Layers([mark for group in groups for mark in _group(area, order.of(group.level), group)])

    height = WIDE_HEIGHT_PX if width == WIDE_PX else PANEL_HEIGHT_PX
    return plot(order.axis(margin=0.5), y, draw, width=width, height=height)


def _group(area: PlotArea, at: float, group: Group) -> list[Element | None]:
    each = STARTS_WIDE / len(group.starts)
    kept: list[Element] = []
    dropped: list[Element] = []
    means: list[str] = []
    for place, start in enumerate(group.starts):
        left = at + STARTS_FROM + each * (place + (1 - TRIALS_WIDE) / 2)
        step = each * TRIALS_WIDE / len(start.trials)
        for index, trial in enumerate(start.trials):
            spot = area.at(left + step * (index + 0.5), trial.y)
            mark = marks.symbol(group.style.shape, *spot, DOT_PX, tip=trial.tip)
            (kept if trial.used else dropped).append(mark)
        if start.mean is not None:
            (x, y), right = area.at(left, start.mean), area.x.of(left + each * TRIALS_WIDE)
            means.append(f"M{svg.place(x)},{svg.place(y)}H{svg.place(right)}")
    return [
        marks.path("".join(means), INK, width=MEAN_PX, opacity=0.6),
        marks.filled(kept, group.style.colour, DOT_OPACITY) if kept else None,
        marks.hollow(dropped, group.style.colour) if dropped else None,
        *_answer(area, at + ANSWER_AT, group),
    ]


def _answer(area: PlotArea, at: float, group: Group) -> list[Element | None]:
    if group.answer is None:
        return []
    point, colour = group.answer.drawn, group.style.colour
    interval = _interval(group)
    ends = [(area.x.of(at), area.y.of(interval[0]), area.y.of(interval[1]))] if interval else []
    symbol = marks.symbol(group.style.shape, *area.at(at, point.y), POINT_PX, tip=point.tip)
    return [marks.uprights(ends, colour, width=marks.LINE), marks.filled([symbol], colour)]
