"""Time series within a trial (rates, percentiles, heat map), and percentile curves of treatments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import label
from steelyard.format import NONE, count, listed, number
from steelyard.model.percentiles import BEYOND
from steelyard.reading.server_metrics import StripGroup, Worst
from steelyard.reading.time_courses import BANDS_A_DECADE, QUANTILES, CourseSpan, CourseWindow, Curve, Timeline
from steelyard.report.basics.theme import ALERT, BAND, GRID, INK, SERIES
from steelyard.report.data.chart_rows import n_range
from steelyard.report.data.presentation import Figure, Key, Panel, SeriesRows, View, panels_of
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis, measured, x_axis, y_axis
from steelyard.report.draw.charts import style
from steelyard.report.draw.plot import Layers, PlotArea, placed, plot
from steelyard.report.draw.scales import HEADROOM, Domain, Scale, logarithmic
from steelyard.report.draw.svg import Element, Picture, place, text, text_px
from steelyard.report.figures import node_strips

WIDE_PX: Final = 700
NARROW_PX: Final = 320
LEFT_PX: Final = 46
RIGHT_PX: Final = 10
RATE_PX: Final = 80
TIMES_PX: Final = 150
NODES_PX: Final = 50
BETWEEN_SIZES_PX: Final = 12
"""Least distance of two labels of sizes."""
GAP_PX: Final = 34
TOP_PX: Final = 40
FOOT_PX: Final = 38
SHADES: Final = 5
TIME_TITLE: Final = "seconds since the load began"
SERVICE_DASH: Final = "1 2"
WARM: Final = "warm-up"
COLOURS: Final = {
    "achieved": SERIES[6], "offered": SERIES[4], "p50": SERIES[0], "p90": SERIES[2], "p99": SERIES[1],
    "p99.9": SERIES[3], "heat": SERIES[5],
}  # fmt: skip
"""Each quantity has its own colour, by which the page shows and hides it."""
LINES: Final = {"p50": "", "p90": "2 2", "p99": "6 3", "p99.9": "8 3 2 3", "offered": "6 3", "achieved": ""}
CURVE_HEIGHT_PX: Final = 200
MOST_CURVE_PANELS: Final = 12
MOST_PHASES: Final = 24
"""Phases of nodes that a caption lists; the table of activities has all."""
MOST_EVENTS: Final = 60
"""Events that a caption lists."""
SHOWN_PHASE_S: Final = 0.1
"""Shorter phases are not listed."""
NINES: Final = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Choice:
    """The trials of one treatment that a reader can choose; the first is the median trial."""

    treatment: str
    figures: tuple[Figure, ...]
    names: tuple[str, ...]
    """Name of each in the list."""


def choices(this: View, timelines: Sequence[Timeline]) -> tuple[Choice, ...]:
    """Figures by treatment, in the order of the table of cells."""
    groups: dict[str, list[Timeline]] = {}
    places = {label(summary.treatment): index for index, summary in enumerate(this.results.main(Summary))}
    for timeline in timelines:
        groups.setdefault(label(timeline.record.treatment), []).append(timeline)
    ordered = sorted(groups.items(), key=lambda item: places.get(item[0], len(places)))
    return tuple(
        Choice(name, tuple(figure(timeline) for timeline in group), tuple(_name(this, timeline) for timeline in group))
        for name, group in ordered
    )


def _name(this: View, timeline: Timeline) -> str:
    value = (
        f"{number(this.scale.of(timeline.value), trim=True)} {this.scale.unit}" if timeline.value is not None else ""
    )
    attempt = f", attempt {timeline.record.attempt}" if timeline.record.attempt > 1 else ""
    state = "the median trial" if timeline.middle else "" if timeline.value is not None else "not used"
    marks = ", ".join(mark for mark in (value, state) if mark)
    return f"trial {timeline.record.id}{attempt}" + (f" ({marks})" if marks else "")


NO_WORST = (
    "Pauses were recorded, but no measured window has enough operations for a percentile, so there is no worst window "
    "to compare them with: use more operations per second."
)


def figure(timeline: Timeline) -> Figure:
    """Rate, percentiles and heat map of one trial, stacked on one time axis."""
    shown = [name for name in QUANTILES if any(name in window.percentiles_ms for window in timeline.windows)]
    missing = [name for name in QUANTILES if name not in shown]
    offered = any(window.offered_per_s is not None for window in timeline.windows)
    operations = sum(window.operations for window in timeline.windows)
    which = "the median trial of its treatment by the main response; " if timeline.middle else ""
    which = which if timeline.value is not None else "no number of the page rests on it; "
    caption = (
        f"Trial {timeline.record.id}: {which}windows of {timeline.step_s:g} s, "
        f"n = {count(operations, 'answered operation')}. "
        "From above: operations per second (the axis starts at 0); percentiles of response time, from added histograms "
        "(logarithmic); the same times as a heat map, darker where a window has more operations."
    )
    load = timeline.record.settings.stated_load
    if not offered and load is not None and not load.is_open:
        caption += " A closed loop offers no rate: a slow answer also delays what would have been sent after it."
    if missing:
        caption += (
            f" No {listed(missing, 'or')}: fewer than {BEYOND} operations of a window lie beyond "
            f"{'it' if len(missing) == 1 else 'them'}."
        )
    failed = sum(window.failed for window in timeline.windows)
    if failed:
        caption += f" Not answered or refused: {count(failed, 'operation')}; red marks are windows with such."
    if timeline.strips:
        caption += " At the foot a strip for each node: darker where its CPU was busier."
    if timeline.server:
        caption += f" Below it, as the servers say it: {listed([group.title for group in timeline.server])}."
    if timeline.worst is not None:
        caption += " " + of_worst(timeline.worst)
    elif timeline.paused_ms:
        caption += f" {NO_WORST}"
    spans = timeline.spans
    if timeline.record.search is not None and len(spans) > 1:
        caption += f" {spans[0].name} to {spans[-1].name} are windows of the search, which has a table of them."
        spans = ()
    if len(spans) > 1 or timeline.events or timeline.bands:
        phases = [f"{span.name} {span.from_s:.0f} to {span.to_s:.0f} s" for span in (*spans, *timeline.bands)]
        events = [f"{name} at {at_s:.1f} s" for at_s, name in timeline.events]
        more = len(events) - MOST_EVENTS
        phases += [*events[:MOST_EVENTS], *([f"{more} more"] if more > 0 else [])]
        caption += f" Phases and events: {'; '.join(phases)}."
    if timeline.nodes:
        caption += _changes(timeline)
    keys = [Key("achieved rate", COLOURS["achieved"], dash=LINES["achieved"])]
    if offered:
        keys.append(Key("offered rate", COLOURS["offered"], dash=LINES["offered"]))
    keys += [Key(name, COLOURS[name], dash=LINES[name]) for name in shown]
    keys.append(Key("heat map", COLOURS["heat"], "square"))
    name = f"time-{timeline.record.id}-{timeline.record.attempt}"
    panel = Panel(
        "",
        _picture(timeline, shown, WIDE_PX),
        _picture(timeline, shown, NARROW_PX),
        values=time_axis_json(timeline, shown),
    )
    paused = timeline.paused_ms or (None,) * len(timeline.windows)
    rows = [
        (
            *_course_row(window, shown),
            *([_milliseconds(ms)] if timeline.paused_ms else []),
            *([str(_nodes_at(timeline, window.at_s + window.seconds))] if timeline.nodes else []),
        )
        for window, ms in zip(timeline.windows, paused, strict=True)
    ]
    course = SeriesRows(_heads(timeline, shown), tuple(rows))
    return Figure(name, label(timeline.record.treatment), caption, (panel,), tuple(keys), course=course, zoom="x")


def bytes_of(timeline: Timeline) -> int:
    """Estimated size of a trial's pictures in the page: both widths and the values."""
    per_phase = 2 * 300 * len(timeline.phases)
    return 9_000 + 130 * len(timeline.windows) + 2 * 14 * len(timeline.heat) + 2 * 500 * _strips(timeline) + per_phase


