"""Throughput of a trial."""

from __future__ import annotations

from steelyard.model.response import NS_PER_S, Direction, Measured, Recomputable, Response


def _throughput(measured: Measured) -> float | None:
    return measured.operations / (measured.execution_ns / NS_PER_S) if measured.execution_ns > 0 else None


RESPONSES = (
    Response(
        name="throughput_per_s",
        label="throughput",
        unit="operations/s",
        definition="Operations answered without error over execution time.",
        compute=_throughput,
        direction=Direction.MORE_IS_FASTER,
        kept=Recomputable.NOT,
        order=30,
    ),
)
