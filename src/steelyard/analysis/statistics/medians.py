"""Medians over sizes: the points of the main chart."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import InUnit, MeasuredTreatment
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.summary import summarise


class SizePoint(MeasuredTreatment):
    """One size on one line of the main chart; the size is among the levels of the treatment."""

    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster."""
    median: InUnit
    """Median over used trials."""
    mean: InUnit
    """Mean over start means, or over trials with one start; its method says which."""


def size_points(frame: TrialFrame, response: str, factor: str, confidence: float = 0.95) -> Iterator[SizePoint]:
    """Median and mean at each level of a numeric factor, for each combination of the other factors."""
    for others in frame.others(factor):
        for level in frame.in_order_of_numbers(factor):
            summary = summarise(frame, response, {**others, factor: level}, confidence)
            centre = summary.mean_of_starts or summary.mean
            if summary.median is not None and centre is not None:
                yield SizePoint(
                    treatment=summary.treatment, response=response, unit=summary.unit, n=summary.n,
                    starts=summary.starts, median=summary.median, mean=centre,
                )  # fmt: skip


STATISTIC = Statistic(
    name="medians",
    row=SizePoint,
    title="Median {response} over {size}",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: (
        size_points(context.frame, context.response, context.size, context.confidence) if context.size else ()
    ),
    order=10,
    own_form=True,
)
