"""Jobs: what their stages moved and repeated, from samples that the engine takes of their event logs; and what nodes
used while jobs were at work."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from steelyard.model.measure import MIB, Measure, Per
from steelyard.model.response import Response
from steelyard.model.responses import cpu, energy, network

WHILE: Final = (
    "cpu_percent_mean", "machine_cpu_percent_mean", "network_in_mbit_per_s_mean", "network_out_mbit_per_s_mean",
    "power_watts_mean", "energy_j_per_operation", "energy_j_above_idle_per_operation",
)  # fmt: skip
"""Responses that exist also over the times in which jobs were at work."""
WORK = (
    " Only of the times in which at least one job was at work: from its submission until its response time had passed, "
    "so without the rest before a job (`workload.idle_s`) and, to within the time that the driver takes to end, "
    "without the check of its output. A reading that covers its beginning or end counts by the part within."
)


def _of(name: str, label: str, definition: str, unit: str, metric: str, per: Per, order: int) -> Response:
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{definition}, by the event logs of the jobs; of engines that submit jobs.",
        source="samples",
        measure=Measure((metric,), how="sum", over="load", per=per, scale=1 / MIB if unit == "MiB" else 1.0, probe=""),
        less_is_better=True,
        on_page=False,
        order=order,
    )


def _while_jobs(name: str, order: int) -> Response:
    of = next(one for one in (*cpu.RESPONSES, *network.RESPONSES, *energy.RESPONSES) if one.name == name)
    if of.measure is None:
        raise ValueError(f"{name} is not computed from samples")
    return replace(
        of, name=f"job_{name}", label=f"{of.label} while jobs were at work", definition=of.definition + WORK,
        measure=replace(of.measure, during="jobs"), on_page=False, order=order,
    )  # fmt: skip


RESPONSES = (
    _of("job_shuffle_mb", "shuffle of a job", "Written by the tasks of a job for its other stages, a mean over jobs",
        "MiB", "job_shuffle_bytes", "operation", 210),
    _of("job_tasks_failed", "failed tasks", "Attempts at tasks that failed", "attempts", "job_tasks_failed", "", 211),
    _of("job_tasks_repeated", "repeated tasks", "Attempts at tasks after the first, because it failed or was slow",
        "attempts", "job_tasks_repeated", "", 212),
    *(_while_jobs(name, 213 + place) for place, name in enumerate(WHILE)),
)  # fmt: skip
