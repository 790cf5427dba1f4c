"""Table of the nodes' limits: asked beside measured, and the nodes that stand out."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.format import NONE, listed, number, percent
from steelyard.judging.gauge import SPEED, TOLERANCE, GaugedLimit, limits_of
from steelyard.model.gauged import Gauged
from steelyard.report.tables.generic import Cell, Column, Table

NAME = "node-limits"
UNITS = {
    "cpus": ("processors", "cores"),
    "memory_mb": ("memory", "MiB"),
    "memory_and_swap_mb": ("memory and swap", "MiB"),
    "disk_read_mb_per_s": ("disk, reading", "MB/s"),
    "disk_write_mb_per_s": ("disk, writing", "MB/s"),
    "disk_read_ops_per_s": ("disk, read operations", "operations/s"),
    "disk_write_ops_per_s": ("disk, write operations", "operations/s"),
    SPEED: ("speed of a core", "million rounds/s"),
}


def node_limits(gaugings: Sequence[Gauged]) -> Table | None:
    """One row for each limit and number asked, over all nodes, starts and both moments; None without any."""
    rows = tuple(_row(limit) for limit in limits_of(gaugings))
    if not rows:
        return None
    columns = (
        Column("limit", numeric=False, term="limit of a node"),
        Column("unit", numeric=False, term="limit of a node"),
        Column("asked", term="asked of a node"),
        Column("measured", term="measured on a node"),
        Column("least", term="measured on a node"),
        Column("most", term="measured on a node"),
        Column("n", term="measured on a node"),
        Column("odd nodes", numeric=False, term="odd node"),
    )
    caption = (
        "Limits of the database nodes, asked and measured: before each start and after its last trial, one node after "
        f"another, while nothing else ran. A node stands out from {percent(TOLERANCE)} on."
    )
    problems = {f"{node}: {problem}" for gauged in gaugings for node, problem in gauged.problems.items()}
    more = f" Not measured: {'; '.join(sorted(problems))}." if problems else ""
    return Table(NAME, caption + more, columns, rows)


def _row(limit: GaugedLimit) -> tuple[Cell, ...]:
    name, unit = UNITS.get(limit.limit, (limit.limit, ""))
    values = [reading.value for reading in limit.readings]
    numbers = [limit.asked, limit.median, min(values), max(values)]
    by_node: dict[str, list[float]] = {}
    for reading in limit.odd:
        by_node.setdefault(reading.node, []).append(reading.value)
    odd = listed([f"{node} ({', '.join(map(_short, its_values))})" for node, its_values in sorted(by_node.items())])
    return (
        Cell(name),
        Cell(unit),
        *(Cell(NONE if value is None else _short(value), raw=f"{value or ''}") for value in numbers),
        Cell(str(len(values))),
        Cell(odd or "none", tone="long"),
    )


def _short(value: float) -> str:
    return number(value, digits=3, trim=True)
