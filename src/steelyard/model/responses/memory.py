"""Memory of database nodes, from samples."""

from __future__ import annotations

from steelyard.model.measure import MIB, How, Measure
from steelyard.model.response import Response


def _of(name: str, label: str, definition: str, metric: str, how: How, order: int) -> Response:
    return Response(
        name=name,
        label=label,
        unit="MiB",
        definition=definition,
        source="samples",
        measure=Measure(metrics=(metric,), how=how, scale=1 / MIB),
        less_is_better=True,
        on_page=False,
        order=order,
    )


RESPONSES = (
    _of("memory_mb_mean", "memory of a database node", "Memory charged to a database node: its cgroup's with page "
        "cache, or resident in its processes; the mean over time and nodes.", "node_memory_bytes", "mean", 150),
    _of("memory_mb_max", "highest memory of a database node", "Highest reading of the memory charged to a database "
        "node.", "node_memory_bytes", "max", 151),
    _of("memory_rss_mb_mean", "anonymous memory of a database node", "Anonymous memory of a database node: heaps and "
        "stacks, no page cache; the mean over time and nodes.", "node_memory_rss_bytes", "mean", 152),
    Response(
        name="memory_limit_hits",
        label="hits of the memory limit",
        unit="hits",
        definition="Times that database nodes hit their memory limit.",
        source="samples",
        measure=Measure(metrics=("node_memory_limit_hits",), how="sum"),
        less_is_better=True,
        on_page=False,
        order=153,
    ),
)  # fmt: skip
