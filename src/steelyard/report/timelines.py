"""Pictures of what happened within a trial (rates, percentiles, a heat map), and percentile curves of treatments."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.analysis.results import label
from steelyard.report.format import count, listed, number
from steelyard.report.plot import Axis, Drawing
from steelyard.report.theme import ALERT, BAND, DASHES, INK, MUTED, SERIES
from steelyard.report.view import Figure, Key, Panel, View
from steelyard.report.within import BANDS_A_DECADE, BEYOND, QUANTILES, Curve, Timeline, Window

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
    if len(one.spans) > 1 or one.events:
        told = [f"{span.name} {span.from_s:.0f} to {span.to_s:.0f} s" for span in one.spans]
        told += [f"{name} at {at_s:.1f} s" for at_s, name in one.events]
        caption += f" Phases and events: {'; '.join(told)}."
    keys = [Key("achieved rate", COLOURS["achieved"], "line")]
    if offered:
        keys.append(Key("offered rate", COLOURS["offered"], "line", LINES["offered"]))
    keys += [Key(name, COLOURS[name], "line", LINES[name]) for name in shown]
    keys.append(Key("heat map", COLOURS["heat"], "square"))
    name = f"time-{one.record.id}-{one.record.attempt}"
    panel = Panel("", _drawn(one, shown, WIDE_PX), _drawn(one, shown, NARROW_PX), values=spoken_values(one, shown))
    return Figure(name, label(one.record.treatment), caption, (panel,), tuple(keys))


def bytes_of(one: Timeline) -> int:
    """About how much a trial's pictures take in the page, before they are drawn: both widths and the values."""
    return 9_000 + 100 * len(one.windows) + 2 * 14 * len(one.heat)


def spoken_values(one: Timeline, shown: Sequence[str]) -> str:
    """What the page says under the pointer and to the arrow keys: where the time axis lies, the windows' numbers."""
    rows = [
        [
            round(window.at_s, 1),
            round(window.achieved_per_s, 1),
            None if window.offered_per_s is None else round(window.offered_per_s, 1),
            window.failed,
            *(_rounded(window.percentiles_ms.get(name)) for name in shown),
        ]
        for window in one.windows
    ]
    found = {"names": list(shown), "step": one.step_s, "seconds": one.seconds, "left": LEFT_PX, "right": RIGHT_PX}
    return json.dumps({**found, "rows": rows}, separators=(",", ":"))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def _drawn(one: Timeline, shown: Sequence[str], width: int) -> str:
    drawing = Drawing(width, TOP_PX + RATE_PX + 2 * (GAP_PX + TIMES_PX) + FOOT_PX)
    right = width - RIGHT_PX
    time = Axis(0.0, one.seconds, LEFT_PX, right)
    tops = [TOP_PX, TOP_PX + RATE_PX + GAP_PX, TOP_PX + RATE_PX + TIMES_PX + 2 * GAP_PX]
    bottoms = [tops[0] + RATE_PX, tops[1] + TIMES_PX, tops[2] + TIMES_PX]
    _phases(drawing, one, time, tops, bottoms)
    _rates(drawing, one, time, tops[0], bottoms[0])
    _percentiles(drawing, one, time, shown, tops[1], bottoms[1])
    _heat(drawing, one, time, tops[2], bottoms[2])
    for top, bottom in zip(tops, bottoms, strict=True):
        for at_s, _ in one.events:
            drawing.path([(time.of(at_s), top), (time.of(at_s), bottom)], INK, width=1, dash="3 3")
    drawing.x_axis(time, bottoms[2], "seconds since the load began", most=8 if width == WIDE_PX else 5)
    return drawing.svg()


def _phases(drawing: Drawing, one: Timeline, time: Axis, tops: Sequence[float], bottoms: Sequence[float]) -> None:
    """Warm-up and every other phase shaded, each with its name above."""
    shaded = [span for index, span in enumerate(one.spans) if span.name == WARM or (len(one.spans) > 1 and index % 2)]
    if one.spans and one.spans[0].name == WARM:
        shaded = [span for index, span in enumerate(one.spans) if index % 2 == 0]
    for span in shaded:
        for top, bottom in zip(tops, bottoms, strict=True):
            drawing.rectangle(time.of(span.from_s), top, time.of(span.to_s), bottom, BAND)
    if len(one.spans) < 2:
        return
    free = 0.0
    for span in one.spans:
        left = time.of(span.from_s) + 2
        if left >= free and time.of(span.to_s) - left > 20:
            drawing.text(left, tops[0] - 22, span.name, colour=INK)
            free = left + 6.5 * len(span.name) + 8


def _middle(window: Window) -> float:
    return window.at_s + window.seconds / 2


def _rates(drawing: Drawing, one: Timeline, time: Axis, top: float, bottom: float) -> None:
    highest = max(max(window.achieved_per_s, window.offered_per_s or 0.0) for window in one.windows) or 1.0
    axis = Axis(0.0, highest * 1.06, bottom, top)
    drawing.y_axis(axis, LEFT_PX, time.last_px, "operations/s", most=3)
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


def _times(one: Timeline) -> tuple[float, float]:
    """The range of the logarithmic axes, in ms: what the heat map needs, so that both are the same."""
    bands = [band for _, band, _ in one.heat] or [0]
    return 10.0 ** (min(bands) / BANDS_A_DECADE), 10.0 ** ((max(bands) + 1) / BANDS_A_DECADE)


def _percentiles(drawing: Drawing, one: Timeline, time: Axis, shown: Sequence[str], top: float, bottom: float) -> None:
    axis = Axis(*_times(one), bottom, top, log=True)
    drawing.y_axis(axis, LEFT_PX, time.last_px, "response time, ms")
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


def _heat(drawing: Drawing, one: Timeline, time: Axis, top: float, bottom: float) -> None:
    """Cells of equal shade as one path; cells of one shade under each other as one stroke."""
    low, high = _times(one)
    axis = Axis(low, high, bottom, top, log=True)
    drawing.y_axis(axis, LEFT_PX, time.last_px, "response time, ms (heat map: operations)")
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
