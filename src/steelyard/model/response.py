"""Response: one number per trial, a dependent variable of the study. One value holds everything known about it.

The modules of `steelyard.model.responses` define the responses; code that computes, checks, shows or exports a response
reads its definition there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.measure import Measure
from steelyard.model.outcome import ANSWERED

NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6
NS_PER_US: Final = 1e3
LAST: Final = 1000

Counted = tuple[str, str, str]
"""Operation, outcome, measure: identifies one histogram."""
Source = Literal["records", "search", "samples", "activities", "study"]
"""Source of a response. records: the engine's records of the measured phases; search: the result of a
search, without which a trial's record does not have the response at all; samples: the probes' samples, by its
`measure`; activities: changes of size and the operations around them
(`judging.scaling_measures`); study: other responses and what the study declares, such as the price of a node."""
Better = Literal["less", "more", "neither"]
Compared = Literal["ratio", "difference"]
"""How two values are compared: by their ratio, or by their difference, where one of them may be nothing at all."""
Dilates = Literal["", "time", "rate"]
"""Conversion of a response where a study was run in stretched time (`judging.dilation`): time: divided by the
dilation; rate, of anything per second: multiplied; nothing: counts, totals, processor work and shares."""


class Direction(Enum):
    """Which direction of change of a response is called faster."""

    LESS_IS_FASTER = "less is faster"
    MORE_IS_FASTER = "more is faster"
    NEITHER = "neither"
    """A difference is only called higher or lower: counts, and percentiles, which rest on a few operations."""


class Recomputable(Enum):
    """How far the intervals in the store allow a response to be recomputed."""

    WHOLE = "whole"
    """The histograms in the intervals give it exactly: it is computed from `Measured.histograms`, `operations`,
    `errors` and `not_found` only."""
    OWN_ENGINE = "own engine"
    """They give it if our own engine drove the load; a third-party engine reports it itself."""
    NOT = "not"
    """It depends on facts that only the engine knew."""


@dataclass(frozen=True)
class Measured:
    """Totals of the engine's records over the measured phases and all load nodes."""

    execution_ns: float
    """From the first operation that any load node sent to the last answer."""
    operations: int
    """Number of operations answered without error."""
    errors: int
    not_found: int
    """Reads of keys that must exist but returned no row."""
    cpu_ns: int
    """User and system time of the load generators."""
    unsent: int = 0
    """Operations that were due and never sent (open loop)."""
    rows: int = 0
    """Number of rows returned."""
    dropped: int = 0
    """Number of records that could not be written."""
    reconnections: int = 0
    capacity_per_s: float | None = None
    """Result of the trial's search for the highest rate that meets its limits; None without one."""
    histograms: Mapping[Counted, Sequence[Bucket]] = field(default_factory=dict)
    """Counts by nanoseconds, summed over seconds and load nodes."""

    def buckets(self, measure: str, outcomes: Sequence[str] = ANSWERED) -> list[Bucket]:
        """The histogram of a measure (`response`, `service`, `lag`, `pacing`) over all operations with these
        outcomes."""
        return histogram.merge(
            buckets
            for (_, outcome, name), buckets in self.histograms.items()
            if name == measure and outcome in outcomes
        )  # fmt: skip


@dataclass(frozen=True)
class Response:
    """The definition of a response."""

    name: str
    """Name in the store, in tables and study files: units and qualifiers last."""
    label: str
    """Name for people, within a sentence."""
    unit: str
    definition: str
    """Definition in one sentence."""
    compute: Callable[[Measured], float | int | None] = lambda _: None
    """Computes a response of the records; None if the trial has no such number."""
    direction: Direction = Direction.NEITHER
    times_as: str = "high"
    """`3.1 times as ...`: the word for a ratio of two values."""
    whole: bool = False
    """Whether it is a count: always an integer, 0 if nothing was counted."""
    from_due: bool = False
    """Whether it counts from the time operations were due: a closed loop omits the waiting time of independent
    users."""
    percentile: float | None = None
    """The quantile, as a share of the operations; given only where the number of operations supports it."""
    kept: Recomputable = Recomputable.WHOLE
    main: bool = True
    """Whether a study may choose it as its main response, and a stopping rule may wait for it: all but counts."""
    head: str = ""
    """Column header in the report's table of responses; the label, if empty."""
    on_page: bool = True
    """Whether that table includes it; files and downloads have every response."""
    order: int = LAST
    """Sort key among all responses."""
    source: Source = "records"
    measure: Measure | None = None
    """Computation from samples, if `source` is samples."""
    resolution: float = 0.0
    """What a trial's value is exact to, in its unit: estimates have no finer digits than a tenth of it."""
    compared: Compared = "ratio"
    """Difference: of what a control has none of, such as lost operations. Its levels are then arithmetic means."""
    less_is_better: bool | None = None
    """Which change is an improvement where `direction` does not say: of CPU less is better, though not faster."""

    @property
    def dilates(self) -> Dilates:
        """Whether it is a time or a rate of the hardware that a dilated study models, by its unit."""
        return "time" if self.unit == "ms" else "rate" if self.unit == "W" or self.unit.endswith("/s") else ""

    @property
    def called(self) -> str:
        """Column header."""
        return self.head or self.label

    @property
    def better(self) -> Better:
        """Which change is an improvement: a gate fails on the other one."""
        if self.direction is not Direction.NEITHER:
            return "less" if self.direction is Direction.LESS_IS_FASTER else "more"
        if self.less_is_better is None:
            return "neither"
        return "less" if self.less_is_better else "more"


def by_quantile_ms(q: float, measure: str, outcomes: Sequence[str] = ANSWERED) -> Callable[[Measured], float | None]:
    """A function that computes a quantile of a measure, in milliseconds."""

    def compute(measured: Measured) -> float | None:
        value = percentiles.quantile_ns(measured.buckets(measure, outcomes), q)
        return None if value is None else value / NS_PER_MS

    return compute


def mean_ms(measure: str) -> Callable[[Measured], float | None]:
    """A function that computes the mean of a measure, in milliseconds."""

    def compute(measured: Measured) -> float | None:
        value = histogram.mean_ns(measured.buckets(measure))
        return None if value is None else value / NS_PER_MS

    return compute
