"""Disruption `none`: nothing is done. The control of every comparison of disruptions."""

from __future__ import annotations

from steelyard.disruption.noop import Settings, create

__all__ = ["Settings", "create"]
