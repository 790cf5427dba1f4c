"""Absolute differentials of richardson2017: level minus baseline, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import pairs_of_levels
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import IN_UNIT, Column, InUnit, InUnitOrNone, MeasuredLevels, NumberInUnit
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import unit_of


class Differential(MeasuredLevels):
    """Level minus baseline, trial by trial in their order: richardson2017's absolute differentials. Its intervals count
    the pairs of trials as independent, as published."""

    n: int
    """Pairs of trials: the same start number and the same place among the trials of their treatment."""
    mean: InUnit
    """Mean of level minus baseline."""
    sd: InUnitOrNone = None
    """Standard deviation of the differences (n - 1)."""
    min: NumberInUnit
    """Least difference: as measured, a difference of two trials, no estimate."""
    q1: Annotated[Estimate | None, Column(unit=IN_UNIT, head="25%")] = None
    """First quartile of the differences."""
    median: InUnit
    """Median difference."""
    q3: Annotated[Estimate | None, Column(unit=IN_UNIT, head="75%")] = None
    """Third quartile of the differences."""
    max: NumberInUnit
    """Greatest difference: as measured."""
    greatest: NumberInUnit
    """The difference farthest from 0, with its sign."""


def differentials(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Differential, ...]:
    """Level minus baseline, paired by start number and by place among the used trials of the treatment."""
    rows = []
    for factor, base, level, others in pairs_of_levels(frame):
        keys = ["start_replicate", "place"]
        place = pl.col("order_of_treatment").rank("ordinal").over("start").alias("place")
        rows_b, rows_l = (
            frame.values(response, {**others, factor: one})
            .with_columns(place)
            .select(*keys, pl.col(response).cast(pl.Float64))
            for one in (base, level)
        )
        joined = rows_b.join(rows_l, on=keys, how="inner", suffix="_level").sort(keys)
        gaps = [float(gap) for gap in joined[f"{response}_level"] - joined[response]]
        if gaps:
            rows.append(_differential(gaps, response, confidence, (factor, base, level, others)))
    return tuple(rows)


def _differential(
    gaps: Sequence[float], response: str, confidence: float, of: tuple[str, Level, Level, Treatment]
) -> Differential:
    factor, baseline, level, others = of
    unit, over = unit_of(response), "pairs of trials, counted as independent"
    return Differential(
        factor=factor, baseline=baseline, level=level, others=others, response=response, unit=unit, n=len(gaps),
        mean=estimates.mean(gaps, unit, confidence, over),
        sd=estimates.standard_deviation(gaps, unit, confidence, over),
        min=min(gaps), q1=estimates.quartile(gaps, 0.25, unit, confidence, over),
        median=estimates.median(gaps, unit, confidence, over),
        q3=estimates.quartile(gaps, 0.75, unit, confidence, over), max=max(gaps), greatest=max(gaps, key=abs),
    )  # fmt: skip


STATISTIC = Statistic(
    name="differential",
    row=Differential,
    title="Differences of {response}, trial by trial, of each level from its baseline",
    section=Section.ANSWER,
    compute=lambda context: differentials(context.frame, context.response, context.confidence),
    order=40,
    published_form=True,
)
