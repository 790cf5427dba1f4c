"""YCSB's workload B, read mostly: tags of photos. 95% read, 5% update, zipfian."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(__doc__, read_proportion=0.95, update_proportion=0.05, request_distribution="zipfian")


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-b", settings)
