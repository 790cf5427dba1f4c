"""Parser of cassandra-stress's output into our records. Pure: lines and clock readings in, records out.

Its rows and its HDR log come as one stream (`-log hdrfile=/dev/stdout`): the histograms of an interval come before its
row `total`. Times in the log are relative to an unknown instant, so the arrival of the first row gives the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from steelyard.engine._histograms import decoded
from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import Outcome
from steelyard.wire.record import Connected, Counts, Done, Interval, Record, Summary

HISTOGRAM = re.compile(r"Tag=([A-Z_]+)-(st|rt|wt),([\d.]+),([\d.]+),[\d.]+,(\S+)")
ROW = re.compile(r"([A-Za-z_]+),\s+(\d+),\s")
CONNECTED = re.compile(r"Connected to cluster: ([^,]*),.*max connections per host (\d+)")
TOTAL_ERRORS = re.compile(r"Total errors\s*:\s*([\d,.]+)")
ERRORS_COLUMN = 13
HEADER = "type "
MEASURES = {"st": "service", "rt": "response", "wt": "lag"}
KINDS = (
    (re.compile(r"Data returned was not validated"), Outcome.INVALID),
    (re.compile(r"WriteTimeoutException"), Outcome.WRITE_TIMEOUT),
    (re.compile(r"ReadTimeoutException"), Outcome.READ_TIMEOUT),
    (re.compile(r"OperationTimedOutException"), Outcome.TIMEOUT),
    (re.compile(r"UnavailableException"), Outcome.UNAVAILABLE),
    (re.compile(r"OverloadedException"), Outcome.OVERLOADED),
    (re.compile(r"NoHostAvailable|TransportException|ConnectionException"), Outcome.CONNECTION),
)
OTHER_KIND = Outcome.SERVER
OPERATION_FAILED = "Operation x"
NS_PER_S = 1e9


@dataclass
class PrintedInterval:
    """One printed interval."""

    start_s: float
    """Seconds since the first interval began."""
    seconds: float
    times: dict[tuple[str, str], list[Bucket]]
    """(READ or WRITE, measure) to histogram."""
    errors: int = 0
    cpu_s: float = 0.0

    @property
    def operations(self) -> int:
        """Answered and failed operations; the tool's histograms hold both."""
        return sum(b[2] for (_, measure), buckets in self.times.items() if measure == "service" for b in buckets)


