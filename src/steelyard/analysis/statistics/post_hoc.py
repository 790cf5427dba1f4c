"""Post-hoc tests of pairs of levels of a factor, with Holm's correction over all pairs of the factor.

Pairs with the baseline are the comparisons of the study and have their p there (`statistics.comparison`): one p for one
hypothesis. Here they are only where no comparison tests them, over trials.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import LevelPair, Over, baseline_of, level_pairs
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import effect_sizes
from steelyard.analysis.inference.multiplicity import holm_within
from steelyard.analysis.row import NO_UNIT, Column, InUnit, MeasuredLevels, P
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import WORKLOADS, Treatment
from steelyard.heavy import np, stats
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import unit_of


class PostHoc(MeasuredLevels):
    """Two levels of a factor that no comparison tests; p-values are Holm's over all pairs of the factor's levels."""

    over: Over
    """Unit that is counted: start means, or trials counted as independent."""
    n_baseline: int
    """Units of the baseline: start means, or trials."""
    n_level: int
    """Units of the level: start means, or trials."""
    pairs: int
    """Pairs that the correction is over."""
    difference: InUnit
    """Mean of the level minus mean of the baseline."""
    p: P = None
    """p-value of t: over start means the comparison's own, on logarithms where all values are above 0."""
    p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)] = None
    """p of t, with Holm's correction over the pairs, by every response that the study names."""
    rank_p: P = None
    """p-value of the rank test."""
    rank_p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="rank p (Holm)", is_p=True)] = None
    """p of the rank test, with Holm's correction over the pairs, by every response that the study names."""
    method: str = ""
    """How p and the p of ranks were computed."""


def post_hoc(
    frame: TrialFrame, response: str, confidence: float = 0.95, further: Sequence[str] = ()
) -> tuple[PostHoc, ...]:
    """Pairs of levels of every factor with three levels or more, other factors fixed, with Holm's correction over all
    of them and the same pairs by the `further` responses.

    Over start means, with at least three starts per level, without the pairs with the baseline. Over trials only where
    every level has one start, as in published studies: with two, trials counted as independent call identical levels
    different in 40% of studies (docs/explanation/coverage.md). t is the comparisons' own; ranks are Mann-Whitney's or
    Wilcoxon's.
    """
    rows: list[PostHoc] = []
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        for others in frame.others(factor):
            rows += _all_pairs(frame, response, factor, others, confidence, further)
    return tuple(rows)


def _chosen(
    frame: TrialFrame, response: str, factor: str, others: Treatment
) -> tuple[Over, list[tuple[tuple[Level, Level], LevelPair]]]:
    """Unit over which pairs of levels are compared, and each pair with its samples; none below three levels."""
    levels = [level for level in frame.factors[factor] if frame.values(response, {**others, factor: level}).height > 1]
    if len(levels) < 3:
        return "trials", []
    pairs = list(itertools.combinations(levels, 2))
    by_pair = [
        {one.over: one for one in level_pairs(frame, response, factor, base, level, others)} for base, level in pairs
    ]
    over: Over = "start means" if all("start means" in forms for forms in by_pair) else "trials"
    if over == "trials" and any(
        frame.values(response, {**others, factor: level})["start"].n_unique() > 1 for level in levels
    ):
        return over, []
    return over, [(pair, forms[over]) for pair, forms in zip(pairs, by_pair, strict=True)]


def _all_pairs(
    frame: TrialFrame, response: str, factor: str, others: Treatment, confidence: float, further: Sequence[str]
) -> Sequence[PostHoc]:
    over, chosen = _chosen(frame, response, factor, others)
    pairs = [pair for pair, _ in chosen]
    tests = [_tests(sample) for _, sample in chosen]
    further_tests = [_tests(sample) for name in further for _, sample in _chosen(frame, name, factor, others)[1]]
    p_holm, rank_holm = (
        holm_within([test[place] for test in tests], [test[place] for test in further_tests]) for place in (0, 1)
    )
    rows = []
    for place, ((base, level), sample) in enumerate(chosen):
        if over == "start means" and baseline_of(frame.factors[factor]) in {base, level}:
            continue
        gap = effect_sizes.difference(sample.samples, unit_of(response), confidence)
        if gap is None:
            continue
        rows.append(
            PostHoc(
                factor=factor, baseline=base, level=level, others=others, response=response, unit=unit_of(response),
                over=over, n_baseline=len(sample.baseline), n_level=len(sample.level), pairs=len(pairs), difference=gap,
                p=tests[place][0], p_holm=p_holm[place], rank_p=tests[place][1], rank_p_holm=rank_holm[place],
                method=_method(sample, gap),
            )
        )  # fmt: skip
    return rows


def _method(pair: LevelPair, difference: Estimate) -> str:
    t = "the comparison, t on logarithms" if _on_logarithms(pair) else difference.method
    return f"p of {t}; rank_p of {'Wilcoxon' if pair.paired else 'Mann and Whitney'}'s test"


def _on_logarithms(pair: LevelPair) -> bool:
    return pair.positive and pair.over == "start means"


@functools.lru_cache(maxsize=4096)
def _tests(pair: LevelPair) -> tuple[float | None, float | None]:
    """(p of the t test, p of the rank test); None if nothing varies."""
    if pair.paired:
        level, baseline = (np.log(side) if _on_logarithms(pair) else side for side in (pair.level, pair.baseline))
        gaps = np.subtract(level, baseline)
        rank = stats.wilcoxon(gaps).pvalue if bool(np.any(gaps)) else math.nan
    else:
        rank = stats.mannwhitneyu(pair.level, pair.baseline).pvalue
    if _on_logarithms(pair):
        return pair.p, _or_none(float(rank))
    t = effect_sizes.p_of_difference(pair.samples)
    return _or_none(t), _or_none(float(rank))


def _or_none(p: float) -> float | None:
    return None if math.isnan(p) else p


STATISTIC = Statistic(
    name="post_hoc",
    row=PostHoc,
    title="Further pairs of levels of a factor, by {response}",
    section=Section.SENSITIVITY,
    compute=lambda context: post_hoc(context.frame, context.response, context.confidence, context.further_responses),
    order=30,
    published_form=True,
)
