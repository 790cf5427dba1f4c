"""Policy `simple`: simple scaling of AWS. One adjustment when an alarm is on; no alarm is answered until it is complete and
the cooldown is over."""

from __future__ import annotations

from pydantic import Field, model_validator

from steelyard.policy._alarm import AdjustmentType, AlarmSettings, adjusted
from steelyard.policy.base import Bounds, Desired, History, Policy, known, latest, rested


class Settings(AlarmSettings):
    """Alarm, and its adjustment."""

    threshold: float
    """Value of the metric at which a point breaches."""
    adjustment_type: AdjustmentType = "change-in-capacity"
    """What `adjustment` is: nodes to add, a percentage of the nodes, or the new size."""
    adjustment: int = Field(default=1, ge=-1000, le=1000)
    """Adjustment when the alarm is on; below 0: nodes are removed."""
    min_adjustment_magnitude: int = Field(default=1, ge=1, le=1000)
    """Least number of nodes that a percentage adds or removes."""
    cooldown_s: float = Field(default=300.0, ge=0, le=86400)
    """Seconds without a further change after the last node is in service."""

    @model_validator(mode="after")
    def _adjusts(self) -> Settings:
        if self.adjustment_type == "exact-capacity" and self.adjustment < 1:
            raise ValueError(f"adjustment = {self.adjustment} is no size: exact-capacity needs 1 or more")
        if self.adjustment == 0:
            raise ValueError("adjustment = 0 changes nothing")
        return self


class Simple:
    """Adjusts the size when an alarm is on."""

    name = "simple"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s, self.every_s = settings.metric, settings.period_s, settings.every_s
        self._settings = settings
        self._bounds = bounds
        self._alarm = settings.alarm(settings.threshold)

    def desired(self, history: History, now_s: float) -> Desired:
        """The adjusted size while the alarm is on, once the last change and its cooldown are over."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        if not rested(history, self._bounds, now_s, settings.cooldown_s) or not self._alarm.is_on(history.points):
            return keep
        nodes = adjusted(
            keep.nodes, settings.adjustment_type, settings.adjustment, settings.min_adjustment_magnitude
        )
        return Desired(now_s, nodes, self._alarm.reason(history.points))


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return Simple(settings, bounds)
