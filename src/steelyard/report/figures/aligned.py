"""Aligned curves: responses around a change of size or a disruption, a panel for each treatment, with their bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from steelyard.analysis.statistics.aligned import NO_BAND, OF_TIME, SHOWN, AlignedSecond
from steelyard.analysis.treatments import label
from steelyard.format import NONE, count, listed, number, with_interval
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of
from steelyard.report.basics.theme import INK, SERIES
from steelyard.report.data.presentation import Figure, Key, SeriesRows, View, panels_of
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis, foot_px, measured, x_axis, y_axis
from steelyard.report.draw.plot import NARROW_PX, RIGHT_PX, PlotArea, left_px, placed
from steelyard.report.draw.scales import Domain, Scale, from_zero, logarithmic
from steelyard.report.draw.svg import Element, Picture

Curve = Sequence[AlignedSecond]
Column = Callable[[AlignedSecond], Estimate | None]
Axes = dict[tuple[str, bool], Axis]
"""y axis of each response, and of its ratio to the control (True)."""

VALUES_PX: Final = 110
RATIOS_PX: Final = 64
TOP_PX: Final = 24
GAP_PX: Final = 34
BAND_OPACITY: Final = 0.22
MOST_PANELS: Final = 12
EVERY_S: Final = 10
"""Seconds between the rows of numbers under the figure; the table in files has all."""
OWN, CONTROL = SERIES[0], SERIES[6]
CONTROL_DASH: Final = "4 2"
ARRIVAL_DASH: Final = "3 3"
NO_CHANGE: Final = 1.0


def curves(this: View) -> Figure | None:
    """The figure; None if no cluster changed its size or was disrupted."""
    groups: dict[tuple[str, str], list[AlignedSecond]] = {}
    for row in this.results.of(AlignedSecond):
        groups.setdefault((label(row.treatment), row.kind), []).append(row)
    if not groups:
        return None
    shown = dict(list(groups.items())[:MOST_PANELS])
    rows = [row for of_panel in shown.values() for row in of_panel]
    time = Domain(min(row.second_s for row in rows), max(row.second_s for row in rows) + 1.0)
    axes, words = _axes(rows), list(dict.fromkeys(row.band for row in rows))
    several = len({kind for _, kind in groups}) > 1, len(words) > 1
    panels = []
    for (name, kind), of_panel in shown.items():
        parts = [name, *([kind] if several[0] else []), *([of_panel[0].band] if several[1] else [])]
        panels.append((", ".join(parts), partial(_picture, of_panel, time, axes)))
    keys = [Key("mean over trials", OWN, dash="")]
    keys += [Key(each, OWN, "" if each.endswith(NO_BAND) else "square") for each in words]
    if any(row.control is not None for row in rows):
        keys.append(Key("control", CONTROL, dash=CONTROL_DASH))
    disrupted = {kind for _, kind in groups} == {"disruption"}
    arrival = "healed, and recovered (medians)" if disrupted else "a node in service, or left (median)"
    keys += [Key("beginning" if disrupted else "decision", INK, dash=""), Key(arrival, INK, dash=ARRIVAL_DASH)]
    title = "Around the beginning of the disruption" if disrupted else "Around the decision to change the size"
    caption = _caption(rows, len(groups))
    return Figure("aligned", title, caption, panels_of(panels), tuple(keys), course=_numbers(shown), zoom="x")


def _caption(rows: Curve, panels: int) -> str:
    named = listed([label_of(response) for response in SHOWN if any(row.response == response for row in rows)])
    text = (
        f"{named[:1].upper()}{named[1:]}, second by second since the desired size of the first activity, or the "
        "beginning of the first disruption. Response times are geometric means on a logarithmic axis; the other axes "
        "of values start at 0. "
    )
    kinds = {row.band.partition(" ")[0] for row in rows}
    if "simultaneous" in kinds:
        text += "A simultaneous band holds the true curve in all seconds together. "
    if "pointwise" in kinds:
        text += "A pointwise band holds it in each second alone, so that no difference may be read from it. "
    if ratios := list(dict.fromkeys(row.ratio_band for row in rows if row.ratio_band)):
        text += (
            f"Lower plots: the ratio to the control ({listed(ratios)}), which is the one to believe: what both have, "
            "as a load that changes, is not in it. Where a policy follows a response, the control's seconds count from "
            "the moment at which it would have acted there, too; controls in which it would not have are left out. "
        )
    others = {label(row.treatment): row.used - row.n for row in rows if row.n < row.used}
    if others:
        left_out = [f"{count(n, 'trial')} of {name}" if name else count(n, "trial") for name, n in others.items()]
        text += f"Not in a curve, because the first change was another or there was none: {listed(left_out)}. "
    if panels > MOST_PANELS:
        text += f"The first {MOST_PANELS} of {panels} panels are drawn."
    return text.rstrip()


def _axes(rows: Curve) -> Axes:
    """One scale for all panels."""
    axes = {}
    for response in dict.fromkeys(row.response for row in rows):
        own = [row for row in rows if row.response == response]
        ends = [end for row in own for end in (row.value.value, row.value.low, row.value.high, row.control)]
        domain = logarithmic(ends, 1.1) if response == OF_TIME else from_zero(ends)
        axes[response, False] = measured(domain, f"{label_of(response)}, {own[0].unit}", 4)
        ratios = [row.against_control for row in own if row.against_control is not None]
        if ratios:
            ends = [end for one in ratios for end in (one.value, one.low, one.high)]
            axes[response, True] = measured(logarithmic([*ends, NO_CHANGE], 1.1), "times the control", 3)
    return axes


def _picture(rows: Curve, time: Domain, axes: Axes, width: float) -> Picture:
    zero = "disruption" if rows[0].kind == "disruption" else "decision"
    x = measured(time, f"seconds since the {zero}", 5 if width <= NARROW_PX else 8)
    left, right = left_px(axes.values()), width - RIGHT_PX
    top, elements = float(TOP_PX), []
    for (response, is_ratio), y in axes.items():
        own = [row for row in rows if row.response == response]
        column: Column = _ratio if is_ratio else _value
        if not any(column(row) is not None for row in own):
            continue
        area = placed(x, y, left, top, right, top + (RATIOS_PX if is_ratio else VALUES_PX))
        elements += [
            *y_axis(y, area.y, area.left, area.right),
            area.marks([*_band(area, own, column), *_lines(area, own, column), *_moments(area, rows[0].arrivals_s)]),
        ]
        top = area.bottom + GAP_PX
    foot = top - GAP_PX
    scale = Scale(time, left, right)
    return Picture(width, foot + foot_px(x, scale), (*elements, *x_axis(x, scale, foot)))


def _value(row: AlignedSecond) -> Estimate | None:
    return row.value


def _ratio(row: AlignedSecond) -> Estimate | None:
    return row.against_control


def _band(area: PlotArea, rows: Curve, column: Column) -> Iterator[Element | None]:
    """The band, in pieces where seconds are missing."""
    for run in _runs(rows):
        ends = []
        for row in run:
            shown = column(row)
            if shown is not None and shown.low is not None and shown.high is not None:
                ends.append((area.x.of(row.second_s + 0.5), area.y.of(shown.low), area.y.of(shown.high)))
        yield marks.band(ends, OWN, BAND_OPACITY)


def _lines(area: PlotArea, rows: Curve, column: Column) -> Iterator[Element | None]:
    """The mean, and what it is compared with: the control's, or no change."""
    if column is _ratio:
        level = area.y.of(NO_CHANGE)
        yield marks.line([(area.left, level), (area.right, level)], CONTROL, width=1, dash=CONTROL_DASH)
    else:
        yield _line(area, [(row.second_s, row.control) for row in rows], CONTROL, 1.25, CONTROL_DASH)
    means = ((row.second_s, column(row)) for row in rows)
    yield _line(area, [(second, None if one is None else one.value) for second, one in means], OWN, marks.LINE)


