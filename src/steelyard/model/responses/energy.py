"""Energy of the database nodes' machines, from samples in watts: of the probe `energy`, or of any meter."""

from __future__ import annotations

from steelyard.model.measure import How, Measure, Over, Per
from steelyard.model.power import MEMORY, PACKAGES
from steelyard.model.response import Response

WHAT = (
    "the database nodes' machines: of the whole machine by a meter, otherwise of processor packages and memory "
    "by their own counters. On a shared machine it covers all of them and the load generator"
)
LOAD = "the load nodes' machines, read in the same way"


def _of(
    name: str, label: str, what: str, unit: str, how: How, per: Per, order: int, over: Over = "database"
) -> Response:
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{what} {WHAT if over == 'database' else LOAD}.",
        source="samples",
        measure=Measure((PACKAGES, MEMORY), how=how, over=over, per=per, probe="energy", power=True, shared="cpu"),
        less_is_better=True,
        on_page=False,
        order=order,
    )


RESPONSES = (
    _of("power_watts_mean", "power of a database node", "Mean power of", "W", "mean", "", 160),
    _of("energy_j_total", "energy", "Energy of", "J", "integral", "", 161),
    _of("energy_j_per_operation", "energy per operation", "Energy, over the operations answered without error, of",
        "J/operation", "integral", "operation", 162),
    _of("load_energy_j_per_operation", "energy of the load nodes per operation", "Energy, over the operations answered "
        "without error, of", "J/operation", "integral", "operation", 163, over="load"),
)  # fmt: skip
