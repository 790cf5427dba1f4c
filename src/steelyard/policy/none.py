"""Policy `none`: the cluster keeps its size. The control of every comparison of policies."""

from __future__ import annotations

from steelyard.model.value import Value
from steelyard.policy.base import Bounds, Desired, History, Policy


class Settings(Value):
    """Policy `none` has no settings."""


class KeepsSize:
    """Desires the size of the beginning."""

    name, metric, period_s, every_s = "none", "", 0.0, 60.0

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The size of the beginning."""
        del history
        return Desired(now_s, self._bounds.nodes, "")


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    del settings
    return KeepsSize(bounds)
