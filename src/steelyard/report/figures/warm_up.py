"""Warm-up plot: the response over the trial's number in its start, with fixed and detected cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.statistics.warm_up import WarmUp
from steelyard.analysis.wording import capital
from steelyard.format import count
from steelyard.report.basics.theme import BAND, MUTED
from steelyard.report.data.chart_rows import point_tip, thinned, thinning
from steelyard.report.data.presentation import Figure, Key, View, panels_of
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis, measured
from steelyard.report.draw.charts import Styles, style
from steelyard.report.draw.plot import PANEL_HEIGHT_PX, Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain, from_zero
from steelyard.report.draw.svg import Element, Picture

MOST_NUMBERS: Final = 10
DOT_PX: Final = 2.9
X_TITLE: Final = "trial of its treatment within the start"


@dataclass(frozen=True)
class Numbered:
    """One trial: its number within the start, from 1."""

    number: int
    y: float
    level: str
    start: str
    """Identity of its line: one start of one treatment."""
    kept: bool
    tip: str


def over_trials(this: View) -> Figure | None:
    """The warm-up figure; None if no start has two trials of a treatment."""
    levels = tuple(str(level) for level in this.positions.levels)
    panels, longest, most, total = [], 0, 1, 0
    for name in this.series:
        mine = [
            _valued(this, point)
            for point in this.results.of(Point)
            if this.of(point.treatment) == name and point.order_of_treatment is not None and not point.control
        ]
        if not mine:
            continue
        total += len(mine)
        longest = max(longest, *(point.number for point in mine))
        drawn, step = thinned(mine)
        most = max(most, step)
        warm = [one for one in this.results.of(WarmUp) if this.of(one.treatment) == name]
        fixed = max((one.fixed_cut for one in warm), default=0)
        detected = sorted({one.detected_cut or 0 for one in warm} - {0})
        panels.append((name, partial(_picture, drawn, fixed, detected, Styles(levels), this.y_title)))
    if not panels or longest < 2:
        return None
    caption = (
        f"{capital(this.results.response_label)} over the trial's number within its start, "
        f"n = {count(total, 'valid trial')}; a line is one start of a cluster. Hollow: dropped as warm-up by the "
        "study's fixed count (shaded). Dashed: where detection (MSER-5) would cut, if it "
        f"would.{thinning(most)} Each panel has its own axis, from 0."
    )
    keys = tuple(Key(name, style(index).colour, "circle") for index, name in enumerate(levels))
    return Figure(
        "warm-up", "Trials in their order", caption, panels_of(panels), keys, this.positions.name, zoom="each"
    )


def _valued(this: View, point: Point) -> Numbered:
    return Numbered(
        point.order_of_treatment or 0,
        point.value * this.scale.factor,
        str(this.level(point.treatment)),
        f"{point.start}/{point.treatment}",
        point.used,
        point_tip(this, point),
    )


def _picture(
    trials: Sequence[Numbered], fixed: int, detected: Sequence[int], styles: Styles, y_title: str, width: float
) -> Picture:
    """Filled if kept, hollow if dropped as warm-up. The shaded band ends after the fixed number of trials; a dashed
    line is at each detected cut."""
    last = max(trial.number for trial in trials)
    step = -(-last // MOST_NUMBERS)
    numbers = tuple((float(number), str(number)) for number in range(step, last + 1, step))
    x = Axis(Domain(0.5, last + 0.5), X_TITLE, numbers, fixed=True)

    def draw(area: PlotArea) -> Layers:
        after = [area.x.of(number + 0.5) for number in detected]
        behind = [marks.rectangle(area.left, area.top, area.x.of(fixed + 0.5), area.bottom, BAND)] if fixed else []
        cuts = [marks.line([(at, area.bottom), (at, area.top)], MUTED, width=1.25, dash="3 3") for at in after]
        return Layers([*cuts, *(mark for name in styles.names for mark in _series(area, trials, name, styles))], behind)

    y = measured(from_zero(trial.y for trial in trials), y_title)
    return plot(x, y, draw, width=width, height=PANEL_HEIGHT_PX)


def _series(area: PlotArea, trials: Sequence[Numbered], name: str, styles: Styles) -> list[Element | None]:
    starts: dict[str, list[Numbered]] = {}
    for trial in trials:
        if trial.level == name:
            starts.setdefault(trial.start, []).append(trial)
    colour = styles.of(name).colour
    lines = [
        marks.line(
            [area.at(trial.number, trial.y) for trial in sorted(of, key=lambda trial: trial.number)], colour, width=1,
            opacity=0.55,
        )
        for of in starts.values()
    ]  # fmt: skip
    kept, dropped = (
        [
            marks.symbol("circle", *area.at(trial.number, trial.y), DOT_PX, tip=trial.tip)
            for of in starts.values()
            for trial in of
            if trial.kept is used
        ]
        for used in (True, False)
    )
    return [
        *lines,
        marks.filled(kept, colour) if kept else None,
        marks.hollow(dropped, colour) if dropped else None,
    ]
