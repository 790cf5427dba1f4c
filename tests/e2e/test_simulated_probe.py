"""The probe `simulated` on real simulated nodes: it finds the planted utilisation under a known open load."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import fmean

import pytest

from steelyard.events.base import Silent
from steelyard.lab.probe_processes import Readings, watched_nodes, watching
from steelyard.node.base import Node
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.system.simulated import Settings, create
from steelyard.testing.system import until
from tests.e2e.agent_load import SCHEMA, ask, drive, order

pytestmark = [pytest.mark.agent, pytest.mark.quiet]

NODES, SERVERS, SERVICE_US, CONTENTION = 2, 2, 4000.0, 0.25
RATE_PER_S, SECONDS = 300, 8
RHO = RATE_PER_S * SERVICE_US / 1e6 * (1 + CONTENTION * (NODES - 1)) / (NODES * SERVERS)


async def readings_under_load(folder: Path) -> Readings:
    """Readings of the probe while operations are due at a constant rate."""
    settings = Settings(port=19148, service_us=SERVICE_US, contention=CONTENTION, servers=SERVERS)
    system = create(settings, folder)
    nodes = [Node(f"n{last}", "database", f"127.94.11.{last}", (), folder / f"n{last}") for last in range(1, NODES + 1)]
    try:
        for node in nodes:
            await system.install(node, nodes)
            await system.start(node, nodes)
        for node in nodes:
            await until(lambda node=node: system.ready(node, NODES), 30.0, f"{node.name} is ready")
        contacts = [f"{node.address}:{settings.port}" for node in nodes]
        created = await asyncio.to_thread(ask, contacts[0], *SCHEMA)
        assert created.returncode == 0, created.stderr
        load = order(
            contacts,
            schedule={"kind": "constant", "rate_per_s": RATE_PER_S, "in_flight": 64},
            stop={"operations": RATE_PER_S * SECONDS, "duration_s": None},
        )
        probe = Parts(Plugins()).probe("simulated")
        async with watching([probe], await watched_nodes(system, nodes), Silent()) as readings:
            ended = await asyncio.to_thread(drive, folder, load)
        assert ended.done["errors"] == 0
        return readings
    finally:
        for node in nodes:
            await system.wipe(node)


def test_the_planted_utilisation_is_found(tmp_path: Path) -> None:
    readings = asyncio.run(readings_under_load(tmp_path))
    assert readings.failure is None
    means = []
    for number in range(1, NODES + 1):
        busy = [sample.value for sample in readings.samples["simulated", f"n{number}"] if sample.value > 0]
        assert len(busy) > SECONDS / 2
        # The seconds in which the load began and ended are busy in part.
        means.append(fmean(busy[1:-1]))
    assert fmean(means) == pytest.approx(100 * RHO, abs=3.0), means
