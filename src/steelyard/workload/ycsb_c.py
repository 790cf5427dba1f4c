"""YCSB's workload C, read only: a cache of profiles. 100% read, zipfian."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(__doc__, read_proportion=1.0, request_distribution="zipfian")


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-c", settings)
