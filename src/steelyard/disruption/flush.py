"""Disruption `flush`: what a node has in memory is written to its disk."""

from __future__ import annotations

from steelyard.disruption._maintenance import Maintenance, Settings
from steelyard.disruption.base import Disruption


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Maintenance("flush")
