"""Workloads: operations, data model, key distribution, as data."""

from steelyard.workload._file import module_of as of_file

__all__ = ["of_file"]
