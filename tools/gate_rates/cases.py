"""Planted builds: what is drawn, what `check` announces for it, and how a drawn study is judged."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.comparisons.two_sided import Side, contrasts, pair
from steelyard.analysis.gate import GateVerdict, case_of, family_confidence, overall, verdict_of
from steelyard.analysis.inference.multiplicity import adjusted
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.plan.gate_forecast import MOST_BLOCKS, POWER, chance_beyond
from tools.coverage.planted import MEAN_MS, RESPONSE, Numbers, Plot, frame_of

CONFIDENCE = 0.95
MARGIN_PERCENT = 2.0
PROMISE = 0.05
"""Red gates of builds that are not worse, at most; half of it: green gates of builds that are."""
OF_THE_COUNT = 0.99
"""Confidence of the interval of a counted share."""

WHOLE = 50
"""Studies of each row that are judged from the frame of their trials on, too."""

Counted = Literal["worse", "not worse"]
Truth = Literal["announced", "at most"]


@dataclass(frozen=True)
class Planted:
    """One row of the page: builds, blocks, and what is counted."""

    family: str
    plot: Plot
    blocks: int
    losses_percent: tuple[float, ...]
    """True change of each cell; a cell is a workload that both builds serve within the same starts."""
    counted: Counted
    against: Truth
    share: float
    """What was announced, or what is promised at most."""
    pairs: bool = False
    """Both builds within the same starts, as an easy factor has it."""
    margin_percent: float = MARGIN_PERCENT

    @property
    def key(self) -> str:
        """Seed of its random numbers: an added row changes no figure of the others."""
        return repr((self.family, self.plot, self.blocks, self.losses_percent, self.counted, self.margin_percent))

    @property
    def words(self) -> str:
        """The planted truth in words."""
        within = "both builds within a start" if self.pairs else "starts of their own"
        return f"{self.plot.words}; {within}"

    @property
    def changes(self) -> str:
        """`+5%`, `+5% in 1 of 4 cells`."""
        cells, losses = len(self.losses_percent), set(self.losses_percent)
        shown = f"{max(losses):+g}%" if any(losses) else "none"
        if cells == 1:
            return shown
        if len(losses) == 1:
            return f"{shown} in {cells} cells"
        return f"{shown} in {sum(loss == max(losses) for loss in self.losses_percent)} of {cells} cells"


def spread(plot: Plot) -> float:
    """Coefficient of variation of start means, as `check` takes it from a store."""
    return math.hypot(plot.start_cv, plot.trial_cv / math.sqrt(plot.trials))


def paired_spread(plot: Plot, interaction_cv: float = 0.01) -> float:
    """Standard deviation of the logarithms of two levels' ratios within starts."""
    return math.hypot(interaction_cv, plot.trial_cv * math.sqrt(2 / plot.trials))


def announced(
    plot: Plot, blocks: int, loss_percent: float, cells: int = 1, *, green: bool = False, pairs: bool = False
) -> float:
    """What `check --gate` says: the chance of red for a loss, or of green for no loss."""
    margin = math.log1p(MARGIN_PERCENT / 100)
    distance = margin - math.log1p(loss_percent / 100) if green else math.log1p(loss_percent / 100) - margin
    confidence = CONFIDENCE if green else family_confidence(CONFIDENCE, cells)
    return chance_beyond(blocks, distance, paired_spread(plot) if pairs else math.sqrt(2) * spread(plot), confidence)


def enough(plot: Plot, loss_percent: float, cells: int = 1, *, green: bool = False, pairs: bool = False) -> int:
    """The fewest blocks for which `check --gate` announces 0.95."""
    return next(
        blocks
        for blocks in range(FEWEST_STARTS, MOST_BLOCKS)
        if announced(plot, blocks, loss_percent, cells, green=green, pairs=pairs) >= POWER
    )


CALM, HOUSE, UNEVEN = Plot(start_cv=0.01, trial_cv=0.01), Plot(), Plot("lognormal", 0.02, 0.02)
WILD = Plot("lognormal", 0.25, 0.2)
FOUND = "A loss of 5% is found"
EQUAL = "Equal builds: red"
PASSES = "Equal builds: green"
AT_MARGIN = "A loss that is the margin itself"


def every() -> Iterator[Planted]:
    """All rows, in the page's order."""
    for plot in (CALM, UNEVEN, HOUSE):
        blocks = enough(plot, 5.0)
        yield Planted(FOUND, plot, blocks, (5.0,), "worse", "announced", announced(plot, blocks, 5.0))
    yield Planted(FOUND, HOUSE, 10, (5.0,), "worse", "announced", announced(HOUSE, 10, 5.0))
    blocks = enough(CALM, 5.0, 4)
    one_of_four = (5.0, 0.0, 0.0, 0.0)
    yield Planted(FOUND, CALM, blocks, one_of_four, "worse", "announced", announced(CALM, blocks, 5.0, 4))
    blocks = enough(HOUSE, 5.0, pairs=True)
    chance = announced(HOUSE, blocks, 5.0, pairs=True)
    yield Planted(FOUND, HOUSE, blocks, (5.0,), "worse", "announced", chance, pairs=True)
    for plot, blocks, cells in (
        (CALM, 6, 1), (HOUSE, 3, 1), (HOUSE, 5, 1), (HOUSE, 12, 1), (HOUSE, 5, 4), (HOUSE, 12, 4), (HOUSE, 5, 8),
        (WILD, 10, 1), (WILD, 10, 4),
    ):  # fmt: skip
        yield Planted(EQUAL, plot, blocks, (0.0,) * cells, "worse", "at most", PROMISE)
    for cells in (1, 4):
        yield Planted(EQUAL, HOUSE, 12, (0.0,) * cells, "worse", "at most", PROMISE, margin_percent=0.01)
    yield Planted(EQUAL, HOUSE, 10, (0.0,), "worse", "at most", PROMISE, pairs=True)
    for plot, blocks in ((CALM, enough(CALM, 0.0, green=True)), (CALM, 6), (UNEVEN, 20)):
        chance = announced(plot, blocks, 0.0, green=True)
        yield Planted(PASSES, plot, blocks, (0.0,), "not worse", "announced", chance)
    for counted in ("worse", "not worse"):
        for cells in (1, 4):
            share = PROMISE if counted == "worse" else PROMISE / 2
            yield Planted(AT_MARGIN, HOUSE, 12, (MARGIN_PERCENT,) * cells, counted, "at most", share)


