"""Policy `static-max`: the largest size, all the time. What scaling could at best save is measured against it."""

from __future__ import annotations

from steelyard.model.value import Value
from steelyard.policy.base import Bounds, Policy
from steelyard.policy.none import OneSize


class Settings(Value):
    """Policy `static-max` has no settings."""


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    del settings
    return OneSize("static-max", bounds.max_nodes)
