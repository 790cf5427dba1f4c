"""Samples of two levels of a factor: one number per start, and one per trial.

Over start means a difference generalises to new starts. Over trials it is the published studies' form: trials of one
start are repeated measures of it, so such intervals are too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from steelyard.analysis.comparisons.level_ratios import (
    FEWEST_STARTS,
    ComparisonVerdict,
    judge,
    paired_starts,
    units,
    varies,
)
from steelyard.analysis.frame import TrialFrame, start_means
from steelyard.analysis.inference import effect_sizes
from steelyard.analysis.treatments import WORKLOADS, Treatment
from steelyard.heavy import np
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level

Over = Literal["start means", "trials"]
"""The unit of replication. Start means: the level at which a hard-to-change factor was randomised. Trials: as in the
published studies; trials of one start are repeated measures of it, so such intervals are too narrow."""
Equivalence = Literal["equivalent", "not shown", "no margin declared", "too few starts", "nothing varies"]


@dataclass(frozen=True)
class LevelPair:
    """One number per unit of two levels; paired values have the same index."""

    over: Over
    paired: bool
    baseline: tuple[float, ...]
    level: tuple[float, ...]

    @property
    def fewest(self) -> int:
        """Number of units of the smaller side."""
        return min(len(self.baseline), len(self.level))

    @property
    def positive(self) -> bool:
        """All values are above 0, so that ratios and logarithms exist."""
        return min(*self.baseline, *self.level) > 0

    def __str__(self) -> str:
        return f"{self.over}, counted as independent" if self.over == "trials" else self.over


def baseline_of(levels: Sequence[Level]) -> Level:
    """The level that others are compared with: the smallest number, else the first level of the study."""
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    return min(numbers) if len(numbers) == len(levels) else levels[0]


def level_pairs(
    frame: TrialFrame, response: str, factor: str, baseline: Level, level: Level, others: Treatment
) -> tuple[LevelPair, ...]:
    """The two levels over start means (from three a level on) and over trials; empty if either has no used trial.

    Start means are those that the ratio of the two levels rests on: where both were tried within the same starts, they
    are paired, and a start that has only one of them is left out (`level_ratios.paired_starts`).
    """
    rows_b = frame.values(response, {**others, factor: baseline})
    rows_l = frame.values(response, {**others, factor: level})
    if not rows_b.height or not rows_l.height:
        return ()
    means_b, means_l = ({start: mean for start, mean, _ in start_means(rows, response)} for rows in (rows_b, rows_l))
    both = paired_starts(means_b, means_l, factor not in frame.hard)
    over_starts = LevelPair("start means", bool(both), *units(means_b, means_l, both))
    trials = (tuple(float(value) for value in rows[response]) for rows in (rows_b, rows_l))
    forms = [over_starts] if over_starts.fewest >= FEWEST_STARTS else []
    return (*forms, LevelPair("trials", False, *trials))


def pairs_of_levels(frame: TrialFrame) -> Iterator[tuple[str, Level, Level, Treatment]]:
    """Every (factor, baseline, level, other factors) that the statistic `comparison` looks at, in its order."""
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        levels = frame.factors[factor]
        base = baseline_of(levels) if levels else ""
        for others in frame.others(factor):
            for level in levels:
                if level != base:
                    yield factor, base, level, others


def equivalence(
    pair: LevelPair, margin_percent: float | None, confidence: float = 0.95
) -> tuple[Equivalence, float | None]:
    """Two one-sided t tests that the ratio lies within 1 / (1 + m) and 1 + m (Schuirmann 1987), and the greater p.

    On logarithms: Welch's for two samples, else of pairs (`effect_sizes.p_of_equivalence`). Equivalent: p below 1 -
    confidence. "not shown" is no proof of a difference. Where nothing varies there is no test: equal values, such as
    percentiles from one step of a histogram, do not say how much starts differ.
    """
    if margin_percent is None:
        return "no margin declared", None
    if pair.fewest < FEWEST_STARTS or not pair.positive:
        return "too few starts", None
    bound = math.log1p(margin_percent / 100)
    a, b = np.log(pair.baseline), np.log(pair.level)
    if not varies(*([b - a] if pair.paired else [a, b])):
        return "nothing varies", None
    p = effect_sizes.p_of_equivalence([float(one) for one in a], [float(one) for one in b], bound, pair.paired)
    return ("equivalent" if p < 1 - confidence else "not shown"), p


def verdict_of(
    response: str, ratio: Estimate, pair: LevelPair, margin_percent: float | None, confidence: float
) -> ComparisonVerdict:
    """The verdict on two levels: equivalent within a declared margin, else by the interval of their ratio.

    `pair`: the start means that the ratio rests on. Where the ratio has no interval, there is no equivalence either.
    """
    if equivalence(pair, margin_percent, confidence)[0] == "equivalent":
        return "equivalent"
    return judge(response, ratio)
