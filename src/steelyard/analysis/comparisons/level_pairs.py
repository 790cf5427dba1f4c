"""Samples of two levels of a factor: one number per start or block, and one per trial.

Over start means a difference generalises to new starts. Over trials it is the published studies' form: trials of one
start are repeated measures of it, so such intervals are too narrow.

The plan is a randomised complete block design, and is analysed as one: levels that need their own clusters are
paired by block, the others by start. What a block adds to all of its starts, or a start to all of its trials, is then
in neither the difference nor its error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from steelyard.analysis.frame import TrialFrame, start_means
from steelyard.analysis.inference import gaps
from steelyard.analysis.inference.effect_sizes import TwoSamples
from steelyard.analysis.inference.estimates import ROUNDING
from steelyard.analysis.inference.gaps import Gap
from steelyard.analysis.treatments import WORKLOADS, Treatment
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.named_level import Level
from steelyard.model.response import Compared
from steelyard.model.responses import of

Over = Literal["start means", "trials"]
"""The unit of replication. Start means: the level at which a hard-to-change factor was randomised. Trials: as in the
published studies; trials of one start are repeated measures of it, so such intervals are too narrow."""
Shared = Literal["start", "block", ""]
"""Common unit of the values of a pair: the start that served both levels, the block that both were started in, or
nothing."""
TOO_FEW = "fewer than three starts per level"
NOTHING_VARIES = "nothing varies between starts"


@dataclass(frozen=True)
class LevelPair:
    """One number per unit of two levels; paired values have the same index."""

    over: Over
    paired: Shared
    baseline: tuple[float, ...]
    level: tuple[float, ...]
    trials: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """Trials of each start of either side."""
    places: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Paired by block: the place of each start within its block, from 1."""
    compared: Compared = "ratio"
    """Ratio: `gap` is on logarithms. Difference: on the values."""

    @cached_property
    def samples(self) -> TwoSamples:
        """The values as they are, without their trials, for effect sizes."""
        return TwoSamples(self.baseline, self.level, str(self), bool(self.paired), self.places)

    @property
    def fewest(self) -> int:
        """Number of units of the smaller side."""
        return min(len(self.baseline), len(self.level))

    @property
    def most(self) -> int:
        """Number of units of the larger side."""
        return max(len(self.baseline), len(self.level))

    @property
    def positive(self) -> bool:
        """All values are above 0, so that ratios and logarithms exist."""
        return min(*self.baseline, *self.level) > 0

    @cached_property
    def gap(self) -> Gap | None:
        """Mean of the level minus mean of the baseline, of logarithms where the ratio is asked for; None if a value
        then has none."""
        a, b = list(self.baseline), list(self.level)
        if self.compared == "ratio":
            if not self.positive:
                return None
            a, b = ([math.log(value) for value in side] for side in (a, b))
        if self.fewest < 2:
            return Gap(math.fsum(b) / len(b) - math.fsum(a) / len(a), ())
        return gaps.in_blocks([a, b], [-1, 1], self.places) if self.paired else gaps.of_samples([a, b], [-1, 1])

    @property
    def lacks(self) -> str:
        """Why the values have no interval; empty if they have one."""
        if self.fewest < FEWEST_STARTS or self.gap is None:
            return TOO_FEW
        return "" if self.gap.error()[0] > ROUNDING else NOTHING_VARIES

    @property
    def p(self) -> float | None:
        """Two-sided p that the levels are equal, by the test whose interval `level_ratios.change_of` gives: below 1 -
        confidence where that leaves no change out. None if there is no interval."""
        return None if self.gap is None or self.lacks else self.gap.p()

    def tost_p(self, margin_percent: float | None) -> float | None:
        """The greater p of two one-sided t tests that the ratio lies within 1 / (1 + m) and 1 + m (Schuirmann 1987).

        On logarithms, with the error of their ratio; below 1 - confidence the levels are equivalent, and a greater p is
        no proof of a difference. None without a margin, or an interval: equal values, such as percentiles from one step
        of a histogram, do not say how much starts differ. Nor for a difference: the margin is one of ratios.
        """
        if margin_percent is None or self.gap is None or self.lacks or self.compared == "difference":
            return None
        return self.gap.p_within(math.log1p(margin_percent / 100))

    def __str__(self) -> str:
        return f"{self.over}, counted as independent" if self.over == "trials" else self.over


