"""Strips of nodes: rows below a trial's time series, one per node and metric, darker where the number was higher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.format import number
from steelyard.reading.node_strips import Strip
from steelyard.reading.server_metrics import StripGroup
from steelyard.report.basics.theme import BAND, INK, MUTED
from steelyard.report.draw import marks
from steelyard.report.draw.plot import PlotArea
from steelyard.report.draw.scales import Scale
from steelyard.report.draw.svg import Element, place, text

MOST_STRIPS: Final = 12
STRIP_PX: Final = 11
GAP_PX: Final = 3
TITLE_PX: Final = 34
SHADES: Final = 6
NAME_LETTERS: Final = 7


def height(groups: Sequence[StripGroup]) -> float:
    """Height of the groups with their titles, in pixels; 0 without strips."""
    return sum(_height(group.strips) for group in groups)


def _height(strips: Sequence[Strip]) -> float:
    shown = min(len(strips), MOST_STRIPS)
    return TITLE_PX + shown * (STRIP_PX + GAP_PX) if shown else 0.0


def drawn(groups: Sequence[StripGroup], time: Scale, top: float, step_s: float) -> list[Element]:
    """The groups, one below the other; shade is the number relative to the highest of any node in the group."""
    elements: list[Element] = []
    for group in groups:
        elements += _group(group, time, top, step_s)
        top += _height(group.strips)
    return elements


def _group(group: StripGroup, time: Scale, top: float, step_s: float) -> list[Element]:
    shown = group.strips[:MOST_STRIPS]
    most = max((value for strip in shown for value in strip.values if value is not None), default=0.0)
    if not shown:
        return []
    title = f"{group.title} of each node, darkest at {number(most, digits=2)} {group.unit}"
    elements = [text(0, top + 22, title, fill=MUTED)]
    for index, strip in enumerate(shown):
        upper = top + TITLE_PX + index * (STRIP_PX + GAP_PX) - 4
        lower = upper + STRIP_PX
        shades: dict[int, list[str]] = {}
        for first, last, shade in _runs(strip.values, most):
            from_px, to_px = time.of(first * step_s), time.of(last * step_s)
            shades.setdefault(shade, []).append(f"M{place(from_px)},{place((upper + lower) / 2)}H{place(to_px)}")
        area = PlotArea(time.first_px, upper, time.last_px, lower, time, time)
        name = strip.node[-NAME_LETTERS:]
        elements += [
            text(time.first_px - 5, lower - 2, name, anchor="end", fill=MUTED),
            marks.rectangle(time.first_px, upper, time.last_px, lower, BAND),
            area.marks(
                marks.shaded(pieces, INK, width=STRIP_PX, opacity=0.85 * (shade + 1) / SHADES)
                for shade, pieces in sorted(shades.items())
            ),
        ]
    return elements


def _runs(values: Sequence[float | None], most: float) -> list[tuple[int, int, int]]:
    """Runs of windows of one shade: first index, index after the last, shade. Idle windows are left out."""
    runs: list[tuple[int, int, int]] = []
    for index, value in enumerate(values):
        if value is None or most <= 0 or value < most / SHADES / 4:
            continue
        shade = min(SHADES - 1, int(SHADES * value / most))
        if runs and runs[-1][1] == index and runs[-1][2] == shade:
            runs[-1] = (runs[-1][0], index + 1, shade)
        else:
            runs.append((index, index + 1, shade))
    return runs
