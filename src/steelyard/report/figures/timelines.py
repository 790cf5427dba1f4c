"""Pictures of what happened within a trial (rates, percentiles, a heat map), and percentile curves of treatments."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.analysis.percentiles import BEYOND
from steelyard.analysis.results import label
from steelyard.format import NONE, count, listed, number
from steelyard.reading.time_courses import BANDS_A_DECADE, QUANTILES, Curve, Span, Timeline, Window
from steelyard.report.basics.theme import ALERT, BAND, DASHES, GRID, INK, MUTED, SERIES
from steelyard.report.data import cpu_strips
from steelyard.report.data.presentation import Course, Figure, Key, Panel, View
from steelyard.report.draw.plot import Axis, Drawing

WIDE_PX: Final = 700
NARROW_PX: Final = 320
LEFT_PX: Final = 46
RIGHT_PX: Final = 10
RATE_PX: Final = 80
TIMES_PX: Final = 150
GAP_PX: Final = 34
TOP_PX: Final = 34
FOOT_PX: Final = 38
SHADES: Final = 5
WARM: Final = "warm-up"
COLOURS: Final = {
    "achieved": SERIES[6], "offered": SERIES[4], "p50": SERIES[0], "p90": SERIES[2], "p99": SERIES[1],
    "p99.9": SERIES[3], "heat": SERIES[5],
}  # fmt: skip
"""One colour each, so that the page can show and hide by colour."""
LINES: Final = {"p50": "", "p90": "2 2", "p99": "6 3", "p99.9": "8 3 2 3", "offered": "6 3", "achieved": ""}
CURVE_HEIGHT_PX: Final = 200
CURVE_WIDTH_PX: Final = 330
MOST_CURVE_PANELS: Final = 12
NINES: Final = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Choice:
    """The trials of one treatment from which the reader chooses; the first is its median trial."""

    treatment: str
    figures: tuple[Figure, ...]
    names: tuple[str, ...]
    """What each is called in the list."""


def choices(this: View, found: Sequence[Timeline]) -> tuple[Choice, ...]:
    """Figures by treatment, in the order of the table of cells."""
    groups: dict[str, list[Timeline]] = {}
    places = {label(summary.treatment): index for index, summary in enumerate(this.results.summaries)}
    for one in found:
        groups.setdefault(label(one.record.treatment), []).append(one)
    ordered = sorted(groups.items(), key=lambda item: places.get(item[0], len(places)))
    return tuple(
        Choice(name, tuple(figure(one) for one in group), tuple(_name(this, one) for one in group))
        for name, group in ordered
    )


def _name(this: View, one: Timeline) -> str:
    value = f"{number(this.scale.of(one.value), trim=True)} {this.scale.unit}" if one.value is not None else ""
    attempt = f", attempt {one.record.attempt}" if one.record.attempt > 1 else ""
    state = "the median trial" if one.middle else "" if one.value is not None else "not used"
    marks = ", ".join(mark for mark in (value, state) if mark)
    return f"trial {one.record.id}{attempt}" + (f" ({marks})" if marks else "")


def figure(one: Timeline) -> Figure:
    """Rate, percentiles and heat map of one trial, under each other on one time axis."""
    shown = [name for name in QUANTILES if any(name in window.percentiles_ms for window in one.windows)]
    missing = [name for name in QUANTILES if name not in shown]
    offered = any(window.offered_per_s is not None for window in one.windows)
    operations = sum(window.operations for window in one.windows)
    which = "the median trial of its treatment by the main response; " if one.middle else ""
    which = which if one.value is not None else "no number of the page rests on it; "
    caption = (
        f"Trial {one.record.id}: {which}windows of {one.step_s:g} s, n = {count(operations, 'answered operation')}. "
        "From above: operations a second (the axis starts at 0); percentiles of response time, from added histograms "
        "(logarithmic); the same times as a heat map, darker where a window has more operations."
    )
    if not offered:
        caption += " A closed loop offers no rate: a slow answer also delays what would have been sent after it."
    if missing:
        caption += (
            f" No {listed(missing, 'or')}: fewer than {BEYOND} operations of a window lie beyond "
            f"{'it' if len(missing) == 1 else 'them'}."
        )
    failed = sum(window.failed for window in one.windows)
    if failed:
        caption += f" Not answered or refused: {count(failed, 'operation')}; red marks are windows with such."
    if one.strips:
        caption += " At the foot a strip for each node: darker where its CPU was busier."
    if len(one.spans) > 1 or one.events or one.bands:
        told = [f"{span.name} {span.from_s:.0f} to {span.to_s:.0f} s" for span in (*one.spans, *one.bands)]
        told += [f"{name} at {at_s:.1f} s" for at_s, name in one.events]
        caption += f" Phases and events: {'; '.join(told)}."
    keys = [Key("achieved rate", COLOURS["achieved"], "line")]
    if offered:
        keys.append(Key("offered rate", COLOURS["offered"], "line", LINES["offered"]))
    keys += [Key(name, COLOURS[name], "line", LINES[name]) for name in shown]
    keys.append(Key("heat map", COLOURS["heat"], "square"))
    name = f"time-{one.record.id}-{one.record.attempt}"
    panel = Panel("", _drawn(one, shown, WIDE_PX), _drawn(one, shown, NARROW_PX), values=spoken_values(one, shown))
    course = Course(_heads(shown), tuple(_spoken(window, shown) for window in one.windows))
    return Figure(name, label(one.record.treatment), caption, (panel,), tuple(keys), course=course, zoom="x")


def bytes_of(one: Timeline) -> int:
    """About how much a trial's pictures take in the page, before they are drawn: both widths and the values."""
    return 9_000 + 130 * len(one.windows) + 2 * 14 * len(one.heat) + 2 * 500 * len(one.strips)