@dataclass
class Output:
    """Incremental parser of the tool's lines into records."""

    names: Mapping[str, str]
    """The order's names of the operations READ and WRITE."""
    contacts: Sequence[str]
    phase: str
    """`populate` or `measure`."""
    warm_up_s: float = 0.0
    tail: list[str] = field(default_factory=list)
    """The last lines, for an error message."""
    ended: bool = False
    """Whether the tool has reported success."""
    _began_s: float = 0.0
    _first_s: float | None = None
    _pending: dict[tuple[str, str], tuple[float, float, list[Bucket]]] = field(default_factory=dict)
    _measured: list[PrintedInterval] = field(default_factory=list)
    _warm_up_errors: int = 0
    _total_errors: int | None = None
    _cpu_at: float = 0.0

    def take(self, line: str, now_s: float, cpu_s: float) -> list[Record]:
        """Records from a line of standard output, given the time it arrived and the tool's CPU time so far."""
        line = line.rstrip()
        if match := HISTOGRAM.match(line):
            tag, measure, start, seconds, encoded = match.groups()
            self._pending[tag, MEASURES[measure]] = (float(start), float(seconds), decoded(encoded))
            return []
        self.tail = [*self.tail[-19:], line]
        if match := CONNECTED.match(line):
            connections = int(match[2]) * len(self.contacts)
            return [connected(self.contacts, connections)]
        if match := TOTAL_ERRORS.match(line):
            self._total_errors = int(re.sub(r"[,.]", "", match[1]))
        if line.startswith(HEADER):
            self._cpu_at = cpu_s
        self.ended = self.ended or line == "END"
        row = ROW.match(line)
        return self._interval(line.split(","), now_s, cpu_s) if row and row[1] == "total" and self._pending else []

    def _interval(self, columns: Sequence[str], now_s: float, cpu_s: float) -> list[Record]:
        stamp_s, seconds, _ = next(iter(self._pending.values()))
        times = {key: buckets for key, (_, _, buckets) in self._pending.items()}
        self._pending = {}
        if self._first_s is None:
            self._first_s, self._began_s = stamp_s, now_s - seconds
        start_s = stamp_s - self._first_s
        interval = PrintedInterval(start_s, seconds, times, int(columns[ERRORS_COLUMN]), cpu_s - self._cpu_at)
        self._cpu_at = cpu_s
        # A warm-up has whole intervals: the one in which it ends is measured if most of it is after the warm-up.
        if start_s + seconds / 2 < self.warm_up_s:
            self._warm_up_errors += interval.errors
            return [self._record(interval, "warm-up")]
        self._measured.append(interval)
        return [self._record(interval, self.phase)]

    def _record(self, interval: PrintedInterval, phase: str) -> Interval:
        counts = []
        for (tag, measure), printed in sorted(interval.times.items()):
            operation, buckets = self.names.get(tag, tag.lower()), tuple(printed)
            answered = Counts(operation=operation, outcome=Outcome.OK.value, measure=measure, buckets=buckets)
            counts.append(answered)
            if measure == "service" and (tag, "response") not in interval.times:
                # Without a rate, an operation is due when it is sent.
                counts.append(replace(answered, measure="response"))
        return Interval(
            phase=phase,
            t_s=self._began_s + interval.start_s,
            seconds=interval.seconds,
            sent=interval.operations,
            done=interval.operations,
            errors=interval.errors,
            backlog=0,
            cpu_fraction=interval.cpu_s / interval.seconds if interval.seconds else 0.0,
            summary=summary(counts, interval.operations, interval.seconds),
            counts=tuple(counts),
        )

    def done(self, stderr: Iterable[str], busiest_thread_fraction: float) -> Done:
        """End of the phase. Errors missing from the intervals are taken from the tool's own total."""
        first = self._measured[0] if self._measured else PrintedInterval(0.0, 0.0, {})
        last = self._measured[-1] if self._measured else first
        began_s = self._began_s + first.start_s
        lasted_s = last.start_s + last.seconds - first.start_s
        sent = sum(interval.operations for interval in self._measured)
        shown = sum(interval.errors for interval in self._measured)
        errors = shown if self._total_errors is None else max(shown, self._total_errors - self._warm_up_errors)
        return Done(
            phase=self.phase,
            first_sent_s=began_s,
            last_done_s=began_s + lasted_s,
            execution_ns=round(lasted_s * NS_PER_S),
            operations=sent - min(sent, shown),
            errors=errors,
            errors_by_kind=kinds(stderr, errors),
            not_found=0,
            rows=0,
            cpu_ns=round(sum(interval.cpu_s for interval in self._measured) * NS_PER_S),
            busiest_thread_fraction=busiest_thread_fraction,
            dropped=0,
            reconnections=0,
        )


def kinds(stderr: Iterable[str], errors: int) -> dict[str, int]:
    """`errors` errors by kind, from the last messages of failed operations (those of the warm-up come first); errors
    without a message are `server`."""
    failures = [line for line in stderr if line.startswith(OPERATION_FAILED)][-errors:] if errors else []
    counts: dict[str, int] = {}
    for line in failures:
        kind = next((kind for pattern, kind in KINDS if pattern.search(line)), OTHER_KIND)
        counts[kind] = counts.get(kind, 0) + 1
    if errors > len(failures):
        counts[OTHER_KIND] = counts.get(OTHER_KIND, 0) + errors - len(failures)
    return counts


def connected(contacts: Sequence[str], connections: int) -> Connected:
    """The record of open connections. The tool does not report the nodes' version."""
    return Connected(nodes=tuple(contacts), connections=connections, server="unknown")


def summary(counts: Sequence[Counts], operations: int, seconds: float) -> Summary:
    """Live figures of an interval."""

    def quantile_ms(measure: str, q: float) -> float:
        merged = histogram.merge(one.buckets for one in counts if one.measure == measure)
        return (percentiles.quantile_ns(merged, q) or 0.0) / 1e6

    return Summary(
        rate_per_s=operations / seconds if seconds else 0.0,
        response_ms_p50=quantile_ms("response", 0.5),
        response_ms_p99=quantile_ms("response", 0.99),
        service_ms_p50=quantile_ms("service", 0.5),
        service_ms_p99=quantile_ms("service", 0.99),
        pacing_ms_p99=0.0,
    )
