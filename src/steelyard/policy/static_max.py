"""Policy `static-max`: the largest size, all the time. What scaling could at best save is measured against it."""

from __future__ import annotations

from steelyard.model.value import Value
from steelyard.policy.base import Bounds, Desired, History, Policy


class Settings(Value):
    """Policy `static-max` has no settings."""


class StaticMax:
    """Desires the largest size."""

    name, metric, period_s, every_s = "static-max", "", 0.0, 1.0

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The largest size."""
        del history
        return Desired(now_s, self._bounds.max_nodes, "static-max: the largest size, all the time")


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    del settings
    return StaticMax(bounds)