def spoken_values(one: Timeline, shown: Sequence[str]) -> str:
    """Where the time axis lies, for what the page says under the pointer; the numbers are those of the course."""
    found = {"names": list(shown), "step": one.step_s, "seconds": one.seconds, "left": LEFT_PX, "right": RIGHT_PX}
    return json.dumps(found, separators=(",", ":"))


def _heads(shown: Sequence[str]) -> tuple[tuple[str, str], ...]:
    rates = (("from", "s"), ("answered", "op/s"), ("offered", "op/s"), ("failed", "operations"))
    return (*rates, *((name, "ms") for name in shown))


def _spoken(window: Window, shown: Sequence[str]) -> tuple[str, ...]:
    """A window's numbers: plain digits, so that the page's script reads them too."""
    offered = NONE if window.offered_per_s is None else f"{window.offered_per_s:.1f}".removesuffix(".0")
    times = (window.percentiles_ms.get(name) for name in shown)
    return (
        f"{window.at_s:.1f}".removesuffix(".0"),
        f"{window.achieved_per_s:.1f}".removesuffix(".0"),
        offered,
        str(window.failed),
        *(NONE if ms is None else f"{float(f'{ms:.3g}'):g}" for ms in times),
    )


def _drawn(one: Timeline, shown: Sequence[str], width: int) -> str:
    tops = [TOP_PX, TOP_PX + RATE_PX + GAP_PX, TOP_PX + RATE_PX + TIMES_PX + 2 * GAP_PX]
    bottoms = [tops[0] + RATE_PX, tops[1] + TIMES_PX, tops[2] + TIMES_PX]
    strips_px = cpu_strips.height(one.strips)
    foot = bottoms[2] + strips_px
    drawing = Drawing(width, foot + FOOT_PX)
    time = Axis(0.0, one.seconds, LEFT_PX, width - RIGHT_PX)
    drawing.marks(LEFT_PX, 0, time.last_px, tops[0])
    _phase_names(drawing, one, time, tops[0])
    drawing.done()
    for top, bottom, draw in zip(tops, bottoms, (_rates, _percentiles, _heat), strict=True):
        draw(drawing, one, time, shown, top, bottom)
    if strips_px:
        cpu_strips.draw(drawing, one.strips, time, bottoms[2], LEFT_PX, one.step_s)
    drawing.x_axis(time, foot, "seconds since the load began", most=8 if width == WIDE_PX else 5)
    return drawing.svg()


def _shaded(one: Timeline) -> list[tuple[Span, str]]:
    """What is shaded behind a trial's course, with its colour: warm-up, every other phase, events that lasted."""
    if one.spans and one.spans[0].name == WARM:
        phases = [span for index, span in enumerate(one.spans) if index % 2 == 0]
    else:
        phases = [span for index, span in enumerate(one.spans) if len(one.spans) > 1 and index % 2]
    return [*((span, BAND) for span in phases), *((span, GRID) for span in one.bands)]


def _behind(drawing: Drawing, one: Timeline, time: Axis, top: float, bottom: float) -> None:
    for span, colour in _shaded(one):
        drawing.rectangle(time.of(span.from_s), top, time.of(span.to_s), bottom, colour)


