"""Series of a start, for the test of a trend: its trials as one series, and the seconds within them.

Trials: each treatment's own level in the start is taken out, so that interleaved treatments make one series. Seconds:
each trial's own level is taken out, so that only what changes within trials counts; trials and seconds then share no
evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.warming import Series, settling_places
from steelyard.analysis.statistic import Seconds
from steelyard.heavy import np, pl
from steelyard.model import responses
from steelyard.model.response import Direction
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.trial import Attempt

MOST_SECONDS = 240
"""With more seconds in a start, means of several are taken."""
FEWEST_SECONDS = 30
FEWEST_OF_TRIAL = 4
"""A trial with fewer values says nothing of its course."""
PARTS = (2, 4, 8, 16)
"""Curves over seconds settle after these parts of a start."""


def seconds_of(response: str) -> str:
    """The response of seconds that represents a response of trials."""
    faster = responses.of(response).direction is Direction.MORE_IS_FASTER
    return "throughput_per_s" if faster else "response_ms_mean"


def placed(frame: TrialFrame, response: str) -> pl.DataFrame:
    """The used rows with a value above 0; `at` is the place of the attempt among all attempts of its start, by time."""
    at = pl.col("begun_s").rank("ordinal").over("start").cast(pl.Float64)
    every = TrialFrame(frame.data.with_columns(at=at), frame.factors, frame.hard, frame.warm_up_trials)
    return every.values(response).filter(pl.col(response) > 0)


def of_trials(frame: TrialFrame, response: str) -> dict[str, Series]:
    """Start to the series of its used trials, in order of time."""
    series = {}
    for (start,), rows in placed(frame, response).sort("at").group_by("start", maintain_order=True):
        at = rows["at"].to_numpy() - float(rows["at"][0])
        treatments = [tuple(row) for row in rows.select(frame.names).iter_rows()] if frame.names else [()] * rows.height
        names = list(dict.fromkeys(treatments))
        series[str(start)] = Series(
            logs=np.log(rows[response].cast(pl.Float64).to_numpy()), at=at,
            level=np.asarray([names.index(one) for one in treatments]), block=np.zeros(rows.height, dtype=int),
            place=at, settles=settling_places(float(at[-1]) + 1), steps=True,
        )  # fmt: skip
    return series


def of_seconds(frame: TrialFrame, response: str, seconds: Sequence[Seconds]) -> dict[str, Series]:
    """Start to the series of the seconds within its used trials; starts with too few seconds are left out.

    The first second of a trial is left out: connections and caches of the trial itself begin there. None of responses
    that the seconds of a load do not give (CPU, capacity), nor where trials search: their seconds have other rates.
    """
    searched = CAPACITY in frame.data.columns and bool(frame.data[CAPACITY].is_not_null().any())
    if searched or responses.of(response).source != "records":
        return {}
    column = seconds_of(response)
    where: dict[Attempt, tuple[str, float]] = {
        (row["trial_id"], row["attempt"]): (str(row["start"]), float(row["at"]))
        for row in placed(frame, response).iter_rows(named=True)
    }
    by_start: dict[str, list[tuple[float, pl.DataFrame]]] = {}
    for of in seconds:
        for attempt, values in of.trials:
            place = [] if "place" in values.columns else [pl.int_range(pl.len()).cast(pl.Float64).alias("place")]
            kept = values.with_columns(place).filter((pl.col("place") >= 1) & (pl.col(column) > 0))
            if attempt in where and kept.height >= FEWEST_OF_TRIAL:
                start, at = where[attempt]
                by_start.setdefault(start, []).append((at, kept))
    series = {start: _seconds(trials, column) for start, trials in by_start.items()}
    return {start: one for start, one in series.items() if one is not None}


def _seconds(trials: Sequence[tuple[float, pl.DataFrame]], column: str) -> Series | None:
    each = max(1, math.ceil(sum(values.height for _, values in trials) / MOST_SECONDS))
    group = ((pl.col("place") - 1) // each).cast(pl.Int64).alias("group")
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for at, values in sorted(trials, key=lambda one: one[0]):
        means = values.group_by(group, maintain_order=True).agg(pl.col(column).cast(pl.Float64).mean()).sort("group")
        if means.height < FEWEST_OF_TRIAL:
            continue
        place = means["group"].to_numpy().astype(float)
        parts.append((np.log(means[column].to_numpy()), place, at + (place + 0.5) / (place[-1] + 1)))
    sizes = [len(place) for _, place, _ in parts]
    if sum(sizes) < FEWEST_SECONDS:
        return None
    logs, places, at_s = (np.concatenate(each_part) for each_part in zip(*parts, strict=True))
    at_s, trial = at_s - at_s.min(), np.repeat(np.arange(len(parts)), sizes)
    span, a_trial = float(at_s.max()), sum(sizes) / len(parts)
    settles = tuple(span / part for part in PARTS if span / part * a_trial >= FEWEST_OF_TRIAL)
    return Series(logs=logs, at=at_s, level=trial, block=trial, place=places, settles=settles or (span,), steps=False)
