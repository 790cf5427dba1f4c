"""Time series of nodes: CPU, memory, disk and network of one trial per treatment, one panel per node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.analysis.treatments import label
from steelyard.format import listed
from steelyard.reading.node_traces import Trace
from steelyard.report.basics.theme import DASHES, SERIES
from steelyard.report.data.presentation import Figure, Key, Panel
from steelyard.report.data.traces import RESOURCES, Resource, drives_load, natural_order, readings
from steelyard.report.draw import marks
from steelyard.report.draw.axes import measured, x_axis, y_axis
from steelyard.report.draw.plot import left_px, placed
from steelyard.report.draw.scales import HEADROOM, Domain, Scale
from steelyard.report.draw.svg import Element, Picture

MOST_SECONDS_DRAWN: Final = 180
"""Most readings per line; of more, every k-th second is drawn and the caption says so."""
FEWEST_READINGS: Final = 3
"""A line of fewer readings shows no course."""
FEWEST_SECONDS_DRAWN: Final = 20
ALL_BYTES: Final = 350_000
"""Size limit of all node pictures of a page; with many nodes, fewer seconds are drawn."""
READING_BYTES: Final = 11
MOST_NODES_DRAWN: Final = 12
WIDTH_PX: Final = 232
RIGHT_PX: Final = 8
TOP_PX: Final = 18
HEIGHT_PX: Final = 56
GAP_PX: Final = 26
LIFT_PX: Final = 8
FOOT_PX: Final = 38
LINES: Final = (("first", SERIES[0], ""), ("second", SERIES[1], DASHES[1]))
"""Series, colour and dash."""


def most_seconds(traces: Sequence[Trace]) -> int:
    """Readings per line that keep the pictures of all nodes of these trials within `ALL_BYTES`."""
    nodes = sum(min(MOST_NODES_DRAWN, trace.samples["node"].n_unique()) for trace in traces)
    lines = nodes * sum(len(resource.metrics) for resource in RESOURCES)
    return max(FEWEST_SECONDS_DRAWN, min(MOST_SECONDS_DRAWN, ALL_BYTES // (lines * READING_BYTES or 1)))


def figure(trace: Trace, *, most: int = MOST_SECONDS_DRAWN) -> Figure | None:
    """CPU, memory, disk and network of each node in one trial, one panel per node; None with too few readings. A
    resource that nothing used is left out. Of more than `most` seconds every k-th is drawn."""
    rows, seconds = readings(trace)
    # The first reading of a line is drawn at both of its ends.
    lines = Counter((row["node"], row["panel"], row["series"]) for row in rows)
    if max(lines.values(), default=0) <= FEWEST_READINGS:
        return None
    used = {row["panel"] for row in rows if row["y"]}
    idle = [resource.title.partition(",")[0] for resource in RESOURCES
            if resource.panel not in used and any(row["panel"] == resource.panel for row in rows)]  # fmt: skip
    rows = [row for row in rows if row["panel"] in used]
    if not rows:
        return None
    nodes = sorted({row["node"] for row in rows}, key=lambda node: (drives_load(trace, node), natural_order(node)))
    shown = nodes[:MOST_NODES_DRAWN]
    resources = [resource for resource in RESOURCES if any(row["panel"] == resource.panel for row in rows)]
    tops = {
        resource.panel: max((float(row["y"]) for row in rows if row["panel"] == resource.panel), default=0.0) or 1.0
        for resource in resources
    }
    step = max(1, math.ceil(seconds / most))
    drawn = [row for row in rows if int(row["x"]) % step == 0]
    pictures = tuple(
        Panel(
            f"{'load node' if drives_load(trace, node) else 'node'} {node}",
            _picture([row for row in drawn if row["node"] == node], resources, tops, seconds),
        )
        for node in shown
    )
    caption = (
        f"Trial {trace.record.id}, the middle one of its treatment; readings of one second each, n = {len(nodes)} "
        f"{'node' if len(nodes) == 1 else 'nodes'}. Axes start at 0 and are the same for all nodes of the trial."
    )
    if idle:
        caption += f" Without {listed(idle)}: every reading is 0."
    if step > 1:
        caption += f" Every {step}th second is drawn."
    if len(shown) < len(nodes):
        caption += f" The first {len(shown)} nodes are drawn."
    firsts = " / ".join(resource.metrics[0][1] for resource in resources)
    seconds_ = " / ".join(resource.metrics[1][1] for resource in resources)
    keys = (
        Key(firsts, SERIES[0], dash=""),
        Key(seconds_, SERIES[1], dash=DASHES[1]),
    )
    name = "nodes-" + "-".join(_slug(str(level)) for level in trace.record.treatment.values())
    return Figure(name, label(trace.record.treatment), caption, pictures, keys, dense=True, zoom="x")


def _picture(
    rows: Sequence[Mapping[str, Any]], resources: Sequence[Resource], tops: Mapping[str, float], seconds: float
) -> Picture:
    """Usage of one node: one plot per resource, stacked on one time axis."""
    time = measured(Domain(0.0, seconds), "seconds of the measured phase", 4)
    axes = [measured(Domain(0.0, tops[resource.panel] * HEADROOM), resource.title, 2) for resource in resources]
    left, right = left_px(axes), WIDTH_PX - RIGHT_PX
    elements: list[Element] = []
    top = bottom = float(TOP_PX)
    for resource, axis in zip(resources, axes, strict=True):
        bottom = top + HEIGHT_PX
        area = placed(time, axis, left, top, right, bottom)
        mine = [row for row in rows if row["panel"] == resource.panel]
        lines = [
            marks.steps([area.at(row["x"], row["y"]) for row in mine if row["series"] == series], colour, dash=dash)
            for series, colour, dash in LINES
        ]
        elements += [*y_axis(axis, area.y, left, right, LIFT_PX), area.marks(lines)]
        top = bottom + GAP_PX
    elements += x_axis(time, Scale(time.domain, left, right), bottom)
    return Picture(WIDTH_PX, bottom + FOOT_PX, tuple(elements))


def _slug(text: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in text).strip("-").lower() or "x"
