"""Check of a study: everything that is known of it before its first trial, and its form as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.format import data_size
from steelyard.judging.noise_floor import FoundFloor
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node.folders import cache_folder
from steelyard.node.machine import read_machine
from steelyard.plan import (
    Machine,
    PlanEstimate,
    Resolution,
    empty_tables,
    load_feasibility,
    node_disks,
    part_notes,
    preflight,
    processor_quotas,
    resolution,
    stopping_forecast,
    warnings,
)
from steelyard.plan.abilities import Abilities, assumptions
from steelyard.plan.gate_forecast import GateForecast
from steelyard.plan.noise_floor import floor_for
from steelyard.plan.stopping_forecast import Expected
from steelyard.plugins.find import Plugins, Trust, no_file
from steelyard.study.treatments import fraction_of, treatments_of
from steelyard.workload.base import Explains, Explanation


@dataclass(frozen=True)
class Check:
    """Everything that `check` found out."""

    study: Study
    plan: Plan
    cost: PlanEstimate | None
    """Estimate for the trials whose parts exist; None if there are none."""
    machine: Machine
    resolutions: tuple[Resolution, ...]
    warnings: tuple[str, ...]
    refusals: tuple[StudyError, ...]
    floor: FoundFloor
    """The kept noise floor that it would be judged against."""
    floor_words: str
    abilities: Abilities
    """The plug-ins that the study names."""
    until: tuple[Expected, ...] = ()
    """Blocks that a stopping rule would need."""
    missing: tuple[StudyError, ...] = ()
    """Parts that the study names and that do not exist yet."""
    history: Sequence[TrialRecord] = ()
    """Trials that are already in the store."""
    gates: tuple[GateForecast, ...] = ()
    """Forecast of a gate over each factor, if requested."""


def weigh(
    study_path: Path, store: Path | None, scale: float, trust: Trust = no_file, *, leave_out_missing: bool = False
) -> Check:
    """Read, plan and weigh a study. Raises StudyError if it cannot be planned."""
    plugins = Plugins(study_path.parent, trust)
    study, whole = preflight.read_and_expand(study_path, plugins, scale, leave_out_missing=leave_out_missing)
    missing, plan = preflight.missing(study_path, study, whole), preflight.available(whole)
    if not plan.trials:
        return _only_planned(study, whole, plugins, missing)
    abilities = Abilities(plugins)
    examined = preflight.examine(study_path, study, plan, abilities, store)
    study, history, cost = examined.study, examined.history, examined.cost
    floor, floor_words = floor_for(study, plan, abilities)
    return Check(
        missing=missing,
        floor=floor,
        floor_words=floor_words,
        abilities=abilities,
        history=history,
        study=study,
        plan=whole,
        cost=cost,
        until=stopping_forecast.blocks_needed(study, plan, history),
        machine=examined.machine,
        resolutions=resolution(study, whole, history, floor.floor),
        warnings=(*_partly(plan, whole), *notes(plan, examined, abilities, whole)),
        refusals=examined.refusals,
    )


def notes(plan: Plan, examined: preflight.Preflight, abilities: Abilities, whole: Plan | None = None) -> Iterator[str]:
    """Sentences on a study that can be run, which `check` and the beginning of a session print alike."""
    study, history, cores = examined.study, examined.history, examined.machine.cores
    yield from warnings(study, whole or plan, abilities.plugins)
    yield from assumptions(plan, abilities)
    yield from load_feasibility.notes(plan, history, cores, abilities)
    yield from processor_quotas.notes(plan, cores, abilities)
    yield from part_notes.notes(study, plan, cores, abilities)
    yield from empty_tables.notes(study, plan, abilities)
    yield from load_feasibility.doubtful_percentiles(study, plan, cores, abilities)
    yield from node_disks.notes(plan, history, abilities)
    yield from stopping_forecast.notes(study, plan, examined.cost)
    yield from _store_room(examined.machine, examined.cost)


def _only_planned(study: Study, plan: Plan, plugins: Plugins, missing: tuple[StudyError, ...]) -> Check:
    """A study of which nothing can be run yet: without an estimate."""
    return Check(
        study=study,
        plan=plan,
        cost=None,
        machine=read_machine(cache_folder()),
        resolutions=resolution(study, plan),
        warnings=warnings(study, plan, plugins),
        refusals=(),
        floor=FoundFloor(),
        floor_words="none: no part of this study can be run yet",
        abilities=Abilities(plugins),
        missing=missing,
    )


def _partly(available: Plan, whole: Plan) -> Iterator[str]:
    """Parts missing from the estimates."""
    trials = len(available.trials)
    if trials < len(whole.trials):
        yield (
            f"time, memory and disk are those of {trials:,} of {len(whole.trials):,} trials: the others need a part "
            "that does not exist yet"
        )


def _store_room(machine: Machine, cost: PlanEstimate) -> Iterator[str]:
    """A note if the store is on a separate disk that may be too small. A session looks at it before each trial."""
    free = machine.store_free_bytes
    if free is not None and cost.store_bytes > free:
        yield (
            f"the remaining trials may need {data_size(cost.store_bytes)} in the store, {data_size(free)} are free "
            "there: free some space, or name another folder (--store)"
        )


def aliases_of(study: Study, plugins: Plugins) -> tuple[str, ...]:
    """Effects that a fraction cannot separate, in words; nothing for other designs."""
    fraction = fraction_of(study, plugins)
    return fraction.sentences() if fraction is not None else ()


def explanations(plan: Plan, abilities: Abilities) -> dict[str, Explanation]:
    """Explanation of each workload that provides one, by name."""
    first = {trial.settings.workload.name: trial.settings for trial in reversed(plan.trials)}
    workloads = {name: abilities.workload(settings) for name, settings in reversed(first.items())}
    return {name: workload.explain() for name, workload in workloads.items() if isinstance(workload, Explains)}


def as_data(checked: Check | None, refused: Sequence[StudyError]) -> dict[str, Any]:
    """The same as one JSON object."""
    errors = _errors(refused)
    if checked is None:
        return {"errors": errors}
    return {
        "study": checked.study.study.model_dump(mode="json"),
        "treatments": list(treatments_of(checked.study, checked.abilities.plugins)),
        "aliases": list(aliases_of(checked.study, checked.abilities.plugins)),
        "workloads": {
            name: asdict(explanation) for name, explanation in explanations(checked.plan, checked.abilities).items()
        },
        "plan": checked.plan.model_dump(mode="json"),
        "estimate": None if checked.cost is None else checked.cost.model_dump(mode="json"),
        "machine": checked.machine.model_dump(mode="json"),
        "resolution": [item.model_dump(mode="json") for item in checked.resolutions],
        "warnings": list(checked.warnings),
        "until": stopping_forecast.as_data(checked.until, checked.study),
        "noise_floor": {"said": checked.floor_words, **checked.floor.model_dump(mode="json")},
        "missing": _errors(checked.missing),
        "gate": [item.model_dump(mode="json") for item in checked.gates],
        "errors": errors,
    }


def _errors(errors: Sequence[StudyError]) -> list[dict[str, Any]]:
    return [
        {"message": error.message, "hint": error.hint, "path": error.path, "line": error.line, "key": error.key}
        for error in errors
    ]
