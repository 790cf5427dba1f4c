"""Disruption `pause`: servers stand still (SIGSTOP), with all processes that descend from them, until its end
(SIGCONT)."""

from __future__ import annotations

import json

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.model.errors import SystemFault
from steelyard.model.value import Value
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.tasks import together
from steelyard.system.base import System

TIMEOUT_S = 30.0


class Settings(Value):
    """Disruption `pause` has no settings."""


class Pause:
    """Stops processes by their ids and start times, which no other process has."""

    name, takes_down = "pause", True

    async def hold(self, stage: Stage) -> None:
        """Have agents stop them."""
        named = await together(_named(stage.system, node) for node in stage.nodes)
        words = {node.name: each for node, each in zip(stage.nodes, named, strict=True)}
        await by_agent(stage, lambda node: words[node.name], charged=False)


async def _named(system: System, node: Node) -> list[str]:
    """The words that name the processes of a node's server. Raises SystemFault if there are none."""
    pids = await system.process_ids(node)
    if not pids:
        raise SystemFault(f"{node.name} has no process that can be stopped", node=node.name, system=system.name)
    asked = [word for pid in pids for word in ("--pid", str(pid))]
    done = await run(node, [agent.on(node), "disrupt", "identify", *asked], timeout_s=TIMEOUT_S, watch=True)
    named = json.loads(done.stdout)
    return ["pause", "--boot-id", named["boot_id"], *(w for one in named["processes"] for w in ("--process", one))]


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Pause()
