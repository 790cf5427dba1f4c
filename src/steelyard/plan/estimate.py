"""Estimate of a plan's duration, disk and memory, corrected by the trials already in the store."""

from __future__ import annotations

import os
from collections.abc import Sequence

from steelyard.judging.dilation import effective_load
from steelyard.model.capacity import capacity_key
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.plan.abilities import Abilities
from steelyard.plan.phase_times import (
    Corrections,
    capacity_s,
    corrections,
    server_warm_up_s,
    slowed_from_start,
    start_phases,
    treatment_hash,
    trial_phases,
)
from steelyard.plan.requirements import STORE_BYTES_PER_TRIAL, disk_bytes, filled_state, memory_mb_of_plan
from steelyard.study.links import measures_links
from steelyard.system.base import warms_up

DEFAULT_SPREAD = 2.5
"""The rules of thumb may be wrong by this factor, either way."""
HISTORY_SPREAD = 1.25
"""Trials from the same store may be wrong by this factor: machines drift, and unseen treatments are extrapolated."""


class PlanEstimate(Value):
    """Estimated cost of a plan on a machine. Seconds are wall time; low and high bound the likely range."""

    trials: int
    starts: int
    trials_done: int
    """Trials of the plan that are already in the history."""
    seconds: float
    """Remaining time of the plan."""
    low_s: float
    high_s: float
    whole_s: float
    """Time of the whole plan, starting from an empty store."""
    start_s: dict[int, float]
    """Mean seconds of a start (lease, deploy, populate, wipe, release), by number of nodes."""
    trial_s: float
    """Mean seconds of a trial within a start."""
    disk_bytes: int
    """Live data and commit logs of the largest cluster, a snapshot of every filled state, and the store."""
    store_bytes: int = 0
    """Growth of the store by the remaining trials."""
    memory_mb: int
    """Memory that the largest cluster needs, plus a margin for the laboratory itself, MiB."""
    source: str
    """`default rates`, or how many trials from this store corrected them."""


def _of_its_parts(history: Sequence[TrialRecord], plan: Plan) -> list[TrialRecord]:
    """Records whose texts (names of plug-ins and of files) the plan has too. To compare times with rules of thumb,
    plug-ins are made from the settings of a record, and a store may come from another user: it chooses no program."""
    chosen = {text for trial in plan.trials for text in _texts(trial.settings)}
    return [record for record in history if chosen.issuperset(_texts(record.settings))]


def _texts(settings: TrialSettings) -> set[tuple[str, str]]:
    numbers = int | float | None
    return {(name, repr(value)) for name, value in settings.leaves() if not isinstance(value, numbers)}


def estimate(
    plan: Plan,
    study: Study,
    history: Sequence[TrialRecord] = (),
    *,
    cores: int | None = None,
    abilities: Abilities | None = None,
) -> PlanEstimate:
    """Time, disk and memory of a plan, on `cores` cores (default: those that this process may use)."""
    cores = cores or len(os.sched_getaffinity(0))
    abilities = abilities or Abilities()
    known = corrections(_of_its_parts(history, plan), abilities, cores)
    done = {record.id for record in history if record.verdict.outcome == "valid" or record.verdict.system_fault}
    unfinished = {trial.start for trial in plan.trials if trial.id not in done}
    starts: dict[str, tuple[int, float]] = {}
    filled: set[str] = set()
    links = measures_links(study)
    measured: set[tuple[str, str]] = set()
    capacities_s = 0.0
    trials_s: list[float] = []
    left_s = 0.0
    for trial in plan.trials:
        start = trial.id if trial.settings.ends_start else trial.start
        if start not in starts:
            state = filled_state(trial.settings, abilities.shape(trial.settings).records)
            warm = warms_up(study.server_warm_up, abilities.system(trial.settings))
            phases = start_phases(
                trial.settings, abilities, cores, has_snapshot=state in filled, warmed_up=warm, links=links
            )
            seconds = sum(second * known.of(phase) for phase, second in phases.items())
            slowed = slowed_from_start(trial.settings, abilities)
            seconds += server_warm_up_s(study.server_warm_up, history, slowed=slowed) if warm else 0.0
            filled.add(state)
            starts[start] = (trial.settings.site.nodes, seconds)
            left_s += seconds if trial.start in unfinished else 0.0
        load = effective_load(trial.settings)
        if load.wants_capacity and (asked := (trial.start, capacity_key(trial.settings))) not in measured:
            measured.add(asked)
            seconds = capacity_s(load)
            left_s += seconds if trial.start in unfinished else 0.0
            capacities_s += seconds
        within = trial_phases(trial.settings, abilities, cores) | {Phase.IDLE: study.measure_idle_s}
        trials_s.append(_trial_s(trial, within, known))
        left_s += 0.0 if trial.id in done else trials_s[-1]
    spread = HISTORY_SPREAD if known.trials else DEFAULT_SPREAD
    return PlanEstimate(
        trials=len(plan.trials),
        starts=len(starts),
        trials_done=sum(trial.id in done for trial in plan.trials),
        seconds=left_s,
        low_s=left_s / spread,
        high_s=left_s * spread,
        whole_s=sum(seconds for _, seconds in starts.values()) + capacities_s + sum(trials_s),
        start_s=_means(list(starts.values())),
        trial_s=sum(trials_s) / max(1, len(trials_s)),
        disk_bytes=disk_bytes(plan, abilities),
        store_bytes=sum(trial.id not in done for trial in plan.trials) * STORE_BYTES_PER_TRIAL,
        memory_mb=memory_mb_of_plan(plan, abilities),
        source=f"{known.trials} trials of this store" if known.trials else "default rates",
    )


def _trial_s(trial: PlannedTrial, phases: dict[Phase, float], known: Corrections) -> float:
    expected = phases.pop(Phase.MEASURE) * known.of(Phase.MEASURE)
    measured = known.measured_s.get(treatment_hash(trial.id), expected)
    return measured + sum(seconds * known.of(phase) for phase, seconds in phases.items())


def _means(starts: Sequence[tuple[int, float]]) -> dict[int, float]:
    by_nodes: dict[int, list[float]] = {}
    for nodes, seconds in starts:
        by_nodes.setdefault(nodes, []).append(seconds)
    return {nodes: sum(found) / len(found) for nodes, found in sorted(by_nodes.items())}
