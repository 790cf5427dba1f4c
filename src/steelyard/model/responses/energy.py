"""Energy of the database nodes' machines, from samples in watts: of the probe `energy`, or of any meter."""

from __future__ import annotations

from steelyard.model.measure import How, Measure, Per
from steelyard.model.power import MEMORY, PACKAGES
from steelyard.model.response import Dilates, Response

WHAT = (
    "the database nodes' machines: of the whole by a meter, else of processor packages and memory by their own "
    "counters. On a machine that nodes share it covers all of them and the load generator"
)


def _of(name: str, label: str, what: str, unit: str, how: How, per: Per, order: int, dilates: Dilates = "") -> Response:
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{what} {WHAT}.",
        source="samples",
        measure=Measure((PACKAGES, MEMORY), how=how, per=per, probe="energy", power=True, shared="cpu"),
        dilates=dilates,
        less_is_better=True,
        on_page=False,
        order=order,
    )


RESPONSES = (
    _of("power_watts_mean", "power of a database node", "Mean power of", "W", "mean", "", 160, "rate"),
    _of("energy_j_total", "energy", "Energy of", "J", "integral", "", 161),
    _of("energy_j_per_operation", "energy per operation", "Energy, over the operations answered without error, of",
        "J/operation", "integral", "operation", 162),
)  # fmt: skip
