"""YCSB's workload E, short ranges: threaded conversations. 95% scan of 1 to 100 records, 5% insert, zipfian."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(
    __doc__, scan_proportion=0.95, insert_proportion=0.05, request_distribution="zipfian", max_scan_length=100
)


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-e", settings)