def _before(drawing: Drawing, one: Timeline, time: Axis, top: float, bottom: float) -> None:
    for at_s, _ in one.events:
        drawing.path([(time.of(at_s), top), (time.of(at_s), bottom)], INK, width=1, dash="3 3")


def _phase_names(drawing: Drawing, one: Timeline, time: Axis, top: float) -> None:
    """The names of phases and of what lasted, where there is room above their beginning."""
    named = [*(one.spans if len(one.spans) > 1 else ()), *one.bands]
    free = 0.0
    for span in sorted(named, key=lambda span: span.from_s):
        left = time.of(span.from_s) + 2
        if left >= free and time.of(span.to_s) - left > 20:
            drawing.text(left, top - 22, span.name, colour=INK)
            free = left + 6.5 * len(span.name) + 8


def _middle(window: Window) -> float:
    return window.at_s + window.seconds / 2


def _rates(drawing: Drawing, one: Timeline, time: Axis, _: Sequence[str], top: float, bottom: float) -> None:
    highest = max(max(window.achieved_per_s, window.offered_per_s or 0.0) for window in one.windows) or 1.0
    axis = Axis(0.0, highest * 1.06, bottom, top)
    drawing.y_axis(axis, LEFT_PX, time.last_px, "operations/s", most=3)
    drawing.marks(LEFT_PX, top, time.last_px, bottom)
    _behind(drawing, one, time, top, bottom)
    offered = [
        None if window.offered_per_s is None else (time.of(_middle(window)), axis.of(window.offered_per_s))
        for window in one.windows
    ]
    drawing.path(offered, COLOURS["offered"], dash=LINES["offered"])
    drawing.path(
        [(time.of(_middle(window)), axis.of(window.achieved_per_s)) for window in one.windows], COLOURS["achieved"]
    )
    for window in one.windows:
        if window.failed:
            x = time.of(_middle(window))
            drawing.path([(x, bottom - 5), (x, bottom)], ALERT, width=2)
    _before(drawing, one, time, top, bottom)
    drawing.done()


def _times(one: Timeline) -> tuple[float, float]:
    """The range of the logarithmic axes, in ms: what the heat map needs, so that both are the same."""
    bands = [band for _, band, _ in one.heat] or [0]
    return 10.0 ** (min(bands) / BANDS_A_DECADE), 10.0 ** ((max(bands) + 1) / BANDS_A_DECADE)


def _percentiles(drawing: Drawing, one: Timeline, time: Axis, shown: Sequence[str], top: float, bottom: float) -> None:
    axis = Axis(*_times(one), bottom, top, log=True)
    drawing.y_axis(axis, LEFT_PX, time.last_px, "response time, ms")
    drawing.marks(LEFT_PX, top, time.last_px, bottom)
    _behind(drawing, one, time, top, bottom)
    for name in reversed(shown):
        drawing.path(
            [
                (time.of(_middle(window)), axis.of(window.percentiles_ms[name]))
                if name in window.percentiles_ms
                else None
                for window in one.windows
            ],
            COLOURS[name],
            dash=LINES[name],
        )
    _before(drawing, one, time, top, bottom)
    drawing.done()


def _heat(drawing: Drawing, one: Timeline, time: Axis, _: Sequence[str], top: float, bottom: float) -> None:
    """Cells of equal shade as one path; cells of one shade under each other as one stroke."""
    low, high = _times(one)
    axis = Axis(low, high, bottom, top, log=True)
    drawing.y_axis(axis, LEFT_PX, time.last_px, "response time, ms (heat map: operations)")
    drawing.marks(LEFT_PX, top, time.last_px, bottom)
    _behind(drawing, one, time, top, bottom)
    most = max((amount for _, _, amount in one.heat), default=1)
    runs: dict[tuple[int, float], list[list[int]]] = {}
    for window, band, amount in one.heat:
        if window >= len(one.windows):
            continue
        shade = min(SHADES - 1, int(SHADES * math.log(amount + 1) / math.log(most + 1)))
        mine = runs.setdefault((shade, one.windows[window].seconds), [])
        if mine and mine[-1][0] == window and mine[-1][2] == band:
            mine[-1][2] = band + 1
        else:
            mine.append([window, band, band + 1])
    first = round(math.log10(low) * BANDS_A_DECADE)
    height = (bottom - top) / max(1, round(math.log10(high / low) * BANDS_A_DECADE))
    for (shade, seconds), found in sorted(runs.items()):
        pieces = [
            f"M{time.of(_middle(one.windows[window])):.1f},{bottom - (band - first) * height:.1f}"
            f"v{-(until - band) * height:.1f}"
            for window, band, until in found
        ]
        width = (time.last_px - time.first_px) * seconds / one.seconds
        drawing.bars(pieces, COLOURS["heat"], width=width, opacity=round((shade + 1) / SHADES, 2))
    _before(drawing, one, time, top, bottom)
    drawing.done()


