"""Policy `step`: step scaling of AWS. The adjustment depends on how far the metric is beyond the threshold; alarms are
answered while nodes join."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from steelyard.model.scaling import Desired
from steelyard.policy._alarm import AdjustmentType, AlarmSettings, adjusted
from steelyard.policy.base import Bounds, History, Policy, in_service, known, latest, value, warm

Step = tuple[Annotated[float, Field(ge=0)], Annotated[int, Field(ge=-1000, le=1000)]]


class Settings(AlarmSettings):
    """Alarm, and its adjustments."""

    threshold: float
    """Value of the metric at which a point breaches."""
    adjustment_type: AdjustmentType = "change-in-capacity"
    """Meaning of the adjustments: nodes to add, a percentage of the nodes, or the new size."""
    steps: tuple[Step, ...] = Field(default=((0.0, 1),), min_length=1, max_length=100)
    """Pairs of a distance from the threshold, in the direction of the comparison, and the adjustment from there up to
    the next: [[0, 1], [10, 2], [20, 3]]. Adjustments below 0 remove nodes."""
    min_adjustment_magnitude: int = Field(default=1, ge=1, le=1000)
    """Least number of nodes that a percentage adds or removes."""
    instance_warmup_s: float = Field(default=300.0, ge=0, le=86400)
    """Seconds in service until a node is counted as capacity."""

    @model_validator(mode="after")
    def _in_order(self) -> Settings:
        distances = [distance for distance, _ in self.steps]
        if any(further <= nearer for nearer, further in pairwise(distances)):
            raise ValueError(f"steps begin at {distances}: each must begin further away than the one before")
        if self.adjustment_type == "exact-capacity" and any(size < 1 for _, size in self.steps):
            raise ValueError(f"steps {[size for _, size in self.steps]} are no sizes: exact-capacity needs 1 or more")
        return self


class StepScaling:
    """Adjusts the size by the distance of the metric from the threshold."""

    name = "step"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s, self.every_s = settings.metric, settings.period_s, settings.every_s
        self._settings = settings
        self._bounds = bounds
        self._alarm = settings.alarm(settings.threshold)

    def desired(self, history: History, now_s: float) -> Desired:
        """The size by the step that the metric is in. Nodes that warm up are not counted, so the same step again
        changes nothing; the size is not reduced while they do."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        metric = value(history)
        if metric is None or not self._alarm.is_on(history.points):
            return keep
        distance = metric - settings.threshold if self._alarm.upwards else settings.threshold - metric
        adjustment = next((size for begin, size in reversed(settings.steps) if begin <= distance), None)
        if adjustment is None:
            return keep

        def by(nodes: int) -> int:
            return adjusted(nodes, settings.adjustment_type, adjustment, settings.min_adjustment_magnitude)

        there = in_service(history, self._bounds)
        ready = warm(history, self._bounds, now_s, settings.instance_warmup_s)
        reason = f"{self._alarm.reason(history.points)}: step {adjustment:+d}"
        if (more := by(min(ready, keep.nodes))) > keep.nodes:
            return keep._replace(nodes=more, reason=reason)
        if (fewer := by(there)) < keep.nodes <= ready:
            return keep._replace(nodes=fewer, reason=reason)
        return keep


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return StepScaling(settings, bounds)
