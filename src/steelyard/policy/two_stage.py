"""Policy `two-stage`: a low threshold prepares nodes, a high one lets them join (AWS: warm pool). What a node needs
before it can join is over when it is wanted."""

from __future__ import annotations

from pydantic import Field, model_validator

from steelyard.model.scaling import Desired
from steelyard.policy._alarm import AlarmSettings
from steelyard.policy.base import Bounds, History, Policy, known, latest, rested


class Settings(AlarmSettings):
    """Alarm at two thresholds, and what each does."""

    low: float
    """Value of the metric at which a point breaches and nodes are prepared."""
    high: float
    """Value of the metric at which a point breaches and nodes join."""
    add: int = Field(default=1, ge=1, le=1000)
    """Nodes that join at the high threshold, prepared or not."""
    max_prepared: int = Field(default=1, ge=1, le=1000)
    """Nodes that are prepared at the low threshold (AWS: MaxGroupPreparedCapacity)."""
    cooldown_s: float = Field(default=300.0, ge=0, le=86400)
    """Seconds without a further change after the last node is in service, or after a change that failed has ended."""

    @model_validator(mode="after")
    def _low_first(self) -> Settings:
        upwards = self.alarm(self.low).upwards
        if (self.low >= self.high) if upwards else (self.low <= self.high):
            raise ValueError(f"low = {self.low:g} is not reached before high = {self.high:g}")
        return self


class TwoStage:
    """Prepares nodes at one threshold, and lets nodes join at the other."""

    name = "two-stage"
    prepares = True

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s, self.every_s = settings.metric, settings.period_s, settings.every_s
        self._settings = settings
        self._bounds = bounds
        self._low, self._high = settings.alarm(settings.low), settings.alarm(settings.high)

    def desired(self, history: History, now_s: float) -> Desired:
        """More nodes at the high threshold, those that are prepared first; nodes to prepare at the low one. What is
        prepared stays so. Nothing changes until the last change and its cooldown are over."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        if not rested(history, self._bounds, now_s, settings.cooldown_s):
            return keep
        if self._high.is_on(history.points):
            left = max(0, keep.prepared - settings.add)
            return Desired(now_s, keep.nodes + settings.add, self._high.reason(history.points), left)
        room = min(settings.max_prepared, self._bounds.max_nodes - keep.nodes)
        if keep.prepared < room and self._low.is_on(history.points):
            return keep._replace(prepared=room, reason=self._low.reason(history.points))
        return keep


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return TwoStage(settings, bounds)
