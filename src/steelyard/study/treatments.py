"""The treatments that a design names, before they are ordered."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from steelyard.model.errors import StudyError
from steelyard.model.study import Level, Study
from steelyard.study.problems import Missing, problem

MAX_TREATMENTS = 10_000

Treatment = dict[str, Level]


def factors_of(study: Study) -> dict[str, tuple[Level, ...]]:
    """Factors and their levels in order: those under `factors`, then those that only listed treatments name."""
    found: dict[str, dict[Level, None]] = {factor: dict.fromkeys(levels) for factor, levels in study.factors.items()}
    for treatment in study.design.treatments:
        for factor, level in treatment.items():
            if factor not in study.factors:
                found.setdefault(factor, {})[level] = None
    return {factor: tuple(levels) for factor, levels in found.items()}


def base_of(study: Study) -> Treatment:
    """The treatment from which one-at-a-time designs depart: `design.base`, else each factor's first level."""
    return {factor: study.design.base.get(factor, levels[0]) for factor, levels in factors_of(study).items() if levels}


def control_of(study: Study) -> Treatment | None:
    """The control treatment; factors that it does not name have their base level."""
    return None if study.design.control is None else base_of(study) | study.design.control


def treatments_of(study: Study) -> tuple[Treatment, ...]:
    """Every treatment once, in listed order. A study without factors has one treatment, which is empty."""
    factors = factors_of(study)
    if study.design.kind == "listed":
        return tuple({factor: treatment[factor] for factor in factors} for treatment in study.design.treatments)
    if study.design.kind == "full-factorial":
        return tuple(dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values()))
    base = base_of(study)
    departed = [
        base | {factor: level} for factor, levels in factors.items() for level in levels if level != base[factor]
    ]
    return (base, *departed)


def design_problems(study: Study) -> list[StudyError]:
    """What is wrong with factors and design, whatever the plug-ins say."""
    problems = [
        error for factor, levels in study.factors.items() for error in _level_problems(f"factors.{factor}", levels)
    ]
    design, factors = study.design, factors_of(study)
    if design.kind == "listed":
        problems += _listed_problems(study)
    elif design.treatments:
        what = f"treatments belong to a listed design, this one is {design.kind}"
        problems.append(problem("design.treatments", Missing(), what))
    if design.base and design.kind != "one-at-a-time":
        what = f"a base belongs to a one-at-a-time design, this one is {design.kind}"
        problems.append(problem("design.base", Missing(), what))
    for table, levels_ in (("design.base", design.base), ("design.control", design.control or {})):
        problems += _membership_problems(table, levels_, factors)
    size = math.prod(len(levels) for levels in factors.values()) if design.kind == "full-factorial" else 0
    if size > MAX_TREATMENTS:
        problems.append(problem("factors", Missing(), f"{size} treatments; at most {MAX_TREATMENTS} can be planned"))
    if study.analysis.warm_up_trials >= design.trials:
        what = f"drops every trial: design.trials is {design.trials}"
        problems.append(problem("analysis.warm_up_trials", study.analysis.warm_up_trials, what))
    return problems


def _level_problems(key: str, levels: Sequence[Level]) -> list[StudyError]:
    if not levels:
        return [problem(key, Missing(), "a factor needs at least one level")]
    twice = [level for position, level in enumerate(levels) if same_level_in(level, levels[:position])]
    return [problem(key, list(levels), f"level {level!r} is there twice") for level in twice]


def same_level_in(level: Level, levels: Sequence[Level]) -> bool:
    """Whether a level is among others; 1 and 1.0 are the same, 1 and true are not."""
    return any(level == other and isinstance(level, bool) == isinstance(other, bool) for other in levels)


def _membership_problems(
    table: str, treatment: Mapping[str, Level], factors: Mapping[str, Sequence[Level]]
) -> list[StudyError]:
    problems = []
    for factor, level in treatment.items():
        if factor not in factors:
            problems.append(problem(f"{table}.{factor}", level, "not a factor of this study", tuple(factors)))
        elif not same_level_in(level, factors[factor]):
            allowed = tuple(str(other) for other in factors[factor])
            problems.append(problem(f"{table}.{factor}", level, f"not a level of {factor}", allowed))
    return problems


def _listed_problems(study: Study) -> list[StudyError]:
    if not study.design.treatments:
        return [problem("design.treatments", Missing(), "a listed design needs treatments")]
    factors = factors_of(study)
    problems: list[StudyError] = []
    for index, treatment in enumerate(study.design.treatments):
        table = f"design.treatments.{index}"
        problems += _membership_problems(table, treatment, factors)
        lacking = [factor for factor in factors if factor not in treatment]
        problems += [
            problem(f"{table}.{factor}", Missing(), "every treatment must say its level") for factor in lacking
        ]
        if treatment in study.design.treatments[:index]:
            problems.append(problem(table, Missing(), "the same treatment is listed before"))
    return problems
