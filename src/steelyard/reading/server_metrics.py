"""What a database says of itself over a trial: strips of its own metrics, and the pauses in the worst window.

A pause is a sample at its end, with its length (`node_gc_pause_ms`), so it is laid over the windows that it fell in, to
the millisecond. All other metrics are means of the readings of a window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from steelyard.heavy import pl
from steelyard.reading.node_strips import READING_S, Strip, strips_of

PAUSE: Final = "node_gc_pause_ms"
WATCHED: Final = "node_gc_paused_fraction"
"""Sampled at every interval at which pauses were looked for, so that no pause differs from no reading."""
MS_PER_S: Final = 1000.0
WORST_OF: Final = ("p99", "p90", "p50")
"""The percentile whose highest window is looked at: the first that any window supports."""


@dataclass(frozen=True)
class StripGroup:
    """One metric of every node over a trial."""

    title: str
    unit: str
    """Unit of its greatest number, as the title shows it."""
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class _Drawn:
    title: str
    unit: str
    metrics: tuple[str, ...]
    scale: float = 1.0


DRAWN: Final = (
    _Drawn(
        "tasks waiting for a thread",
        "tasks",
        ("node_native_transport_pending_tasks", "node_read_pending_tasks", "node_mutation_pending_tasks"),
    ),
    _Drawn("compactions at work", "compactions", ("node_compactions_running",)),
    _Drawn(
        "messages dropped and operations timed out", "per s", ("node_dropped_messages_per_s", "node_timeouts_per_s")
    ),
    _Drawn("just-in-time compilation", "% of a core", ("node_compile_fraction",), 100.0),
)
"""Strips below the load's course, where any node has more than 0."""


def server_strips(
    samples: pl.DataFrame, begun_s: float, step_s: float, windows: int, pauses: Mapping[str, Sequence[float | None]]
) -> tuple[StripGroup, ...]:
    """Strips of pauses and of every group of `DRAWN` that has anything to show."""
    groups = [StripGroup("pauses for garbage collection", "ms", _as_strips(pauses))]
    for drawn in DRAWN:
        strips = strips_of(samples, drawn.metrics, begun_s, step_s, windows)
        scaled = {strip.node: [value and value * drawn.scale for value in strip.values] for strip in strips}
        groups.append(StripGroup(drawn.title, drawn.unit, _as_strips(scaled)))
    return tuple(group for group in groups if any(value for strip in group.strips for value in strip.values))


def _as_strips(values: Mapping[str, Sequence[float | None]]) -> tuple[Strip, ...]:
    nodes = sorted(values, key=lambda node: (len(node), node))
    return tuple(Strip(node, tuple(values[node])) for node in nodes)


def paused_ms(
    samples: pl.DataFrame, begun_s: float, step_s: float, windows: int
) -> dict[str, tuple[float | None, ...]]:
    """Node to the milliseconds that its server paused in each window; None for a window without a reading."""
    by_node: dict[str, list[float | None]] = {}
    for node, t_s in samples.filter(pl.col("metric") == WATCHED).select("node", "t_s").iter_rows():
        values = by_node.setdefault(str(node), [None] * windows)
        window = math.floor((t_s - READING_S / 2 - begun_s) / step_s)
        if 0 <= window < windows:
            values[window] = 0.0
    for node, t_s, ms in samples.filter(pl.col("metric") == PAUSE).select("node", "t_s", "value").iter_rows():
        if (of_windows := by_node.get(str(node))) is None:
            continue
        ended = t_s - begun_s
        began = ended - ms / MS_PER_S
        for window in range(max(0, math.floor(began / step_s)), min(windows, math.ceil(ended / step_s))):
            overlap_s = min(ended, (window + 1) * step_s) - max(began, window * step_s)
            of_windows[window] = (of_windows[window] or 0.0) + max(overlap_s, 0.0) * MS_PER_S
    return {node: tuple(values) for node, values in by_node.items()}


class HasPercentiles(Protocol):
    """A window of a trial."""

    @property
    def at_s(self) -> float:
        """Seconds from the first interval to its beginning."""
        ...

    @property
    def percentiles_ms(self) -> Mapping[str, float]:
        """The percentiles that its count supports."""
        ...


@dataclass(frozen=True)
class Worst:
    """The window of a trial in which a percentile was highest, and who paused in it."""

    percentile: str
    ms: float
    from_s: float
    paused_ms: Mapping[str, float]
    """Nodes that paused in it, the longest first."""
    with_pause: int
    """Windows in which any node paused."""
    windows: int
    """Windows that were compared."""


def worst_window(
    windows: Sequence[HasPercentiles], pauses: Mapping[str, Sequence[float | None]], from_s: float
) -> Worst | None:
    """The window from `from_s` on with the highest percentile, the first of equals; None where no window has one, or
    pauses were not watched."""
    compared = [(index, window) for index, window in enumerate(windows) if window.at_s >= from_s]
    name = next((name for name in WORST_OF if any(name in window.percentiles_ms for _, window in compared)), None)
    if name is None or not pauses:
        return None
    index, worst = max(compared, key=lambda item: (item[1].percentiles_ms.get(name, -1.0), -item[0]))
    in_it = {node: of_node[index] or 0.0 for node, of_node in pauses.items() if index < len(of_node)}
    longest = sorted(in_it, key=lambda node: (-in_it[node], len(node), node))
    return Worst(
        percentile=name,
        ms=worst.percentiles_ms[name],
        from_s=worst.at_s,
        paused_ms={node: in_it[node] for node in longest if in_it[node] > 0},
        with_pause=sum(any(of_node[place] for of_node in pauses.values()) for place, _ in compared),
        windows=len(compared),
    )


@dataclass(frozen=True)
class ServerMetric:
    """One metric that only database nodes have, over the measured phase of a trial."""

    metric: str
    readings: int
    mean: float
    greatest: float
    node: str
    """The node of the greatest reading."""


def server_metrics(
    samples: pl.DataFrame, databases: Sequence[str], span: tuple[float, float] | None
) -> tuple[ServerMetric, ...]:
    """Every metric that database nodes have and load nodes lack, by name: what the servers say of themselves. Empty
    where it is not known which nodes are which."""
    if span is None or not databases:
        return ()
    inside = samples.filter((pl.col("t_s") > span[0]) & (pl.col("t_s") <= span[1] + READING_S))
    of_servers = pl.col("node").is_in(databases)
    common = inside.filter(~of_servers)["metric"].unique()
    if common.is_empty():
        return ()
    metric = pl.col("metric")
    own = inside.filter(of_servers & metric.str.starts_with("node_") & ~metric.is_in(common.to_list()))
    metrics = []
    for (name,), rows in own.sort("metric", "node", "t_s").group_by("metric", maintain_order=True):
        highest = rows.row(int(rows["value"].arg_max() or 0), named=True)
        mean = float(rows["value"].mean())  # type: ignore[arg-type]
        metrics.append(ServerMetric(str(name), len(rows), mean, float(highest["value"]), str(highest["node"])))
    return tuple(metrics)
