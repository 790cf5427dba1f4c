"""Metrics that a database reports over a trial: strips of its own metrics, and the pauses in the worst window.

A pause is a sample at its end, with its length (`node_gc_pause_ms`), so it is laid over the windows that it fell in, to
the millisecond. All other metrics are means of the readings of a window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from steelyard.heavy import pl
from steelyard.judging.measures import READING_S
from steelyard.reading.node_strips import Strip, strips_of
from steelyard.reading.node_usage import mean_over_time, measured_samples

PAUSE: Final = "node_gc_pause_ms"
WATCHED: Final = "node_gc_paused_fraction"
"""Sampled at every interval at which pauses were looked for, so that no pause differs from no reading."""
OF_PROCESSES: Final = ("node_cpu_", "node_memory_", "node_disk_", "node_network_", "node_processes", "node_throttled_",
                       "node_read_calls_", "node_write_calls_")  # fmt: skip
"""Beginnings of metrics that the operating system has of any node; not every load node has all of them."""
MS_PER_S: Final = 1000.0
WORST_OF: Final = ("p99", "p90", "p50")
"""The percentile whose highest window is looked at: the first that any window supports."""


def pauses_watched(samples: pl.DataFrame) -> bool:
    """Whether any server's pauses were looked for."""
    return not samples.filter(pl.col("metric") == WATCHED).is_empty()


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


Pauses = Mapping[str, Sequence[tuple[float, float]]]
"""Node to the pauses of its server: from and to, seconds since the load began. A node without any was watched, too."""


def pauses_of(samples: pl.DataFrame, begun_s: float) -> dict[str, list[tuple[float, float]]]:
    """The pauses of every node at which they were watched."""
    nodes = samples.filter(pl.col("metric") == WATCHED)["node"].unique().sort()
    by_node: dict[str, list[tuple[float, float]]] = {str(node): [] for node in nodes}
    for node, t_s, ms in samples.filter(pl.col("metric") == PAUSE).select("node", "t_s", "value").iter_rows():
        if str(node) in by_node:
            by_node[str(node)].append((t_s - begun_s - ms / MS_PER_S, t_s - begun_s))
    return by_node


def overlap_ms(pauses: Sequence[tuple[float, float]], from_s: float, to_s: float) -> float:
    """Milliseconds of a span in which a server paused."""
    return MS_PER_S * math.fsum(max(0.0, min(to_s, ended) - max(from_s, began)) for began, ended in pauses)


def paused_ms(
    samples: pl.DataFrame, pauses: Pauses, begun_s: float, step_s: float, windows: int
) -> dict[str, tuple[float | None, ...]]:
    """Node to the milliseconds that its server paused in each window; None for a window without a reading."""
    watched = samples.filter(pl.col("metric") == WATCHED).select("node", "t_s").rows()
    known = {(str(node), math.floor((t_s - READING_S / 2 - begun_s) / step_s)) for node, t_s in watched}
    by_node: dict[str, tuple[float | None, ...]] = {}
    for node, of_node in pauses.items():
        lengths = [overlap_ms(of_node, index * step_s, (index + 1) * step_s) for index in range(windows)]
        by_node[node] = tuple(ms if ms or (node, index) in known else None for index, ms in enumerate(lengths))
    return by_node


class HasPercentiles(Protocol):
    """A window of a trial."""

    @property
    def at_s(self) -> float:
        """Seconds from the first interval to its beginning."""
        ...

    @property
    def seconds(self) -> float:
        """Its length."""
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
    seconds: float
    paused_ms: Mapping[str, float]
    """Nodes that paused in it, or while its slow operations were in flight before it, the longest first."""
    with_pause: int
    """Windows in which any node paused."""
    windows: int
    """Windows that were compared."""


def worst_window(windows: Sequence[HasPercentiles], pauses: Pauses, from_s: float) -> Worst | None:
    """The window from `from_s` on with the highest percentile, the first of equals; None if no window has one, or
    pauses were not watched.

    An operation counts in the window in which it was answered, so one that took as long as the percentile says may have
    been in flight that long before the window: pauses count from there on."""
    compared = [window for window in windows if window.at_s >= from_s]
    name = next((name for name in WORST_OF if any(name in window.percentiles_ms for window in compared)), None)
    if name is None or not pauses:
        return None
    worst = max(compared, key=lambda window: (window.percentiles_ms.get(name, -1.0), -window.at_s))
    ms, until_s = worst.percentiles_ms[name], worst.at_s + worst.seconds
    in_it = {node: overlap_ms(of_node, worst.at_s - ms / MS_PER_S, until_s) for node, of_node in pauses.items()}
    longest = sorted(in_it, key=lambda node: (-in_it[node], len(node), node))
    with_pause = [
        any(overlap_ms(of_node, window.at_s, window.at_s + window.seconds) for of_node in pauses.values())
        for window in compared
    ]
    return Worst(
        percentile=name,
        ms=ms,
        from_s=worst.at_s,
        seconds=worst.seconds,
        paused_ms={node: in_it[node] for node in longest if in_it[node] > 0},
        with_pause=sum(with_pause),
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
    """The node of the largest reading."""


def server_metrics(
    samples: pl.DataFrame, databases: Sequence[str], span: tuple[float, float] | None
) -> tuple[ServerMetric, ...]:
    """Every metric that database nodes have, and neither load nodes nor processes: what the servers say of themselves.
    Empty where it is not known which nodes are which."""
    if not databases:
        return ()
    inside = measured_samples(samples, span)
    of_servers = pl.col("node").is_in(databases)
    common = inside.filter(~of_servers)["metric"].unique()
    if common.is_empty():
        return ()
    metric = pl.col("metric")
    own = inside.filter(of_servers & metric.str.starts_with("node_") & ~metric.is_in(common.to_list()))
    own = own.filter(~pl.any_horizontal(metric.str.starts_with(begin) for begin in OF_PROCESSES))
    metrics = []
    for (name,), rows in own.sort("metric", "node", "t_s").group_by("metric", maintain_order=True):
        highest = rows.row(int(rows["value"].arg_max() or 0), named=True)
        mean = float(rows.select(mean_over_time()).item())
        metrics.append(ServerMetric(str(name), len(rows), mean, float(highest["value"]), str(highest["node"])))
    return tuple(metrics)
