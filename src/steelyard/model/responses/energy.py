"""Energy of the database nodes' machines, from samples in watts: of the probes `energy` and `meter`, or of any other;
and that of a model, by the power that the study declares and the CPU that the nodes used, which is marked as such.
"""

from __future__ import annotations

from steelyard.model.measure import During, How, Measure, Over, Per
from steelyard.model.power import MEMORY, PACKAGES
from steelyard.model.response import Response

WHAT = (
    "the database nodes' machines: of the whole machine by a meter, otherwise of processor packages and memory "
    "by their own counters. On a shared machine it covers all of them and the load generator"
)
LOAD = "the load nodes' machines, read in the same way"
ABOVE = (
    " Above idle: without their mean power in the idle phase before the trial (`measure_idle_s`), otherwise without "
    "`cost.node_watts_idle`, over the measured time."
)
PER_OPERATION = "Energy, over the operations answered without error (a job is one),"
BY_CPU = (
    "not measured. Each node draws `cost.node_watts_idle` + (`cost.node_watts_busy` - `cost.node_watts_idle`) * the "
    "share of its cores that was busy, `cpu_percent_mean` (Fan, Weber and Barroso 2007, ISCA)"
)
MODELLED = "modelled_energy_j"


def _of(
    name: str, label: str, what: str, unit: str, how: How, per: Per, order: int, over: Over = "database", *,
    during: During = "measured", above_idle: bool = False,
) -> Response:  # fmt: skip
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{what} {WHAT if over == 'database' else LOAD}.{ABOVE if above_idle else ''}",
        source="samples",
        measure=Measure(
            (PACKAGES, MEMORY), how=how, over=over, per=per, probe="energy", power=True, shared="cpu", during=during,
            above_idle=above_idle,
        ),
        less_is_better=True,
        on_page=False,
        order=order,
    )  # fmt: skip


def _modelled(ending: str, label: str, what: str, unit: str, order: int) -> Response:
    return Response(
        name=MODELLED + ending,
        label=f"modelled {label}",
        unit=unit,
        definition=f"{what} of the database nodes by a model, {BY_CPU}. Computed when a store is read.",
        source="study",
        less_is_better=True,
        on_page=False,
        order=order,
    )


RESPONSES = (
    _of("power_watts_mean", "power of a database node", "Mean power of", "W", "mean", "", 160),
    _of("idle_power_watts", "power of an idle database node", "Mean power, over the idle phase before the trial, of",
        "W", "mean", "", 161, during="idle"),
    _of("energy_j_total", "energy", "Energy of", "J", "integral", "", 162),
    _of("energy_j_above_idle", "energy above idle", "Energy of", "J", "integral", "", 163, above_idle=True),
    _of("energy_j_per_operation", "energy per operation", f"{PER_OPERATION} of", "J/operation", "integral",
        "operation", 164),
    _of("energy_j_above_idle_per_operation", "energy above idle per operation", f"{PER_OPERATION} of", "J/operation",
        "integral", "operation", 165, above_idle=True),
    _of("load_energy_j_per_operation", "energy of the load nodes per operation", f"{PER_OPERATION} of", "J/operation",
        "integral", "operation", 166, over="load"),
    _of("power_reading_s_longest", "longest time that one reading of power covers", "Longest time that one reading of "
        "power covers: if it is longer than the interval, readings before it are missing. Power of", "s", "longest",
        "", 167),
    _modelled("_total", "energy", "Energy", "J", 168),
    _modelled("_above_idle", "energy above idle", "Energy above idle", "J", 169),
    _modelled("_per_operation", "energy per operation", PER_OPERATION, "J/operation", 170),
    _modelled("_above_idle_per_operation", "energy above idle per operation", PER_OPERATION.replace("Energy", "Energy "
              "above idle"), "J/operation", 171),
)  # fmt: skip
