"""YCSB's core workload with every property free; the defaults are those of its CoreWorkload."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, Settings

__all__ = ["Settings", "create"]


def create(settings: Settings) -> Core:
    """The workload under its settings."""
    return Core("ycsb", settings)
