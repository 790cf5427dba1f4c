"""Strips of each node over a trial: one number per window, of CPU and of any other metrics that are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.heavy import pl

CPU: Final = ("node_cpu_user_cores", "node_cpu_system_cores")
READING_S: Final = 1.0
"""Seconds that one reading of a probe covers: the second before it."""


@dataclass(frozen=True)
class Strip:
    """Mean of one node in each window; None without a reading."""

    node: str
    values: tuple[float | None, ...]


def cpu_strips(samples: pl.DataFrame, begun_s: float, step_s: float, windows: int) -> tuple[Strip, ...]:
    """Cores that every node used in each window, from samples with columns t_s, node, metric, value; by name of
    node."""
    return strips_of(samples, CPU, begun_s, step_s, windows)


def strips_of(
    samples: pl.DataFrame, metrics: Sequence[str], begun_s: float, step_s: float, windows: int
) -> tuple[Strip, ...]:
    """The sum of some metrics of every node in each window, the mean over its readings; by name of node."""
    wanted = samples.filter(pl.col("metric").is_in(metrics))
    if wanted.is_empty():
        return ()
    place = ((pl.col("t_s") - READING_S / 2 - begun_s) / step_s).floor().cast(pl.Int64).alias("window")
    seconds = wanted.group_by("node", "t_s", maintain_order=True).agg(pl.col("value").sum()).with_columns(place)
    means = seconds.group_by("node", "window", maintain_order=True).agg(pl.col("value").mean())
    by_node: dict[str, list[float | None]] = {}
    for node, window, mean in means.iter_rows():
        values = by_node.setdefault(str(node), [None] * windows)
        if 0 <= window < windows:
            values[window] = float(mean)
    named = sorted(by_node, key=lambda node: (len(node), node))
    return tuple(Strip(node, tuple(by_node[node])) for node in named if any(one is not None for one in by_node[node]))
