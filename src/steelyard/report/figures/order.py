"""Run-order plot: the difference of each attempt from its treatment's median over time, to show drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital
from steelyard.format import listed, number
from steelyard.model.trial import TrialRecord, cell_key
from steelyard.report.basics.theme import ALERT, BAND, MAX_LINES, MUTED
from steelyard.report.data.chart_rows import MOST_POINTS, thinned, tip
from steelyard.report.data.presentation import Figure, Key, Panel, View
from steelyard.report.draw import marks
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import Styles, style
from steelyard.report.draw.plot import NARROW_PX, WIDE_PX, Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain, around
from steelyard.report.draw.svg import Element, Picture, group

State = Literal["kept", "warm-up", "invalid"]
POINT_PX: Final = 3.3
CROSS_PX: Final = 1.75
TICK_GAP_PX: Final = 95
SIDE_SHARE: Final = 0.015
"""Share of the time axis that is left free at both ends, so that no marker is cut."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a trial."""

    begun_s: float
    percent: float | None
    """Difference from its treatment's median; None without a value or a median."""
    series: str
    state: State
    tip: str


def order(this: View, records: Sequence[TrialRecord]) -> Figure | None:
    """The run-order plot; None without attempts."""
    if not records:
        return None
    several = len(this.series) <= MAX_LINES
    names = this.series if several else tuple(str(level) for level in this.positions.levels)
    points = {(point.trial_id, point.attempt): point for point in this.results.of(Point)}
    middles = {cell_key(one.treatment): one.median.value for one in this.results.main(Summary) if one.median}
    attempts = []
    for record in records:
        middle = middles.get(record.cell)
        series = this.of(record.treatment) if several else str(this.level(record.treatment))
        attempts.append(_attempt(this, record, series, points.get(record.key), middle))
    drawn, step = thinned(attempts, 2 * MOST_POINTS)
    spans = _spans(records)
    title = f"{this.results.response_label}, % from its treatment's median"
    wide, narrow = (
        _picture(drawn, spans, Styles(names), title, width, height)
        for width, height in ((WIDE_PX, 240), (NARROW_PX, 220))
    )
    caption = (
        f"{capital(this.results.response_label)} of every attempt, as its difference from the median of its "
        "treatment, "
        f"against the time at which it began; n = {len(records)} attempts. Filled: used; hollow: warm-up; crosses at "
        "the foot: "
        "not valid, or nothing to compare with. Shaded: every other start of a cluster. A slope or a step that all "
        "colours "
        "share is drift, not an effect. The line at 0 is the median of each treatment."
    )
    if step > 1:
        caption += f" Every {step}th attempt is drawn."
    keys = tuple(Key(name, style(index).colour, style(index).shape) for index, name in enumerate(names))
    return Figure("order", "Order of the trials", caption, (Panel("", wide, narrow),), keys, zoom="xy")


def _attempt(this: View, record: TrialRecord, series: str, point: Point | None, middle: float | None) -> Attempt:
    valid = record.verdict.outcome == "valid"
    state: State = "invalid" if not valid else "warm-up" if point and point.warm_up else "kept"
    value = 100 * (point.value / middle - 1) if point and valid and middle else None
    shown = this.scale.of(point.value) if point else None
    why = "" if valid else listed([reason.kind.value for reason in record.verdict.reasons] or [record.verdict.outcome])
    hover = tip(
        label(record.treatment),
        f"{number(shown)} {this.scale.unit}" if shown is not None else "",
        "" if state == "kept" else state,
        why,
        f"trial {record.id}" + (f", attempt {record.attempt}" if record.attempt > 1 else ""),
    )
    return Attempt(record.begun_s, value, series, state, hover)


def _spans(records: Sequence[TrialRecord]) -> list[tuple[float, float]]:
    """Begin of the first and end of the last trial of each start, in seconds since the epoch."""
    ends: dict[str, list[float]] = {}
    for record in records:
        left = record.ended_s or record.begun_s
        span = ends.setdefault(record.start, [record.begun_s, left])
        span[0], span[1] = min(span[0], record.begun_s), max(span[1], left)
    return [(span[0], span[1]) for span in sorted(ends.values())]


def _picture(
    attempts: Sequence[Attempt],
    spans: Sequence[tuple[float, float]],
    styles: Styles,
    title: str,
    width: float,
    height: float,
) -> Picture:
    """Attempts without a value are crosses at the bottom; every other start is shaded."""
    first = min(*(attempt.begun_s for attempt in attempts), spans[0][0])
    last = max(*(attempt.begun_s for attempt in attempts), *(end for _, end in spans))
    beside = (last - first or 1.0) * SIDE_SHARE
    x = measured(Domain(first - beside, last + beside, "clock"), "time of day, UTC", max(2, int(width // TICK_GAP_PX)))
    y = measured(around([0.0, *(attempt.percent for attempt in attempts)]), title)

    def draw(area: PlotArea) -> Layers:
        behind = [
            marks.rectangle(area.x.of(start), area.top, area.x.of(end), area.bottom, BAND) for start, end in spans[::2]
        ]
        middle = marks.line([area.at(x.domain.low, 0.0), area.at(x.domain.high, 0.0)], MUTED, width=1)
        crosses = [
            marks.crossed(
                *area.at(attempt.begun_s, y.domain.low if attempt.percent is None else attempt.percent),
                tip=attempt.tip,
            )
            for attempt in attempts
            if attempt.percent is None or attempt.state == "invalid"
        ]
        lost = group(crosses, stroke=ALERT, stroke_width=CROSS_PX) if crosses else None
        series = [mark for name in styles.names for mark in _series(area, attempts, name, styles)]
        return Layers([middle, *series, lost], behind)

    return plot(x, y, draw, width=width, height=height)


def _series(area: PlotArea, attempts: Sequence[Attempt], name: str, styles: Styles) -> list[Element | None]:
    look = styles.of(name)
    kept, warm = (
        [
            marks.symbol(look.shape, *area.at(attempt.begun_s, attempt.percent), POINT_PX, tip=attempt.tip)
            for attempt in attempts
            if attempt.series == name and attempt.state == state and attempt.percent is not None
        ]
        for state in ("kept", "warm-up")
    )
    return [
        marks.filled(kept, look.colour, 0.9) if kept else None,
        marks.hollow(warm, look.colour) if warm else None,
    ]
