"""Policy `pid`: a PID controller in velocity form. The size follows the error, its sum and its change."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from steelyard.model.scaling import Desired
from steelyard.model.value import Value
from steelyard.policy._alarm import ROUNDING
from steelyard.policy.base import Bounds, History, Policy, known, latest


class Settings(Value):
    """Metric, set point and gains."""

    metric: str = "cpu_percent_mean"
    """Response that is followed: one that falls as nodes are added."""
    sample_s: float = Field(default=10.0, ge=1, le=86400)
    """Seconds of a sample: each is one point, and the controller acts once per sample."""
    setpoint: float
    """Value that the metric is to have. The error is the metric less the set point."""
    kp: float = 0.0
    """Proportional gain: nodes for an error of 1."""
    ki: float = 0.0
    """Integral gain: nodes for an error of 1 over 1 s."""
    kd: float = 0.0
    """Derivative gain: nodes for an error that grows by 1 in 1 s."""
    anti_windup: bool = True
    """Whether the controller's output stays between the smallest and the largest size. Otherwise it has to come back
    from wherever a long error drove it."""

    @model_validator(mode="after")
    def _acts(self) -> Settings:
        if not (self.kp or self.ki or self.kd):
            raise ValueError("kp, ki and kd are all 0: the controller never acts")
        return self


class Pid:
    """Desires the output of the controller, rounded up to whole nodes."""

    name = "pid"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s, self.every_s = settings.metric, settings.sample_s, settings.sample_s
        self._settings = settings
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The size after all samples so far. One without a reading changes nothing."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        output, before, last = float(self._bounds.nodes), 0.0, 0.0
        for point in history.points:
            if point.value is None:
                continue
            error = point.value - settings.setpoint
            output += settings.kp * (error - last) + settings.ki * settings.sample_s * error
            output += settings.kd * (error - 2 * last + before) / settings.sample_s
            before, last = last, error
            if settings.anti_windup:
                output = min(max(output, self._bounds.min_nodes), self._bounds.max_nodes)
        nodes = math.ceil(output - ROUNDING)
        if nodes == keep.nodes:
            return keep
        reason = f"{self.metric} is off its set point by {last:.4g}: output {output:.4g}"
        return keep._replace(nodes=nodes, reason=reason)


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return Pid(settings, bounds)
