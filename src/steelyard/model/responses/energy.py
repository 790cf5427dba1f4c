"""Energy of the database nodes' machines, from samples of the probe `energy`."""

from __future__ import annotations

from steelyard.model.measure import How, Measure, Per
from steelyard.model.response import Response

POWER = ("machine_package_power_watts", "machine_memory_power_watts")
WHAT = (
    "processor packages and memory of the database nodes' machines, by their own counters. On a machine that nodes "
    "share it covers all of them and the load generator"
)


def _of(name: str, label: str, what: str, unit: str, how: How, per: Per, order: int) -> Response:
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{what} {WHAT}.",
        source="samples",
        measure=Measure(metrics=POWER, how=how, per=per, probe="energy", shared="cpu"),
        less_is_better=True,
        on_page=False,
        order=order,
    )


RESPONSES = (
    _of("power_watts_mean", "power of a database node", "Mean power of", "W", "mean", "", 160),
    _of("energy_j_total", "energy", "Energy of", "J", "integral", "", 161),
    _of("energy_j_per_operation", "energy per operation", "Energy, over the operations answered without error, of",
        "J/operation", "integral", "operation", 162),
)  # fmt: skip
