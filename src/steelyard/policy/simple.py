"""Policy `simple`: simple scaling of AWS. One adjustment when an alarm is on; no alarm is answered until it is complete
and the cooldown is over."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field, model_validator

from steelyard.model.scaling import Desired
from steelyard.policy._alarm import AdjustmentType, AlarmSettings, adjusted
from steelyard.policy.base import Bounds, History, Policy, known, latest, rested


class SimpleSettings(AlarmSettings):
    """Alarm, and a cooldown."""

    threshold: float
    """Value of the metric at which a point breaches."""
    cooldown_s: float = Field(default=300.0, ge=0, le=86400)
    """Seconds without a further change after the last node is in service, or after a change that failed has ended."""


class Settings(SimpleSettings):
    """Alarm, and its adjustment."""

    adjustment_type: AdjustmentType = "change-in-capacity"
    """Meaning of `adjustment`: nodes to add, a percentage of the nodes, or the new size."""
    adjustment: int = Field(default=1, ge=-1000, le=1000)
    """Adjustment when the alarm is on; below 0: nodes are removed."""
    min_adjustment_magnitude: int = Field(default=1, ge=1, le=1000)
    """Least number of nodes that a percentage adds or removes."""

    @model_validator(mode="after")
    def _adjusts(self) -> Settings:
        if self.adjustment_type == "exact-capacity" and self.adjustment < 1:
            raise ValueError(f"adjustment = {self.adjustment} is no size: exact-capacity needs 1 or more")
        if self.adjustment == 0:
            raise ValueError("adjustment = 0 changes nothing")
        return self


class Simple:
    """Adjusts the size when an alarm is on."""

    def __init__(self, name: str, settings: SimpleSettings, bounds: Bounds, adjust: Callable[[int], int]) -> None:
        self.name = name
        self.metric, self.period_s, self.every_s = settings.metric, settings.period_s, settings.every_s
        self._alarm, self._cooldown_s = settings.alarm(settings.threshold), settings.cooldown_s
        self._bounds = bounds
        self._adjust = adjust

    def desired(self, history: History, now_s: float) -> Desired:
        """The adjusted size while the alarm is on, once the last change and its cooldown are over."""
        history = known(history, now_s)
        keep = latest(history, self._bounds, now_s)
        if not rested(history, self._bounds, now_s, self._cooldown_s) or not self._alarm.is_on(history.points):
            return keep
        return Desired(now_s, self._adjust(keep.nodes), self._alarm.reason(history.points))


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    kind, amount, least = settings.adjustment_type, settings.adjustment, settings.min_adjustment_magnitude
    return Simple("simple", settings, bounds, lambda nodes: adjusted(nodes, kind, amount, least))
