"""Preflight checks of a study. `check` and `run` call the same function, so they refuse the same studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard import study as studies
from steelyard.judging import load_response
from steelyard.judging.stopping import Rule, rule_of
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node import secrets
from steelyard.node.folders import cache_folder
from steelyard.node.machine import Machine, read_machine
from steelyard.plan import (
    disruptions,
    empty_tables,
    engines,
    growth,
    load_feasibility,
    node_disks,
    processor_quotas,
    rent,
)
from steelyard.plan.abilities import Abilities, distinct
from steelyard.plan.changed_study import changes_refused
from steelyard.plan.engines import refused_by_agent
from steelyard.plan.estimate import PlanEstimate, estimate
from steelyard.plan.expand import expand
from steelyard.plan.requirements import impossible, over_budget, unreadable
from steelyard.plugins.find import Plugins
from steelyard.store import Store, layout
from steelyard.study.missing import error_of, missing_parts
from steelyard.system.base import warms_up


@dataclass(frozen=True)
class Preflight:
    """Results of the checks before a study starts."""

    study: Study
    """The study as it is run: whether its servers are warmed up is no longer left open."""
    history: Sequence[TrialRecord]
    """Trials that are already in its store."""
    machine: Machine
    cost: PlanEstimate
    rule: Rule | None
    """The stopping rule, if the study has one."""
    refusals: tuple[StudyError, ...]
    """Errors that prevent the start, each with its place in the study file; empty if there are none."""


def read_and_expand(
    study_path: Path, plugins: Plugins, scale: float = 1.0, *, leave_out_missing: bool = False
) -> tuple[Study, Plan]:
    """The study in a file, and its plan. Raises StudyError, with file and line, if it cannot be planned."""
    study = studies.read(study_path, scale=scale, plugins=plugins, leave_out_missing=leave_out_missing)
    try:
        return study, expand(study, plugins)
    except StudyError as error:
        raise studies.located([error], study_path)[0] from error


def runnable(study_path: Path, study: Study, plan: Plan) -> tuple[Plan, tuple[StudyError, ...]]:
    """The plan without the trials that need a part that does not exist yet, and these parts, each with its place in the
    study file; the plan cannot be run until they exist."""
    lacking = list(missing_parts(one.settings for one in plan.trials))
    needed, whole = Counter(part for parts in lacking for part in parts), len(plan.trials)
    errors = [error_of(part, study, f"{trials:,} of {whole:,} trials need it") for part, trials in needed.items()]
    trials = tuple(trial for trial, parts in zip(plan.trials, lacking, strict=True) if not parts)
    rest = plan if len(trials) == whole else plan.model_copy(update={"trials": trials})
    return rest, studies.located(errors, study_path)


def examine(
    study_path: Path, study: Study, plan: Plan, abilities: Abilities, store: Path | None, *, here: bool = True
) -> Preflight:
    """Check a plan against this machine, its plug-ins, its secrets and the content of its store. `store` is the folder
    that holds the stores of studies. `here`: whether this machine measures; otherwise only its store is checked. Only
    reads; starts and writes nothing. Raises StudyError, with its place, for a workload that cannot be made."""
    make_workloads(study_path, plan, abilities)
    stored = _stored(store, study.study.name)
    history = () if stored is None else stored.trials()
    before = stored.study.server_warm_up if stored is not None and history else None
    study = load_response.as_begun(study, stored.study if stored is not None and history else None)
    wanted, study = study, server_warm_up_decided(study, plan, before, abilities)
    machine = read_machine(cache_folder(), store)
    cost = estimate(plan, study, history, cores=machine.cores, abilities=abilities)
    errors = [] if stored is None else list(changes_refused(stored.study, wanted, plan, history))
    if here:
        of_secrets = secrets.problems((trial.settings for trial in plan.trials), store)
        of_plan = refusals(study, plan, machine, history, cost, abilities)
        errors = [*of_secrets, *errors, *of_plan, *refused_by_agent(plan, abilities)]
    return Preflight(study, history, machine, cost, rule_of(study), studies.located(errors, study_path))


def make_workloads(study_path: Path, plan: Plan, abilities: Abilities) -> None:
    """Make every workload of a plan. Raises StudyError, with file and line, for a file that it names and that is not
    there."""
    try:
        for settings in distinct(plan, "workload"):
            abilities.workload(settings)
    except StudyError as error:
        raise studies.located([error], study_path)[0] from error


def refuse(problems: Sequence[StudyError]) -> None:
    """Raise all problems as one StudyError; do nothing if there are none."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        lines = [f"{error.message}\n  {error.hint}" if error.hint else error.message for error in problems]
        first = problems[0]
        hint = f"{len(problems)} errors"
        raise StudyError("\n".join(lines), hint, path=first.path, line=first.line, key=first.key, errors=problems)


def refusals(
    study: Study,
    plan: Plan,
    machine: Machine,
    history: Sequence[TrialRecord],
    cost: PlanEstimate,
    abilities: Abilities,
) -> tuple[StudyError, ...]:
    """Errors that prevent the plan on this machine; empty if there are none."""
    errors = [
        *impossible(plan, machine, abilities),
        *unreadable(study, plan, abilities),
        *over_budget(study, machine, cost.disk_bytes, cost.seconds),
        *load_feasibility.refusals(study, plan, history, abilities),
        *processor_quotas.refusals(plan, abilities),
        *growth.refusals(study, plan, abilities),
        *rent.refusals(study, plan, abilities, cost),
        *disruptions.refusals(study, plan, abilities),
        *node_disks.refusals(plan, history, abilities),
        *empty_tables.refusals(study, plan, abilities),
        *engines.unspoken(plan, abilities),
        *engines.without_meaning(plan, abilities),
        *engines.refused(plan, abilities),
    ]
    return tuple({error.message: error for error in errors}.values())


def _stored(store: Path | None, name: str) -> Store | None:
    if store is None or not (store / name / layout.STUDY_JSON).is_file():
        return None
    return Store(store / name)


def server_warm_up_decided(study: Study, plan: Plan, stored: ServerWarmUp | None, abilities: Abilities) -> Study:
    """The study with `mode` decided. One whose store has trials continues as these were made (`stored`); a change that
    its file asks for is refused by `changed_study`. Otherwise auto is on if a system of the plan compiles code while it
    runs; it stays auto if none does, since none is cold then."""
    if stored is not None:
        return study.model_copy(update={"server_warm_up": stored})
    settings = {trial.settings.system.name: trial.settings for trial in plan.trials}
    if not any(warms_up(study.server_warm_up, abilities.system(one)) for one in settings.values()):
        return study
    return study.model_copy(update={"server_warm_up": study.server_warm_up.model_copy(update={"mode": "on"})})
