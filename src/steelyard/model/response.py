"""A response: one number per trial, a dependent variable of the study. One value says all that is known of it.

The modules of `steelyard.model.responses` define them; whoever computes, checks, shows or exports a response reads its
definition there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import ANSWERED

NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6
NS_PER_US: Final = 1e3
LAST: Final = 1000

Counted = tuple[str, str, str]
"""Operation, outcome, measure: what one histogram counts."""
Source = Literal["records"]
"""What a response is computed from: the engine's records of the measured phases."""


class Direction(Enum):
    """Which way a difference of a response is called faster."""

    LESS_IS_FASTER = "less is faster"
    MORE_IS_FASTER = "more is faster"
    NEITHER = "neither"
    """A difference is called higher or lower: counts, and percentiles, of which a few operations decide."""


class Kept(Enum):
    """How far the intervals in the store allow to compute a response again."""

    WHOLE = "whole"
    """The histograms in the intervals give it, to the last digit: it is computed from `Measured.histograms`,
    `operations`, `errors` and `not_found` only."""
    OWN_ENGINE = "own engine"
    """They give it where our own engine drove the load; a foreign one counts for itself."""
    NOT = "not"
    """It rests on what only the engine knew."""


@dataclass(frozen=True)
class Measured:
    """What the engine's records of the measured phases amount to, over all load nodes."""

    execution_ns: float
    """From the first operation sent by any load node to the last answered."""
    operations: int
    """Answered without error."""
    errors: int
    not_found: int
    """Reads of keys that must exist but returned no row."""
    cpu_ns: int
    """User and system time of the load generators."""
    rows: int = 0
    """Rows that were returned."""
    dropped: int = 0
    """Records that could not be written."""
    reconnections: int = 0
    histograms: Mapping[Counted, Sequence[Bucket]] = field(default_factory=dict)
    """Counts of nanoseconds, each added up over seconds and load nodes."""

    def buckets(self, measure: str, outcomes: Sequence[str] = ANSWERED) -> list[Bucket]:
        """The histogram of a measure (`response`, `service`, `lag`, `pacing`) over all operations of these outcomes."""
        return histogram.merge(
            buckets
            for (_, outcome, name), buckets in self.histograms.items()
            if name == measure and outcome in outcomes
        )  # fmt: skip


@dataclass(frozen=True)
class Response:
    """The definition of a response."""

    name: str
    """As in the store, in tables and study files: units and qualifiers last."""
    label: str
    """What people call it, within a sentence."""
    unit: str
    definition: str
    """What it is, in a sentence."""
    compute: Callable[[Measured], float | int | None]
    """None where the trial has no such number."""
    direction: Direction = Direction.NEITHER
    times_as: str = "high"
    """`3.1 times as ...`: the word for a ratio of two values."""
    whole: bool = False
    """It counts something: always a whole number, 0 where nothing was counted."""
    from_due: bool = False
    """It counts from when operations were due: in a closed loop it leaves out the waiting of independent users."""
    percentile: float | None = None
    """Share of the operations that it is the quantile of: it is given only where their number supports that."""
    kept: Kept = Kept.WHOLE
    main: bool = False
    """A study may name it as its main response, and a stopping rule may wait for it."""
    head: str = ""
    """Head of its column in the report's table of responses; the label, if empty."""
    on_page: bool = True
    """Whether that table has it; files and downloads have every response."""
    order: int = LAST
    """Its place among all responses."""
    source: Source = "records"

    @property
    def called(self) -> str:
        """Head of a column."""
        return self.head or self.label


def by_quantile_ms(q: float, measure: str, outcomes: Sequence[str] = ANSWERED) -> Callable[[Measured], float | None]:
    """How a quantile of a measure is computed, in milliseconds."""

    def compute(measured: Measured) -> float | None:
        value = percentiles.quantile_ns(measured.buckets(measure, outcomes), q)
        return None if value is None else value / NS_PER_MS

    return compute


def mean_ms(measure: str) -> Callable[[Measured], float | None]:
    """How the mean of a measure is computed, in milliseconds."""

    def compute(measured: Measured) -> float | None:
        value = histogram.mean_ns(measured.buckets(measure))
        return None if value is None else value / NS_PER_MS

    return compute
