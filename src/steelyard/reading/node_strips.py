"""Strips of each node over a trial: one number per window, of CPU and of any other metrics that are added up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.heavy import pl
from steelyard.judging.measures import Readings, pieces_of, points
from steelyard.model import power
from steelyard.model.measure import Measure

CPU: Final = ("node_cpu_user_cores", "node_cpu_system_cores")


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
    """The sum of some metrics of every node in each window, a mean over time as responses are; by name of node."""
    readings = readings_of_table(samples, metrics)
    seconds = windows * step_s
    strips = []
    for node in sorted(readings, key=lambda node: (len(node), node)):
        present = tuple(metric for metric in metrics if metric in readings[node])
        pieces = pieces_of(Measure(present), node, readings, {}, (begun_s, begun_s + seconds)) if present else None
        values = points(pieces or (), seconds, step_s)
        strips += [Strip(node, tuple(values))] if any(value is not None for value in values) else []
    return tuple(strips)


def readings_of_table(samples: pl.DataFrame, metrics: Collection[str]) -> Readings:
    """Samples with columns node, t_s, metric, value as readings by node and metric; `power.ANY` names all in watts."""
    chosen = pl.col("metric").is_in(list(metrics))
    if power.ANY in metrics:
        chosen |= pl.col("metric").str.ends_with(power.ENDING)
    wanted = samples.filter(chosen)
    rows = wanted.select("node", "metric", "t_s", "value").drop_nulls().rows()
    nodes: dict[str, dict[str, list[tuple[float, float]]]] = {str(node): {} for node in samples["node"].unique()}
    for node, metric, t_s, value in sorted(rows):
        nodes[node].setdefault(metric, []).append((t_s, value))
    return nodes
