"""YCSB's workload A, update heavy: a session store. 50% read, 50% update, zipfian."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(__doc__, read_proportion=0.5, update_proportion=0.5, request_distribution="zipfian")


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-a", settings)
