"""Regression of a response on a 0/1 indicator of the level, as in richardson2017."""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import Over, level_pairs, pairs_of_levels
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.least_squares import line
from steelyard.analysis.row import IN_UNIT, Column, InUnit, MeasuredLevels, Number, P
from steelyard.analysis.statistic import Section, Statistic
from steelyard.model.responses import unit_of


class EffectLine(MeasuredLevels):
    """Straight line of a response over a 0/1 indicator of the level: intercept = baseline's mean, slope = difference.

    As in richardson2017. The same as `Effect.difference`, except that both sides are assumed to have the same spread.
    """

    over: Over
    """Unit of `n`: start means, or trials treated as independent."""
    n: int
    """Number of units: start means or trials."""
    slope: InUnit
    """Difference of means."""
    intercept: InUnit
    """Mean of the baseline."""
    r: Number = None
    """Pearson's correlation of response and indicator."""
    std_err: Annotated[float, Column(unit=IN_UNIT, head="std. error")]
    """Standard error of the slope."""
    p: P = None
    """Two-sided p-value for a slope of 0."""


def effect_lines(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[EffectLine, ...]:
    """Least squares over 0 (baseline) and 1 (level), by start means and by trials; none with fewer than three units."""
    rows = []
    for factor, base, level, others in pairs_of_levels(frame):
        for sample in level_pairs(frame, response, factor, base, level, others):
            x = [0.0] * len(sample.baseline) + [1.0] * len(sample.level)
            fit = line(x, [*sample.baseline, *sample.level], unit_of(response), confidence, str(sample))
            if fit is not None:
                rows.append(
                    EffectLine(
                        factor=factor, baseline=base, level=level, others=others, response=response,
                        unit=unit_of(response), over=sample.over, n=fit.n, slope=fit.slope, intercept=fit.intercept,
                        r=fit.r, p=fit.p, std_err=fit.std_err,
                    )
                )  # fmt: skip
    return tuple(rows)


STATISTIC = Statistic(
    name="effect_line",
    row=EffectLine,
    title="Straight lines of {response} over 0 (baseline) and 1 (level)",
    section=Section.ANSWER,
    compute=lambda context: effect_lines(context.frame, context.response, context.confidence),
    order=30,
    published_form=True,
)
