"""YCSB's workload F, read-modify-write: a user's own records. 50% read, 50% read-modify-write, zipfian."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(__doc__, read_proportion=0.5, read_modify_write_proportion=0.5, request_distribution="zipfian")


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-f", settings)
