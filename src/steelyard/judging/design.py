"""Treatments of a design, before ordering. Pure; measuring and reading both use it."""

from __future__ import annotations

import itertools

from steelyard.judging.fractional_design import Fraction
from steelyard.model.named_level import Level
from steelyard.model.study import SAME_FACTOR, SAME_LABELS, Study

Treatment = dict[str, Level]


def factors_of(study: Study) -> dict[str, tuple[Level, ...]]:
    """Factors and their levels in order: those under `factors`, then those that only listed treatments name; for
    identical systems, their label."""
    if study.design.kind == "same":
        return {SAME_FACTOR: SAME_LABELS}
    return study.tried


def base_of(study: Study) -> Treatment:
    """The base treatment of one-at-a-time designs: `design.base`, else each factor's first level."""
    return {factor: study.design.base.get(factor, levels[0]) for factor, levels in factors_of(study).items() if levels}


def treatments_of(study: Study, fraction: Fraction | None = None) -> tuple[Treatment, ...]:
    """Every treatment once, in listed order. A study without factors has one treatment, which is empty.

    `fraction`: that of a fractional design. Raises ValueError if such a design has none.
    """
    factors = factors_of(study)
    if study.design.kind == "listed":
        return tuple({factor: treatment[factor] for factor in factors} for treatment in study.design.treatments)
    if study.design.kind in ("full-factorial", "same"):
        return tuple(dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values()))
    if study.design.kind == "fractional":
        if fraction is None:
            raise ValueError("a fractional design needs its fraction")
        return _fractional(study, fraction)
    base = base_of(study)
    departed = [
        base | {factor: level} for factor, levels in factors.items() for level in levels if level != base[factor]
    ]
    return (base, *departed)


def _fractional(study: Study, fraction: Fraction) -> tuple[Treatment, ...]:
    """Each combination of the factors without two levels, with each treatment of the fraction, in order of levels."""
    factors = factors_of(study)
    rest = [factor for factor in factors if factor not in fraction.factors]
    treatments = [
        {**dict(zip(rest, levels, strict=True)), **{one: factors[one][sign > 0] for one, sign in signs.items()}}
        for levels in itertools.product(*(factors[factor] for factor in rest))
        for signs in fraction.combinations()
    ]
    return tuple({factor: treatment[factor] for factor in factors} for treatment in treatments)