class _Unit(NamedTuple):
    """A start, or the starts of a level in one block."""

    mean: float
    trials: tuple[int, ...]
    place: float


def pair_of(
    a: tuple[TrialFrame, Treatment], b: tuple[TrialFrame, Treatment], response: str, compared: Compared = "ratio"
) -> LevelPair | None:
    """The start means of two treatments, or of parts of two; None if either has no used trial.

    In one study they are paired: by start where they differ in nothing that needs a new cluster, otherwise by block.
    Units that have only one side are left out. Below three pairs, and between two studies: unpaired, all of both sides.
    """
    shared: Shared = ""
    if a[0] is b[0]:
        differ = {name for name in {*a[1], *b[1]} if a[1].get(name) != b[1].get(name)}
        shared = "block" if differ & set(a[0].hard) else "start"
    sides = [_units(frame, treatment, response, shared) for frame, treatment in (a, b)]
    both = [unit for unit in sides[0] if unit in sides[1]] if shared else []
    if len(both) < FEWEST_STARTS:
        shared, sides = "", [_units(frame, treatment, response, "") for frame, treatment in (a, b)]
    if not all(sides):
        return None
    baseline, level = ([side[unit] for unit in (both if shared else side)] for side in sides)
    trials = tuple(n for unit in baseline for n in unit.trials), tuple(n for unit in level for n in unit.trials)
    places = tuple(unit.place for unit in baseline), tuple(unit.place for unit in level)
    return LevelPair(
        over="start means", paired=shared, baseline=tuple(unit.mean for unit in baseline),
        level=tuple(unit.mean for unit in level), trials=trials, places=places if shared == "block" else None,
        compared=compared,
    )  # fmt: skip


def _units(frame: TrialFrame, treatment: Treatment, response: str, shared: Shared) -> dict[object, _Unit]:
    """The starts of a treatment with a value, or its blocks, in order of time."""
    rows = frame.values(response, treatment)
    places = zip(*(rows[name].to_list() for name in ("start", "block", "place_in_block")), strict=True)
    of_start = {start: (block, place) for start, block, place in places}
    units: dict[object, list[tuple[float, int, int]]] = {}
    for start, mean, n in start_means(rows, response):
        block, place = of_start[start]
        units.setdefault(block if shared == "block" else start, []).append((mean, n, place))
    return {
        unit: _Unit(
            math.fsum(mean for mean, *_ in each) / len(each),
            tuple(n for _, n, _ in each),
            math.fsum(place for *_, place in each) / len(each),
        )
        for unit, each in units.items()
    }


def baseline_of(levels: Sequence[Level]) -> Level:
    """The level that others are compared with: the lowest number, otherwise the first level of the study."""
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    return min(numbers) if len(numbers) == len(levels) else levels[0]


def pair_of_levels(
    frame: TrialFrame, response: str, factor: str, baseline: Level, level: Level, others: Mapping[str, Level]
) -> LevelPair | None:
    """The start means of two levels of a factor, the others fixed, compared as the response is; see `pair_of`."""
    sides = (frame, {**others, factor: baseline}), (frame, {**others, factor: level})
    return pair_of(*sides, response, of(response).compared)


def level_pairs(
    frame: TrialFrame, response: str, factor: str, baseline: Level, level: Level, others: Treatment
) -> tuple[LevelPair, ...]:
    """The two levels over start means (with three or more per level) and over trials; empty if either has no used
    trial.

    Start means are those that the ratio of the two levels rests on (`pair_of`).
    """
    of = [{**others, factor: one} for one in (baseline, level)]
    over_starts = pair_of((frame, of[0]), (frame, of[1]), response)
    if over_starts is None:
        return ()
    base, other = (tuple(float(value) for value in frame.values(response, one)[response]) for one in of)
    forms = [over_starts] if over_starts.fewest >= FEWEST_STARTS else []
    return (*forms, LevelPair("trials", "", base, other))


def pairs_of_levels(frame: TrialFrame) -> Iterator[tuple[str, Level, Level, Treatment]]:
    """Every (factor, baseline, level, other factors) that the statistic `comparison` looks at, in its order."""
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        levels = frame.factors[factor]
        base = baseline_of(levels) if levels else ""
        for others in frame.others(factor):
            for level in levels:
                if level != base:
                    yield factor, base, level, others
