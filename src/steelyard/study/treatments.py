"""Treatments of a design, before ordering: its requirements, and its errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from steelyard.judging import fractional_design
from steelyard.judging.design import Treatment, base_of, factors_of
from steelyard.judging.design import treatments_of as treatments_of_design
from steelyard.judging.fractional_design import Fraction
from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level, level_key
from steelyard.model.study import Study
from steelyard.plugins.find import Plugins
from steelyard.study.fields import dotted
from steelyard.study.settings import is_hard
from steelyard.tomlfile.problems import Missing, problem

MAX_TREATMENTS = 10_000


def control_of(study: Study) -> Treatment | None:
    """The control treatment; factors that it does not name have their base level."""
    return None if study.design.control is None else base_of(study) | study.design.control


def treatments_of(study: Study, plugins: Plugins | None = None) -> tuple[Treatment, ...]:
    """Every treatment once, in listed order. A study without factors has one treatment, which is empty.

    Raises StudyError for a fractional design without a fraction.
    """
    return treatments_and_fraction(study, plugins)[0]


def treatments_and_fraction(
    study: Study, plugins: Plugins | None = None
) -> tuple[tuple[Treatment, ...], Fraction | None]:
    """`treatments_of` and `fraction_of` together."""
    fraction = fraction_of(study, plugins)
    if fraction is None and study.design.kind == "fractional":
        raise _fraction_problems(study, plugins)[0]
    return treatments_of_design(study, fraction), fraction


def fraction_of(study: Study, plugins: Plugins | None = None) -> Fraction | None:
    """The fraction of a fractional design; None for other designs, or if no fraction fits. Raises ValueError."""
    design = study.design
    if design.kind != "fractional":
        return None
    levels = {factor: len(levels) for factor, levels in factors_of(study).items()}
    hard = {factor for factor in levels if is_hard(study, factor, plugins)}
    return fractional_design.of_design(levels, hard, design.generators, design.resolution)


def _fraction_problems(study: Study, plugins: Plugins | None) -> list[StudyError]:
    """Problems with a fractional design."""
    design, factors = study.design, factors_of(study)
    two = [factor for factor, levels in factors.items() if len(levels) == 2]
    if len(two) > fractional_design.MOST_FACTORS:
        what = f"{len(two)} factors of two levels; a fraction can have at most {fractional_design.MOST_FACTORS}"
        return [problem("factors", Missing(), what)]
    if bool(design.generators) == (design.resolution is not None):
        what = "a fractional design needs generators or a resolution, not both"
        return [problem("design.resolution", Missing(), what)]
    try:
        fraction = fraction_of(study, plugins)
    except ValueError as error:
        return [problem("design.generators", design.generators, str(error))]
    if fraction is None:
        what = f"no half of {len(two)} factors of two levels has this resolution; a whole factorial of them is needed"
        return [problem("design.resolution", design.resolution, what)]
    if (fraction.resolution or 0) < fractional_design.LEAST_RESOLUTION:
        word = min(fraction.words(), key=len)
        confounded = " and ".join(sorted(word, key=two.index))
        what = f"confounded: {confounded} would {'never vary' if len(word) == 1 else 'always move together'}"
        return [problem("design.generators", design.generators, what)]
    return []


def design_problems(study: Study, plugins: Plugins) -> list[StudyError]:
    """Problems with factors and design that do not depend on plug-ins."""
    problems = [
        error for factor, levels in study.factors.items() for error in _level_problems(f"factors.{factor}", levels)
    ]
    design, factors = study.design, factors_of(study)
    if design.kind == "listed":
        problems += _listed_problems(study)
    elif design.kind == "same":
        problems += _same_problems(study)
    elif design.treatments:
        what = f"treatments are allowed only in a listed design, but this is {design.kind}"
        problems.append(problem("design.treatments", Missing(), what))
    if design.kind == "fractional" and not problems:
        problems += _fraction_problems(study, plugins)
    if design.base and design.kind not in ("one-at-a-time", "same"):
        what = f"a base is allowed only in a one-at-a-time design, but this is {design.kind}"
        problems.append(problem("design.base", Missing(), what))
    for name in ("generators", "resolution") if design.kind != "fractional" else ():
        if getattr(design, name):
            what = f"design.{name} is allowed only in a fractional design, but design.kind is {design.kind!r}"
            problems.append(problem(f"design.{name}", getattr(design, name), what))
    for table, levels_ in (("design.base", design.base), ("design.control", design.control or {})):
        problems += _membership_problems(table, levels_, factors) if design.kind != "same" else []
    size = math.prod(len(levels) for levels in factors.values()) if design.kind == "full-factorial" else 0
    if size > MAX_TREATMENTS:
        problems.append(problem("factors", Missing(), f"{size} treatments; at most {MAX_TREATMENTS} can be planned"))
    if design.until is not None and design.starts < design.until.least_starts:
        what = f"fewer than design.until.least_starts, {design.until.least_starts}: no interval would be judged"
        problems.append(problem("design.starts", design.starts, what))
    if design.until is not None and study.analysis.looks == "several":
        what = "[design.until] decides when the study ends: its trials are looked at once"
        problems.append(problem("analysis.looks", study.analysis.looks, what))
    if study.analysis.warm_up_trials >= design.trials:
        what = f"drops every trial: design.trials is {design.trials}"
        problems.append(problem("analysis.warm_up_trials", study.analysis.warm_up_trials, what))
    return problems + _compared_problems(study)


def _compared_problems(study: Study) -> list[StudyError]:
    """Problems with the factor whose levels the answer compares."""
    compared, key = study.analysis.compared, "analysis.compared"
    if not compared:
        return []
    if study.design.kind in ("fractional", "same"):
        what = f"a design of kind {study.design.kind} compares no single factor: leave it out"
        return [problem(key, compared, what)]
    varied = [name for name, levels in factors_of(study).items() if len(levels) > 1]
    allowed = tuple(name for name in varied if dotted(name) != "workload.name") or tuple(varied)
    if compared in varied and compared not in allowed:
        what = "workloads are compared only where nothing else is a factor: they are different questions"
        return [problem(key, compared, what, allowed)]
    return [] if compared in allowed else [problem(key, compared, "not a factor of two levels or more", allowed)]


def _level_problems(key: str, levels: Sequence[Level]) -> list[StudyError]:
    if not levels:
        return [problem(key, Missing(), "a factor needs at least one level")]
    # Also true after 1: they would be one level, and true would be lost without a word.
    twice = [level for position, level in enumerate(levels) if level in levels[:position]]
    return [problem(key, list(levels), f"level {level_key(level)} is listed twice") for level in twice]


def same_level_in(level: Level, levels: Sequence[Level]) -> bool:
    """Whether a level is among others; 1 equals 1.0, but not true."""
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


def _same_problems(study: Study) -> list[StudyError]:
    """Problems with a study of identical systems: anything that makes them differ."""
    design = study.design
    given = (
        *((f"factors.{factor}", list(levels)) for factor, levels in study.factors.items()),
        *((f"design.{name}", Missing()) for name in ("treatments", "base") if getattr(design, name)),
        *([("design.control", Missing())] if design.control is not None else []),
        *([("design.order", design.order)] if design.order != "blocks" else []),
    )
    what = 'design.kind = "same" compares a treatment with itself in random blocks: leave this out'
    return [problem(key, read, what) for key, read in given]


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
            problem(f"{table}.{factor}", Missing(), "every treatment must give its level") for factor in lacking
        ]
        if treatment in study.design.treatments[:index]:
            problems.append(problem(table, Missing(), "the same treatment is listed before"))
    return problems
