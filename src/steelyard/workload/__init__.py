"""Workloads as data: operations, data model, key distribution."""

from steelyard.workload._file import module_of as of_file

__all__ = ["of_file"]
