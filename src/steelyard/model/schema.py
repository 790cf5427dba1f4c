"""The data model that a workload asks a system for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schema:
    """One table with a text key and equal text fields, as YCSB has it."""

    keyspace: str
    table: str
    key: str
    fields: tuple[str, ...]
