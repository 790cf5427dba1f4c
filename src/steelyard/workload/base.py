"""Plug-in interface `workload`: operations, data model, key distribution, as data.

A plug-in module defines `Settings` and `create(settings) -> Workload`. The agent generates the operations themselves as
a pure function of (seed, index); Python only specifies which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from steelyard.model.data_model import Schema
from steelyard.wire.order import Jobs, Requests, Ycsb
from steelyard.wire.program import Program


class Workload(Protocol):
    """A workload as data."""

    name: str
    protocols: tuple[str, ...]
    """Protocols in which its operations can be sent; the system must speak one of them."""
    writes: bool
    """Whether a trial changes the data state."""

    def schema(self) -> Schema:
        """The data model."""
        ...

    def data(self) -> dict[str, Any]:
        """The settings that determine the filled state: records, field count and lengths, key order, seed."""
        ...

    def order(self) -> Ycsb | Program | Requests | Jobs:
        """The `work` of an order (see `schema/order.schema.json`)."""
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
