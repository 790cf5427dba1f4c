"""Main chart: medians with their intervals, the fitted scalability law with its band, and ideal scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import NODES, label
from steelyard.format import count, with_interval
from steelyard.report.basics.theme import MAX_LINES
from steelyard.report.data.chart_rows import (
    law_curve,
    law_scale,
    n_range,
    series_keys,
    thinned,
    thinning,
    tip,
    trial_dots,
)
from steelyard.report.data.presentation import Figure, Panel, View
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import CellPoint, Dot, FittedPoint, Styles, levels_chart
from steelyard.report.draw.plot import NARROW_PX, WIDE_PX
from steelyard.report.draw.scales import Domain, from_zero

THROUGHPUT: Final = "throughput_per_s"
LAW: Final = "the universal scalability law"
WIDE_HEIGHT_PX, NARROW_HEIGHT_PX = 340, 280
IDEAL_ROOM: Final = 1.25
"""The ideal is drawn up to this multiple of the highest median; farther, it would flatten the measured values."""


def medians(this: View) -> Figure | None:
    """The main chart; None without a median."""
    points = [point for summary in this.results.main(Summary) if (point := _median_point(this, summary)) is not None]
    if not points:
        return None
    trials, step = thinned(trial_dots(this))
    bare = sum(point.low is None for point in points)
    caption = (
        f"Median {this.results.response_label} over {this.positions.name}, n = {n_range(point.n for point in points)} "
        f"trials per point; faint dots are the trials.{thinning(step)} "
    )
    kind = f"{100 * this.results.confidence:g}% order-statistic intervals of the median over trials"
    if bare == len(points):
        caption += f"No point has an interval: fewer than 6 trials support none ({kind})."
    else:
        caption += f"Vertical lines are {kind}"
        caption += f"; {count(bare, 'point has', 'points have')} fewer than 6 trials and so none." if bare else "."
        caption += " They speak for the starts at hand; the verdicts on sizes rest on the means of starts."
    caption += " The axis starts at 0."
    missing = [label(summary.treatment) for summary in this.results.main(Summary) if summary.n == 0]
    if missing:
        caption += f" Without a valid trial, and so without a point: {'; '.join(missing)}."
    title = f"Median {this.results.response_label}"
    curves, ideals = _fitted(this), _ideals(this)
    if curves:
        caption += f" Bands: {LAW} with its pointwise {100 * this.results.confidence:g}% interval."
    if ideals:
        caption += " Dotted: ideal, in proportion to size from the median at the smallest; it ends where the axis does."
    return Figure(
        "medians", title, caption, _panels(this, points, trials, curves, ideals), series_keys(this), zoom="xy"
    )


def _median_point(this: View, summary: Summary) -> CellPoint | None:
    if summary.median is None:
        return None
    shown = this.scale.estimate(summary.median)
    hover = tip(label(summary.treatment), f"median {with_interval(shown)} {this.scale.unit}", f"n = {summary.n}")
    series = this.of(summary.treatment)
    return CellPoint(this.level(summary.treatment), series, shown.value, shown.low, shown.high, summary.n, hover)


def _panels(
    this: View,
    points: Sequence[CellPoint],
    trials: Sequence[Dot],
    curves: Sequence[FittedPoint],
    ideals: Sequence[FittedPoint],
) -> tuple[Panel, ...]:
    """One picture, or one per series if there are too many lines."""
    title = f"median {this.y_title}"

    def domain(series: Sequence[str]) -> Domain:
        # A band may reach far beyond the measured values, so it is cut at the end of the axis.
        seen = [end for point in points if point.series in series for end in (point.y, point.high)]
        lines = [row.y for rows in (trials, curves, ideals) for row in rows if row.series in series]
        return from_zero([*seen, *lines])

    if len(this.series) <= MAX_LINES:
        y = domain(this.series)
        wide, narrow = (
            levels_chart(
                points, this.positions, this.styles(), measured(y, title, ticks), width=width, height=height,
                dots=trials, curves=curves, ideals=ideals,
            )
            for width, height, ticks in ((WIDE_PX, WIDE_HEIGHT_PX, 8), (NARROW_PX, NARROW_HEIGHT_PX, 6))
        )  # fmt: skip
        return (Panel("", wide, narrow),)
    return tuple(
        Panel(
            name,
            levels_chart(
                points, this.positions, Styles((name,)), measured(domain((name,)), title), label=False, dots=trials,
                curves=curves, ideals=ideals,
            ),
        )
        for name in this.series
    )  # fmt: skip


def _fitted(this: View) -> list[FittedPoint]:
    """Curves of the universal scalability law that are fitted to the chart's response."""
    points: list[FittedPoint] = []
    for law in this.results.of(LawFit):
        shown = law_scale(this, law)
        if law.law != "usl" or law.refusal or law.response != this.results.response or shown is None:
            continue
        points += law_curve(law, *shown)
    return points


def _ideals(this: View) -> list[FittedPoint]:
    """Ideal scaling: throughput proportional to the nodes, from each series' median at its smallest size."""
    if this.results.response != THROUGHPUT or this.axis not in NODES or len(this.positions.levels) < 2:
        return []
    summaries = [one for one in this.results.main(Summary) if one.median is not None]
    highest = IDEAL_ROOM * max(one.median.high or one.median.value for one in summaries if one.median is not None)
    ends: list[FittedPoint] = []
    for series in this.series:
        mine = [one for one in summaries if this.of(one.treatment) == series]
        if not mine:
            continue
        first = min(mine, key=lambda one: float(this.level(one.treatment)))
        size = float(this.level(first.treatment))
        per_node = (first.median.value if first.median else 0.0) / size
        last = min(max(this.positions.places), highest / per_node if per_node else 0.0)
        if last > size:
            ends += [FittedPoint(at, per_node * at * this.scale.factor, series=series) for at in (size, last)]
    return ends
