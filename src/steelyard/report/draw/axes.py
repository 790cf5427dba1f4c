"""Axes of a plot: ticks, labels and titles, and the attributes that the page's zoom reads.

The attribute `data-axis` holds: x or y, the kind, the values at both ends, the pixels of both ends, and the extent of
ticks or grid lines across. The kind `fixed` has labels of its own (levels, percentiles), which the zoom only moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.report.basics.theme import GRID, MUTED
from steelyard.report.draw.scales import Domain, Scale
from steelyard.report.draw.svg import Element, element, group, place, text, text_px

TICK_PX: Final = 4
LABEL_DROP_PX: Final = 16
"""From the foot of a plot to the baseline of its labels."""
LABEL_LINE_PX: Final = 13
TITLE_DROP_PX: Final = 17
"""From the last line of labels to the baseline of the title."""
DESCENT_PX: Final = 4
LABEL_SINK_PX: Final = 3.5
"""From the height of a grid line to the baseline of its label."""
BESIDE_PX: Final = 6
"""Between an axis' labels and the plot."""
TITLE_LIFT_PX: Final = 13
BETWEEN_LABELS_PX: Final = 8
MOST_LINES: Final = 3
DIGITS: Final = 7


@dataclass(frozen=True)
class Axis:
    """A domain with its title, and its ticks with their labels."""

    domain: Domain
    title: str
    ticks: tuple[tuple[float, str], ...]
    fixed: bool = False
    """Whether labels are levels and not values: the zoom then moves them and adds none."""
    staggered: bool = False
    """Whether labels that would overlap go to further lines; otherwise some are left out."""

    @property
    def label_px(self) -> float:
        """Width of the widest label."""
        return max((text_px(label) for _, label in self.ticks), default=0.0)


def measured(domain: Domain, title: str, most: int = 5) -> Axis:
    """An axis with round numbers at its ticks, about `most` steps of them."""
    ticks = domain.ticks(most)
    return Axis(domain, title, tuple(zip(ticks, domain.labels(ticks), strict=True)))


def y_axis(axis: Axis, scale: Scale, left: float, right: float, lift: float = TITLE_LIFT_PX) -> list[Element]:
    """Grid lines from `left` to `right`, numbers next to them, the title `lift` above."""
    at = [scale.of(value) for value, _ in axis.ticks]
    lines = "".join(f"M{place(left)},{place(y)}H{place(right)}" for y in at)
    labels = [
        text(left - BESIDE_PX, y + LABEL_SINK_PX, label) for y, (_, label) in zip(at, axis.ticks, strict=True)
    ]  # fmt: skip
    drawn = group(
        [
            element("path", d=lines, stroke=GRID, data_part="grid") if lines else None,
            group(labels, data_part="label", text_anchor="end", fill=MUTED),
        ],
        data_axis=_zoom_attribute("y", axis, scale, left, right),
    )
    top = min(scale.first_px, scale.last_px)
    return [drawn, text(0, top - lift, axis.title, fill=MUTED)] if axis.title else [drawn]


def x_axis(axis: Axis, scale: Scale, foot: float) -> list[Element]:
    """A line at the foot with ticks, labels below it and the title below them."""
    at = [scale.of(value) for value, _ in axis.ticks]
    lines = lines_of_labels(axis, scale)
    ticks = "".join(f"M{place(x)},{place(foot)}v{TICK_PX}" for x in at)
    labels = [
        text(x, foot + LABEL_DROP_PX + LABEL_LINE_PX * (line or 0), "" if line is None else label)
        for x, line, (_, label) in zip(at, lines, axis.ticks, strict=True)
    ]
    line = f"M{place(scale.first_px)},{place(foot)}H{place(scale.last_px)}"
    drawn = [
        element("path", d=line, stroke=MUTED),
        group(
            [
                element("path", d=ticks, stroke=MUTED, data_part="tick") if ticks else None,
                group(labels, data_part="label", text_anchor="middle", fill=MUTED),
            ],
            data_axis=_zoom_attribute("x", axis, scale, foot, foot + TICK_PX),
        ),
    ]
    if axis.title:
        middle = (scale.first_px + scale.last_px) / 2
        below = foot + foot_px(axis, scale) - DESCENT_PX
        drawn.append(text(middle, below, axis.title, anchor="middle", fill=MUTED))
    return drawn


def foot_px(axis: Axis, scale: Scale) -> float:
    """Room that an x axis takes below its plot."""
    lines = max((line for line in lines_of_labels(axis, scale) if line is not None), default=0)
    title = TITLE_DROP_PX if axis.title else 0
    return LABEL_DROP_PX + lines * LABEL_LINE_PX + title + DESCENT_PX


def lines_of_labels(axis: Axis, scale: Scale) -> list[int | None]:
    """Line below the axis for each label, so that no labels overlap; None: the label is left out."""
    ends = [-1e9] * (MOST_LINES if axis.staggered else 1)
    lines: list[int | None] = []
    for value, label in axis.ticks:
        half, at = text_px(label) / 2, scale.of(value)
        free = next((line for line, end in enumerate(ends) if at - half >= end), None)
        lines.append(free)
        if free is not None:
            ends[free] = at + half + BETWEEN_LABELS_PX
    return lines


def _zoom_attribute(which: str, axis: Axis, scale: Scale, *across: float) -> str:
    kind = "fixed" if axis.fixed else axis.domain.kind
    ends = [f"{end:.{DIGITS}g}" for end in (axis.domain.low, axis.domain.high)]
    pixels: Sequence[float] = (scale.first_px, scale.last_px, *across)
    return " ".join((which, kind, *ends, *map(place, pixels)))
