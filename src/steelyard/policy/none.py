"""Policy `none`: the cluster keeps its size. The control of every comparison of policies."""

from __future__ import annotations

from steelyard.model.scaling import Desired
from steelyard.model.value import Value
from steelyard.policy.base import Bounds, History, Policy


class Settings(Value):
    """Policy `none` has no settings."""


class OneSize:
    """Desires one size all the time."""

    metric, period_s, every_s = "", 0.0, 1.0

    def __init__(self, name: str, nodes: int) -> None:
        self.name = name
        self._nodes = nodes

    def desired(self, history: History, now_s: float) -> Desired:
        """The size."""
        del history
        return Desired(now_s, self._nodes, f"{self.name}: {self._nodes} nodes all the time")


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    del settings
    return OneSize("none", bounds.nodes)
