"""Policy `threshold`: a fixed number of nodes is added when an alarm is on. The rule of srinadhuni2018."""

from __future__ import annotations

from pydantic import Field

from steelyard.policy._alarm import AlarmSettings
from steelyard.policy.base import Bounds, Desired, History, Policy, known, latest, rested


class Settings(AlarmSettings):
    """Alarm, and the nodes that it adds."""

    threshold: float
    """Value of the metric at which a point breaches."""
    add: int = Field(default=1, ge=1, le=1000)
    """Nodes that are added (AWS: ChangeInCapacity)."""
    cooldown_s: float = Field(default=300.0, ge=0, le=86400)
    """Seconds without a further change after the last of them is in service."""


class Threshold:
    """Adds nodes when an alarm is on, and never removes one."""

    name = "threshold"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s, self.every_s = settings.metric, settings.period_s, settings.every_s
        self._settings = settings
        self._bounds = bounds
        self._alarm = settings.alarm(settings.threshold)

    def desired(self, history: History, now_s: float) -> Desired:
        """More nodes while the alarm is on, once the last change and its cooldown are over."""
        history = known(history, now_s)
        keep = latest(history, self._bounds, now_s)
        if not rested(history, self._bounds, now_s, self._settings.cooldown_s) or not self._alarm.is_on(history.points):
            return keep
        return Desired(now_s, keep.nodes + self._settings.add, self._alarm.reason(history.points))


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return Threshold(settings, bounds)
