"""Plug-in interface `workload`: operations, data model, key distribution, as data.

A plug-in module defines `Settings` and `create(settings) -> Workload`. The agent generates the operations themselves as
a pure function of (seed, index); Python only specifies which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from steelyard.model.data_model import Schema


class Workload(Protocol):
    """A workload as data."""

    name: str
    protocol: str
    """Protocol of its operations; the system must support it."""
    writes: bool
    """Whether a trial changes the data state."""

    def schema(self) -> Schema:
        """The data model."""
        ...

    def data(self) -> dict[str, Any]:
        """The settings that determine the filled state: records, field count and lengths, key order, seed."""
        ...

    def order(self) -> dict[str, Any]:
        """The `workload` object of the agent's order (see `schema/order.schema.json`)."""
        ...


@dataclass(frozen=True)
class OperationShape:
    """One kind of operation, for explanations and estimates."""

    name: str
    share: float
    """Share of all operations."""
    keys: str
    """Distribution of its keys."""
    does: str
    """The requests in words."""
    kind: str
    """The YCSB operation with about the same cost: read, update, insert, scan, read_modify_write."""
    bytes: int
    """Approximate bytes of the values that it sends."""


@dataclass(frozen=True)
class Explanation:
    """Description of a workload, for people and estimates."""

    about: str
    records: int
    record_bytes: int
    """Approximate bytes of the values of one record."""
    filling: str
    """The filling requests in words."""
    operations: tuple[OperationShape, ...]


@runtime_checkable
class Explains(Protocol):
    """Ability: explains the workload. Plans use it for estimates, `check` shows it."""

    def explain(self) -> Explanation:
        """Operations, shares, sizes."""
        ...
