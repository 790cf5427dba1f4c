"""CPU of each node over a trial: cores used per window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from steelyard.heavy import pl

CPU: Final = ("node_cpu_user_cores", "node_cpu_system_cores")
READING_S: Final = 1.0
"""Seconds that one reading of a probe covers: the second before it."""


@dataclass(frozen=True)
class Strip:
    """Cores that one node used in each window; None without a reading."""

    node: str
    cores: tuple[float | None, ...]


def cpu_strips(samples: pl.DataFrame, begun_s: float, step_s: float, windows: int) -> tuple[Strip, ...]:
    """CPU of every node in each window, from samples with columns t_s, node, metric, value; by name of node."""
    cpu = samples.filter(pl.col("metric").is_in(CPU))
    if cpu.is_empty():
        return ()
    place = ((pl.col("t_s") - READING_S / 2 - begun_s) / step_s).floor().cast(pl.Int64).alias("window")
    seconds = cpu.group_by("node", "t_s", maintain_order=True).agg(pl.col("value").sum()).with_columns(place)
    means = seconds.group_by("node", "window", maintain_order=True).agg(pl.col("value").mean())
    by_node: dict[str, list[float | None]] = {}
    for node, window, cores in means.iter_rows():
        values = by_node.setdefault(str(node), [None] * windows)
        if 0 <= window < windows:
            values[window] = float(cores)
    named = sorted(by_node, key=lambda node: (len(node), node))
    return tuple(Strip(node, tuple(by_node[node])) for node in named if any(one is not None for one in by_node[node]))
