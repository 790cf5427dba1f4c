"""Effect sizes of two levels: difference, Cohen's d, Hedges' g, Cliff's delta, ratios, equivalence.

Each is given at two levels of replication. Over start means it generalises to new starts. Over trials it is the
published studies' form: trials of one start are repeated measures of it, so such intervals are too narrow.
"""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import (
    Equivalence,
    LevelPair,
    Over,
    equivalence,
    level_pairs,
    pairs_of_levels,
)
from steelyard.analysis.comparisons.level_ratios import p_of_change
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import effect_sizes, power
from steelyard.analysis.row import NO_UNIT, Column, InUnitOrNone, MeasuredLevels
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import np
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.study import Level


class Effect(MeasuredLevels):
    """How large a difference between two levels is: absolute, relative, and beside the spread."""

    over: Over
    """What counts as one unit: start means, or trials counted as independent."""
    paired: bool
    """The levels are compared start by start or, where they need starts of their own, block by block."""
    n_baseline: int
    """Units of the baseline: start means, or trials."""
    n_level: int
    """Units of the level: start means, or trials."""
    difference: InUnitOrNone = None
    """Mean of the level minus mean of the baseline; t interval, of pairs or Welch's."""
    cohens_d: Annotated[Estimate | None, Column(unit="standard deviations", head="Cohen's d")] = None
    """Cohen's d."""
    hedges_g: Annotated[Estimate | None, Column(unit="standard deviations", head="Hedges' g")] = None
    """Hedges' g."""
    cliffs_delta: Annotated[Estimate | None, Column(unit="from -1 to 1", head="Cliff's delta")] = None
    """Cliff's delta: share of pairs in which the level is above, less that in which it is below."""
    ratio_fieller: Annotated[Estimate | None, Column(unit=NO_UNIT, head="ratio (Fieller)")] = None
    """Ratio of means, level over baseline, with Fieller's interval."""
    ratio_bootstrap: Annotated[Estimate | None, Column(unit=NO_UNIT, head="ratio (bootstrap)")] = None
    """The same ratio with a bootstrap interval over these units."""
    margin_percent: Annotated[float | None, Column(unit="%", head="margin, %")] = None
    """Change that the study calls too small to matter."""
    equivalence: Equivalence
    """Equivalent, not shown, no margin declared, too few starts or nothing varies."""
    tost_p: Annotated[float | None, Column(unit=NO_UNIT, head="p of equivalence", is_p=True)] = None
    """The greater p of the two one-sided tests on the ratio; none without margin, with too few units, or where
    nothing varies."""
    more_starts: int | None = None
    """Further starts per level that would decide with a chance of 80%, if difference and spread stayed as they are; 0:
    decided already; none: not over start means, or not within 1,000."""


def effects_of(
    frame: TrialFrame, response: str, rng: np.random.Generator, confidence: float = 0.95,
    margin_percent: float | None = None,
) -> tuple[Effect, ...]:  # fmt: skip
    """Every level against its baseline in absolute, relative and standardised form, over start means and over trials.

    `margin_percent` is the change of the ratio that counts as equivalent.
    """
    return tuple(
        _effect(found, response, rng, confidence, margin_percent, (factor, base, level, others))
        for factor, base, level, others in pairs_of_levels(frame)
        for found in level_pairs(frame, response, factor, base, level, others)
    )


def _effect(
    pair: LevelPair, response: str, rng: np.random.Generator, confidence: float, margin_percent: float | None,
    of: tuple[str, Level, Level, Treatment],
) -> Effect:  # fmt: skip
    factor, baseline, level, others = of
    a, b, over, paired = pair.baseline, pair.level, str(pair), bool(pair.paired)
    verdict, p = equivalence(pair, margin_percent, confidence)
    return Effect(
        factor=factor, baseline=baseline, level=level, others=others, response=response, unit=unit_of(response),
        over=pair.over, paired=paired, n_baseline=len(a), n_level=len(b),
        difference=effect_sizes.difference(a, b, unit_of(response), confidence, over, paired),
        cohens_d=effect_sizes.cohens_d(a, b, confidence, over, paired),
        hedges_g=effect_sizes.hedges_g(a, b, confidence, over, paired),
        cliffs_delta=effect_sizes.cliffs_delta(a, b, confidence, over),
        ratio_fieller=effect_sizes.fieller(a, b, confidence, over, paired),
        ratio_bootstrap=effect_sizes.bootstrap_ratio(a, b, rng, confidence, over, paired),
        margin_percent=margin_percent, equivalence=verdict, tost_p=p,
        more_starts=more_starts(pair, margin_percent, confidence) if pair.over == "start means" else None,
    )  # fmt: skip


def more_starts(pair: LevelPair, margin_percent: float | None, confidence: float = 0.95) -> int | None:
    """Further starts per level that would decide (`inference.power.more_starts`); 0 where the interval or the margin
    has already decided.

    None where nothing up to `inference.power.MOST_STARTS` would.
    """
    p = p_of_change(pair)
    if p is None or pair.gap is None:
        return None
    if p < 1 - confidence or equivalence(pair, margin_percent, confidence)[0] == "equivalent":
        return 0
    more = power.more_starts(pair.gap, margin_percent, confidence)
    return None if more is None else more.starts


STATISTIC = Statistic(
    name="effect",
    row=Effect,
    title="Effect sizes of each level against its baseline, by {response}",
    section=Section.ANSWER,
    compute=lambda context: effects_of(
        context.frame,
        context.response,
        context.generator(),
        context.confidence,
        context.study.analysis.equivalence_margin_percent,
    ),
    order=20,
)
