"""The main chart: medians with their intervals, the law that was fitted to them with its band, and the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.results import Summary, label
from steelyard.format import NODES, count, with_interval
from steelyard.report.basics.theme import MAX_LINES
from steelyard.report.data.chart_rows import (
    LABEL_PX,
    NARROW_PX,
    WIDE_PX,
    Row,
    law_rows,
    law_scale,
    n_range,
    series_keys,
    thinned,
    tip,
    trial_rows,
)
from steelyard.report.data.presentation import Figure, Panel, View
from steelyard.report.draw import charts
from steelyard.report.draw.charts import Styles

THROUGHPUT: Final = "throughput_per_s"
LAW_NAMES: Final = {
    "usl": "the universal scalability law", "amdahl": "Amdahl's law", "linear": "the linear law",
}  # fmt: skip
IDEAL_ROOM: Final = 1.25
"""How far above the measured values the ideal is drawn: farther, and it would press them to the floor."""


def medians(this: View) -> Figure | None:
    """The main chart."""
    rows = [_median_row(this, summary) for summary in this.results.summaries if summary.median is not None]
    if not rows:
        return None
    trials, note = thinned(trial_rows(this))
    positions, bare = this.positions, sum(row["low"] is None for row in rows)
    caption = (
        f"Median {this.results.response_label} over {positions.name}, n = {n_range(row['n'] for row in rows)} "
        "trials a "
        f"point; faint dots are the trials.{note} "
    )
    kind = f"{100 * this.results.confidence:g}% order-statistic intervals of the median over trials"
    if bare == len(rows):
        caption += f"No point has an interval: fewer than 6 trials support none ({kind})."
    else:
        caption += f"Vertical lines are {kind}"
        caption += f"; {count(bare, 'point has', 'points have')} fewer than 6 trials and so none." if bare else "."
        caption += " They speak for the starts at hand; the verdicts on sizes rest on the means of starts."
    caption += " The axis starts at 0."
    missing = [label(summary.treatment) for summary in this.results.summaries if summary.n == 0]
    if missing:
        caption += f" Without a valid trial, and so without a point: {'; '.join(missing)}."
    title = f"Median {this.results.response_label}"
    curves, ideals = _fitted(this), _ideals(this)
    if curves:
        shown = curves[0]["law"]
        caption += f" Bands: {shown} with its pointwise {100 * this.results.confidence:g}% interval."
    if ideals:
        caption += " Dotted: ideal, in proportion to size from the median at the smallest; it ends where the axis does."
    return Figure("medians", title, caption, _panels(this, rows, trials, curves, ideals), series_keys(this), zoom="xy")


def _median_row(this: View, summary: Summary) -> Row:
    shown = this.scale.estimate(summary.median) if summary.median is not None else None
    value = with_interval(shown)
    return {
        "level": this.level(summary.treatment),
        "series": this.of(summary.treatment),
        "y": shown.value if shown else None,
        "low": shown.low if shown else None,
        "high": shown.high if shown else None,
        "n": summary.n,
        "tip": tip(label(summary.treatment), f"median {value} {this.scale.unit}", f"n = {summary.n}"),
    }


def _panels(
    this: View, rows: Sequence[Row], trials: Sequence[Row], curves: Sequence[Row], ideals: Sequence[Row]
) -> tuple[Panel, ...]:
    """One picture, or with too many lines one a series."""
    title, positions = f"median {this.y_title}", this.positions
    if len(this.series) <= MAX_LINES:
        wide, narrow = (
            charts.medians(
                rows,
                trials,
                positions,
                this.styles(),
                y_title=title,
                width=width - LABEL_PX,
                height=height,
                curves=curves,
                ideals=ideals,
            )
            for width, height in ((WIDE_PX, 340), (NARROW_PX + 20, 280))
        )
        return (Panel("", wide, narrow),)
    return tuple(
        Panel(
            name,
            charts.medians(
                [row for row in rows if row["series"] == name],
                [row for row in trials if row["series"] == name],
                positions,
                Styles((name,)),
                y_title=title,
                width=charts.PANEL_WIDTH,
                height=charts.PANEL_HEIGHT,
                label=False,
                curves=[row for row in curves if row["series"] == name],
                ideals=[row for row in ideals if row["series"] == name],
            ),
        )
        for name in this.series
    )


def _fitted(this: View) -> list[Row]:
    """The universal scalability law of each series where it was fitted to what the chart shows."""
    found: list[Row] = []
    for law in this.results.laws:
        shown = law_scale(this, law)
        if law.law != "usl" or law.refusal or law.response != this.results.response or shown is None:
            continue
        series = label(law.others)
        found += [{**row, "series": series, "law": LAW_NAMES[law.law]} for row in law_rows(law, *shown)]
    return found


def _ideals(this: View) -> list[Row]:
    """Throughput in proportion to the number of nodes, from each series' median at its smallest size."""
    if this.results.response != THROUGHPUT or this.axis not in NODES or len(this.positions.levels) < 2:
        return []
    medians = [one for one in this.results.summaries if one.median is not None]
    highest = IDEAL_ROOM * max(one.median.high or one.median.value for one in medians if one.median is not None)
    found: list[Row] = []
    for series in this.series:
        mine = [one for one in medians if this.of(one.treatment) == series]
        if not mine:
            continue
        first = min(mine, key=lambda one: float(this.level(one.treatment)))
        size = float(this.level(first.treatment))
        per_node = (first.median.value if first.median else 0.0) / size
        last = min(max(this.positions.places), highest / per_node if per_node else 0.0)
        if last > size:
            found += [{"x": at, "y": this.scale.of(per_node * at), "series": series} for at in (size, last)]
    return found