def _strips(timeline: Timeline) -> int:
    return sum(len(group.strips) for group in _groups(timeline))


def _groups(timeline: Timeline) -> tuple[StripGroup, ...]:
    """The strips at the foot: of CPU, then of what the database says of itself."""
    return (StripGroup("CPU", "cores", timeline.strips), *timeline.server)


def time_axis_json(timeline: Timeline, shown: Sequence[str]) -> str:
    """JSON of the time axis' place in the picture, for hover texts; their numbers are those of the course."""
    axis = {
        "names": list(shown),
        "step": timeline.step_s,
        "seconds": timeline.seconds,
        "left": LEFT_PX,
        "right": RIGHT_PX,
    }
    return json.dumps(axis, separators=(",", ":"))


def of_worst(worst: Worst) -> str:
    """Which node paused in the window in which a percentile was highest, and how rare a pause is."""
    until_s = worst.from_s + worst.seconds
    when = f"{worst.percentile} was highest, {number(worst.ms, digits=3)} ms, from {worst.from_s:g} to {until_s:.4g} s"
    paused = [f"{node} {number(ms, digits=3)} ms" for node, ms in worst.paused_ms.items()]
    who = f"paused then to collect garbage: {listed(paused)}" if paused else "no node paused then to collect garbage"
    return f"{when}; {who}. {worst.with_pause:,} of {count(worst.windows, 'window')} have a pause."


