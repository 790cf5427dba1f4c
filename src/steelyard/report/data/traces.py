"""Resource usage of nodes: CPU, memory, disk and network of one trial per treatment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.heavy import pl
from steelyard.judging.measures import READING_S
from steelyard.reading.node_traces import Trace
from steelyard.reading.node_usage import measured_samples, use_of_nodes

MEGABYTE: Final = 1e6


@dataclass(frozen=True)
class Resource:
    """One panel: its metrics, each with its word in the key, and the divisor to the shown unit."""

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
"""The panels of each node. A metric that a probe did not read is left out."""


@dataclass(frozen=True)
class Usage:
    """One resource of one node over the measured phase: mean and highest reading, in the unit of the picture."""

    node: str
    loads: bool
    """Whether it is a load node."""
    means: Mapping[tuple[str, str], tuple[float, float]]
    """(Panel, word of the metric) to mean and highest reading."""


def usage(trace: Trace) -> tuple[Usage, ...]:
    """Usage of each node of a trial: the numbers behind the pictures."""
    metrics = {metric: (resource, word) for resource in RESOURCES for metric, word in resource.metrics}
    by_node: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
    for row in use_of_nodes(trace.samples, trace.record.measured_span).iter_rows(named=True):
        if row["metric"] in metrics:
            resource, word = metrics[row["metric"]]
            numbers = row["mean"] / resource.divisor, row["max"] / resource.divisor
            by_node.setdefault(row["node"], {})[resource.panel, word] = numbers
    nodes = sorted(by_node, key=lambda node: (drives_load(trace, node), natural_order(node)))
    return tuple(Usage(node, drives_load(trace, node), by_node[node]) for node in nodes)


def drives_load(trace: Trace, node: str) -> bool:
    """Whether a node is outside the system under test, so that it drives the load."""
    return bool(trace.databases) and node not in trace.databases


def readings(trace: Trace) -> tuple[list[dict[str, Any]], float]:
    """Rows to draw (node, panel, series, x, y), and the length of the measured phase in seconds."""
    span = trace.record.measured_span
    if span is None or trace.samples.is_empty():
        return [], 0.0
    begun_s, ended_s = span
    frame = measured_samples(trace.samples, span)
    of_metric = {
        metric: (resource, ("first", "second")[index])
        for resource in RESOURCES
        for index, (metric, _) in enumerate(resource.metrics)
    }
    rows: list[dict[str, Any]] = []
    begun: set[tuple[str, str]] = set()
    for row in frame.filter(pl.col("metric").is_in(list(of_metric))).iter_rows(named=True):
        resource, series = of_metric[row["metric"]]
        x = round(row["t_s"] - begun_s, 2)
        drawn = {"node": row["node"], "panel": resource.panel, "series": series, "y": row["value"] / resource.divisor}
        if (row["node"], row["metric"]) not in begun:
            begun.add((row["node"], row["metric"]))
            rows.append({**drawn, "x": round(max(row["from_s"] - begun_s, 0.0), 2)})
        rows.append({**drawn, "x": x})
    return rows, max([ended_s - begun_s, READING_S, *(row["x"] for row in rows)])


def natural_order(name: str) -> tuple[str, int]:
    """Sort key that puts n10 after n9."""
    digits = "".join(character for character in name if character.isdigit())
    return name.rstrip("0123456789"), int(digits) if digits else 0
