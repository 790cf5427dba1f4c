"""Points of a trial: means of 30 s, or a stated shorter time, over starts of a treatment, as in chekkilla2016.

The seconds of a point are repeated measurements of it and are only averaged, and so are the trials of a start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from steelyard.analysis.row import Column
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.parts import WithinTrials, means_within_trials, series_of
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.model.responses import unit_of

LENGTHS_S: Final = (30, 10, 5, 2, 1)
"""Lengths of a point, seconds; the longest that gives FEWEST of them is taken."""
FEWEST: Final = 8
COVERED: Final = 0.5
"""Least share of a point's seconds that a trial must have."""


class TimePoint(WithinTrials):
    """Mean of one point in time of a trial, over the trials of a treatment."""

    point: int
    """Which point, from 1."""
    from_s: Annotated[float, Column(unit="seconds")]
    """When it begins, since the measured phases began."""
    seconds: Annotated[float, Column(unit="seconds")]
    """Its length: 30 s, as published, or less where the shortest trial with readings has fewer than eight such
    points."""


def length_s(seconds: float) -> int:
    """Length of a point for trials of this many seconds."""
    return next((length for length in LENGTHS_S if seconds >= FEWEST * length), LENGTHS_S[-1])


def point_means(series: Sequence[tuple[int, float]], length: int) -> dict[int, float]:
    """Mean of each whole point of one trial, by its number from 0; `series`: number of the second, and its value."""
    points: dict[int, list[float]] = {}
    for second, value in series:
        points.setdefault(second // length, []).append(value)
    last = max((second for second, _ in series), default=-1)
    return {
        place: math.fsum(values) / len(values)
        for place, values in points.items()
        if (place + 1) * length <= last + 1 and len(values) >= COVERED * length
    }


def time_points(
    treatment: Treatment, response: str, trials: Sequence[tuple[str, pl.DataFrame]], length: int,
    confidence: float = 0.95,
) -> Iterator[TimePoint]:  # fmt: skip
    """The points of one treatment and response that two trials or more have; `trials`: (start, seconds)."""
    by_trial = [(start, point_means(_numbered(frame, response), length)) for start, frame in trials]
    unit = unit_of(response)
    for place in sorted({place for _, points in by_trial for place in points}):
        of_starts = [(start, points[place]) for start, points in by_trial if place in points]
        if len(of_starts) > 1:
            yield TimePoint(
                treatment=treatment, response=response, unit=unit, point=place + 1, from_s=float(place * length),
                seconds=float(length), **means_within_trials(of_starts, unit, confidence),
            )  # fmt: skip


def _numbered(frame: pl.DataFrame, response: str) -> list[tuple[int, float]]:
    places = frame["place"].cast(pl.Int64).to_list() if "place" in frame.columns else list(range(frame.height))
    return [(place, float(value)) for place, value in zip(places, frame[response], strict=True)]


def _of_context(context: Context) -> Iterator[TimePoint]:
    every = list(series_of(context))
    lengths = [len(_numbered(frame, name)) for _, name, trials in every for _, frame in trials]
    length = length_s(min(filter(None, lengths), default=0))
    for treatment, response, trials in every:
        yield from time_points(treatment, response, trials, length, context.confidence)


STATISTIC = Statistic(
    name="time_point",
    row=TimePoint,
    title="Points in time of a trial, over starts",
    section=Section.WITHIN,
    compute=_of_context,
    order=15,
    appendix=True,
)