def _heads(timeline: Timeline, shown: Sequence[str]) -> tuple[tuple[str, str], ...]:
    rates = (("from", "s"), ("answered", "op/s"), ("offered", "op/s"), ("failed", "operations"))
    paused = [("paused", "ms")] if timeline.paused_ms else []
    return (*rates, *((name, "ms") for name in shown), *paused, *([("nodes", "in service")] if timeline.nodes else []))


def _nodes_at(timeline: Timeline, at_s: float) -> int:
    """Nodes in service at a time."""
    return next(size for from_s, size in reversed(timeline.nodes) if from_s <= at_s)


def _changes(timeline: Timeline) -> str:
    """What the caption says of nodes that joined or left."""
    listed_ones = [span for span in timeline.phases if span.to_s - span.from_s >= SHOWN_PHASE_S]
    spans = [f"{span.name} {span.from_s:.1f} to {span.to_s:.1f} s" for span in listed_ones[:MOST_PHASES]]
    more = len(listed_ones) - len(spans)
    rest = f"; {more} more are in the table of activities" if more > 0 else ""
    named = f", shaded by phase: {'; '.join(spans)}{rest}" if spans else ""
    return f" Below, the nodes in service while nodes joined or left{named}."


def _milliseconds(ms: float | None) -> str:
    """Plain digits, so that the page's script can parse them."""
    return NONE if ms is None else f"{float(f'{ms:.3g}'):g}"


def _course_row(window: CourseWindow, shown: Sequence[str]) -> tuple[str, ...]:
    """A window's numbers as plain digits, so that the page's script can parse them."""
    offered = NONE if window.offered_per_s is None else f"{window.offered_per_s:.1f}".removesuffix(".0")
    times = (window.percentiles_ms.get(name) for name in shown)
    return (
        f"{window.at_s:.1f}".removesuffix(".0"),
        f"{window.achieved_per_s:.1f}".removesuffix(".0"),
        offered,
        str(window.failed),
        *map(_milliseconds, times),
    )


def _picture(timeline: Timeline, shown: Sequence[str], width: int) -> Picture:
    heights = [RATE_PX, TIMES_PX, TIMES_PX, *([NODES_PX] if timeline.nodes else [])]
    tops = [TOP_PX + sum(heights[:place]) + place * GAP_PX for place in range(len(heights))]
    bottoms = [top + height for top, height in zip(tops, heights, strict=True)]
    foot = bottoms[-1] + node_strips.height(_groups(timeline))
    time = measured(Domain(0.0, timeline.seconds), TIME_TITLE, 8 if width == WIDE_PX else 5)
    seconds = Scale(time.domain, LEFT_PX, width - RIGHT_PX)
    names = PlotArea(LEFT_PX, 0, seconds.last_px, tops[0], seconds, seconds)
    elements = [names.marks(_phase_names(timeline, seconds, tops[0]))]
    for top, bottom, (y, marks_of) in zip(tops, bottoms, _plots(timeline, shown), strict=True):
        area = placed(time, y, LEFT_PX, top, seconds.last_px, bottom)
        elements += [
            area.marks(_behind(timeline, area)),
            *y_axis(y, area.y, area.left, area.right),
            area.marks([*marks_of(area), *_events(timeline, area)]),
        ]
    elements += node_strips.drawn(_groups(timeline), seconds, bottoms[-1], timeline.step_s)
    elements += x_axis(time, seconds, foot)
    return Picture(width, foot + FOOT_PX, tuple(elements))


def _plots(timeline: Timeline, shown: Sequence[str]) -> list[tuple[Axis, Callable[[PlotArea], list[Element | None]]]]:
    """The plots from top to bottom: y axis and the function that draws its marks."""
    highest = max(max(window.achieved_per_s, window.offered_per_s or 0.0) for window in timeline.windows) or 1.0
    times = _times(timeline)
    return [
        (measured(Domain(0.0, highest * HEADROOM), "operations/s", 3), partial(_rates, timeline)),
        (measured(times, "response time, ms", 4), partial(_percentiles, timeline, shown)),
        (measured(times, "response time, ms (heat map: operations)", 4), partial(_heat, timeline)),
        *([(_sizes(timeline), partial(_in_service, timeline))] if timeline.nodes else []),
    ]


