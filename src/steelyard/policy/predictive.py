"""Policy `predictive`: acts on a forecast of the metric, so that nodes serve by the time they are needed.

The forecast is one of the series as it was seen: a change of size is a step in it.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

from pydantic import Field, model_validator

from steelyard.heavy import holtwinters
from steelyard.model.errors import StudyError
from steelyard.model.scaling import Desired, Point
from steelyard.policy._alarm import LONGEST_EVERY_S, ROUNDING
from steelyard.policy.base import Bounds, History, Policy, known, latest, value, warm
from steelyard.policy.target_tracking import TargetSettings, proportional

LEAST_POINTS: Final = 10
"""Points beyond a season that the initial level of Holt-Winters needs (statsmodels)."""


class Settings(TargetSettings):
    """Metric, its target, and the forecast."""

    model: Literal["linear", "holt-winters"] = "linear"
    """linear: a line of least squares; holt-winters: additive trend and season (needs statsmodels)."""
    horizon_s: float = Field(gt=0, le=86400)
    """Seconds ahead until which the greatest forecast counts."""
    t_scale_s: float = Field(default=0.0, ge=0, le=86400)
    """95th percentile of the measured seconds from the order of a node until it serves; 0: not known."""
    history_size: int = Field(default=60, ge=2, le=100_000)
    """Number of the last points that the forecast is made from."""
    seasonal_periods: int = Field(default=0, ge=0, le=10_000)
    """Points of a season; for holt-winters."""
    alpha: float = Field(default=0.5, gt=0, lt=1)
    """Smoothing of the level; for holt-winters."""
    beta: float = Field(default=0.1, gt=0, lt=1)
    """Smoothing of the trend; for holt-winters."""
    gamma: float = Field(default=0.1, gt=0, lt=1)
    """Smoothing of the season; for holt-winters."""
    fit: bool = False
    """Whether alpha, beta and gamma are fitted to the points each time, whatever they are set to."""
    reactive: bool = True
    """Whether the last point counts too: the size is the larger of the two (AWS: forecast and scale)."""
    disable_scale_in: bool = True
    """Whether nodes are never removed, as by predictive scaling of AWS."""

    @model_validator(mode="after")
    def _possible(self) -> Settings:
        if self.horizon_s < self.t_scale_s:
            raise ValueError(
                f"horizon_s = {self.horizon_s:g} is shorter than t_scale_s = {self.t_scale_s:g}: "
                "a node that is ordered for the end of the forecast serves after it"
            )
        if self.model == "holt-winters":
            if self.seasonal_periods < 2:
                raise ValueError(f"holt-winters needs seasonal_periods of 2 or more, not {self.seasonal_periods}")
            if self.history_size < self.least_points:
                raise ValueError(
                    f"history_size = {self.history_size} is too short: holt-winters with seasons of "
                    f"{self.seasonal_periods} points needs {self.least_points}"
                )
        return self

    @property
    def least_points(self) -> int:
        """Points without which there is no forecast."""
        if self.model == "linear":
            return 2
        return max(2 * self.seasonal_periods, LEAST_POINTS + 2 * (self.seasonal_periods // 2))


class Predictive:
    """Desires the size at which the greatest forecast would be at the target."""

    name = "predictive"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s = settings.metric, settings.period_s
        self.every_s = min(settings.period_s, LONGEST_EVERY_S)
        self._settings = settings
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The proportional size for the forecast, or for the last point if that is greater."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        ahead = forecast(history.points, settings, now_s)
        last = value(history) if settings.reactive else None
        values = [each for each in (ahead, last) if each is not None]
        if not values:
            return keep
        # Points are means over the nodes that served all of a period.
        ready = warm(history, self._bounds, now_s, self.period_s)
        nodes = proportional(min(ready, keep.nodes), max(values), settings.target)
        if nodes == keep.nodes or (nodes < keep.nodes and (settings.disable_scale_in or ready < keep.nodes)):
            return keep
        what = f"{settings.model} forecast {ahead:.4g} within {settings.horizon_s:g} s" if ahead == max(values) else (
            f"last {last:.4g}"
        )  # fmt: skip
        return keep._replace(nodes=nodes, reason=f"{self.metric}: {what}, target {settings.target:g}")


def forecast(points: Sequence[Point], settings: Settings, now_s: float) -> float | None:
    """The greatest value of the forecast until the horizon; None if there are too few points."""
    recent = points[-settings.history_size :]
    real = [(point.t_s - now_s, point.value) for point in recent if point.value is not None]
    if len(real) < settings.least_points:
        return None
    if settings.model == "linear":
        level, slope = line(real)
        return level + max(0.0, slope * settings.horizon_s)
    steps = math.ceil(settings.horizon_s / settings.period_s - ROUNDING)
    return max(holt_winters(without_gaps(recent), settings, steps))


def line(real: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Value at 0, and slope, of the line of least squares."""
    mean_t = math.fsum(t_s for t_s, _ in real) / len(real)
    mean = math.fsum(metric for _, metric in real) / len(real)
    slope = math.fsum((t_s - mean_t) * (metric - mean) for t_s, metric in real) / math.fsum(
        (t_s - mean_t) ** 2 for t_s, _ in real
    )
    return mean - slope * mean_t, slope


def without_gaps(points: Sequence[Point]) -> list[float]:
    """The values of periods, those without a reading on the line between their neighbours."""
    real = [(place, point.value) for place, point in enumerate(points) if point.value is not None]
    values = [real[0][1]]
    for (before, low), (after, high) in pairwise(real):
        values += [low + (high - low) * (place - before) / (after - before) for place in range(before + 1, after)]
        values.append(high)
    return values + [real[-1][1]] * (len(points) - 1 - real[-1][0])


def holt_winters(values: Sequence[float], settings: Settings, steps: int) -> list[float]:
    """Forecast of the next values, with additive trend and season."""
    model = holtwinters.ExponentialSmoothing(
        list(values), trend="add", seasonal="add", seasonal_periods=settings.seasonal_periods,
        initialization_method="heuristic",
    )  # fmt: skip
    smoothing = () if settings.fit else (settings.alpha, settings.beta, settings.gamma)
    fitted = model.fit(*smoothing, optimized=settings.fit)
    return [float(each) for each in fitted.forecast(steps)]


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster. Raises StudyError if its model needs what is not installed."""
    if settings.model == "holt-winters" and importlib.util.find_spec("statsmodels") is None:
        raise StudyError(
            "policy predictive with model holt-winters needs statsmodels", "pip install 'steelyard[predict]'",
            key="policy.model", read=settings.model,
        )  # fmt: skip
    return Predictive(settings, bounds)
