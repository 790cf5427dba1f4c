"""CPU of each node in each window of a trial's course: which node was busy when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

CPU: Final = ("node_cpu_user_cores", "node_cpu_system_cores")
READING_S: Final = 1.0
"""What one reading of a probe covers: the second before it."""


@dataclass(frozen=True)
class Strip:
    """One node: the cores that it used in each window, None where it gave no reading."""

    node: str
    cores: tuple[float | None, ...]


def of(samples: pl.DataFrame, begun_s: float, step_s: float, windows: int) -> tuple[Strip, ...]:
    """CPU of every node in each window, from samples with columns t_s, node, metric, value; by name of node."""
    cpu = samples.filter(pl.col("metric").is_in(CPU))
    if cpu.is_empty():
        return ()
    place = ((pl.col("t_s") - READING_S / 2 - begun_s) / step_s).floor().cast(pl.Int64).alias("window")
    seconds = cpu.group_by("node", "t_s", maintain_order=True).agg(pl.col("value").sum()).with_columns(place)
    means = seconds.group_by("node", "window", maintain_order=True).agg(pl.col("value").mean())
    found: dict[str, list[float | None]] = {}
    for node, window, cores in means.iter_rows():
        values = found.setdefault(str(node), [None] * windows)
        if 0 <= window < windows:
            values[window] = float(cores)
    named = sorted(found, key=lambda node: (len(node), node))
    return tuple(Strip(node, tuple(found[node])) for node in named if any(one is not None for one in found[node]))
