"""Overall comparison of a level with its baseline: geometric mean of the ratios over all other factors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

from steelyard.analysis.comparisons.contrasts import Cells, Key, key_of, logs, ratio, sentence_of
from steelyard.analysis.comparisons.judgement import MeanOfLevel
from steelyard.analysis.comparisons.level_pairs import baseline_of
from steelyard.analysis.comparisons.level_ratios import judge
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import NO_UNIT, Column, Ratio
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import WORKLOADS, label, part
from steelyard.analysis.wording import change_of
from steelyard.model.study import Level


class Overall(MeanOfLevel):
    """A level against its baseline over all levels of the other factors: the geometric mean of the ratios."""

    cells: int
    """Combinations of the other factors that have both levels."""
    left_out: int
    """Combinations that lack one of them."""
    ratio: Ratio
    """Geometric mean of the cells' ratios, level over baseline."""
    least: Annotated[float, Column(unit=NO_UNIT)]
    """Least ratio of a cell: a mean hides that cells differ."""
    least_at: str
    """Where the least ratio is."""
    greatest: Annotated[float, Column(unit=NO_UNIT)]
    """Greatest ratio of a cell."""
    greatest_at: str
    """Where the greatest ratio is."""


FEWEST_CELLS = 2


def overall(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Overall, ...]:
    """Every level of every factor but the workload against its baseline, over the combinations that have both.

    A factor needs two such combinations; with one, its ratio is already the answer.
    """
    logarithms = logs(frame, response)
    if logarithms is None:
        return ()
    rows = []
    for factor in (name for name in frame.names if name not in WORKLOADS):
        levels = frame.factors[factor]
        for level in levels:
            if level != baseline_of(levels):
                row = _overall(frame, logarithms, (factor, baseline_of(levels), level), response, confidence)
                rows += [row] if row is not None else []
    return tuple(rows)


def _overall(
    frame: TrialFrame, logarithms: Cells, of: tuple[str, Level, Level], response: str, confidence: float
) -> Overall | None:
    factor, baseline, level = of
    every = list(frame.others(factor))
    pairs = {
        label(one): (key_of(frame, {**one, factor: baseline}), key_of(frame, {**one, factor: level})) for one in every
    }
    gaps: dict[str, float] = {}
    weights: dict[Key, float] = {}
    for name, (base, high) in pairs.items():
        below, above = logarithms.mean(base), logarithms.mean(high)
        if below is not None and above is not None:
            gaps[name] = above - below
    for name in gaps:
        base, high = pairs[name]
        weights |= {base: -1 / len(gaps), high: 1 / len(gaps)}
    change = ratio(logarithms, weights, confidence) if len(gaps) >= FEWEST_CELLS else None
    if change is None:
        return None
    least, greatest = min(gaps, key=lambda one: gaps[one]), max(gaps, key=lambda one: gaps[one])
    low, high_ = (f"{change_of(math.exp(gaps[one]), response)} ({one})" for one in (least, greatest))
    head = f"{part(factor, level)} against {part(factor, baseline)}, over {len(gaps)} combinations of the other factors"
    return Overall(
        factor=factor, baseline=baseline, level=level, response=response, cells=len(gaps),
        left_out=len(every) - len(gaps), starts=_starts(logarithms, weights), ratio=change,
        least=math.exp(gaps[least]), least_at=least, greatest=math.exp(gaps[greatest]), greatest_at=greatest,
        verdict=judge(response, change), sentence=f"{sentence_of(head, response, change)}; from {low} to {high_}",
    )  # fmt: skip


def _starts(logarithms: Cells, weights: Iterable[Key]) -> int:
    keys = set(weights)
    return sum(bool(keys & cells.keys()) for cells in logarithms.of.values())


STATISTIC = Statistic(
    name="overall",
    row=Overall,
    title="Each level against its baseline over all other factors: geometric means of ratios of {response}",
    section=Section.ANSWER,
    compute=lambda context: tuple(
        row.judged(context.frame, context.floors, context.of(Trend))
        for row in overall(context.frame, context.response, context.confidence)
    ),
    order=60,
)
