"""Policy `target-tracking`: target tracking of AWS. The size that would bring the metric to a target, if it is
proportional to the load of a node."""

from __future__ import annotations

import math
import operator
from typing import Final

from pydantic import Field

from steelyard.model.scaling import Desired
from steelyard.model.value import Value
from steelyard.policy._alarm import LONGEST_EVERY_S, ROUNDING, Alarm
from steelyard.policy.base import Bounds, History, Policy, in_service, known, latest, value, warm

LOW: Final = 0.9
"""Share of the target below which AWS considers a smaller size."""


class TargetSettings(Value):
    """Metric, and its target."""

    metric: str = "cpu_percent_mean"
    """Response that is followed: one that falls as nodes are added, such as utilisation. Throughput and response times
    do not."""
    period_s: float = Field(default=60.0, ge=1, le=86400)
    """Seconds of a period. Each period is one point."""
    target: float = Field(gt=0)
    """Value that the metric is to have (AWS: TargetValue; Kubernetes: averageUtilization, averageValue)."""


class Settings(TargetSettings):
    """Metric, its target, and how often it must be missed."""

    tolerance: float = Field(default=0.0, ge=0, le=10)
    """Relative distance from the target within which the size stays: 0 in AWS, 0.1 in Kubernetes."""
    evaluation_periods_out: int = Field(default=3, ge=1, le=1440)
    """Periods on end above the target before nodes are added."""
    evaluation_periods_in: int = Field(default=15, ge=1, le=1440)
    """Periods on end below 0.9 times the target before nodes are removed."""
    disable_scale_in: bool = False
    """Whether nodes are never removed."""
    instance_warmup_s: float = Field(default=300.0, ge=0, le=86400)
    """Seconds in service until a node is counted as capacity."""


class TargetTracking:
    """Desires the size at which the metric would be at its target."""

    name = "target-tracking"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s = settings.metric, settings.period_s
        self.every_s = min(settings.period_s, LONGEST_EVERY_S)
        self._settings = settings
        self._bounds = bounds
        high, low = settings.evaluation_periods_out, settings.evaluation_periods_in
        self._high = Alarm(self.metric, self.period_s, settings.target, ">", operator.gt, high, high)
        self._low = Alarm(self.metric, self.period_s, LOW * settings.target, "<", operator.lt, low, low)

    def desired(self, history: History, now_s: float) -> Desired:
        """The proportional size, rounded up: more while the metric is above the target, fewer once it has been below
        for long and no node warms up."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        metric = value(history)
        if metric is None or abs(metric / settings.target - 1) <= settings.tolerance:
            return keep
        there = in_service(history, self._bounds)
        ready = warm(history, self._bounds, now_s, settings.instance_warmup_s)
        if self._high.is_on(history.points):
            nodes = max(keep.nodes, proportional(min(ready, keep.nodes), metric, settings.target))
            alarm = self._high
        elif self._low.is_on(history.points) and keep.nodes <= ready and not settings.disable_scale_in:
            nodes = min(keep.nodes, proportional(there, metric, settings.target))
            alarm = self._low
        else:
            return keep
        return keep if nodes == keep.nodes else keep._replace(nodes=nodes, reason=alarm.reason(history.points))


def proportional(nodes: int, metric: float, target: float) -> int:
    """The least size at which a metric that is inversely proportional to the size is at most at its target."""
    return max(1, math.ceil(nodes * metric / target - ROUNDING))


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return TargetTracking(settings, bounds)
