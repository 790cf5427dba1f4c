"""Mean value analysis of chekkilla2016: the means of equal parts of a trial, over starts.

Seconds inside a trial are repeated measurements and are only averaged, and so are the trials of a start.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import InUnit, MeasuredTreatment
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.model.named_level import Level
from steelyard.model.responses import unit_of


class WithinTrials(MeasuredTreatment):
    """Mean of something within a trial, over the trials of a treatment."""

    LAST: ClassVar[tuple[str, ...]] = ("n", "mean", "mean_z")

    n: int
    """Trials."""
    mean: InUnit
    """Mean over start means, t interval with three or more starts; of one start, over its trials."""
    mean_z: InUnit
    """Mean over trials with a normal interval, as published."""


def means_within_trials(of_starts: Sequence[tuple[str, float]], unit: str, confidence: float) -> dict[str, Any]:
    """The fields of `WithinTrials`, of (start, value) of each trial."""
    values = [value for _, value in of_starts]
    mean_z = estimates.quantity(estimates.mean_z(values, unit, confidence, "trials"), values)
    return {"n": len(values), "mean": estimates.by_start(of_starts, unit, confidence), "mean_z": mean_z}


class PartMean(WithinTrials):
    """Mean of one of k equal parts of a trial, over trials of a treatment: mean value analysis (chekkilla2016).

    A trial with fewer than k whole seconds is left out of that cut: a last second that was cut off is none.
    """

    parts: int
    """Equal parts that each trial was cut into."""
    part: int
    """Which part, from 1."""


NO_SERIES = ("trial", "place")
"""Columns of the seconds that are not averaged."""
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
    trials: Sequence[tuple[str, Sequence[float]]], response: str, unit: str, *,
    treatment: Mapping[str, Level] | None = None, parts: Sequence[int] = PARTS, confidence: float = 0.95,
) -> tuple[PartMean, ...]:  # fmt: skip
    """Means of each part of each number of parts, with both intervals; short trials are left out of a cut.

    `trials` holds the start and one series, in equal steps of time, per trial.
    """
    rows = []
    for count in parts:
        whole = [(start, part_means(series, count)) for start, series in trials if len(series) >= count]
        for part in range(1, count + 1) if whole else ():
            of_starts = [(start, means[part - 1]) for start, means in whole]
            about = {"treatment": dict(treatment or {}), "response": response, "unit": unit}
            rows.append(PartMean(**about, **means_within_trials(of_starts, unit, confidence), parts=count, part=part))
    return tuple(rows)


def _of_context(context: Context) -> Iterator[PartMean]:
    for of_treatment, response, trials in series_of(context):
        series = [(start, [float(value) for value in seconds[response]]) for start, seconds in trials]
        yield from mean_values(
            series, response, unit_of(response), treatment=of_treatment, confidence=context.confidence
        )  # fmt: skip


def series_of(context: Context) -> Iterator[tuple[Treatment, str, Sequence[tuple[str, pl.DataFrame]]]]:
    """Treatment, response, and (start, seconds) of its trials, for every series of seconds: of operations, and of the
    measures that the study names."""
    attempts = context.frame.data.select("trial_id", "attempt", "start").iter_rows()
    starts = {(trial, attempt): start for trial, attempt, start in attempts}
    for of_treatment in (*context.within.seconds, *context.within.sampled):
        trials = [(starts.get(attempt, attempt[0]), seconds) for attempt, seconds in of_treatment.trials]
        for response in dict.fromkeys(
            name for _, seconds in trials for name in seconds.columns if name not in NO_SERIES
        ):
            yield of_treatment.treatment, response, trials


STATISTIC = Statistic(
    name="parts",
    row=PartMean,
    title="Means over equal parts of a trial",
    section=Section.WITHIN,
    compute=_of_context,
    order=10,
    appendix=True,
)
