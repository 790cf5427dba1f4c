"""YCSB's workload D, read latest: status updates. 95% read, 5% insert, the newest keys most popular."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(__doc__, read_proportion=0.95, insert_proportion=0.05, request_distribution="latest")


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-d", settings)