def _line(
    area: PlotArea, points: Sequence[tuple[int, float | None]], colour: str, width: float, dash: str = ""
) -> Element | None:
    places: list[marks.Place | None] = []
    for place, (second, value) in enumerate(points):
        if place and second - points[place - 1][0] > 1:
            places.append(None)
        places.append(None if value is None else area.at(second + 0.5, value))
    return marks.line(places, colour, width=width, dash=dash)


def _runs(rows: Curve) -> Iterator[Curve]:
    """Rows of seconds that follow one another."""
    breaks = [place for place, (one, after) in enumerate(pairwise(rows), 1) if after.second_s - one.second_s > 1]
    for first, last in pairwise([0, *breaks, len(rows)]):
        yield rows[first:last]


def _moments(area: PlotArea, arrivals_s: Sequence[float]) -> Iterator[Element | None]:
    """The decision, and the arrivals of nodes."""
    for at_s, dash in [(0.0, ""), *((at_s, ARRIVAL_DASH) for at_s in arrivals_s)]:
        if area.x.domain.low <= at_s <= area.x.domain.high:
            x = area.x.of(at_s)
            yield marks.line([(x, area.top), (x, area.bottom)], INK, width=1, dash=dash)


def _numbers(groups: dict[tuple[str, str], list[AlignedSecond]]) -> SeriesRows:
    """Every EVERY_S seconds: the nodes in service, each response with its band, its control, and the ratio."""
    units = {row.response: row.unit for rows in groups.values() for row in rows}
    heads = [("treatment", ""), ("second", "s"), ("nodes", "in service")]
    for response, unit in units.items():
        heads += [(label_of(response), unit), ("control", unit), ("times the control", "")]
    lines = []
    for (name, kind), rows in groups.items():
        by_second: dict[int, dict[str, AlignedSecond]] = {}
        for row in rows:
            if row.second_s % EVERY_S == 0:
                by_second.setdefault(row.second_s, {})[row.response] = row
        for second, of_second in sorted(by_second.items()):
            nodes = next(iter(of_second.values())).nodes
            texts = [f"{name}, {kind}" if name else kind, str(second), number(nodes, trim=True)]
            for response in units:
                texts += _texts(of_second.get(response))
            lines.append(tuple(texts))
    return SeriesRows(tuple(heads), tuple(lines))


def _texts(row: AlignedSecond | None) -> tuple[str, str, str]:
    if row is None:
        return (NONE, NONE, NONE)
    control = NONE if row.control is None else number(row.control, digits=3)
    return with_interval(row.value), control, with_interval(row.against_control)
