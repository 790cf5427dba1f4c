"""JMX probe: totals of Cassandra's management beans that its virtual tables lack, read by one small Java program.

The system offers that program as a way in (`beans`: class path of `Watch`, `java`: the Java that runs it,
`jmx_password_file`: user and password of that node's beans). It prints each attribute as it was and as it is, so that
every line suffices for rates. Where a node's beans listen on an address that others reach, one program reads
all such nodes; a node whose beans listen on its loopback only has one of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.model.value import Value
from steelyard.probe.base import Placement, Watched, with_way

NAME: Final = "jmx"
WAY, JAVA, BEANS, PASSWORD_FILE = "jmx", "java", "beans", "jmx_password_file"
JAVA_OPTIONS: Final = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xss256k", "-Xmx24M", "-Xshare:auto"),
)
METRICS_DOMAIN: Final = "org.apache.cassandra.metrics:type="
COORDINATOR, LOCAL = "ClientRequest,scope={},name=", "Table,name={}"
"""Beans of operations as coordinator and as replica, up to the last part of their names."""
US_PER_MS: Final = 1000.0


def _of_operations(prefix: str, scope: str) -> dict[str, str]:
    """Count and added-up time of reads and writes; `scope` is a format of their beans up to the name."""
    return {
        f"{prefix}{what.lower()}{ending}": f"{METRICS_DOMAIN}{scope.format(what)}{name}#Count"
        for what in ("Read", "Write")
        for ending, name in (("s", "Latency"), ("_us", "TotalLatency"))
    }


def _of_p99(prefix: str, scope: str) -> dict[str, str]:
    """99th percentiles of reads and writes, microseconds."""
    return {
        f"{prefix}{what.lower()}_p99_us": f"{METRICS_DOMAIN}{scope.format(what)}Latency#99thPercentile"
        for what in ("Read", "Write")
    }


def _of_failures(name: str, bean: str) -> dict[str, str]:
    scopes = {what.lower(): f"ClientRequest,scope={what}" for what in ("Read", "Write")}
    return {f"{what}_{name}": f"{METRICS_DOMAIN}{scope},name={bean}#Count" for what, scope in scopes.items()}


GROUPS: Final = (
    {**_of_operations("", COORDINATOR), **_of_p99("", COORDINATOR)},
    {**_of_operations("local_", LOCAL), **_of_p99("local_", LOCAL)},
    {
        **_of_failures("timeouts", "Timeouts"),
        **_of_failures("unavailables", "Unavailables"),
        "dropped": "org.apache.cassandra.net:type=MessagingService#DroppedMessages",
    },
    {
        "compactions_pending": f"{METRICS_DOMAIN}Compaction,name=PendingTasks#Value",
        "compactions": f"{METRICS_DOMAIN}Compaction,name=TotalCompactionsCompleted#Count",
        "compacted_bytes": f"{METRICS_DOMAIN}Compaction,name=BytesCompacted#Count",
        "hints": f"{METRICS_DOMAIN}Storage,name=TotalHints#Count",
        "exceptions": f"{METRICS_DOMAIN}Storage,name=Exceptions#Count",
    },
    {
        "heap": "java.lang:type=Memory#HeapMemoryUsage#used",
        "collections": "java.lang:type=GarbageCollector,name=*#CollectionCount",
        "collection_ms": "java.lang:type=GarbageCollector,name=*#CollectionTime",
        "compile_ms": "java.lang:type=Compilation#TotalCompilationTime",
    },
)
"""Attributes that are read together, one group per interval, in turn: every call costs the server and the program. Name
on the line to the bean and its attribute, and the key within it. What matches a pattern is added up, and so are the
values of a map."""


@dataclass(frozen=True)
class Reading:
    """Attributes of one interval: seconds since the previous reading, previous and current values."""

    seconds: float
    before: Mapping[str, float]
    now: Mapping[str, float]

    def grown(self, *names: str) -> float:
        """Increase of counts, added up; not a number if one is unknown or was reset."""
        grown = [self.now.get(name, math.nan) - self.before.get(name, math.nan) for name in names]
        return sum(grown) if all(each >= 0 for each in grown) else math.nan

    def per_s(self, *names: str) -> float:
        """Increase of counts per second."""
        return self.grown(*names) / self.seconds

    def mean_ms(self, total_us: str, count: str) -> float:
        """Mean time of the operations of the interval; not a number if there was none."""
        operations = self.grown(count)
        return self.grown(total_us) / operations / US_PER_MS if operations > 0 else math.nan


Compute = Callable[[Reading], float]


def _rate(name: str, unit: str, description: str, *of: str) -> tuple[Metric, Compute]:
    return Metric(name=name, unit=unit, description=description, cumulative=True), lambda reading: reading.per_s(*of)


def _mean(name: str, description: str, total_us: str, count: str) -> tuple[Metric, Compute]:
    metric = Metric(name=name, unit="ms", description=description, cumulative=True)
    return metric, lambda reading: reading.mean_ms(total_us, count)


def _amount(name: str, unit: str, description: str, of: str) -> tuple[Metric, Compute]:
    return Metric(name=name, unit=unit, description=description), lambda reading: reading.now.get(of, math.nan)


def _p99(name: str, description: str, of_us: str) -> tuple[Metric, Compute]:
    # A server that served none says 0, which is not a time.
    metric = Metric(name=name, unit="ms", description=f"{description}, over the last minutes, weighted to the latest")
    return metric, lambda reading: reading.now.get(of_us, 0.0) / US_PER_MS or math.nan


def _share(name: str, description: str, of_ms: str) -> tuple[Metric, Compute]:
    metric = Metric(name=name, unit="fraction", description=description, cumulative=True)
    return metric, lambda reading: reading.per_s(of_ms) / 1000.0


TABLE: Final = (
    _mean("node_coordinator_read_mean_ms", "mean time of the interval's reads as coordinator", "read_us", "reads"),
    _mean("node_coordinator_write_mean_ms", "mean time of the interval's writes as coordinator", "write_us", "writes"),
    _mean("node_local_read_mean_ms", "mean time of its own tables' reads", "local_read_us", "local_reads"),
    _mean("node_local_write_mean_ms", "mean time of its own tables' writes", "local_write_us", "local_writes"),
    _p99("node_coordinator_read_p99_ms", "99th percentile of its reads as coordinator", "read_p99_us"),
    _p99("node_coordinator_write_p99_ms", "99th percentile of its writes as coordinator", "write_p99_us"),
    _p99("node_local_read_p99_ms", "99th percentile of its own tables' reads", "local_read_p99_us"),
    _p99("node_local_write_p99_ms", "99th percentile of its own tables' writes", "local_write_p99_us"),
    _rate("node_timeouts_per_s", "operations/s", "reads and writes that replicas answered too late", "read_timeouts",
        "write_timeouts"),
    _rate("node_unavailables_per_s", "operations/s", "reads and writes refused for lack of replicas",
        "read_unavailables", "write_unavailables"),
    _rate("node_dropped_messages_per_s", "messages/s", "messages of other nodes that were too old when their turn came",
        "dropped"),
    _amount("node_compactions_pending", "compactions", "compactions that are due, by Cassandra's own estimate",
        "compactions_pending"),
    _rate("node_compactions_per_s", "compactions/s", "compactions completed", "compactions"),
    _rate("node_compacted_bytes_per_s", "bytes/s", "read by compactions", "compacted_bytes"),
    _rate("node_hints_per_s", "hints/s", "writes kept for nodes that missed them", "hints"),
    _rate("node_exceptions_per_s", "exceptions/s", "exceptions that the server did not expect", "exceptions"),
    _amount("node_heap_used_bytes", "bytes", "heap in use, garbage included", "heap"),
    _rate("node_gc_collections_per_s", "collections/s", "garbage collections, by the virtual machine's count",
        "collections"),
    _share("node_gc_collection_fraction", "share of time in garbage collections, by the virtual machine's count",
        "collection_ms"),
    _share("node_compile_fraction", "share of time in its just-in-time compiler: not warm while it falls",
        "compile_ms"),
)  # fmt: skip


class Settings(Value):
    """Interval between reads of management beans."""

    every_s: float = Field(default=3.0, ge=1, le=60)
    """Seconds between two readings, each of one of five groups in turn: an attribute is read every 15 s. Keep it below
    `limits.probe_gap_s`."""


class JmxProbe:
    """Probe that reads management beans of database nodes."""

    name = NAME
    way = WAY
    metrics = tuple(metric for metric, _ in TABLE)

    def __init__(self, settings: Settings) -> None:
        self._every_s = settings.every_s

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """One program for all nodes whose beans others reach, and one each for the others. Raises ProbeError for a
        system without beans."""
        offering = with_way(watched, WAY, NAME)
        together = [each for each in offering if _reachable(each)]
        groups = [together] if together else []
        groups += [[each] for each in offering if not _reachable(each)]
        return [_placement(group, max(interval_s, self._every_s)) for group in groups]

    def turn_s(self, interval_s: float) -> float:
        """Seconds after which every group was read once."""
        return len(GROUPS) * max(interval_s, self._every_s)

    def faster(self, interval_s: float) -> str:
        """The shortest time between two groups."""
        if self._every_s <= interval_s:
            return ""
        return f"[probe.{NAME}] every_s = {interval_s:g}, which reads each every {len(GROUPS) * interval_s:g} s"

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples of one reading; none of a connection that was opened or lost. Raises ProbeError on any other line."""
        words = line.decode(errors="replace").split()
        if len(words) == 2 and words[1] in ("connected", "lost"):
            return []
        try:
            t_s, seconds = float(words[0]), float(words[1])
            values = [_value(word) for word in words[2:]]
        except (ValueError, IndexError) as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error
        if seconds <= 0:
            return []
        before = {name: then for name, then, _ in values}
        reading = Reading(seconds, before, {name: now for name, _, now in values})
        sampled = [(metric.name, value(reading)) for metric, value in TABLE]
        return [Sample(t_s, node, name, value) for name, value in sampled if math.isfinite(value)]


