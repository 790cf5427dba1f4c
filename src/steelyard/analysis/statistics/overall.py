"""Overall comparison of a level with its baseline: geometric mean of the ratios over all other factors."""

from __future__ import annotations

import math
from typing import Annotated

from steelyard.analysis.comparisons.contrasts import Cells, Key, key_of, logs, ratio, sentence_of
from steelyard.analysis.comparisons.judgement import MeanOfLevel
from steelyard.analysis.comparisons.level_pairs import baseline_of
from steelyard.analysis.comparisons.level_ratios import judge
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import NO_UNIT, Column, Ratio
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import WORKLOADS, label, pair_label
from steelyard.analysis.wording import change_of, change_text
from steelyard.format import number
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import label_of, of


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
    """Where the smallest ratio is."""
    greatest: Annotated[float, Column(unit=NO_UNIT)]
    """Greatest ratio of a cell."""
    greatest_at: str
    """Where the largest ratio is."""


FEWEST_CELLS = 2


def overall(
    frame: TrialFrame, response: str, confidence: float = 0.95, margin_percent: float | None = None
) -> tuple[Overall, ...]:
    """Every level of every factor but the workload against its baseline, over the combinations that have both.

    A factor needs two such combinations; with one, its ratio is already the answer. Within a declared margin a level is
    equivalent by two one-sided tests (Schuirmann 1987), each with the error 1 - `confidence`. Empty of a response that
    is compared by differences.
    """
    logarithms = logs(frame, response) if of(response).compared == "ratio" else None
    if logarithms is None:
        return ()
    rows = (
        _overall(frame, logarithms, factor, baseline_of(levels), level, response, confidence, margin_percent)
        for factor, levels in frame.factors.items()
        for level in levels
        if factor not in WORKLOADS and level != baseline_of(levels)
    )
    return tuple(row for row in rows if row is not None)


def _overall(
    frame: TrialFrame, logarithms: Cells, factor: str, baseline: Level, level: Level, response: str, confidence: float,
    margin_percent: float | None,
) -> Overall | None:  # fmt: skip
    every = list(frame.others(factor))
    gaps: dict[str, float] = {}
    signs: dict[Key, int] = {}
    for others in every:
        base, other = (key_of(frame, {**others, factor: one}) for one in (baseline, level))
        below, above = logarithms.mean(base), logarithms.mean(other)
        if below is not None and above is not None:
            gaps[label(others)] = above - below
            signs |= {base: -1, other: 1}
    weights = {key: sign / len(gaps) for key, sign in signs.items()}
    change = ratio(logarithms, weights, confidence) if len(gaps) >= FEWEST_CELLS else None
    if change is None:
        return None
    least, greatest = min(gaps, key=lambda one: gaps[one]), max(gaps, key=lambda one: gaps[one])
    low, high = (f"{change_of(math.exp(gaps[one]), response)} ({one})" for one in (least, greatest))
    head = f"{pair_label(factor, level, baseline)}, over {len(gaps)} combinations of the other factors"
    verdict, sentence = judge(response, change), sentence_of(head, response, change)
    if margin_percent is not None and _within(ratio(logarithms, weights, 2 * confidence - 1), margin_percent):
        verdict, within = "equivalent", f"within {number(margin_percent, digits=2)}%"
        sentence = f"{head}: equivalent: {label_of(response)} {change_text(change, response)}, {within}"
    return Overall(
        factor=factor, baseline=baseline, level=level, response=response, cells=len(gaps),
        left_out=len(every) - len(gaps), ratio=change,
        starts=sum(not weights.keys().isdisjoint(cells) for cells in logarithms.of.values()),
        least=math.exp(gaps[least]), least_at=least, greatest=math.exp(gaps[greatest]), greatest_at=greatest,
        verdict=verdict, sentence=f"{sentence}; from {low} to {high}",
    )  # fmt: skip


def _within(inner: Estimate | None, margin_percent: float) -> bool:
    """Whether an interval, whose two ends are those of two one-sided tests, lies within the margin."""
    if inner is None or inner.low is None or inner.high is None:
        return False
    most = 1 + margin_percent / 100
    return 1 / most < inner.low and inner.high < most


STATISTIC = Statistic(
    name="overall",
    row=Overall,
    title="Each level against its baseline over all other factors: geometric means of ratios of {response}",
    section=Section.ANSWER,
    compute=lambda context: tuple(
        row.judged(context.frame, context.floors, context.of(Trend))
        for row in overall(
            context.frame, context.response, context.confidence, context.study.analysis.equivalence_margin_percent
        )
    ),
    order=60,
)
