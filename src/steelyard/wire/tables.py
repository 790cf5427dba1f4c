"""Histograms by operation, outcome and measure; those from several intervals are merged by adding buckets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import ANSWERED, is_error

Cell = tuple[str, str, str]
"""Operation, outcome, measure."""


@dataclass(frozen=True)
class Histogram:
    """Occupied buckets in order of value. Times in nanoseconds; None if there is no value."""

    buckets: tuple[Bucket, ...] = ()

    @property
    def n(self) -> int:
        """Number of values."""
        return histogram.total(self.buckets)

    @property
    def mean_ns(self) -> float | None:
        """Mean from the midpoints of the buckets."""
        return histogram.mean_ns(self.buckets)

    @property
    def max_ns(self) -> int | None:
        """Upper bound of the highest bucket."""
        return self.buckets[-1][1] if self.buckets else None

    def quantile_ns(self, q: float) -> float | None:
        """The quantile `q` (0 to 1), as the midpoint of its bucket."""
        return percentiles.quantile_ns(self.buckets, q)


@dataclass(frozen=True)
class Tables:
    """Histograms by operation, outcome and measure."""

    cells: Mapping[Cell, tuple[Bucket, ...]] = field(default_factory=dict)

    def operations(self, measure: str = "response") -> tuple[str, ...]:
        """Names of operations that occur with that measure, sorted."""
        return tuple(sorted({operation for operation, _, kept in self.cells if kept == measure}))

    def outcomes(self, operation: str, measure: str = "response") -> dict[str, int]:
        """Number of operations by outcome."""
        return {
            outcome: histogram.total(buckets)
            for (name, outcome, kept), buckets in self.cells.items()
            if name == operation and kept == measure
        }

    def histogram(
        self, measure: str, operation: str | None = None, outcomes: Collection[str] | None = ANSWERED
    ) -> Histogram:
        """One measure (`response`, `service`, `lag`, `pacing`, `part`) of one operation, or of all; with `outcomes`
        None, including errors."""
        return Histogram(
            tuple(
                histogram.merge(
                    buckets
                    for (name, outcome, kept), buckets in self.cells.items()
                    if kept == measure
                    and (operation is None or name == operation)
                    and (outcomes is None or outcome in outcomes)
                )
            )
        )

    def errors(self, operation: str) -> Histogram:
        """Response times of one operation's errors, whatever their kind."""
        kinds = [outcome for outcome in self.outcomes(operation) if is_error(outcome)]
        return self.histogram("response", operation, kinds)


class Sums:
    """Sum of the tables of the intervals of one phase."""

    def __init__(self) -> None:
        self._counts: dict[Cell, dict[tuple[int, int], int]] = {}

    def add(self, tables: Tables) -> None:
        """Add the counts of an interval."""
        for cell, buckets in tables.cells.items():
            sums = self._counts.setdefault(cell, {})
            for low, high, count in buckets:
                sums[low, high] = sums.get((low, high), 0) + count

    def take(self) -> Tables:
        """The sum since the last call; resets it."""
        counts, self._counts = self._counts, {}
        return Tables(
            {
                cell: tuple((low, high, count) for (low, high), count in sorted(sums.items()))
                for cell, sums in counts.items()
            }
        )