def _sizes(timeline: Timeline) -> Axis:
    """Axis of the nodes in service: 0, the most, and the fewest if there is room."""
    sizes = [size for _, size in timeline.nodes]
    most, fewest = max(1, *sizes), min(sizes)
    room = NODES_PX * (most - fewest) / (HEADROOM * most) >= BETWEEN_SIZES_PX
    ticks = sorted({0, most, *([fewest] if room else [])})
    return Axis(Domain(0.0, most * HEADROOM), "nodes in service", tuple((float(tick), str(tick)) for tick in ticks))


def _shaded(timeline: Timeline) -> list[tuple[CourseSpan, str]]:
    """Shaded spans behind a trial's time series, with colours: warm-up, every other phase, events with a duration, and
    phases of nodes in alternate shades."""
    if timeline.spans and timeline.spans[0].name == WARM:
        phases = [span for index, span in enumerate(timeline.spans) if index % 2 == 0]
    else:
        phases = [span for index, span in enumerate(timeline.spans) if len(timeline.spans) > 1 and index % 2]
    of_nodes = [(span, GRID if place % 2 else BAND) for place, span in enumerate(timeline.phases)]
    return [*((span, BAND) for span in phases), *((span, GRID) for span in timeline.bands), *of_nodes]


def _behind(timeline: Timeline, area: PlotArea) -> list[Element | None]:
    return [
        marks.rectangle(area.x.of(span.from_s), area.top, area.x.of(span.to_s), area.bottom, colour)
        for span, colour in _shaded(timeline)
    ]


def _events(timeline: Timeline, area: PlotArea) -> list[Element | None]:
    places = (area.x.of(at_s) for at_s, _ in timeline.events)
    return [marks.line([(x, area.top), (x, area.bottom)], INK, width=1, dash="3 3") for x in places]


def _phase_names(timeline: Timeline, time: Scale, top: float) -> list[Element | None]:
    """Names of phases and of events with a duration, where there is room above their beginning."""
    named = [*(timeline.spans if len(timeline.spans) > 1 else ()), *timeline.bands, *timeline.phases]
    names: list[Element | None] = []
    free = 0.0
    for span in sorted(named, key=lambda span: span.from_s):
        left = time.of(span.from_s) + 2
        if left >= free and time.of(span.to_s) - left > 20:
            names.append(text(left, top - 28, span.name, fill=INK))
            free = left + text_px(span.name) + 8
    return names


def _middle(window: CourseWindow) -> float:
    return window.at_s + window.seconds / 2


def _rates(timeline: Timeline, area: PlotArea) -> list[Element | None]:
    offered = [
        None if window.offered_per_s is None else area.at(_middle(window), window.offered_per_s)
        for window in timeline.windows
    ]
    achieved = [area.at(_middle(window), window.achieved_per_s) for window in timeline.windows]
    failed = [
        (area.x.of(_middle(window)), area.bottom, area.bottom - 5) for window in timeline.windows if window.failed
    ]
    return [
        marks.line(offered, COLOURS["offered"], dash=LINES["offered"]),
        marks.line(achieved, COLOURS["achieved"]),
        marks.uprights(failed, ALERT, width=2),
    ]


def _in_service(timeline: Timeline, area: PlotArea) -> list[Element | None]:
    ends_s = [*(at_s for at_s, _ in timeline.nodes[1:]), timeline.seconds]
    places = [
        area.at(at_s, size)
        for (from_s, size), to_s in zip(timeline.nodes, ends_s, strict=True)
        for at_s in (from_s, to_s)
    ]
    return [marks.line(places, INK)]


def _times(timeline: Timeline) -> Domain:
    """Range of both logarithmic axes in ms: that of the heat map."""
    bands = [band for _, band, _ in timeline.heat] or [0]
    return Domain(10.0 ** (min(bands) / BANDS_A_DECADE), 10.0 ** ((max(bands) + 1) / BANDS_A_DECADE), "log")


def _percentiles(timeline: Timeline, shown: Sequence[str], area: PlotArea) -> list[Element | None]:
    return [
        marks.line(
            [
                area.at(_middle(window), window.percentiles_ms[name]) if name in window.percentiles_ms else None
                for window in timeline.windows
            ],
            COLOURS[name],
            dash=LINES[name],
        )
        for name in reversed(shown)
    ]


