"""Processor and disk use of a trial, from node samples: one number per trial, as published studies print it.

Samples are of the machine that a node runs on. If nodes share it, the number covers all of them, the load generators
and the laboratory; callers must say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from steelyard.heavy import pl

KIB = 1024.0
POINT_S = 30.0
"""Length of a point of chekkilla2016, seconds (`iostat -d 30 40`)."""


def cpu_percent(samples: pl.DataFrame) -> float | None:
    """100 (1 - idle), the mean over nodes and seconds, as `sar -u` has it; None without samples."""
    idle = _by_second(samples, "machine_cpu_idle_fraction")
    return None if not idle.height else 100 * (1 - _mean(idle["value"]))


def disk_written_kb_per_s(samples: pl.DataFrame) -> float | None:
    """KiB/s written to disks, the mean over nodes and seconds, as `iostat -d` has it; None without samples."""
    written = _by_second(samples, "machine_disk_write_bytes_per_s")
    return None if not written.height else _mean(written["value"]) / KIB


def disk_written_most_kb_per_s(samples: pl.DataFrame) -> float | None:
    """The greatest 30 s mean of KiB/s written to disks; None for shorter trials."""
    written = _by_second(samples, "machine_disk_write_bytes_per_s")
    if not written.height:
        return None
    first = written["t_s"].to_numpy().min()
    points = written.group_by(((pl.col("t_s") - first) / POINT_S).floor().alias("point"), maintain_order=True).agg(
        pl.col("value").mean(), pl.len().alias("n")
    )
    whole = points.filter(pl.col("n") >= POINT_S - 1)
    return float(whole["value"].to_numpy().max()) / KIB if whole.height else None


def _by_second(samples: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Columns t_s and value: the mean over the nodes, summed in a fixed order."""
    rows = samples.filter(pl.col("metric") == metric).sort("t_s", "node")
    return rows.group_by(pl.col("t_s").round(0), maintain_order=True).agg(pl.col("value").mean()).sort("t_s")


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())


SAMPLED: Mapping[str, Callable[[pl.DataFrame], float | None]] = {
    "cpu_percent": cpu_percent,
    "disk_written_kb_per_s": disk_written_kb_per_s,
    "disk_written_most_kb_per_s": disk_written_most_kb_per_s,
}
"""Name of the number to its function of the database nodes' samples in the measured phase: node, t_s, metric, value."""
SAMPLED_UNITS: Mapping[str, str] = {
    "cpu_percent": "% of the processors",
    "disk_written_kb_per_s": "KiB/s",
    "disk_written_most_kb_per_s": "KiB/s",
}
"""Name of the number to its unit."""
SHARED: Mapping[str, str] = {
    "cpu_percent": "cpu",
    "disk_written_kb_per_s": "disk",
    "disk_written_most_kb_per_s": "disk",
}
"""Name of the number to the shared resource that makes it a number of all nodes together."""


def sampled(name: str, samples: pl.DataFrame, nodes: Sequence[str], begun_s: float, ended_s: float) -> float | None:
    """One of `SAMPLED` of these nodes from `begun_s` to `ended_s` since the epoch; a sample covers 1 s before it."""
    rows = samples.filter(pl.col("node").is_in(list(nodes)) & pl.col("t_s").is_between(begun_s + 1, ended_s))
    return SAMPLED[name](rows)