def curves(this: View, found: Sequence[Curve]) -> Figure | None:
    """Response and service time over the percentile, one line a treatment, one panel a series."""
    names = [name for name in this.series if any(this.of(one.treatment) == name for one in found)]
    if not names:
        return None
    times = [ms for one in found for _, ms in one.points if ms > 0] or [1.0]
    last = max(one.points[-1][0] for one in found)
    levels = [str(level) for level in this.positions.levels]
    panels = []
    for name in names[:MOST_CURVE_PANELS]:
        mine = [one for one in found if this.of(one.treatment) == name]
        drawn = _curves(mine, [str(this.level(one.treatment)) for one in mine], levels, times, last)
        panels.append(Panel(name if len(names) > 1 else "", drawn))
    n, trials = [one.operations for one in found], [one.trials for one in found]
    caption = (
        "Response time (full lines, marked by treatment) and service time (thin dotted lines) over the percentile, one "
        f"line a treatment, from the histograms of all its used trials added up: {min(trials)} to {max(trials)} "
        f"trials, n = {min(n):,} to {max(n):,} operations a line. A line ends where fewer than {BEYOND} operations lie "
        "beyond. "
        "The axis of percentiles is logarithmic in the share that is left, that of time is logarithmic; both are the "
        "same in all panels. Where response time rises above service time, operations waited before they were sent."
    )
    if len(names) > MOST_CURVE_PANELS:
        caption += f" The first {MOST_CURVE_PANELS} of {len(names)} panels are drawn."
    keys = tuple(
        Key(level, SERIES[index % len(SERIES)], "line", _dash(index)) for index, level in enumerate(levels)
    )  # fmt: skip
    title = "Percentile curves"
    return Figure("curves", title, caption, tuple(panels), keys, this.positions.name)


def _dash(index: int) -> str:
    return "" if index == 0 else " ".join(map(str, DASHES[index % len(DASHES)]))


def _curves(
    mine: Sequence[Curve], of: Sequence[str], levels: Sequence[str], times: Sequence[float], last: float
) -> str:
    drawing = Drawing(CURVE_WIDTH_PX, TOP_PX + CURVE_HEIGHT_PX + FOOT_PX)
    bottom, right = TOP_PX + CURVE_HEIGHT_PX, CURVE_WIDTH_PX - RIGHT_PX
    axis = Axis(min(times) / 1.1, max(times) * 1.1, bottom, TOP_PX, log=True)
    shares = Axis(0.0, -math.log10(1 - last) or 1.0, LEFT_PX, right)
    drawing.y_axis(axis, LEFT_PX, right, "ms")
    drawing.path([(LEFT_PX, bottom), (right, bottom)], MUTED, width=1)
    for share in (share for share in NINES if share <= last):
        x = shares.of(-math.log10(1 - share))
        drawing.path([(x, bottom), (x, bottom + 4)], MUTED, width=1)
        drawing.text(x, bottom + 16, f"{100 * share:.10g}", anchor="middle")
    drawing.text((LEFT_PX + right) / 2, bottom + 32, "percentile", anchor="middle")
    for one, level in zip(mine, of, strict=True):
        index = levels.index(level)
        service = one.measure == "service"
        drawing.path(
            [(shares.of(-math.log10(1 - share)), axis.of(ms)) for share, ms in one.points],
            SERIES[index % len(SERIES)],
            width=1.0 if service else 1.75,
            dash="1 2" if service else _dash(index),
        )
    return drawing.svg()


def all_figures(this: View, found: Sequence[Timeline], lines: Sequence[Curve]) -> Mapping[str, Figure]:
    """Figures for files: the median trial of each treatment, and the curves."""
    made: dict[str, Figure] = {one.name: one for one in (figure(each) for each in found if each.middle)}
    drawn = curves(this, lines)
    return {**made, drawn.name: drawn} if drawn else made
