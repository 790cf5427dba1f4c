"""Main chart: the answer's values with their intervals, the fitted scalability law with its band, and ideal scaling.

The values are those of the answer: means of start means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from steelyard.analysis.inference.multiplicity import DECIDED
from steelyard.analysis.narrative.answer_table import AnswerRow
from steelyard.analysis.statistics.law import LawFit, drawn
from steelyard.analysis.statistics.search_window import SearchWindow
from steelyard.analysis.treatments import NODES, factor_label
from steelyard.analysis.wording import capital, mean_of
from steelyard.format import count
from steelyard.model.responses.capacity import CAPACITY
from steelyard.report.basics.theme import MAX_LINES
from steelyard.report.data.chart_rows import (
    TOO_FEW,
    AnswerPoint,
    amount,
    answer_points,
    law_curve,
    law_scale,
    n_range,
    series_keys,
    thinned,
    thinning,
    trial_dots,
    without_interval,
    without_trials,
)
from steelyard.report.data.presentation import Figure, Panel, View
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import CellPoint, Dot, FittedPoint, Styles, levels_chart
from steelyard.report.draw.plot import NARROW_PX, WIDE_PX
from steelyard.report.draw.scales import Domain, from_zero
from steelyard.report.figures import forest
from steelyard.report.figures.dot_plot import dots
from steelyard.report.figures.forest import ForestRow

UNDECIDED: Final = ("undecided", "no verdict")
THROUGHPUT: Final = "throughput_per_s"
LAW: Final = "the universal scalability law"
WIDE_HEIGHT_PX, NARROW_HEIGHT_PX = 340, 280
IDEAL_ROOM: Final = 1.25
"""The ideal is drawn up to this multiple of the highest value; farther, it would flatten the measured values."""


def main_chart(this: View) -> Figure | None:
    """The main chart; None without a value. Of searches `rate_curves` is, and this, over sizes, comes after it."""
    if this.results.of(SearchWindow) and this.results.response == CAPACITY:
        chart = _chart(this) if len(this.positions.levels) > 1 else None
        return replace(chart, name="capacity") if chart else None
    return _chart(this)


def _chart(this: View) -> Figure | None:
    """The curve over three or more sizes, the changes of a fractional design, otherwise every trial; None without a
    value."""
    if changes := _changed(this):
        return _changes(this, changes)
    points = answer_points(this) if this.by_size else []
    return _answered(this, points) if points else dots(this, "main")


def spread(this: View) -> Figure | None:
    """Every trial, where the main chart shows something else; None without trials."""
    return dots(this, "dots") if this.by_size or _changed(this) else None


def _changed(this: View) -> list[AnswerRow]:
    table = this.results.answer_table
    rows = table.rows if table is not None and all(row.value is None for row in table.rows) else ()
    return [row for row in rows if row.ratio is not None]


def _changes(this: View, rows: Sequence[AnswerRow]) -> Figure:
    """Changes without values, as of a fractional design, where a level has many treatments: a forest plot."""
    drawn = [_change(row) for row in rows]
    wide, narrow = (
        forest.picture(drawn, None, width=width, narrow=width == NARROW_PX) for width in (WIDE_PX, NARROW_PX)
    )
    caption = (
        f"Change of {this.results.response_label} between the levels of each factor, with its "
        f"{100 * this.results.confidence:g}% interval, n = {n_range(row.starts for row in rows)} starts. Dashed: no "
        "change; hollow: undecided. Log scale."
    )
    return Figure("main", f"Change of {this.results.response_label}", caption, (Panel("", wide, narrow),))


def _change(row: AnswerRow) -> ForestRow:
    assert row.ratio is not None
    low, high = row.ratio.low, row.ratio.high
    return ForestRow(
        f"{factor_label(row.factor)}: {row.baseline} → {row.level}", 100 * (row.ratio.value - 1),
        None if low is None else 100 * (low - 1), None if high is None else 100 * (high - 1),
        row.verdict_text if row.verdict in DECIDED else row.verdict,
        row.verdict not in UNDECIDED,  # Why is in the table: a narrow picture has no room for it.
    )  # fmt: skip


def _answered(this: View, points: Sequence[AnswerPoint]) -> Figure:
    """The chart of the answer's values."""
    drawn = [point.drawn for point in points]
    trials, step = thinned(trial_dots(this))
    bare = without_interval(points)
    caption = (
        f"{capital(this.results.response_label)} over {this.positions.name}: "
        f"{mean_of(this.results.response)}s of start means, "
        f"n = {amount([point.starts for point in points], 'start')} and "
        f"{amount([point.drawn.n for point in points], 'trial')} "
        "per point; "
        f"faint dots are the trials.{thinning(step)} "
    )
    if bare.number < len(points):
        caption += f"Vertical lines are {100 * this.results.confidence:g}% intervals over starts"
        caption += f"; {count(bare.number, 'point has', 'points have')} {bare.words}." if bare.number else "."
    else:
        caption += "No point has an interval" + (f": there are {TOO_FEW}." if bare.few else ".")
    caption += " The axis starts at 0."
    return _figure(this, drawn, trials, capital(this.results.response_label), caption)


def _figure(this: View, points: Sequence[CellPoint], trials: Sequence[Dot], title: str, caption: str) -> Figure:
    caption += without_trials(this)
    curves, ideals = _fitted(this), _ideals(this, points)
    if curves:
        caption += f" Bands: {LAW} with its pointwise {100 * this.results.confidence:g}% interval."
    if ideals:
        caption += " Dotted: ideal, in proportion to size from the value at the smallest; it ends where the axis does."
    panels = _panels(this, points, trials, curves, ideals, this.y_title)
    return Figure("main", title, caption, panels, series_keys(this), zoom="xy")


def _panels(
    this: View,
    points: Sequence[CellPoint],
    trials: Sequence[Dot],
    curves: Sequence[FittedPoint],
    ideals: Sequence[FittedPoint],
    title: str,
) -> tuple[Panel, ...]:
    """One picture, or one per series if there are too many lines."""

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
                dots=trials, curves=curves, ideals=ideals, label=len(this.series) > 1,
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
    """Curves of the laws that are fitted to the chart's response, one a line."""
    points: list[FittedPoint] = []
    for law in drawn(this.results.of(LawFit)):
        shown = law_scale(this, law)
        if law.response == this.results.response and shown is not None:
            points += law_curve(law, *shown)
    return points


def _ideals(this: View, points: Sequence[CellPoint]) -> list[FittedPoint]:
    """Ideal scaling: throughput proportional to the nodes, from each series' value at its smallest size."""
    if this.results.response != THROUGHPUT or this.axis not in NODES or len(this.positions.levels) < 2:
        return []
    highest = IDEAL_ROOM * max(point.high or point.y for point in points)
    ends: list[FittedPoint] = []
    for series in this.series:
        mine = [point for point in points if point.series == series]
        if not mine:
            continue
        first = min(mine, key=lambda point: float(point.level))
        size = float(first.level)
        per_node = first.y / size
        last = min(max(this.positions.places), highest / per_node if per_node else 0.0)
        if last > size:
            ends += [FittedPoint(at, per_node * at, series=series) for at in (size, last)]
    return ends
