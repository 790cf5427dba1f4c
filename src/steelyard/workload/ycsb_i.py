"""Workload I, the sensor's: 99% insert, 1% read, zipfian (Richardson, AFIT 2017)."""

from __future__ import annotations

from steelyard.workload._ycsb import Core, mix
from steelyard.workload._ycsb import Settings as CoreSettings

Settings = mix(__doc__, insert_proportion=0.99, read_proportion=0.01, request_distribution="zipfian")


def create(settings: CoreSettings) -> Core:
    """The workload under its settings."""
    return Core("ycsb-i", settings)