def _heat(timeline: Timeline, area: PlotArea) -> list[Element | None]:
    """Cells of equal shade become one path; adjacent cells of a window become one stroke."""
    most = max((amount for _, _, amount in timeline.heat), default=1)
    runs: dict[tuple[int, float], list[list[int]]] = {}
    for window, band, amount in timeline.heat:
        if window >= len(timeline.windows):
            continue
        shade = min(SHADES - 1, int(SHADES * math.log(amount + 1) / math.log(most + 1)))
        mine = runs.setdefault((shade, timeline.windows[window].seconds), [])
        if mine and mine[-1][0] == window and mine[-1][2] == band:
            mine[-1][2] = band + 1
        else:
            mine.append([window, band, band + 1])
    low, high = area.y.domain.low, area.y.domain.high
    first = round(math.log10(low) * BANDS_A_DECADE)
    height = (area.bottom - area.top) / max(1, round(math.log10(high / low) * BANDS_A_DECADE))
    strokes: list[Element | None] = []
    for (shade, seconds), cells in sorted(runs.items()):
        pieces = [
            f"M{place(area.x.of(_middle(timeline.windows[window])))},{place(area.bottom - (band - first) * height)}"
            f"v{place(-(until - band) * height)}"
            for window, band, until in cells
        ]
        width = (area.right - area.left) * seconds / timeline.seconds
        strokes.append(marks.shaded(pieces, COLOURS["heat"], width=width, opacity=(shade + 1) / SHADES))
    return strokes


def curves(this: View, percentile_curves: Sequence[Curve]) -> Figure | None:
    """Response and service time over the percentile, one line per treatment, one panel per series."""
    names = [name for name in this.series if any(this.of(curve.treatment) == name for curve in percentile_curves)]
    if not names:
        return None
    times = [ms for curve in percentile_curves for _, ms in curve.points if ms > 0] or [1.0]
    last = max(curve.points[-1][0] for curve in percentile_curves)
    levels = [str(level) for level in this.positions.levels]
    panels = []
    for name in names[:MOST_CURVE_PANELS]:
        mine = [curve for curve in percentile_curves if this.of(curve.treatment) == name]
        indices = [levels.index(str(this.level(curve.treatment))) for curve in mine]
        title = name if len(names) > 1 else ""
        panels.append((title, partial(_curves, mine, indices, logarithmic(times, 1.1), last)))
    n, trials = [curve.operations for curve in percentile_curves], [curve.trials for curve in percentile_curves]
    caption = (
        "Response time (full lines, marked by treatment) and service time (thin dotted lines) over the percentile, one "
        f"line per treatment, from the histograms of all its used trials added up: {n_range(trials)} trials, "
        f"n = {n_range(n)} operations per line. A line ends where fewer than {BEYOND} operations lie beyond. "
        "Both axes are logarithmic (that of percentiles in the share that is left) and the same in all panels. "
        "Where response time rises above service time, operations waited before they were sent."
    )
    if len(names) > MOST_CURVE_PANELS:
        caption += f" The first {MOST_CURVE_PANELS} of {len(names)} panels are drawn."
    keys = tuple(Key(level, style(index).colour, dash=style(index).dash) for index, level in enumerate(levels))
    title = "Percentile curves"
    return Figure("curves", title, caption, panels_of(panels), keys, this.positions.name)


def _curves(mine: Sequence[Curve], indices: Sequence[int], times: Domain, last: float, width: float) -> Picture:
    """The axis of percentiles is linear in the number of nines; `indices` are those of the curves' levels."""

    def nines(share: float) -> float:
        return -math.log10(1 - share)

    shares = tuple((nines(share), f"{100 * share:.10g}") for share in NINES if share <= last)
    x = Axis(Domain(0.0, nines(last) or 1.0), "percentile", shares, fixed=True)

    def draw(area: PlotArea) -> Layers:
        lines = []
        for curve, index in zip(mine, indices, strict=True):
            service, look = curve.measure == "service", style(index)
            at = [area.at(nines(share), ms) for share, ms in curve.points]
            lines.append(
                marks.line(at, look.colour, width=1, dash=SERVICE_DASH)
                if service
                else marks.line(at, look.colour, dash=look.dash)
            )
        return Layers(lines)  # fmt: skip

    return plot(x, measured(times, "ms", 4), draw, width=width, height=CURVE_HEIGHT_PX)


def all_figures(this: View, timelines: Sequence[Timeline], lines: Sequence[Curve]) -> Mapping[str, Figure]:
    """Figures for files: the median trial of each treatment, and the percentile curves."""
    figures: dict[str, Figure] = {one.name: one for one in (figure(each) for each in timelines if each.middle)}
    drawn = curves(this, lines)
    return {**figures, drawn.name: drawn} if drawn else figures
