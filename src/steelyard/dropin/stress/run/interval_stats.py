"""Statistics of cassandra-stress's rows: rates and latencies of one operation, or of all, in a time span.

`time_of` selects the time: service time (done - sent) as in cassandra-stress, or response time (done - due) if the rate
is `fixed=`. Failed operations are counted and timed like the others, as in cassandra-stress.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steelyard.model import histogram, percentiles
from steelyard.model.outcome import Outcome, is_error
from steelyard.wire.record import Interval
from steelyard.wire.tables import Histogram


@dataclass(frozen=True)
class Span:
    """The operations of a time span."""

    seconds: float = 0.0
    operations: int = 0
    partitions: float = 0.0
    rows: float = 0.0
    errors: int = 0
    times: Histogram = field(default_factory=Histogram)

    @property
    def operations_per_s(self) -> float:
        """Operations per second; 0 for a span of zero length."""
        return self.operations / self.seconds if self.seconds > 0 else 0.0

    @property
    def partitions_per_s(self) -> float:
        """Partitions per second; 0 for a span of zero length."""
        return self.partitions / self.seconds if self.seconds > 0 else 0.0

    @property
    def rows_per_s(self) -> float:
        """Rows per second; 0 for a span of zero length."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def settled_rows_per_s(self) -> float:
        """Rows over the length of the span minus its longest operation, the input of cassandra-stress's standard error.
        If that operation began before the span, over the whole length: cassandra-stress would have a negative rate."""
        seconds = self.seconds - (self.times.max_ns or 0) / 1e9
        return self.rows / seconds if seconds > 0 else self.rows_per_s

    @property
    def mean_ms(self) -> float:
        """Mean in milliseconds; 0 without operations, as in cassandra-stress."""
        return (self.times.mean_ns or 0.0) / 1e6

    @property
    def max_ms(self) -> float:
        """Upper bound of the highest bucket."""
        return (self.times.max_ns or 0) / 1e6

    def upper_quantile_ms(self, share: float) -> float:
        """Upper bound of the bucket that contains the quantile, as HdrHistogram gives it and cassandra-stress prints
        it; reports show the bucket's midpoint. 0 without operations."""
        bucket = percentiles.quantile_bucket(self.times.buckets, share)
        return 0.0 if bucket is None else bucket[1] / 1e6


def merged(spans: Iterable[Span], *, side_by_side: bool) -> Span:
    """The merged span of several operations at the same time, or of consecutive spans."""
    listed = list(spans)
    lengths = [span.seconds for span in listed]
    return Span(
        seconds=(max(lengths, default=0.0) if side_by_side else sum(lengths)),
        operations=sum(span.operations for span in listed),
        partitions=sum(span.partitions for span in listed),
        rows=sum(span.rows for span in listed),
        errors=sum(span.errors for span in listed),
        times=Histogram(tuple(histogram.merge(span.times.buckets for span in listed))),
    )


@dataclass(frozen=True)
class Counting:
    """How answers of one operation are counted. `rows`, `partitions`: per answer without error; None: the number of
    rows in the answer. `batches`: these are means, and the agent counts each batch. `may_be_empty`: whether an answer
    without a row is valid; `reads`: whether it asks for rows."""

    rows: float | None = 1.0
    partitions: float | None = 1.0
    batches: bool = False
    may_be_empty: bool = False
    reads: bool = False

    def fails(self, outcome: str) -> bool:
        """Whether cassandra-stress counts the outcome as an error. A read that expects a row and gets none is one; a
        light-weight transaction whose condition did not hold is not, although its answer has no row."""
        return is_error(outcome) or (outcome == Outcome.NOT_FOUND and not self.may_be_empty)


def span_of(interval: Interval, operation: str, counting: Counting, time_of: str = "service") -> Span:
    """The span of one operation in an interval."""
    tables = interval.tables
    outcomes = tables.outcomes(operation)
    answered, in_answers = outcomes.get(Outcome.OK, 0), interval.rows.get(operation, 0)
    partitions = in_answers if counting.partitions is None else answered * counting.partitions
    if counting.batches:
        # Without a number where each takes one.
        partitions = interval.keys.get(operation, answered)
    return Span(
        seconds=interval.seconds,
        operations=sum(outcomes.values()),
        partitions=partitions,
        rows=in_answers if counting.rows is None or counting.batches else answered * counting.rows,
        errors=sum(number for outcome, number in outcomes.items() if counting.fails(outcome)),
        times=tables.histogram(time_of, operation, None),
    )


def spans_of(interval: Interval, counted: Mapping[str, Counting], time_of: str) -> dict[str, Span]:
    """The span of each operation in an interval, sorted by name."""
    return {name: span_of(interval, name, counted[name], time_of) for name in sorted(counted)}


class Uncertainty:
    """Relative standard error of the mean of the measurements."""

    def __init__(self) -> None:
        self.measurements = 0
        self.share = 0.0
        self._sum = 0.0
        self._squares = 0.0

    def feed(self, value: float) -> None:
        """Add a measurement."""
        self.measurements += 1
        self._sum += value
        self._squares += value * value
        mean = self._sum / self.measurements
        variance = self._squares / self.measurements - mean * mean
        # Rounding can make it slightly negative; cassandra-stress then has NaN, too.
        deviation = math.sqrt(variance) if variance >= 0 else math.nan
        self.share = deviation / math.sqrt(self.measurements) / mean if mean else math.nan

    def settled(self, target: float, least: int, most: int) -> bool:
        """Whether a load that runs until the error is below `target` may end."""
        return (self.share < target and self.measurements >= least) or self.measurements >= most


def average_improvement(rates: list[float], count: int) -> float:
    """Mean relative growth over the last `count` steps."""
    steps = range(len(rates) - count, len(rates))
    return sum((rates[step] - rates[step - 1]) / rates[step - 1] for step in steps) / count


def still_improves(rates: list[float], count: int, least: float) -> bool:
    """Whether the last `count` steps grew by `least` on average; true while there are fewer steps."""
    return len(rates) < count + 1 or average_improvement(rates, count) >= least


def threads_after(threads: int) -> int:
    """The next thread count of `auto`: doubled below 16, then multiplied by 1.5."""
    return threads * 2 if threads < 16 else threads * 3 // 2
