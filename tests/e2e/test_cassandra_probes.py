"""The probes of Cassandra's own metrics on a real node: every metric is read, a line every second."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time

import pytest

from steelyard.events.base import Silent
from steelyard.lab.probe_processes import Readings, watched_nodes, watching
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.probe.base import Probe
from steelyard.system.base import Observed
from steelyard.testing.cluster import RunningCluster
from tests.e2e.agent_load import ask

pytestmark = [pytest.mark.cassandra, pytest.mark.agent]

STATEMENTS = (
    "CREATE KEYSPACE IF NOT EXISTS probed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS probed.rows (k text PRIMARY KEY, v text)",
    "INSERT INTO probed.rows (k, v) VALUES ('a', 'b')",
    "SELECT v FROM probed.rows WHERE k = 'a'",
)
"""A table of a user, and something in its counts."""
NAMES = ("gc", "cassandra", "jmx")
READ_TIMEOUT_S = 45.0
SOMETIMES = (
    *("_p50_ms", "_p99_ms", "_mean_ms", "_hit_fraction", "node_gc_pause_ms", "node_heap_after_gc_bytes"),
    *("node_cache_chunks_bytes", "node_response_active_tasks", "node_response_pending_tasks"),
)
"""Ends of metrics that need an operation, a pause, a cache that is off by default, or another node."""


def wanted(probe: Probe) -> set[str]:
    """The metrics that every node has."""
    return {metric.name for metric in probe.metrics if not metric.name.endswith(SOMETIMES)}


async def readings_of(probes: list[Probe], cluster: RunningCluster) -> Readings:
    """Readings until every metric was read; of those that are read in turn a rate takes two rounds."""
    watched = await watched_nodes(cluster.system, cluster.nodes)
    async with watching(probes, watched, Silent()) as readings:
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline and readings.failure is None:
            read = {sample.metric for samples in readings.samples.values() for sample in samples}
            if all(wanted(probe) <= read for probe in probes):
                break
            await asyncio.sleep(0.1)
    return readings


def test_every_metric_is_read(real_node: RunningCluster) -> None:
    assert isinstance(real_node.system, Observed)
    asked = ask(real_node.contacts[0], *STATEMENTS)
    assert asked.returncode == 0, asked.stderr
    probes = [Parts(Plugins()).probe(name) for name in NAMES]
    readings = asyncio.run(readings_of(probes, real_node))
    assert readings.failure is None
    for probe in probes:
        samples = readings.samples[probe.name, real_node.nodes[0].name]
        read = {sample.metric for sample in samples}
        assert wanted(probe) <= read <= {metric.name for metric in probe.metrics}, probe.name
        times_s = sorted({sample.t_s for sample in samples if sample.metric not in SOMETIMES})
        gaps_s = [later - earlier for earlier, later in itertools.pairwise(times_s)]
        assert 0.5 < statistics.median(gaps_s) < 4.0, "a line every second, or every three, whatever is read in turn"
