"""Main chart: the answer's values with their intervals, the fitted scalability law with its band, and ideal scaling.

The values are those of the answer's table, where there is one: geometric means of start means. Else they are medians of
trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.narrative.answer_table import AnswerRow
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
from steelyard.report.figures import forest
from steelyard.report.figures.forest import ForestRow

UNDECIDED: Final = ("undecided", "no verdict")
THROUGHPUT: Final = "throughput_per_s"
LAW: Final = "the universal scalability law"
WIDE_HEIGHT_PX, NARROW_HEIGHT_PX = 340, 280
IDEAL_ROOM: Final = 1.25
"""The ideal is drawn up to this multiple of the highest median; farther, it would flatten the measured values."""


def main_chart(this: View) -> Figure | None:
    """The main chart; None without a value."""
    table = this.results.answer_table
    if table is not None and table.rows and all(row.value is None for row in table.rows):
        changes = [row for row in table.rows if row.ratio is not None]
        return _changes(this, changes) if changes else None
    rows = [row for row in table.rows if row.value_interval is not None] if table else []
    if rows and {this.axis} == {row.factor for row in rows}:
        return _answered(this, rows)
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
    return _figure(this, points, trials, f"Median {this.results.response_label}", caption)


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
        f"{row.factor}: {row.baseline} → {row.level}", 100 * (row.ratio.value - 1),
        None if low is None else 100 * (low - 1), None if high is None else 100 * (high - 1),
        row.verdict, row.verdict not in UNDECIDED,  # Why is in the table: a narrow picture has no room for it.
    )  # fmt: skip


def _answered(this: View, rows: Sequence[AnswerRow]) -> Figure:
    """The chart of the answer's table."""
    points = [_answer_point(this, row) for row in rows]
    trials, step = thinned(trial_dots(this))
    bare = sum(point.low is None for point in points)
    caption = (
        f"{this.results.response_label.capitalize()} over {this.positions.name}: the values of the answer's table, "
        f"n = {_amount([row.starts for row in rows], 'start')} and {_amount([row.n for row in rows], 'trial')} "
        "per point; "
        f"faint dots are the trials.{thinning(step)} "
    )
    if bare < len(points):
        caption += f"Vertical lines are {100 * this.results.confidence:g}% intervals over starts"
        caption += f"; {count(bare, 'point has', 'points have')} too few starts for one." if bare else "."
    else:
        caption += "No point has an interval: there are too few starts."
    caption += " The axis starts at 0."
    return _figure(this, points, trials, this.results.response_label.capitalize(), caption)


def _amount(amounts: Sequence[int], noun: str) -> str:
    return f"{n_range(amounts)} {noun if set(amounts) == {1} else f'{noun}s'}"


def _answer_point(this: View, row: AnswerRow) -> CellPoint:
    assert row.value_interval is not None
    shown = this.scale.estimate(row.value_interval)
    treatment = {**row.others, row.factor: row.level}
    hover = tip(label(treatment), f"{with_interval(shown)} {this.scale.unit}", row.n_text)
    return CellPoint(this.level(treatment), this.of(treatment), shown.value, shown.low, shown.high, row.n, hover)


def _figure(this: View, points: Sequence[CellPoint], trials: Sequence[Dot], title: str, caption: str) -> Figure:
    missing = [label(summary.treatment) for summary in this.results.main(Summary) if summary.n == 0]
    if missing:
        caption += f" Without a valid trial, and so without a point: {'; '.join(missing)}."
    curves, ideals = _fitted(this), _ideals(this, points)
    if curves:
        caption += f" Bands: {LAW} with its pointwise {100 * this.results.confidence:g}% interval."
    if ideals:
        caption += " Dotted: ideal, in proportion to size from the value at the smallest; it ends where the axis does."
    panels = _panels(this, points, trials, curves, ideals, f"{title[:1].lower()}{title[1:]}, {this.scale.unit}")
    return Figure("main", title, caption, panels, series_keys(this), zoom="xy")


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
    """Curves of the universal scalability law that are fitted to the chart's response."""
    points: list[FittedPoint] = []
    for law in this.results.of(LawFit):
        shown = law_scale(this, law)
        if law.law != "usl" or law.refusal or law.response != this.results.response or shown is None:
            continue
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
