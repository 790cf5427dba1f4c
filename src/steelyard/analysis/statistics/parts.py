"""Mean value analysis of chekkilla2016: the means of equal parts of a trial, over trials.

Seconds inside a trial are repeated measurements and are only averaged: the unit is the trial, with one mean per part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import InUnit, MeasuredTreatment
from steelyard.analysis.statistic import Attempt, Context, Section, Statistic, Within
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.model.responses import unit_of
from steelyard.model.study import Level


class PartMean(MeasuredTreatment):
    """Mean of one of k equal parts of a trial, over trials of a treatment: mean value analysis (chekkilla2016).

    A trial with fewer than k whole seconds is left out of that cut: a last second that was cut off is none.
    """

    parts: int
    """Equal parts that each trial was cut into."""
    part: int
    """Which part, from 1."""
    n: int
    """Trials."""
    mean: InUnit
    """Mean over trials of the part's mean; t interval over trials."""
    mean_z: InUnit
    """The same with a normal interval, as published."""


SERIES = ("response_ms_mean", "throughput_per_s")
"""Series of the seconds that are averaged over each part."""
PARTS = (2, 4, 8)
"""Numbers of parts that chekkilla2016 printed."""


def part_means(series: Sequence[float], parts: int) -> tuple[float, ...]:
    """Mean of each of `parts` equal parts of one trial's series, in order; ValueError if it has fewer values.

    Part i of n values is those from round(i n / k) to round((i + 1) n / k): no value is lost or counted twice.
    """
    if parts < 1 or len(series) < parts:
        raise ValueError(f"{len(series)} values cannot be cut into {parts} parts")
    bounds = [round(place * len(series) / parts) for place in range(parts + 1)]
    return tuple(math.fsum(series[low:high]) / (high - low) for low, high in itertools.pairwise(bounds))


def mean_values(
    trials: Sequence[Sequence[float]], response: str, unit: str, *, treatment: Mapping[str, Level] | None = None,
    parts: Sequence[int] = PARTS, confidence: float = 0.95,
) -> tuple[PartMean, ...]:  # fmt: skip
    """Means over trials of each part of each number of parts, with both intervals; short trials are left out of a cut.

    `trials` holds one series per trial, in equal steps of time.
    """
    rows = []
    for count in parts:
        cut = [part_means(series, count) for series in trials if len(series) >= count]
        if not cut:
            continue
        for part, values in enumerate(zip(*cut, strict=True), start=1):
            rows.append(
                PartMean(
                    treatment=dict(treatment or {}), response=response, unit=unit, parts=count, part=part,
                    n=len(values), mean=estimates.quantity(estimates.mean(values, unit, confidence, "trials"), values),
                    mean_z=estimates.quantity(estimates.mean_z(values, unit, confidence, "trials"), values),
                )
            )  # fmt: skip
    return tuple(rows)


def _of_context(context: Context) -> Iterator[PartMean]:
    for of_treatment, response, trials in series_of(context.within):
        series = [[float(value) for value in seconds[response]] for _, seconds in trials]
        yield from mean_values(
            series, response, unit_of(response), treatment=of_treatment, confidence=context.confidence
        )  # fmt: skip


def series_of(within: Within) -> Iterator[tuple[Treatment, str, Sequence[tuple[Attempt, pl.DataFrame]]]]:
    """Treatment, response and trials of every series of seconds: of operations, and of the measures that the study
    names."""
    for of_treatment in within.seconds:
        for response in SERIES:
            yield of_treatment.treatment, response, of_treatment.trials
    for of_treatment in within.sampled:
        names = dict.fromkeys(name for _, frame in of_treatment.trials for name in frame.columns if name != "place")
        for response in names:
            yield of_treatment.treatment, response, of_treatment.trials


STATISTIC = Statistic(
    name="parts",
    row=PartMean,
    title="Means over equal parts of a trial",
    section=Section.WITHIN,
    compute=_of_context,
    order=10,
    own_form=True,
)