def _reachable(each: Watched) -> bool:
    """Whether other nodes reach a node's beans: they listen on the address that it has for them."""
    return each.ways[WAY].rpartition(":")[0].strip("[]") == each.node.address


def _placement(group: Sequence[Watched], interval_s: float) -> Placement:
    first = group[0]
    # The program prints a label before each line; a single node needs none.
    targets = [
        word
        for each in group
        for word in (each.ways[PASSWORD_FILE], f"{each.node.name if len(group) > 1 else ''}={each.ways[WAY]}")
    ]
    groups = [["--", *(f"{name}={bean}" for name, bean in attributes.items())] for attributes in GROUPS]
    java = (first.ways[JAVA], *JAVA_OPTIONS, "-cp", first.ways[BEANS], "Watch")
    return Placement(
        on=first.node,
        argv=(*java, f"{interval_s:g}", *(word for words in groups for word in words), "--", *targets),
        speaks_of=tuple(each.node.name for each in group),
    )


def _value(word: str) -> tuple[str, float, float]:
    """Name, previous value, current value: `reads=17/25`."""
    name, _, numbers = word.partition("=")
    before, _, now = numbers.partition("/")
    return name, float(before), float(now)


def create(settings: Settings) -> JmxProbe:
    """The probe; no side effects."""
    return JmxProbe(settings)
