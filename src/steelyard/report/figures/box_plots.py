"""How far trials lie apart: box plots with their points, and the standard deviation over size."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.results import Box, Summary, label
from steelyard.format import number, with_interval
from steelyard.report.basics.theme import MAX_LINES
from steelyard.report.data.chart_rows import (
    LABEL_PX,
    NARROW_PX,
    WIDE_PX,
    Row,
    n_range,
    series_keys,
    thinned,
    tip,
    trial_rows,
)
from steelyard.report.data.presentation import Figure, Panel, View
from steelyard.report.draw import charts
from steelyard.report.draw.charts import Styles


def boxes(this: View) -> Figure | None:
    """Box plots with their raw points."""
    panels, notes = [], ""
    trials = trial_rows(this)
    for name in this.series:
        found = [box for box in this.results.boxes if this.of(box.treatment) == name]
        if not found:
            continue
        drawn, note = thinned([row for row in trials if row["series"] == name])
        notes = notes or note
        spec = charts.boxes(
            [_box_row(this, box) for box in found],
            drawn,
            this.positions,
            y_title=this.y_title,
            colour=this.colour(name),
        )
        panels.append(Panel(name, spec))
    if not panels:
        return None
    caption = (
        f"{this.results.response_label.capitalize()} of the used trials, n = "
        f"{n_range(box.n for box in this.results.boxes)} a "
        "box. Box: quartiles and median; whiskers: to the last trial within 1.5 interquartile ranges. Diamond: mean, "
        "with one "
        f"standard deviation to each side. Dots: the trials, left to right by time.{notes} Each panel has its own "
        "axis, which "
        "does not start at 0, to show the spread."
    )
    return Figure("boxes", f"Spread of {this.results.response_label}", caption, tuple(panels), zoom="each")


def _box_row(this: View, box: Box) -> Row:
    low, q1, median, q3, high, mean, sd = (
        this.scale.of(value)
        for value in (box.whisker_low, box.q1, box.median, box.q3, box.whisker_high, box.mean, box.sd)
    )
    return {
        "level": this.level(box.treatment),
        "low": low,
        "q1": q1,
        "median": median,
        "q3": q3,
        "high": high,
        "mean": mean,
        "sd": sd,
        "tip": tip(
            label(box.treatment),
            f"quartiles {number(q1)}, {number(median)}, {number(q3)} {this.scale.unit}",
            f"mean {number(mean)}, sd {number(sd, digits=3)}",
            f"n = {box.n}",
        ),
    }


def deviations(this: View) -> Figure | None:
    """The standard deviation over trials, over the levels of the axis; None where no cell has two trials."""
    rows = [row for summary in this.results.summaries if (row := _deviation(this, summary)) is not None]
    if not rows:
        return None
    bare = all(row["low"] is None for row in rows)
    caption = (
        f"Standard deviation of {this.results.response_label} over used trials (n − 1) over {this.positions.name}, "
        f"n = {n_range(row['n'] for row in rows)} trials a point"
        f"{'' if bare else f'; vertical lines are {100 * this.results.confidence:g}% intervals'}. Trials of one start "
        "are repeated measures of it, so this is the spread within and between starts together. The axis starts at 0."
    )
    title = f"standard deviation of {this.y_title}"
    if len(this.series) <= MAX_LINES:
        wide, narrow = (
            charts.medians(
                rows, (), this.positions, this.styles(), y_title=title, width=width - LABEL_PX, height=height
            )
            for width, height in ((WIDE_PX, 220), (NARROW_PX + 20, 220))
        )
        panels: tuple[Panel, ...] = (Panel("", wide, narrow),)
    else:
        panels = tuple(_deviation_panel(this, name, rows, title) for name in this.series)
    name = f"Standard deviation of {this.results.response_label}"
    return Figure("deviations", name, caption, panels, series_keys(this), zoom="xy")


def _deviation_panel(this: View, name: str, rows: Sequence[Row], title: str) -> Panel:
    mine = [row for row in rows if row["series"] == name]
    drawn = charts.medians(
        mine, (), this.positions, Styles((name,)), y_title=title, label=False, width=charts.PANEL_WIDTH,
        height=charts.PANEL_HEIGHT,
    )  # fmt: skip
    return Panel(name, drawn)


def _deviation(this: View, summary: Summary) -> Row | None:
    if summary.sd is None:
        return None
    shown = this.scale.estimate(summary.sd)
    told = with_interval(shown)
    return {
        "level": this.level(summary.treatment),
        "series": this.of(summary.treatment),
        "y": shown.value,
        "low": shown.low,
        "high": shown.high,
        "n": summary.n,
        "tip": tip(label(summary.treatment), f"standard deviation {told} {this.scale.unit}", f"n = {summary.n}"),
    }
