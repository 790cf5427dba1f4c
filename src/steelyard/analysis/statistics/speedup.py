"""Speed-up table of richardson2017: how many times faster a level is than its baseline."""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import LevelPair, level_pairs, pairs_of_levels
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import effect_sizes
from steelyard.analysis.row import NO_UNIT, Column, ComparedLevels
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import NODES, Treatment
from steelyard.heavy import np
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.response import Direction


class Speedup(ComparedLevels):
    """The speed-up table of richardson2017: how many times faster the level is than the baseline."""

    response: str
    """Response, as named in the store."""
    n_baseline: int
    """Trials of the baseline."""
    n_level: int
    """Trials of the level."""
    ratio_max_to_min: Annotated[Estimate, Column(unit=NO_UNIT, head="max / min")]
    """Speed-up at most: greatest to least."""
    ratio_min_to_max: Annotated[Estimate, Column(unit=NO_UNIT, head="min / max")]
    """Speed-up at least: least to greatest."""
    ratio_means: Annotated[Estimate, Column(unit=NO_UNIT, head="means")]
    """Speed-up by means."""
    ratio_medians: Annotated[Estimate, Column(unit=NO_UNIT, head="medians")]
    """Speed-up by medians."""
    ratio_sds: Annotated[Estimate | None, Column(unit=NO_UNIT, head="standard deviations")] = None
    """Standard deviations in the same order."""


def speedups(
    frame: TrialFrame, response: str, confidence: float = 0.95, sized: TrialFrame | None = None
) -> tuple[Speedup, ...]:
    """How many times faster each level is: times as baseline over level, rates as level over baseline; over trials.
    `sized`: the trials by which numbers of nodes are compared, where they are not all."""
    rows = []
    for factor, base, level, others in pairs_of_levels(frame):
        own = sized if sized is not None and factor in NODES else frame
        for sample in level_pairs(own, response, factor, base, level, others):
            if sample.over == "trials" and sample.positive:
                rows.append(_speedup(sample, response, confidence, (factor, base, level, others)))
    return tuple(rows)


def _speedup(pair: LevelPair, response: str, confidence: float, of: tuple[str, Level, Level, Treatment]) -> Speedup:
    factor, baseline, level, others = of
    more_is_faster = responses.of(response).direction is Direction.MORE_IS_FASTER
    below, above = (pair.baseline, pair.level) if more_is_faster else (pair.level, pair.baseline)
    two = effect_sizes.TwoSamples(below, above, str(pair))

    def plain(value: float, name: str) -> Estimate:
        return Estimate.of(value, None, "", confidence, two.n, f"ratio of {name} over {two.over}: no interval")

    means = plain(float(np.mean(above)) / float(np.mean(below)), "means")
    medians = plain(float(np.median(above)) / float(np.median(below)), "medians")
    return Speedup(
        factor=factor, baseline=baseline, level=level, others=others, response=response,
        n_baseline=len(pair.baseline), n_level=len(pair.level),
        ratio_max_to_min=plain(max(above) / min(below), "greatest to least"),
        ratio_min_to_max=plain(min(above) / max(below), "least to greatest"),
        ratio_means=effect_sizes.fieller(two, confidence) or means,
        ratio_medians=effect_sizes.ratio_of_medians(two, confidence) or medians,
        ratio_sds=effect_sizes.ratio_of_deviations(two, confidence),
    )  # fmt: skip


STATISTIC = Statistic(
    name="speedup",
    row=Speedup,
    title="How many times faster each level is than its baseline, by {response}",
    section=Section.ANSWER,
    compute=lambda context: speedups(context.frame, context.response, context.confidence, context.sized),
    order=50,
    published_form=True,
)
