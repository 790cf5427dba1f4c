"""The disruption of clocks keeps the contract of a disruption, on virtual machines: nobody else has their clocks."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.disruption import clock
from steelyard.disruption.base import Stage
from steelyard.lab import clocks
from steelyard.leases.records import utc_now
from steelyard.model.errors import SteelyardError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, run, spawn
from steelyard.site import vm
from steelyard.site.base import Request
from steelyard.testing.disruption import DisruptionContract, SleepingServers, holding
from tests.virtual_machines import image_or_skip

pytestmark = [pytest.mark.vm, pytest.mark.agent]

KILL_HOLDERS = "for record in /dev/shm/steelyard-disruptions-*/*.json; do pid=${record%.json}; kill -9 ${pid##*.}; done"
HOUR_S = 3600.0
CLOSE_S = 60.0
"""An emulated machine on a busy one is slow, and its clock falls behind."""


class TestClock(DisruptionContract):
    """On two machines, which are lent once for all tests. The third node is no target."""

    module = "clock"
    settings: ClassVar = {"offset_s": -HOUR_S}
    lent: ClassVar[tuple[Node, ...]]

    @pytest.fixture(scope="class", autouse=True)
    def machines(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        image_or_skip()
        site = vm.create(vm.Settings(default_memory_mb=256), tmp_path_factory.mktemp("vm"))
        lease = asyncio.run(site.lease(Request("clock", 2, 1), utc_now() + timedelta(hours=1)))
        request.cls.lent = lease.nodes
        try:
            yield
        finally:
            asyncio.run(site.release(lease))

    def nodes(self, folder: Path) -> list[Node]:
        return list(self.lent)

    @pytest.mark.parametrize("kill", [False, True], ids=["ended", "its holder killed"])
    def test_the_clock_is_wrong_while_it_lasts_and_instruments_are_not(self, kill: bool) -> None:
        asyncio.run(_wrong(self.lent[0], kill=kill))


def stage_of(node: Node) -> Stage:
    return Stage(SleepingServers(), [node], [node], 600.0, lambda *_: None)  # type: ignore[arg-type]


async def _wrong(node: Node, *, kill: bool) -> None:
    pipe = asyncio.subprocess.PIPE
    measuring = await spawn(node, [agent.on(node), "clock"], stdin=pipe, stdout=pipe)
    assert measuring.stdin is not None
    assert measuring.stdout is not None

    async def ahead_s() -> tuple[float, float]:
        """Of the clock as a new process finds it, and as one says it that has run since before."""
        assert measuring.stdin is not None
        assert measuring.stdout is not None
        (reading,) = (await clocks.read([node])).values()
        measuring.stdin.write(b"\n")
        line = await measuring.stdout.readline()
        return reading.offset_s, json.loads(line)["t_s"] - time.time()

    async def refused() -> None:
        """A second one, which would take the wrong clock for the right one."""
        with pytest.raises(SteelyardError, match="another disruption has set the clock"):
            await clock.Clock(clock.Settings()).hold(stage_of(node))

    try:
        before_s, _ = await ahead_s()
        async with holding(clock.Clock(clock.Settings(offset_s=-HOUR_S)), stage_of(node)):
            wrong_s, measured_s = await ahead_s()
            assert wrong_s - before_s == pytest.approx(-HOUR_S, abs=CLOSE_S)
            assert measured_s == pytest.approx(before_s, abs=CLOSE_S)
            await refused()
            if kill:
                await run(node, ["sh", "-c", KILL_HOLDERS], timeout_s=20.0)
                async with asyncio.timeout(CLOSE_S):
                    while (await ahead_s())[0] - before_s < -HOUR_S / 2:  # noqa: ASYNC110 - a clock has no event
                        await asyncio.sleep(0.2)
        assert await ahead_s() == pytest.approx((before_s, before_s), abs=CLOSE_S)
    finally:
        measuring.stdin.close()
        await end(measuring)
