"""Named levels of a study: problems with them, the fields that they set, and the levels that no treatment has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level, NamedLevel, level_key
from steelyard.model.study import ALIASES, SAME_FACTOR, Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_columns import is_column
from steelyard.study.fields import SECTIONS, dotted
from steelyard.tomlfile.problems import Missing, problem

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def is_reserved(name: str) -> bool:
    """Whether a named factor cannot have this name: a column of the analysis, a field of records, a section or a short
    name of a field."""
    return is_column(name) or name in {SAME_FACTOR, *TrialRecord.model_fields, *SECTIONS, *ALIASES}


def level_problems(study: Study) -> list[StudyError]:
    """Problems with `[levels]` that do not depend on plug-ins."""
    problems: list[StudyError] = []
    factors = dict.fromkeys([*study.factors, *(name for listed in study.design.treatments for name in listed)])
    for factor, levels in study.levels.items():
        if factor not in factors:
            problems.append(problem(f"levels.{factor}", Missing(), "not a factor of this study", tuple(factors)))
            continue
        problems += _name_problems(factor)
        problems += _undefined(study, factor, levels)
        problems += _number_problems(factor, levels)
        problems += _equal(factor, levels)
    return problems


def _name_problems(factor: str) -> Iterator[StudyError]:
    if is_reserved(factor):
        what = "a named factor cannot have this name: it is a field, or a column of the results; choose another"
        yield problem(f"levels.{factor}", Missing(), what)
    elif not NAME.fullmatch(factor):
        what = "the name of a factor whose levels are named is letters, digits, '_' and '-', 64 at most, no dots"
        yield problem(f"levels.{factor}", Missing(), what)


def _undefined(study: Study, factor: str, levels: Mapping[str, NamedLevel]) -> Iterator[StudyError]:
    """Levels of a named factor that nothing defines."""
    used = [(f"factors.{factor}", level) for level in study.factors.get(factor, ())]
    for index, treatment in enumerate(study.design.treatments):
        if factor in treatment and factor not in study.factors:
            used.append((f"design.treatments.{index}.{factor}", treatment[factor]))
    for key, level in used:
        if level_key(level) not in levels:
            what = f"no such level under [levels.{factor}]"
            yield problem(key, level if isinstance(level, str) else str(level), what, tuple(levels))


def _number_problems(factor: str, levels: Mapping[str, NamedLevel]) -> Iterator[StudyError]:
    numbered = [name for name, level in levels.items() if level.number is not None]
    for name, level in levels.items():
        if numbered and level.number is None:
            what = f"level {numbered[0]} of this factor has a number, so each level needs one"
            yield problem(f"levels.{factor}.{name}.number", Missing(), what)
    units = dict.fromkeys(level.unit for level in levels.values() if level.unit)
    if len(units) > 1:
        what = f"one unit for all levels of a factor; here are {' and '.join(units)}"
        yield problem(f"levels.{factor}", Missing(), what)


def _equal(factor: str, levels: Mapping[str, NamedLevel]) -> Iterator[StudyError]:
    """Levels that set the same fields to the same values."""
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for name, level in levels.items():
        sets = tuple(sorted((dotted(field), repr(value)) for field, value in level.sets.items()))
        if sets in seen:
            what = f"sets the same as level {seen[sets]}: these are the same level"
            yield problem(f"levels.{factor}.{name}", Missing(), what)
        seen.setdefault(sets, name)


def contradictions(study: Study, treatments: Iterable[Mapping[str, Level]]) -> list[StudyError]:
    """Factors that set one field to different values in a treatment, each pair of levels once."""
    problems: dict[str, StudyError] = {}
    for treatment in treatments:
        setters: dict[str, tuple[str, str, Level]] = {}
        for factor, level in treatment.items():
            named = study.named_level(factor, level)
            sets = {factor: level} if named is None else named.sets
            for field, value in sets.items():
                other = setters.setdefault(dotted(field), (factor, field, value))
                if other[0] == factor or other[2] == value:
                    continue
                key = f"levels.{factor}.{level_key(level)}.{field}" if named else f"factors.{factor}"
                there = f"{other[0]} = {treatment[other[0]]}"
                what = f"contradicts {there}, which sets {other[1]} = {other[2]}; one field belongs to one factor"
                error = problem(key, value, what)
                problems.setdefault(error.message, error)
    return list(problems.values())


def fields_by_key(study: Study) -> dict[str, str]:
    """Every field that a factor sets, by the key of the place that sets it first."""
    keys: dict[str, str] = {}
    for factor in study.factors:
        if factor not in study.levels:
            keys.setdefault(factor, f"factors.{factor}")
    for index, treatment in enumerate(study.design.treatments):
        for factor in treatment:
            if factor not in study.levels:
                keys.setdefault(factor, f"design.treatments.{index}.{factor}")
    return keys


def places_of(study: Study, field: str, name: str) -> Iterator[str]:
    """The key of each place that sets a field to a name: factors, listed treatments, then named levels."""
    if field not in study.levels:
        if name in map(str, study.factors.get(field, ())):
            yield f"factors.{field}"
        for index, treatment in enumerate(study.design.treatments):
            if field in treatment and str(treatment[field]) == name:
                yield f"design.treatments.{index}.{field}"
    for factor, levels in study.levels.items():
        for level_name, level in levels.items():
            if field in level.sets and str(level.sets[field]) == name:
                yield f"levels.{factor}.{level_name}.{field}"


def named_fields(study: Study) -> Iterator[tuple[str, str]]:
    """(field, key) of every field of every named level."""
    for factor, levels in study.levels.items():
        for name, level in levels.items():
            for field in level.sets:
                yield field, f"levels.{factor}.{name}.{field}"


def unused(study: Study, treatments: Sequence[Mapping[str, Level]]) -> tuple[str, ...]:
    """Named levels that no treatment has: `hardware = vm-8gb`."""
    used = {(factor, level_key(level)) for treatment in treatments for factor, level in treatment.items()}
    return tuple(
        f"{factor} = {name}" for factor, levels in study.levels.items() for name in levels if (factor, name) not in used
    )
