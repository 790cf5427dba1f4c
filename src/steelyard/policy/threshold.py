"""Policy `threshold`: a fixed number of nodes is added when an alarm is on. The rule of srinadhuni2018."""

from __future__ import annotations

from pydantic import Field

from steelyard.policy.base import Bounds, Policy
from steelyard.policy.simple import Simple, SimpleSettings


class Settings(SimpleSettings):
    """Alarm, and the nodes that it adds."""

    add: int = Field(default=1, ge=1, le=1000)
    """Nodes that are added (AWS: ChangeInCapacity)."""


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return Simple("threshold", settings, bounds, lambda nodes: nodes + settings.add)
