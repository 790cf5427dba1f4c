"""Response-time percentiles over the levels of a factor; all panels share one logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import label
from steelyard.format import with_interval
from steelyard.report.data.chart_rows import level_keys, n_range, tip
from steelyard.report.data.presentation import Figure, View, panels_of
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import NUDGE_PX, SMALL_POINT_PX, WIDE_MARGIN, CellPoint, Styles, ends_of, levels_chart
from steelyard.report.draw.scales import logarithmic
from steelyard.report.draw.svg import Picture

PERCENTILES: Final = ("p50", "p95", "p99")
ROOM: Final = 1.4
"""Factor from the outermost values to the ends of the axis."""


def percentiles(this: View) -> Figure | None:
    """Response-time percentiles over the axis, one panel per series."""
    wanted = {f"response_ms_{name}": name for name in PERCENTILES}
    summaries: list[tuple[str, Summary]] = [
        (wanted[summary.response], summary)
        for summary in (*this.results.others(Summary), *this.results.main(Summary))
        if summary.response in wanted and summary.geometric_mean is not None
    ]
    if not summaries:
        return None
    points = {name: _points(this, summaries, name) for name in this.series}
    shown = [point for series in points.values() for point in series]
    if not shown:
        return None
    y = measured(logarithmic(ends_of(shown), ROOM), "response time, ms")
    drawn = partial(levels_chart, nudge=0.0 if this.by_size else NUDGE_PX, margin=WIDE_MARGIN, radius=SMALL_POINT_PX)
    panels = panels_of(
        [(name, _at_width(partial(drawn, series, this.positions, Styles(PERCENTILES), y)))
         for name, series in points.items() if series]
    )  # fmt: skip
    named = {point.series for point in shown}
    keys = tuple(key for key in level_keys(PERCENTILES, lines=this.by_size) if key.text in named)
    caption = (
        f"Percentiles of response time over {this.positions.name}, of n = {n_range(point.n for point in shown)} trials "
        "per point: each point is the geometric mean of start means of the trial's own percentile, with its "
        f"{100 * this.results.confidence:g}% interval for three or more starts. "
        "Logarithmic axis, the same in all panels."
    )
    return Figure("percentiles", "Response time", caption, panels, keys, zoom="xy")


def _at_width(draw: Callable[..., Picture]) -> Callable[[float], Picture]:
    return lambda width: draw(width=width)


def _points(this: View, summaries: Sequence[tuple[str, Summary]], series: str) -> list[CellPoint]:
    return [
        CellPoint(
            this.level(summary.treatment),
            name,
            estimate.value,
            estimate.low,
            estimate.high,
            summary.n,
            tip(label(summary.treatment), f"{name} {with_interval(estimate)} ms", f"n = {summary.n} trials"),
        )
        for name, summary in summaries
        if this.of(summary.treatment) == series and (estimate := summary.geometric_mean) and estimate.value > 0
    ]
