"""Drift of the response over the hours of the study, and its noise floor.

What moves within starts is tested by the statistic `trend`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

from steelyard.analysis.comparisons.identical_systems import settings_unlike
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import HIDDEN, Column, FractionOrNone, Row
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.noise_floor import NoiseFloor, ResponseFloor, judged_against
from steelyard.format import duration, signed
from steelyard.heavy import np, pl
from steelyard.judging import t_interval
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate


class Validity(Row):
    """Drift and noise floor of the whole study."""

    n: int
    """Trials looked at, control trials included."""
    drift_per_hour: Annotated[Estimate | None, Column(unit="% an hour")] = None
    """Change of the response over time of day, after each treatment's own mean is taken out."""
    control_trials: int
    """Valid control trials."""
    noise_floor: FractionOrNone = None
    """Coefficient of variation of identical trials of a start."""
    sentence: Annotated[str, HIDDEN]
    """The drift in words."""
    floor: Annotated[NoiseFloor, HIDDEN]


TINY = 1e-12
"""Below this spread of x (hours or places, squared) there is no slope."""

SHORTEST_H = 1.0
"""Least length of a study for a slope per hour; below it the slope is an extrapolation."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"


def drift(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[int, Estimate | None, str]:
    """(trials, percent per hour, the sentence): the slope of the logarithm of the response over time of day.

    log(value) and hours, each minus its treatment's mean, so that no effect of a treatment is taken for drift (Frisch
    and Waugh 1933). Interval: jackknife over starts, because trials of a start move together: se^2 = (G - 1) / G sum
    (slope without start g - slope)^2, t with G - 1 degrees of freedom (Efron and Tibshirani 1993, chapter 11); None
    below three starts. No slope below SHORTEST_H hours. Control trials count, warm-up trials do not.
    """
    rows = frame.data.filter(pl.col("used") & (pl.col(response) > 0)).with_columns(
        log=pl.col(response).log(), hour=pl.col("begun_s") / 3600
    )
    span_h = _span(rows["hour"])
    per_hour = _slope(rows, frame.names, confidence) if span_h >= SHORTEST_H else None
    return rows.height, per_hour, _sentence(per_hour, span_h)


def _span(hours: pl.Series) -> float:
    """Hours between the first trial and the last."""
    values = hours.to_numpy()
    return float(values.max() - values.min()) if len(values) else 0.0


def _slope(rows: pl.DataFrame, names: Sequence[str], confidence: float) -> Estimate | None:
    groups = rows.select(pl.struct(*names).rank("dense")).to_series().to_numpy() if names else np.ones(rows.height)
    starts = rows["start"].to_numpy()
    x, y = rows["hour"].to_numpy(), rows["log"].to_numpy()
    slope = _within(x, y, groups)
    if slope is None:
        return None
    method = "slope of the logarithm after treatment means are taken out, jackknife over starts"
    without = [_within(x[kept], y[kept], groups[kept]) for kept in (starts != start for start in np.unique(starts))]
    slopes = np.asarray([one for one in without if one is not None])
    count = len(slopes)
    if count < FEWEST_STARTS:
        method = f"{method}; {len(without)} starts are too few for an interval"
        return Estimate.of(100 * math.expm1(slope), None, "% an hour", confidence, rows.height, method)
    error = math.sqrt((count - 1) / count * float(np.sum((slopes - slope) ** 2)))
    half = t_interval.t_quantile(confidence, count - 1) * error
    method = f"{method}, t interval with {count - 1} degrees of freedom"
    ratio = estimates.exponential(slope, half, "", confidence, rows.height, method)
    return ratio.mapped(lambda one: 100 * (one - 1), "% an hour")


def _within(x: Numbers, y: Numbers, groups: Numbers) -> float | None:
    """Slope of y over x, both minus their group's mean; None if no group has two different x."""
    if len(x) < 2:
        return None
    _, code = np.unique(groups, return_inverse=True)
    size = np.bincount(code)
    x = x - (np.bincount(code, x) / size)[code]
    y = y - (np.bincount(code, y) / size)[code]
    spread = float(x @ x)
    return float(x @ y) / spread if spread > TINY else None


def _sentence(per_hour: Estimate | None, span_h: float) -> str:
    if 0 < span_h < SHORTEST_H:
        return f"The study took {duration(3600 * span_h)}: too short to show drift over the hours."
    if per_hour is None:
        return "Too few trials to look for drift."
    if per_hour.low is None or per_hour.high is None:
        return f"The values moved by {signed(per_hour.value)}% an hour; too few starts to give that an interval."
    interval = f"[{signed(per_hour.low)}, {signed(per_hour.high)}]% an hour"
    if per_hour.low <= 0 <= per_hour.high:
        return f"Drift is not shown: {interval} includes 0."
    return f"The values drifted by {signed(per_hour.value)}% an hour, {interval}."


def validity(context: Context) -> tuple[Validity]:
    """The one row of the study."""
    n, per_hour, sentence = drift(context.frame, context.response, context.confidence)
    differing = settings_unlike(context.records, context.floors)
    floor = judged_against(context.of(ResponseFloor), context.frame, context.response, context.floors, differing)
    return (
        Validity(
            n=n, drift_per_hour=per_hour, control_trials=floor.control_trials, noise_floor=floor.cv,
            sentence=sentence, floor=floor,
        ),
    )  # fmt: skip


def sentences(rows: Sequence[Validity], response: str) -> Iterator[str]:
    """Caveats: no noise floor, a floor measured under other conditions, drift."""
    for row in rows:
        if row.floor.source == "none" or row.floor.unlike:
            yield row.floor.sentence
        per_hour = row.drift_per_hour
        if per_hour and per_hour.low is not None and per_hour.high is not None and per_hour.low * per_hour.high > 0:
            yield row.sentence


STATISTIC = Statistic(
    name="validity",
    row=Validity,
    title="Drift and noise floor",
    section=Section.VALIDITY,
    compute=validity,
    sentences=sentences,
    order=10,
    sentence_order=10,
)
