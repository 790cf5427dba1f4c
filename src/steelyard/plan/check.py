"""Check of a study: everything that is known of it before its first trial, and its form as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.format import data_size
from steelyard.judging.design import Treatment
from steelyard.judging.noise_floor import FoundFloor
from steelyard.judging.stopping import Rule
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
    disruptions,
    empty_tables,
    growth,
    load_feasibility,
    node_disks,
    part_notes,
    preflight,
    processor_quotas,
    rent,
    resolution,
    stopping_forecast,
    warnings,
)
from steelyard.plan.abilities import Abilities, assumptions
from steelyard.plan.gate_forecast import GateForecast
from steelyard.plan.noise_floor import floor_for
from steelyard.plan.stopping_forecast import Expected
from steelyard.plugins.find import Plugins, Trust, no_file
from steelyard.study.treatments import treatments_and_fraction
from steelyard.workload.base import Explains, Explanation


@dataclass(frozen=True)
class Check:
    """Everything that `check` found out. A study of which nothing can be run yet has no more than its plan."""

    study: Study
    plan: Plan
    runnable: Plan
    """The trials whose parts exist."""
    missing: tuple[StudyError, ...]
    """Parts that the study names and that do not exist yet."""
    treatments: tuple[Treatment, ...]
    aliases: tuple[str, ...]
    """Effects that a fraction cannot separate, in words; empty for other designs."""
    workloads: Mapping[str, Explanation]
    """Explanation of each workload that provides one, by name."""
    abilities: Abilities
    """The plug-ins that the study names."""
    machine: Machine
    cost: PlanEstimate | None = None
    """Of the trials whose parts exist; None if there are none."""
    resolutions: tuple[Resolution, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: tuple[StudyError, ...] = ()
    floor: FoundFloor = field(default_factory=FoundFloor)
    """The kept noise floor that it would be judged against."""
    floor_words: str = "none: no part of this study can be run yet"
    rule: Rule | None = None
    """The stopping rule, if the study has one."""
    until: tuple[Expected, ...] = ()
    """Blocks that a stopping rule would need."""
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
    plan, missing = preflight.runnable(study_path, study, whole)
    abilities, (treatments, fraction) = Abilities(plugins), treatments_and_fraction(study, plugins)
    preflight.make_workloads(study_path, whole, abilities)
    planned = Check(
        study=study,
        plan=whole,
        runnable=plan,
        missing=missing,
        treatments=treatments,
        aliases=fraction.sentences() if fraction is not None else (),
        workloads=_explanations(whole, abilities),
        abilities=abilities,
        machine=read_machine(cache_folder()),
    )
    if not plan.trials:
        return replace(
            planned,
            resolutions=resolution(study, whole),
            warnings=warnings(study, whole, plugins),
        )
    examined = preflight.examine(study_path, study, plan, abilities, store)
    study, history, cost = examined.study, examined.history, examined.cost
    floor, floor_words = floor_for(study, plan, abilities)
    return replace(
        planned,
        study=study,
        cost=cost,
        history=history,
        floor=floor,
        floor_words=floor_words,
        rule=examined.rule,
        until=stopping_forecast.blocks_needed(examined.rule, plan, history),
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
    yield from growth.notes(study, plan, cores, abilities)
    yield from disruptions.notes(plan, abilities)
    yield from part_notes.notes(study, plan, cores, abilities)
    yield from rent.notes(study, plan, abilities, examined.cost.seconds)
    yield from empty_tables.notes(study, plan, abilities)
    yield from load_feasibility.doubtful_percentiles(study, plan, cores, abilities)
    yield from node_disks.notes(plan, history, abilities)
    yield from stopping_forecast.notes(examined.rule, plan, examined.cost)
    yield from _store_room(examined.machine, examined.cost)


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


def _explanations(plan: Plan, abilities: Abilities) -> dict[str, Explanation]:
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
        "treatments": list(checked.treatments),
        "aliases": list(checked.aliases),
        "workloads": {name: asdict(explanation) for name, explanation in checked.workloads.items()},
        "plan": checked.plan.model_dump(mode="json"),
        "estimate": None if checked.cost is None else checked.cost.model_dump(mode="json"),
        "machine": checked.machine.model_dump(mode="json"),
        "resolution": [item.model_dump(mode="json") for item in checked.resolutions],
        "warnings": list(checked.warnings),
        "until": stopping_forecast.as_data(checked.until, checked.rule),
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
