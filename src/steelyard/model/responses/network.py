"""Network of database nodes, from samples: what their own interfaces received and sent."""

from __future__ import annotations

from steelyard.model.measure import KIB, MIB, How, Measure
from steelyard.model.response import Response


def _of(name: str, label: str, definition: str, metric: str, how: How, unit: str, scale: float, order: int) -> Response:
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{definition}. Only of nodes with their own network.",
        source="samples",
        measure=Measure(metrics=(metric,), how=how, scale=scale),
        less_is_better=True,
        on_page=False,
        order=order,
    )


IN, OUT = "node_network_receive_bytes_per_s", "node_network_transmit_bytes_per_s"
MBIT = 8e-6
"""Bytes to megabits, as networks are sold."""
MEAN = "the mean over time and nodes"

RESPONSES = (
    _of("network_in_kb_per_s_mean", "network input of a database node", f"Received by a database node, {MEAN}", IN,
        "mean", "KiB/s", 1 / KIB, 140),
    _of("network_in_kb_per_s_max_30s", "highest network input of a database node over 30 s", "Highest mean over 30 s "
        "of what a database node received", IN, "max_30s", "KiB/s", 1 / KIB, 141),
    _of("network_in_mb_total", "network input of all database nodes", "Received by all database nodes", IN, "integral",
        "MiB", 1 / MIB, 142),
    _of("network_out_kb_per_s_mean", "network output of a database node", f"Sent by a database node, {MEAN}", OUT,
        "mean", "KiB/s", 1 / KIB, 143),
    _of("network_out_kb_per_s_max_30s", "highest network output of a database node over 30 s", "Highest mean over 30 s "
        "of what a database node sent", OUT, "max_30s", "KiB/s", 1 / KIB, 144),
    _of("network_out_mb_total", "network output of all database nodes", "Sent by all database nodes", OUT, "integral",
        "MiB", 1 / MIB, 145),
    _of("network_in_mbit_per_s_mean", "network input of a database node in Mbit/s",
        f"Received by a database node, {MEAN}", IN, "mean", "Mbit/s", MBIT, 146),
    _of("network_out_mbit_per_s_mean", "network output of a database node in Mbit/s",
        f"Sent by a database node, {MEAN}", OUT, "mean", "Mbit/s", MBIT, 147),
)  # fmt: skip
