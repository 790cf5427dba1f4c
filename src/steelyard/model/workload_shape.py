"""Shape of a workload: the properties that time and space estimates depend on."""

from __future__ import annotations

from steelyard.model.value import Value

DEFAULT_MIX = {"read": 1.0}
READING = ("read", "scan")
"""Kinds of operations that write nothing."""


class WorkloadShape(Value):
    """Records, bytes of one record, and the shares of the kinds of operations."""

    records: int = 0
    record_bytes: int = 0
    mix: dict[str, float] = DEFAULT_MIX
    """Shares of operations by the YCSB operation (read, update, insert, scan, read_modify_write) of similar cost."""

    @property
    def writes(self) -> float:
        """Fraction of operations that write."""
        return sum(share for operation, share in self.mix.items() if operation not in READING)

    def mean_of(self, costs: dict[str, float], default: float) -> float:
        """Mean cost per operation; `default` for kinds that are not in `costs`."""
        return sum(share * costs.get(kind, default) for kind, share in self.mix.items())
