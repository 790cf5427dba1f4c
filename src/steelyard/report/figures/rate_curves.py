"""Curves of response time over rate: every window of the searches, the limit, the rate that was found, the knee.

They answer what a search asks, so that they are the main figure of its page.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Final

from steelyard.analysis.statistic import Section
from steelyard.analysis.statistics.search import SearchRow
from steelyard.analysis.statistics.search_window import SearchWindow
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital
from steelyard.format import count, number
from steelyard.model.responses import label_of, unit_of
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.search import THROUGHPUT_FRACTION
from steelyard.report.basics.theme import ALERT, BAND, INK, MUTED, SERIES
from steelyard.report.data.presentation import Figure, Key, View, panels_of
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis, measured
from steelyard.report.draw.plot import PANEL_HEIGHT_PX, WIDE_PX, Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain, from_zero, logarithmic
from steelyard.report.draw.svg import Element, Picture

MOST_PANELS: Final = 12
ROOM: Final = 1.2
MAIN: Final = "main"
"""Name of the page's main figure."""
X_TITLE: Final = "offered rate, operations/s"
DOT_PX: Final = 2.9
WIDE_HEIGHT_PX: Final = 300
LIMIT_DASH, KNEE_DASH, BOUND_DASH = "6 3", "1 3", "2 2"
MET, MISSED, SPOILT = SERIES[0], SERIES[1], MUTED


def rate_curves(this: View) -> Figure | None:
    """The figure of the searches, a panel for each treatment; None without searches."""
    windows = [window for window in this.results.of(SearchWindow) if window.value is not None]
    if not windows:
        return None
    searches = this.results.of(SearchRow)
    names = list(dict.fromkeys(label(window.treatment) for window in windows))
    rates = logarithmic([window.rate_per_s for window in windows], ROOM)
    values = _values(windows)
    panels = []
    for name in names[:MOST_PANELS]:
        mine = [window for window in windows if label(window.treatment) == name]
        ended = [search for search in searches if label(search.treatment) == name]
        y = measured(values, _y_title(mine[0].limited))
        panels.append((name if len(names) > 1 else "", partial(_picture, mine, ended, measured(rates, X_TITLE), y)))
    spoilt = any(window.generator for window in windows)
    title = _y_title(windows[0].limited).partition(",")[0]
    caption = (
        f"{capital(title)} in each window of the searches over the offered rate, "
        f"n = {count(len(windows), 'window')} of {count(len(searches), 'trial')}. Dashed line: the limit. Full lines: "
        "the rate that each search found; shaded: its interval within the trial; short dashes: a lower bound. "
        "Dotted: the knee, where rate over mean response time is greatest (median of the trials). "
        f"{'Both axes are' if values.kind == 'log' else 'The axis of rates is'} logarithmic"
        f"{', the same in all panels' if len(names) > 1 else ''}."
    )
    if len(names) > MOST_PANELS:
        caption += f" The first {MOST_PANELS} of {len(names)} treatments are drawn."
    keys = (
        Key("meets the limits", MET, "circle", None), Key("misses a limit", MISSED, "circle", None),
        *((Key("spoilt by the generator", SPOILT, "circle", None),) if spoilt else ()),
        Key("limit", ALERT, dash=LIMIT_DASH), Key("knee", INK, dash=KNEE_DASH),
    )  # fmt: skip
    main = this.results.response == CAPACITY
    return Figure(
        MAIN if main else "rate-curves", "Response time over rate", caption, panels_of(panels), keys,
        section=None if main else Section.RESPONSE_TIME,
    )  # fmt: skip


def _values(windows: Sequence[SearchWindow]) -> Domain:
    """The axis of the limited response: logarithmic, but from 0 for failed operations, of which there may be none."""
    values = [*(window.value or 0.0 for window in windows), *(window.limit for window in windows)]
    return logarithmic(values, ROOM) if min(values) > 0 else from_zero(values)


def _y_title(limited: str) -> str:
    if limited == THROUGHPUT_FRACTION:
        return "throughput over offered rate"
    try:
        return f"{label_of(limited)}, {unit_of(limited)}"
    except KeyError:
        return "failed operations over all"


def _picture(windows: Sequence[SearchWindow], searches: Sequence[SearchRow], x: Axis, y: Axis, width: float) -> Picture:

    def draw(area: PlotArea) -> Layers:
        bands = [
            marks.rectangle(
                area.x.of(max(search.low_per_s, x.domain.low)), area.top,
                area.x.of(min(search.high_per_s, x.domain.high)), area.bottom, BAND,
            )
            for search in searches
            if search.low_per_s is not None and search.high_per_s is not None
        ]  # fmt: skip
        return Layers([*_lines(area, windows[0].limit, searches), *_dots(area, windows)], bands)

    return plot(x, y, draw, width=width, height=WIDE_HEIGHT_PX if width == WIDE_PX else PANEL_HEIGHT_PX)


def _lines(area: PlotArea, limit: float, searches: Sequence[SearchRow]) -> list[Element | None]:
    knees = [search.knee_per_s for search in searches if search.knee_per_s]
    at_limit = area.y.of(limit)
    drawn = [marks.line([(area.left, at_limit), (area.right, at_limit)], ALERT, width=1.25, dash=LIMIT_DASH)]
    uprights = [(statistics.median(knees), INK, KNEE_DASH)] if knees else []
    uprights += [
        (search.rate_per_s, MET, "" if search.outcome == "found" else BOUND_DASH)
        for search in searches
        if search.rate_per_s
    ]
    for rate, colour, dash in uprights:
        at = area.x.of(rate)
        drawn.append(marks.line([(at, area.bottom), (at, area.top)], colour, width=1, dash=dash))
    return drawn


def _dots(area: PlotArea, windows: Sequence[SearchWindow]) -> list[Element | None]:
    kinds = (
        (MET, [window for window in windows if window.met and not window.generator]),
        (MISSED, [window for window in windows if not window.met and not window.generator]),
        (SPOILT, [window for window in windows if window.generator]),
    )
    return [
        marks.filled(
            [
                marks.symbol("circle", *area.at(window.rate_per_s, window.value or 0.0), DOT_PX, tip=_tip(window))
                for window in of
            ],
            colour,
        )
        for colour, of in kinds
        if of
    ]


def _tip(window: SearchWindow) -> str:
    verdict = "meets the limits" if window.met else f"misses {window.binding}"
    measured_value = f"{window.limited} {number(window.value)}"
    return f"{number(window.rate_per_s)}/s: {measured_value}, {window.generator or verdict} ({window.window})"
