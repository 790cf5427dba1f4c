"""Disruption `repair`: a node's copies of all rows are made equal to those of the others."""

from __future__ import annotations

from steelyard.disruption._maintenance import Maintenance, Settings
from steelyard.disruption.base import Disruption


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Maintenance("repair")
