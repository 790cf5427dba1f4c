"""The numbers behind cassandra-stress's rows: one span of time of one operation, or of all together.

`time_of` says which time is shown: that of service (done - sent), as cassandra-stress shows it unless the rate is
`fixed=`; then that of response (done - due). Failed operations are counted and timed like the others, as there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steelyard.model import histogram
from steelyard.model.outcome import Outcome, is_error
from steelyard.wire.record import Interval
from steelyard.wire.tables import Histogram


@dataclass(frozen=True)
class Span:
    """What happened within some seconds."""

    seconds: float = 0.0
    operations: int = 0
    partitions: float = 0.0
    rows: float = 0.0
    errors: int = 0
    times: Histogram = field(default_factory=Histogram)

    @property
    def operations_per_s(self) -> float:
        """0 where no time went by."""
        return self.operations / self.seconds if self.seconds > 0 else 0.0

    @property
    def partitions_per_s(self) -> float:
        """0 where no time went by."""
        return self.partitions / self.seconds if self.seconds > 0 else 0.0

    @property
    def rows_per_s(self) -> float:
        """0 where no time went by."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def settled_rows_per_s(self) -> float:
        """Rows over the span without its longest operation: what cassandra-stress takes the standard error of. Where
        that one began before the span, over the whole: there cassandra-stress would have a rate below nothing."""
        seconds = self.seconds - (self.times.max_ns or 0) / 1e9
        return self.rows / seconds if seconds > 0 else self.rows_per_s

    @property
    def mean_ms(self) -> float:
        """0 where nothing was done, as in cassandra-stress."""
        return (self.times.mean_ns or 0.0) / 1e6

    @property
    def max_ms(self) -> float:
        """Upper bound of the highest bucket."""
        return (self.times.max_ns or 0) / 1e6

    def upper_quantile_ms(self, share: float) -> float:
        """Upper bound of the bucket that holds the quantile, as HdrHistogram gives it and cassandra-stress prints it;
        reports show the bucket's middle. 0 where nothing was done."""
        bucket = histogram.quantile_bucket(self.times.buckets, share)
        return 0.0 if bucket is None else bucket[1] / 1e6


def merged(spans: Iterable[Span], *, side_by_side: bool) -> Span:
    """Of several operations in the same time, or of times that follow each other."""
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
    """How answers of one operation are counted. `rows`, `partitions`: of one without error, `rows` None: as many as are
    in it; `may_be_empty`: whether an answer without a row is one."""

    rows: float | None = 1.0
    partitions: float = 1.0
    may_be_empty: bool = False

    def fails(self, outcome: str) -> bool:
        """Whether cassandra-stress counts it as an error: for it a read that expects a row and finds none is one, too.
        A light-weight transaction whose condition did not hold is none, though it answers without a row."""
        return is_error(outcome) or (outcome == Outcome.NOT_FOUND and not self.may_be_empty)


def span_of(interval: Interval, operation: str, counting: Counting, time_of: str = "service") -> Span:
    """One operation's part of an interval."""
    tables = interval.tables
    outcomes = tables.outcomes(operation)
    answered = outcomes.get(Outcome.OK, 0)
    return Span(
        seconds=interval.seconds,
        operations=sum(outcomes.values()),
        partitions=answered * counting.partitions,
        rows=interval.rows.get(operation, 0) if counting.rows is None else answered * counting.rows,
        errors=sum(number for outcome, number in outcomes.items() if counting.fails(outcome)),
        times=tables.histogram(time_of, operation, None),
    )


def spans_of(interval: Interval, counted: Mapping[str, Counting], time_of: str) -> dict[str, Span]:
    """Each operation's part of an interval, in order of name."""
    return {name: span_of(interval, name, counted[name], time_of) for name in sorted(counted)}


class Uncertainty:
    """The standard error of the mean of what it is fed, as a share of that mean."""

    def __init__(self) -> None:
        self.measurements = 0
        self.share = 0.0
        self._sum = 0.0
        self._squares = 0.0

    def feed(self, value: float) -> None:
        """One more measurement."""
        self.measurements += 1
        self._sum += value
        self._squares += value * value
        mean = self._sum / self.measurements
        variance = self._squares / self.measurements - mean * mean
        # Rounding can make it a little less than nothing; then cassandra-stress has NaN, too.
        deviation = math.sqrt(variance) if variance >= 0 else math.nan
        self.share = deviation / math.sqrt(self.measurements) / mean if mean else math.nan

    def settled(self, target: float, least: int, most: int) -> bool:
        """Whether a load that runs until the error is below `target` may end."""
        return (self.share < target and self.measurements >= least) or self.measurements >= most


def average_improvement(rates: list[float], count: int) -> float:
    """Mean relative growth over the last `count` steps of a series."""
    steps = range(len(rates) - count, len(rates))
    return sum((rates[step] - rates[step - 1]) / rates[step - 1] for step in steps) / count


def still_improves(rates: list[float], count: int, least: float) -> bool:
    """Whether the last `count` steps grew by `least` on average; yes while there are fewer steps."""
    return len(rates) < count + 1 or average_improvement(rates, count) >= least


def threads_after(threads: int) -> int:
    """The next thread count that `auto` tries: twice as many below 16, then half as many more."""
    return threads * 2 if threads < 16 else threads * 3 // 2
