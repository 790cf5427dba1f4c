"""Main effects of a fractional factorial design, with their aliases."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from steelyard.analysis.comparisons.contrasts import Cells, Key, key_of, logs, ratio, sentence_of
from steelyard.analysis.comparisons.judgement import MeanOfLevel
from steelyard.analysis.comparisons.level_ratios import judge
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import Treatment, pair_label
from steelyard.judging import fractional_design
from steelyard.judging.fractional_design import Fraction
from steelyard.model.study import Study


class MainEffect(MeanOfLevel):
    """The main effect of a factor of a fractional design, with its aliases."""

    n: int
    """Treatments that the effect rests on."""
    aliases: str
    """Interactions that would show as the same difference, and cannot be separated from it."""


def main_effects(
    frame: TrialFrame, response: str, fraction: Fraction | None, confidence: float = 0.95
) -> tuple[MainEffect, ...]:
    """Main effect of every factor: treatments at the second level against those at the first.

    In a fraction few treatments differ in one factor only; over all of them every other factor is balanced, except for
    the aliases. If a treatment has no used trial the balance is lost, and no effect is given.
    """
    logarithms = logs(frame, response) if fraction is not None else None
    if fraction is None or logarithms is None:
        return ()
    keys = [key_of(frame, treatment) for treatment in _treatments(frame, fraction)]
    gone = sum(logarithms.mean(key) is None for key in keys)
    return tuple(
        _effect(frame, logarithms, fraction, factor, response, keys, gone, confidence) for factor in fraction.factors
    )


def _treatments(frame: TrialFrame, fraction: Fraction) -> list[Treatment]:
    """All treatments of the design."""
    rest = [name for name in frame.names if name not in fraction.factors]
    return [
        dict(zip(rest, levels, strict=True)) | {name: frame.factors[name][sign > 0] for name, sign in signs.items()}
        for levels in itertools.product(*(frame.factors[name] for name in rest))
        for signs in fraction.combinations()
    ]


def _effect(
    frame: TrialFrame, logarithms: Cells, fraction: Fraction, factor: str, response: str, keys: Sequence[Key],
    gone: int, confidence: float,
) -> MainEffect:  # fmt: skip
    baseline, level = frame.factors[factor]
    place = frame.names.index(factor)
    weights = {key: (2 if key[place] == level else -2) / len(keys) for key in keys}
    change = None if gone else ratio(logarithms, weights, confidence)
    aliases = " or ".join(fraction.interaction_text(one) for one in fraction.aliases({factor}))
    head = f"{pair_label(factor, level, baseline)}, over {len(keys)} treatments of the fraction"
    if change is None:
        sentence = f"{head}: no estimate: {gone} of them have no used trial, so the others are not balanced"
    else:
        doubt = f"; or it is {aliases}, which this fraction cannot separate from it" if aliases else ""
        sentence = sentence_of(head, response, change) + doubt
    return MainEffect(
        factor=factor, baseline=baseline, level=level, response=response, n=len(keys) - gone, starts=len(logarithms.of),
        ratio=change, verdict=judge(response, change) if change is not None else "descriptive", aliases=aliases,
        sentence=sentence,
    )  # fmt: skip


def fraction_of(frame: TrialFrame, study: Study) -> Fraction | None:
    """The fraction of a fractional design, as the plan made it."""
    design = study.design
    if design.kind != "fractional":
        return None
    levels = {name: len(levels) for name, levels in study.factors.items()}
    return fractional_design.of_design(levels, set(frame.hard), design.generators, design.resolution)


def _of_context(context: Context) -> tuple[MainEffect, ...]:
    fraction = fraction_of(context.frame, context.study)
    effects = main_effects(context.frame, context.response, fraction, context.confidence)
    return tuple(effect.judged(context.frame, context.floors, context.of(Trend)) for effect in effects)


STATISTIC = Statistic(
    name="main_effect",
    row=MainEffect,
    title="Effects of the factors of a fractional design on {response}, with their aliases",
    section=Section.INTERACTIONS,
    compute=_of_context,
    order=40,
)
