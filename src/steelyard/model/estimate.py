"""Estimates: a number with its interval, n, method and unit. Analysis produces nothing else."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.model.value import Value

Ends = tuple[float | None, float | None]
"""Low and high end of an interval; None if there is none."""


class Estimate(Value):
    """`low` and `high` are None if n does not support an interval; `method` says how it was computed."""

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    n: int
    unit: str
    method: str

    @classmethod
    def of(cls, value: float, ends: Ends | None, unit: str, confidence: float, n: int, method: str) -> Estimate:
        """An estimate with the ends of its interval; None: it has no interval."""
        low, high = ends or (None, None)
        return cls(value=value, low=low, high=high, confidence=confidence, n=n, unit=unit, method=method)

    @classmethod
    def around(cls, value: float, half: float | None, unit: str, confidence: float, n: int, method: str) -> Estimate:
        """An estimate whose interval is `half` wide to either side; None: it has no interval."""
        return cls.of(value, None if half is None else (value - half, value + half), unit, confidence, n, method)

    def without_interval(self, why: str) -> Estimate:
        """The same number; `why`: how it was computed, and why it has no interval."""
        return self.model_copy(update={"low": None, "high": None, "method": f"{why}: no interval"})

    def mapped(self, to: Callable[[float], float], unit: str, method: str | None = None) -> Estimate:
        """Value and ends by a rising function, in another unit."""
        low, high = (None if end is None else to(end) for end in (self.low, self.high))
        method = self.method if method is None else method
        return self.model_copy(
            update={"value": to(self.value), "low": low, "high": high, "unit": unit, "method": method}
        )
