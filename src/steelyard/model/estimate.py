"""Estimates: a number with its interval, n, method and unit. Analysis produces nothing else."""

from __future__ import annotations

from steelyard.model.value import Value


class Estimate(Value):
    """`low` and `high` are None where n does not support an interval; `method` says how it was computed."""

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    n: int
    unit: str
    method: str
