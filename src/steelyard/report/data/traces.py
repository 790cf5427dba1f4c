"""Time lines of the nodes: CPU, disk and network of one trial of each treatment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from steelyard.analysis.treatments import label
from steelyard.model.study import Level
from steelyard.model.trial import Phase, TrialRecord
from steelyard.report.basics.theme import DASHES, SERIES
from steelyard.report.data.presentation import Figure, Key, Panel
from steelyard.report.draw import charts
from steelyard.report.draw.plot import Axis, Drawing

MOST_SECONDS_DRAWN: Final = 180
"""Readings a line; above it every k-th second is drawn and the caption says so."""
FEWEST_SECONDS_DRAWN: Final = 20
ALL_BYTES: Final = 350_000
"""What the pictures of nodes may take of a page; with many nodes fewer seconds are drawn."""
READING_BYTES: Final = 11
MOST_NODES_DRAWN: Final = 12
MEGABYTE: Final = 1e6
WIDTH_PX: Final = 232
LEFT_PX: Final = 34
RIGHT_PX: Final = 8
TOP_PX: Final = 18
HEIGHT_PX: Final = 56
GAP_PX: Final = 26
FOOT_PX: Final = 38
SECOND_DASH: Final = " ".join(map(str, DASHES[1]))
READING_S: Final = 1.0
"""What one reading of a probe covers."""


@dataclass(frozen=True)
class Trace:
    """The samples of one trial: columns t_s (seconds since the epoch), node, metric, value."""

    record: TrialRecord
    samples: pl.DataFrame
    databases: tuple[str, ...] = ()
    """Nodes of the system under test, which are shown first; all others drive load. Empty: not known."""


@dataclass(frozen=True)
class Resource:
    """One low panel: the metrics that it draws, each with the word in the key, and their divisor."""

    panel: str
    title: str
    metrics: tuple[tuple[str, str], ...]
    divisor: float = 1.0


RESOURCES: Final = (
    Resource("cpu", "CPU, cores", (("node_cpu_user_cores", "user"), ("node_cpu_system_cores", "system"))),
    Resource(
        "memory",
        "memory, MB",
        (("node_memory_rss_bytes", "without files"), ("node_memory_bytes", "with page cache")),
        MEGABYTE,
    ),
    Resource(
        "disk",
        "disk, MB/s",
        (("node_disk_read_bytes_per_s", "read"), ("node_disk_write_bytes_per_s", "write")),
        MEGABYTE,
    ),
    Resource(
        "network",
        "network, MB/s",
        (("node_network_receive_bytes_per_s", "receive"), ("node_network_transmit_bytes_per_s", "transmit")),
        MEGABYTE,
    ),
)
"""What is drawn of each node. A metric that a probe did not read is left out."""


def chosen(records: Sequence[TrialRecord], used: Mapping[tuple[str, int], float]) -> tuple[TrialRecord, ...]:
    """One trial of each treatment: the middle one of its used trials by the main response (the lower of two middles).

    `used` maps (trial id, attempt) of the used trials to their value.
    """
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in records:
        if (record.id, record.attempt) in used and not record.control:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    return tuple(
        sorted(group, key=lambda record: (used[record.id, record.attempt], record.begun_s))[(len(group) - 1) // 2]
        for group in groups.values()
    )


def most_seconds(found: Sequence[Trace]) -> int:
    """Readings a line that keep the pictures of all these trials' nodes within `ALL_BYTES`."""
    nodes = sum(min(MOST_NODES_DRAWN, trace.samples["node"].n_unique()) for trace in found)
    lines = nodes * sum(len(resource.metrics) for resource in RESOURCES)
    return max(FEWEST_SECONDS_DRAWN, min(MOST_SECONDS_DRAWN, ALL_BYTES // (lines * READING_BYTES or 1)))


def figure(trace: Trace, *, most: int = MOST_SECONDS_DRAWN) -> Figure | None:
    """CPU, memory, disk and network of each node in one trial, one panel a node; None without samples. Of more than
    `most` seconds every k-th is drawn."""
    rows, seconds = _rows(trace)
    if not rows:
        return None
    nodes = sorted({row["node"] for row in rows}, key=lambda node: (_loads(trace, node), _natural(node)))
    shown = nodes[:MOST_NODES_DRAWN]
    resources = [resource for resource in RESOURCES if any(row["panel"] == resource.panel for row in rows)]
    panels = [
        {"panel": resource.panel, "title": resource.title, "top": _top(rows, resource.panel)} for resource in resources
    ]
    step = max(1, math.ceil(seconds / most))
    drawn = [row for row in rows if int(row["x"]) % step == 0]
    pictures = tuple(
        Panel(
            f"{'load node' if _loads(trace, node) else 'node'} {node}",
            _drawn([row for row in drawn if row["node"] == node], panels, seconds),
        )
        for node in shown
    )
    caption = (
        f"Trial {trace.record.id}, the middle one of its treatment; readings of one second each, n = {len(nodes)} "
        f"{'node' if len(nodes) == 1 else 'nodes'}. Axes start at 0 and are the same for all nodes of the trial."
    )
    if step > 1:
        caption += f" Every {step}th second is drawn."
    if len(shown) < len(nodes):
        caption += f" The first {len(shown)} nodes are drawn."
    firsts = " / ".join(resource.metrics[0][1] for resource in resources)
    seconds_ = " / ".join(resource.metrics[1][1] for resource in resources)
    keys = (
        Key(firsts, SERIES[0], "line", ""),
        Key(seconds_, SERIES[1], "line", SECOND_DASH),
    )
    name = "nodes-" + "-".join(_slug(str(level)) for level in trace.record.treatment.values())
    return Figure(name, label(trace.record.treatment), caption, pictures, keys, dense=True, zoom="x")


@dataclass(frozen=True)
class Usage:
    """One resource of one node over the measured phase: mean and greatest reading, in the unit of the picture."""

    node: str
    loads: bool
    """Whether it drives load."""
    means: Mapping[tuple[str, str], tuple[float, float]]
    """(Panel, word of the metric) to mean and greatest reading."""


def usage(trace: Trace) -> tuple[Usage, ...]:
    """What the pictures of a trial's nodes show, as numbers; by node."""
    rows, _ = _rows(trace)
    words = {
        (resource.panel, ("first", "second")[index]): word
        for resource in RESOURCES
        for index, (_, word) in enumerate(resource.metrics)
    }
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    seen: set[tuple[str, str, str]] = set()
    for row in rows:
        key = (row["node"], row["panel"], row["series"])
        if key not in seen:  # The first row of a line only draws its beginning.
            seen.add(key)
            continue
        metric = (row["panel"], words[row["panel"], row["series"]])
        found.setdefault(row["node"], {}).setdefault(metric, []).append(row["y"])
    nodes = sorted(found, key=lambda node: (_loads(trace, node), _natural(node)))
    return tuple(
        Usage(
            node,
            _loads(trace, node),
            {metric: (sum(values) / len(values), max(values)) for metric, values in found[node].items()},
        )
        for node in nodes
    )


def _drawn(rows: Sequence[Mapping[str, Any]], panels: Sequence[Mapping[str, Any]], seconds: float) -> str:
    """What one node did: one low panel a resource, one under another, on one time axis."""
    bottom = TOP_PX + len(panels) * HEIGHT_PX + (len(panels) - 1) * GAP_PX
    drawing = Drawing(WIDTH_PX, bottom + FOOT_PX)
    time = Axis(0.0, seconds, LEFT_PX, WIDTH_PX - RIGHT_PX)
    for index, panel in enumerate(panels):
        top = TOP_PX + index * (HEIGHT_PX + GAP_PX)
        axis = Axis(0.0, float(panel["top"]) * charts.HEADROOM, top + HEIGHT_PX, top)
        drawing.y_axis(axis, LEFT_PX, time.last_px, str(panel["title"]), most=2)
        drawing.marks(LEFT_PX, top, time.last_px, top + HEIGHT_PX)
        for series, colour, dash in (("first", SERIES[0], ""), ("second", SERIES[1], SECOND_DASH)):
            mine = [row for row in rows if row["panel"] == panel["panel"] and row["series"] == series]
            drawing.steps([(time.of(row["x"]), axis.of(row["y"])) for row in mine], colour, dash=dash)
        drawing.done()
    drawing.x_axis(time, bottom, "seconds of the measured phase", most=4)
    return drawing.svg()


def _loads(trace: Trace, node: str) -> bool:
    return bool(trace.databases) and node not in trace.databases


def _rows(trace: Trace) -> tuple[list[dict[str, Any]], float]:
    """Rows for the chart, and the length of the measured phase in seconds."""
    phase = next((phase for phase in trace.record.phases if phase.phase is Phase.MEASURE), None)
    if phase is None or trace.samples.is_empty():
        return [], 0.0
    left_s = phase.left_s or trace.record.ended_s or phase.entered_s
    # A reading speaks for the second before it, so the one just after the phase is the last of the phase.
    inside = (pl.col("t_s") >= phase.entered_s) & (pl.col("t_s") <= left_s + READING_S)
    frame = trace.samples.filter(inside).sort("node", "t_s")
    of_metric = {
        metric: (resource, ("first", "second")[index])
        for resource in RESOURCES
        for index, (metric, _) in enumerate(resource.metrics)
    }
    rows: list[dict[str, Any]] = []
    begun: set[tuple[str, str]] = set()
    for row in frame.filter(pl.col("metric").is_in(list(of_metric))).iter_rows(named=True):
        resource, series = of_metric[row["metric"]]
        x = round(row["t_s"] - phase.entered_s, 2)
        drawn = {"node": row["node"], "panel": resource.panel, "series": series, "y": row["value"] / resource.divisor}
        if (row["node"], row["metric"]) not in begun:
            begun.add((row["node"], row["metric"]))
            rows.append({**drawn, "x": round(max(x - READING_S, 0.0), 2)})
        rows.append({**drawn, "x": x})
    return rows, max([left_s - phase.entered_s, READING_S, *(row["x"] for row in rows)])


def _top(rows: Sequence[Mapping[str, Any]], panel: str) -> float:
    return max((float(row["y"]) for row in rows if row["panel"] == panel), default=0.0) or 1.0


def _natural(name: str) -> tuple[str, int]:
    digits = "".join(character for character in name if character.isdigit())
    return name.rstrip("0123456789"), int(digits) if digits else 0


def _slug(text: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in text).strip("-").lower() or "x"
