"""Box plots with all points: quartiles, whiskers, mean. Built from the rows of the results."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.dispersion import WHISKER
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import Treatment
from steelyard.model.value import Value


class Box(Value):
    """One box plot with all points: quartiles, whiskers to the last point within 1.5 interquartile ranges."""

    treatment: Treatment
    response: str
    unit: str
    n: int
    starts: int
    q1: float
    median: float
    q3: float
    whisker_low: float
    whisker_high: float
    mean: float
    sd: float | None
    values: tuple[float, ...]
    """Every used trial, in order of time."""


def boxes(results: Results) -> tuple[Box, ...]:
    """The main response of every treatment that has a used trial."""
    points = [point for point in results.of(Point) if point.used and not point.control]
    treatments = [summary.treatment for summary in results.main(Summary)]
    of = [(treatment, [point for point in points if point.treatment == treatment]) for treatment in treatments]
    return tuple(_box(treatment, found, results.response, results.unit) for treatment, found in of if found)


def _box(treatment: Treatment, points: Sequence[Point], response: str, unit: str) -> Box:
    values = [point.value for point in points]
    q1, q2, q3 = (estimates.quantile(values, share) for share in (0.25, 0.5, 0.75))
    inside = [value for value in values if q1 - WHISKER * (q3 - q1) <= value <= q3 + WHISKER * (q3 - q1)]
    return Box(
        treatment=treatment,
        response=response,
        unit=unit,
        n=len(values),
        starts=len({point.start for point in points}),
        q1=q1,
        median=q2,
        q3=q3,
        whisker_low=min(inside, default=q1),
        whisker_high=max(inside, default=q3),
        mean=sum(values) / len(values),
        sd=estimates.deviation(values) if len(values) > 1 else None,
        values=tuple(values),
    )
