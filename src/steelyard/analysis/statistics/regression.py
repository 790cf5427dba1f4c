"""Linear regression over a numeric factor: as published, and at the level of randomisation.

For a hard-to-change factor the honest form fits start means; for one that varies within starts it fits each start
separately, and the starts' slopes are the units.
"""

from __future__ import annotations

import math

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.least_squares import Fit, line
from steelyard.analysis.row import Levels, MeasuredRow
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.exclusions import exclusions
from steelyard.analysis.treatments import Treatment, part
from steelyard.heavy import pl, special, stats
from steelyard.judging import t_interval
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.responses import unit_of


class Regression(MeasuredRow):
    """The response over a numeric factor, for one combination of the other factors."""

    factor: str
    """Numeric factor on the x axis."""
    others: Levels
    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster."""
    excluded: int
    """Trials (attempts) left out."""
    published: Fit | None = None
    """Over trials, as richardson2017 printed it (repeated measures are counted as independent, so p and standard error
    come out too small)."""
    honest: Fit | None = None
    """Over start means, at which the factor was randomised; within starts, where it varies there."""
    note: str = ""
    """Why a form is missing."""


def regress(frame: TrialFrame, response: str, factor: str, others: Treatment, confidence: float = 0.95) -> Regression:
    """The response over a numeric factor, other factors fixed: over trials, and over start means or within starts."""
    unit = unit_of(response)
    rows = frame.numbered(frame.values(response, others).filter(pl.col(factor).is_not_null()), factor)
    x = [float(level) for level in rows[factor]]
    y = [float(value) for value in rows[response]]
    starts = rows.group_by(factor, "start", maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    per_level = starts.group_by(factor).len()["len"].to_list()
    repeated = max(per_level, default=0) > 1
    honest = None
    if factor not in frame.hard:
        honest = _within_starts(starts, response, factor, unit, confidence)
        note = "" if honest else f"Fewer than three starts have two levels of {factor}: no error term for its slope."
    else:
        note = ""
    if repeated and factor in frame.hard:
        honest = line(
            [float(level) for level in starts[factor]],
            [float(value) for value in starts[response]],
            unit,
            confidence,
            "start means",
        )
    return Regression(
        factor=factor, others=others, response=response, unit=unit, n=len(x), starts=starts["start"].n_unique(),
        excluded=sum(exclusion.trials for exclusion in exclusions(frame, response, others)),
        published=line(x, y, unit, confidence, "trials, counted as independent"), honest=honest,
        note=note if factor not in frame.hard
        else _note(factor, starts[factor].n_unique(), starts.height, repeated, honest is not None),
    )  # fmt: skip


def _within_starts(cells: pl.DataFrame, response: str, factor: str, unit: str, confidence: float) -> Fit | None:
    """Mean of the starts' own slopes and intercepts, t over starts; None below three starts with a line.

    A start is one unit and the spread of slopes over starts is the error, so the factor's effect may differ between
    starts (summary measures: J. N. S. Matthews et al., British Medical Journal 300, 1990).
    """
    slopes, intercepts = [], []
    for start_rows in cells.partition_by("start", maintain_order=True):
        if start_rows[factor].n_unique() > 1:
            fit = stats.linregress([float(x) for x in start_rows[factor]], [float(y) for y in start_rows[response]])
            slopes.append(float(fit.slope))
            intercepts.append(float(fit.intercept))
    if len(slopes) < FEWEST_STARTS:
        return None
    over = "the starts' own slopes"
    slope = estimates.mean(slopes, f"{unit} per step", confidence, over)
    errors = [t_interval.deviation(values) / math.sqrt(len(values)) for values in (slopes, intercepts)]
    p = float(2 * special.stdtr(len(slopes) - 1, -abs(slope.value) / errors[0])) if errors[0] > 0 else None
    return Fit(
        slope=slope, intercept=estimates.mean(intercepts, unit, confidence, "the starts' own intercepts"), p=p,
        std_err=errors[0], intercept_std_err=errors[1], n=len(slopes),
    )  # fmt: skip


def _note(factor: str, levels: int, starts: int, repeated: bool, fitted: bool) -> str:
    if fitted:
        return ""
    if levels < 2:
        return f"Only {levels} level of {factor} has valid trials: there is no line to fit."
    if not repeated:
        return (
            f"Each level of {factor} was started once, so there is no error term for {factor}: differences between "
            "starts cannot be separated from differences between levels. The published form counts trials as if they "
            "were starts."
        )
    return f"{starts} starts leave no degree of freedom for an error of the slope over {part(factor, 2)} and others."


def regressions(frame: TrialFrame, response: str, factor: str, confidence: float = 0.95) -> tuple[Regression, ...]:
    """One regression for each combination of the other factors."""
    return tuple(regress(frame, response, factor, others, confidence) for others in frame.others(factor))


STATISTIC = Statistic(
    name="regression",
    row=Regression,
    title="Straight lines of {response} over {size}",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: (
        regressions(context.sized, context.response, context.size, context.confidence) if context.size else ()
    ),
    order=20,
    without_size=True,
)
