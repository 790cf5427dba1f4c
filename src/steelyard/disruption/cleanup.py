"""Disruption `cleanup`: rows that a node does not own are removed from its files."""

from __future__ import annotations

from steelyard.disruption._maintenance import Maintenance, Settings
from steelyard.disruption.base import Disruption


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Maintenance("cleanup")
