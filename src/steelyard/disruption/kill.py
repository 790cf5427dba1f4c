"""Disruption `kill`: servers are killed (SIGKILL), and started again at its end."""

from __future__ import annotations

import asyncio

from steelyard.disruption.base import Disruption, Stage
from steelyard.model.activity import BEGAN, HEALED
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.tasks import to_the_end, together
from steelyard.system.base import LosesData, System


class Settings(Value):
    """Disruption `kill` has no settings."""


class Kill:
    """Kills servers as the laboratory does at the end of a start."""

    name, takes_down = "kill", True

    def caution(self, system: System) -> str:
        """Data that are lost with a server."""
        return system.lost_by_kill() if isinstance(system, LosesData) else ""

    async def hold(self, stage: Stage) -> None:
        """Kill, wait, start."""
        await together(self._hold(stage, node) for node in stage.nodes)

    async def _hold(self, stage: Stage, node: Node) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + stage.for_s

        async def start() -> None:
            await stage.system.start(node, stage.members)
            stage.mark(node, HEALED, None)

        try:
            await stage.system.kill(node)
            stage.mark(node, BEGAN, None)
            await asyncio.sleep(until_s - loop.time())
        finally:
            await to_the_end(start())


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Kill()
