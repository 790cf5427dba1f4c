"""Effect sizes of two levels: difference, Cohen's d, Hedges' g, Cliff's delta, ratios.

Each is given at two levels of replication. Over start means it generalises to new starts. Over trials it is the
published studies' form: trials of one start are repeated measures of it, so such intervals are too narrow.
"""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import LevelPair, Over, level_pairs, pairs_of_levels
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import effect_sizes
from steelyard.analysis.row import NO_UNIT, Column, InUnitOrNone, MeasuredLevels
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import np
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import unit_of


class Effect(MeasuredLevels):
    """How large a difference between two levels is: absolute, relative, and against the spread."""

    over: Over
    """Unit that is counted: start means, or trials counted as independent."""
    paired: bool
    """The levels are compared start by start or, where they need their own starts, block by block."""
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


def effects_of(
    frame: TrialFrame, response: str, rng: np.random.Generator, confidence: float = 0.95
) -> tuple[Effect, ...]:  # fmt: skip
    """Every level against its baseline: absolute, relative and standardised, over start means and over trials."""
    return tuple(
        _effect(found, response, rng, confidence, (factor, base, level, others))
        for factor, base, level, others in pairs_of_levels(frame)
        for found in level_pairs(frame, response, factor, base, level, others)
    )


def _effect(
    pair: LevelPair, response: str, rng: np.random.Generator, confidence: float,
    of: tuple[str, Level, Level, Treatment],
) -> Effect:  # fmt: skip
    factor, baseline, level, others = of
    two = pair.samples
    return Effect(
        factor=factor, baseline=baseline, level=level, others=others, response=response, unit=unit_of(response),
        over=pair.over, paired=two.paired, n_baseline=len(two.baseline), n_level=len(two.level),
        difference=effect_sizes.difference(two, unit_of(response), confidence),
        cohens_d=effect_sizes.cohens_d(two, confidence),
        hedges_g=effect_sizes.hedges_g(two, confidence),
        cliffs_delta=effect_sizes.cliffs_delta(two, confidence),
        ratio_fieller=effect_sizes.fieller(two, confidence),
        ratio_bootstrap=effect_sizes.bootstrap_ratio(two, rng, confidence),
    )  # fmt: skip


STATISTIC = Statistic(
    name="effect",
    row=Effect,
    title="Effect sizes of each level against its baseline, by {response}",
    section=Section.SENSITIVITY,
    compute=lambda context: effects_of(context.frame, context.response, context.generator(), context.confidence),
    order=5,
)