def _means(planted: Planted, rng: np.random.Generator) -> list[tuple[Numbers, Numbers]]:
    """Trials of both builds in each cell, each of shape (starts, trials)."""
    plot, ratios = planted.plot, [1 + loss / 100 for loss in planted.losses_percent]
    if planted.pairs:
        shared = MEAN_MS * plot.starts(rng, 1, planted.blocks)
        own = Plot(plot.kind, 0.01, plot.trial_cv, plot.trials)
        return [
            (plot.within(rng, shared)[0], plot.within(rng, shared * own.starts(rng, 1, planted.blocks) * ratio)[0])
            for ratio in ratios
        ]
    starts = [plot.starts(rng, 1, planted.blocks) for _ in range(2)]
    return [
        (plot.within(rng, MEAN_MS * starts[0])[0], plot.within(rng, MEAN_MS * ratio * starts[1])[0]) for ratio in ratios
    ]


def judge(planted: Planted, rng: np.random.Generator) -> GateVerdict:
    """Draw one study, and judge it as `steelyard gate` does, from the frame of its trials on."""
    cells = "ABCDEFGH"[: len(planted.losses_percent)]
    drawn = _means(planted, rng)
    values = np.stack([side[place] for place in (0, 1) for side in drawn])
    if planted.pairs:  # a factor that needs no new cluster: the builds are two workloads of the same starts
        frame = frame_of(values, [(1, "A"), (1, "B")])
        a, b = Side("a", frame, {"workload": "A"}), Side("b", frame, {"workload": "B"})
    else:
        frame = frame_of(values, [(size, cell) for size in (1, 2) for cell in cells])
        a, b = Side("a", frame, {"nodes": 1}), Side("b", frame, {"nodes": 2})
    compared = adjusted(contrasts(a, b, pair(a, b), RESPONSE, CONFIDENCE, planted.margin_percent))
    return overall([case_of(a, b, contrast, planted.margin_percent, len(compared)).verdict for contrast in compared])


def judge_means(planted: Planted, rng: np.random.Generator) -> GateVerdict:
    """The same from start means on, by the same ratio and verdict: a hundredth of the time."""
    verdicts: list[GateVerdict] = []
    for trials_a, trials_b in _means(planted, rng):
        a, b = (tuple(float(mean) for mean in trials.mean(axis=-1)) for trials in (trials_a, trials_b))
        sample = LevelPair("start means", "start" if planted.pairs else "block", a, b)
        confidences = CONFIDENCE, family_confidence(CONFIDENCE, len(planted.losses_percent))
        plain, wide = (ratio_of(sample, confidence) for confidence in confidences)
        if plain is None or wide is None:
            raise ValueError("a mean of 0 was drawn")
        verdicts.append(verdict_of(RESPONSE, plain, wide, planted.margin_percent))
    return overall(verdicts)


@dataclass(frozen=True)
class Row:
    """Counts of one planted case."""

    planted: Planted
    studies: int
    verdicts: dict[str, int]

    @property
    def counted(self) -> int:
        """Gates with the verdict that the row is about."""
        return self.verdicts.get(self.planted.counted, 0)

    @property
    def ends(self) -> tuple[float, float]:
        """Exact binomial interval of the counted share (Clopper and Pearson 1934)."""
        interval = stats.binomtest(self.counted, self.studies).proportion_ci(OF_THE_COUNT, method="exact")
        return float(interval.low), float(interval.high)

    @property
    def holds(self) -> bool:
        """Whether what was announced lies within the interval of what was counted; or what is promised not below it."""
        low, high = self.ends
        return low <= self.planted.share and (self.planted.against == "at most" or self.planted.share <= high)


def count(planted: Planted, studies: int, seed: int, whole: int = WHOLE) -> Row:
    """Draw and judge. Raises ValueError if one of the first `whole` studies has another verdict when it is judged from
    the frame of its trials on."""
    verdicts: dict[str, int] = {}
    for study in range(studies):
        drawn_by = [seed, zlib.crc32(planted.key.encode()), study]
        verdict = judge_means(planted, np.random.default_rng(drawn_by))
        if study < whole and judge(planted, np.random.default_rng(drawn_by)) != verdict:
            raise ValueError(f"study {study} of {planted.key}: the gate itself does not say {verdict}")
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
    return Row(planted, studies, verdicts)


def all_hold(rows: Sequence[Row]) -> bool:
    """Whether every row holds."""
    return all(row.holds for row in rows)
