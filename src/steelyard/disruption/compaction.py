"""Disruption `compaction`: all files of a table on a node are merged into one."""

from __future__ import annotations

from steelyard.disruption._maintenance import Maintenance, Settings
from steelyard.disruption.base import Disruption


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Maintenance("compaction")
