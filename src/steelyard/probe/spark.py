"""Probe of numbers of Spark and HDFS, on pages of the NameNode or DataNode, and of the Master or Worker, of a node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.probe import pages
from steelyard.probe.base import Placement, Watched

NAME: Final = "spark"
WAY: Final = "spark_metrics"
WAY_OF_HDFS: Final = "hdfs_jmx"
MIB: Final = float(1 << 20)
GAUGES: Final = {
    "CapacityUsed": (Metric(name="node_hdfs_used_bytes", unit="bytes", description="blocks on all DataNodes"), 1.0),
    "UnderReplicatedBlocks": (
        Metric(name="node_hdfs_under_replicated", unit="blocks", description="blocks with too few copies"),
        1.0,
    ),
    "aliveWorkers": (
        Metric(name="node_spark_workers", unit="workers", description="workers that the master knows to be alive"),
        1.0,
    ),
    "apps": (Metric(name="node_spark_applications", unit="applications", description="applications that run"), 1.0),
    "coresUsed": (Metric(name="node_spark_cores_used", unit="cores", description="cores that executors have"), 1.0),
    "memUsed_MB": (
        Metric(name="node_spark_memory_used_bytes", unit="bytes", description="memory that executors were given"),
        MIB,
    ),
}
"""Number of a page to its metric and its unit."""
RATES: Final = {
    "BytesRead": Metric(
        name="node_hdfs_read_bytes_per_s",
        unit="bytes/s",
        description="bytes of blocks that the DataNode sent",
        cumulative=True,
    ),
    "BytesWritten": Metric(
        name="node_hdfs_written_bytes_per_s",
        unit="bytes/s",
        description="bytes of blocks that the DataNode stored, copies included",
        cumulative=True,
    ),
}
NUMBERS: Final = (*GAUGES, *RATES)
NUMBER: Final = re.compile(rf'"(?:master\.|worker\.)?({"|".join(NUMBERS)})" ?: ?(?:{{"value":)?(\d+)')


class SparkProbe:
    """Probe that asks the daemons of each node, once per interval."""

    name = NAME
    way = WAY
    metrics = (*(metric for metric, _ in GAUGES.values()), *RATES.values())

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """Two loops of requests on each node. Raises ProbeError for another system."""
        beans = f'"({"|".join(NUMBERS)})" :'
        return [
            *pages.asking(NAME, WAY, watched, interval_s, "/json/", "gauges"),
            *pages.asking(NAME, WAY_OF_HDFS, watched, interval_s, "/jmx?qry=Hadoop:*", beans),
        ]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Numbers of the second page, and rates since the first. Raises ProbeError on any other line."""
        try:
            (from_s, first), (t_s, second) = pages.readings(line)
            values = dict(_values(_numbers(first), _numbers(second), t_s - from_s))
        except (ValueError, KeyError, ZeroDivisionError) as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error
        return [Sample(t_s, node, metric.name, value) for metric, value in values.items()]


def _values(before: Mapping[str, float], now: Mapping[str, float], seconds: float) -> Iterator[tuple[Metric, float]]:
    for name, (metric, unit) in GAUGES.items():
        if name in now:
            yield metric, now[name] * unit
    for name, rate in RATES.items():
        if name in now:
            yield rate, (now[name] - before[name]) / seconds


def _numbers(text: str) -> dict[str, float]:
    """Raises ValueError for a page of another kind."""
    if not (numbers := NUMBER.findall(text)):
        raise ValueError(text)
    return {name: float(value) for name, value in numbers}


def create() -> SparkProbe:
    """The probe; no side effects."""
    return SparkProbe()
