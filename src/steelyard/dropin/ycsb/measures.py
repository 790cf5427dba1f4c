"""YCSB's measurements from the agent's histograms: names, times in microseconds, return codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.dropin.ycsb.export_options import Display
from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import Outcome, is_error
from steelyard.wire.tables import Tables

NAMES: Mapping[str, str] = {
    "read": "READ",
    "update": "UPDATE",
    "insert": "INSERT",
    "scan": "SCAN",
    "read-modify-write": "READ-MODIFY-WRITE",
}
TWO_STEPS = "read-modify-write"
CLEANUP = "CLEANUP"
STATUSES = ("OK", "NOT_FOUND", "ERROR")
"""Return codes in YCSB's order."""
ORDER = (
    "READ", "UPDATE-FAILED", "SCAN-ERROR", "UPDATE-NOT_FOUND", "SCAN-FAILED", "READ-MODIFY-WRITE", "READ-NOT_FOUND",
    "INSERT-ERROR", "SCAN-NOT_FOUND", "INSERT-NOT_FOUND", "UPDATE-ERROR", "CLEANUP", "READ-ERROR", "UPDATE", "INSERT",
    "READ-FAILED", "SCAN", "INSERT-FAILED",
)  # fmt: skip
"""Measurements in YCSB's order, that of a map in Java with up to 11 of them."""
LONG_MAX = 2**63 - 1
NS_PER_US = 1000


@dataclass(frozen=True)
class Measure:
    """One measurement: times and, if any, return codes."""

    buckets: tuple[Bucket, ...] = ()
    statuses: Mapping[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of times."""
        return histogram.total(self.buckets)

    @property
    def mean_us(self) -> float:
        """Mean; NaN without a value, as in YCSB."""
        mean = histogram.mean_ns(self.buckets)
        return float("nan") if mean is None else mean / NS_PER_US

    @property
    def min_us(self) -> int:
        """Minimum; the largest long without a value, as in YCSB."""
        return self.buckets[0][0] // NS_PER_US if self.buckets else LONG_MAX

    @property
    def max_us(self) -> int:
        """Maximum; 0 without a value."""
        return self.buckets[-1][1] // NS_PER_US if self.buckets else 0

    def upper_percentile_us(self, percentile: float) -> int:
        """Upper end of the bucket at a percentile, 0 to 100, in whole microseconds, as printed by YCSB; reports show
        the bucket's midpoint. 0 without a value."""
        bucket = percentiles.quantile_bucket(self.buckets, percentile / 100)
        return self.max_us if bucket is None else bucket[1] // NS_PER_US

    def counts_us(self) -> list[tuple[int, int]]:
        """Midpoint and count of each bucket."""
        return [((low + high) // 2 // NS_PER_US, count) for low, high, count in self.buckets]


Measures = dict[str, Measure]


def measures(tables: Tables, display: Display, cleanup_ns: int | None = None) -> Measures:
    """Measurements by name, in YCSB's order: first those of `op`, then the intended ones. `cleanup_ns`: time that the
    agent took to end."""
    own = {} if display.interval == "intended" else _service(tables, display)
    intended = {} if display.interval == "op" else _intended(tables, display)
    if cleanup_ns is not None:
        bucket = ((cleanup_ns, cleanup_ns, 1),)
        for group, wanted in ((own, display.interval != "intended"), (intended, display.interval != "op")):
            if wanted:
                group[CLEANUP] = Measure(bucket)
    if display.interval == "intended":
        intended = _with_statuses(intended, tables)
    before = "Intended-" if display.interval == "both" else ""
    return {
        **{name: own[name] for name in in_order(own)},
        **{before + name: intended[name] for name in in_order(intended)},
    }


def in_order(names: Iterable[str]) -> list[str]:
    """Names of measurements in YCSB's order."""
    return sorted(names, key=ORDER.index)


def _status(outcome: str) -> str:
    if is_error(outcome):
        return "ERROR"
    return "NOT_FOUND" if outcome == Outcome.NOT_FOUND else "OK"


def _failed(name: str, status: str, display: Display) -> str:
    apart = display.each_error or status in display.tracked
    return f"{name}-{status}" if apart else f"{name}-FAILED"


def _service(tables: Tables, display: Display) -> Measures:
    """Service times, from sending to the answer. As in YCSB, read-modify-writes count as reads and updates."""
    parts: dict[str, list[Sequence[Bucket]]] = {}
    for operation, name in NAMES.items():
        for outcome, buckets in _times(tables, operation, "service").items():
            parts.setdefault(_measured(name, outcome, operation, display), []).append(buckets)
        for outcome, buckets in _cells(tables, operation, "part").items():
            parts.setdefault(_measured(name, outcome, operation, display), []).append(buckets)
    return _with_statuses({name: Measure(tuple(histogram.merge(lists))) for name, lists in parts.items()}, tables)


def _intended(tables: Tables, display: Display) -> Measures:
    """Response times, from the time when an operation was due. The update in a read-modify-write ends with the whole
    operation; the end of the read is unknown in this measure."""
    parts: dict[str, list[Sequence[Bucket]]] = {}
    for operation, name in NAMES.items():
        for outcome, buckets in _cells(tables, operation, "response").items():
            parts.setdefault(_measured(name, outcome, operation, display), []).append(buckets)
            if operation == TWO_STEPS and _status(outcome) != "ERROR":
                parts.setdefault(NAMES["update"], []).append(buckets)
    return {name: Measure(tuple(histogram.merge(lists))) for name, lists in parts.items()}


def _measured(name: str, outcome: str, operation: str, display: Display) -> str:
    status = _status(outcome)
    return name if status == "OK" or operation == TWO_STEPS else _failed(name, status, display)


def _cells(tables: Tables, operation: str, measure: str) -> dict[str, tuple[Bucket, ...]]:
    """Buckets by outcome."""
    return {
        outcome: buckets
        for (kept, outcome, of), buckets in tables.cells.items()
        if kept == operation and of == measure and buckets
    }


def _times(tables: Tables, operation: str, measure: str) -> dict[str, tuple[Bucket, ...]]:
    """Buckets by outcome. Operations that were never sent, because no node was up, have only a response time. If there
    are more response times than service times, all operations with the outcome are counted by response time, so that
    none is lost."""
    by_outcome = _cells(tables, operation, measure)
    for outcome, buckets in _cells(tables, operation, "response").items():
        if histogram.total(buckets) > histogram.total(by_outcome.get(outcome, ())):
            by_outcome[outcome] = buckets
    return by_outcome


def _with_statuses(by_name: Measures, tables: Tables) -> Measures:
    """Add the return codes under the plain name, which may have no times."""
    for operation, name in NAMES.items():
        if operation == TWO_STEPS:
            continue
        statuses: dict[str, int] = {}
        for measure in ("response", "part"):
            for outcome, buckets in _cells(tables, operation, measure).items():
                statuses[_status(outcome)] = statuses.get(_status(outcome), 0) + histogram.total(buckets)
        if statuses:
            by_name[name] = Measure(by_name.get(name, Measure()).buckets, statuses)
    return by_name
