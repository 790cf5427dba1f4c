"""Generator CPU: CPU time of the load generator per operation."""

from __future__ import annotations

from steelyard.model.response import NS_PER_US, Measured, Recomputable, Response


def _per_operation_us(measured: Measured) -> float | None:
    return measured.cpu_ns / NS_PER_US / measured.operations if measured.operations else None


RESPONSES = (
    Response(
        name="generator_cpu_us_per_operation",
        label="generator's CPU per operation",
        unit="µs/operation",
        definition="User and system time of the load generator over the operations answered without error.",
        compute=_per_operation_us,
        kept=Recomputable.NOT,
        less_is_better=True,
        head="generator CPU",
        order=70,
    ),
)
