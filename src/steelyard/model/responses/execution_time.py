"""Execution time of a trial."""

from __future__ import annotations

from steelyard.model.response import NS_PER_MS, Direction, Recomputable, Response

RESPONSES = (
    Response(
        name="execution_time_ms",
        label="execution time",
        unit="ms",
        definition="Time from the first operation sent by any load node to the last answered.",
        compute=lambda measured: measured.execution_ns / NS_PER_MS,
        direction=Direction.LESS_IS_FASTER,
        times_as="long",
        kept=Recomputable.NOT,
        order=10,
    ),
)
