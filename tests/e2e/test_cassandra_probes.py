"""The probes of Cassandra's own metrics on a real node: every metric is read, and one connection lasts."""

from __future__ import annotations

import asyncio
import time

import pytest

from steelyard.lab.probe_processes import Readings, watched_nodes, watching
from steelyard.plugin import Plugins
from steelyard.plugin_factory import make_probe
from steelyard.probe.base import Probe
from steelyard.progress.events import Silent
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
READINGS = 3
READ_TIMEOUT_S = 30.0
SOMETIMES = (
    *("_p50_ms", "_p99_ms", "_mean_ms", "_hit_fraction", "node_gc_pause_ms", "node_heap_after_gc_bytes"),
    *("node_cache_chunks_bytes", "node_response_active_tasks", "node_response_pending_tasks"),
)
"""Ends of metrics that need an operation, a pause, a cache that is off by default, or another node."""


async def readings_of(probes: list[Probe], cluster: RunningCluster) -> Readings:
    watched = await watched_nodes(cluster.system, cluster.nodes)
    async with watching(probes, watched, Silent()) as readings:
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline and readings.failure is None:
            seconds = [{sample.t_s for sample in samples} for samples in readings.samples.values()]
            if all(len(each) >= READINGS for each in seconds):
                break
            await asyncio.sleep(0.1)
    return readings


def test_every_metric_is_read_once_a_second(real_node: RunningCluster) -> None:
    assert isinstance(real_node.system, Observed)
    assert ask(real_node.contacts[0], *STATEMENTS).returncode == 0
    probes = [make_probe(Plugins(), name) for name in NAMES]
    readings = asyncio.run(readings_of(probes, real_node))
    assert readings.failure is None
    for probe in probes:
        samples = readings.samples[probe.name, real_node.nodes[0].name]
        read = {sample.metric for sample in samples}
        declared = {metric.name for metric in probe.metrics}
        assert read <= declared
        assert {name for name in declared - read if not name.endswith(SOMETIMES)} == set(), probe.name
        assert len({sample.t_s for sample in samples}) >= READINGS
