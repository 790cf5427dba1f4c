"""Nodes that join and leave a cluster that runs: slots move with their keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from steelyard.model.activity import GOSSIPING, IN_SERVICE, LEAVING, LEFT, STARTED, STREAMED, STREAMING
from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import MarkIt
from steelyard.system.one_at_a_time import JoinsAndLeaves
from steelyard.system.one_server import LAST_LINES, POLL_S
from steelyard.system.redis._system import NAME, Redis

FORGET_TIMEOUT_S = 30.0
"""Time for all members to forget a node whose join ended early."""


class ElasticRedis(Redis, JoinsAndLeaves):
    """Redis Cluster whose nodes join and leave while it runs; implements `Elastic`, too. A node that joins gets its
    share of the slots, and one that leaves gives all of its to the others; how many bytes these are is unknown."""

    def keeps_size(self) -> str:
        """With replicas."""
        return "with system.replicas a node that joins would be a master without any" if self.settings.replicas else ""

    async def _stays(self, node: Node, others: Sequence[Node]) -> str:
        return "" if others else "it has all slots"

    async def _join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> None:
        everyone = (*members, node)
        await self.install(node, members)
        await self.start(node, members)
        mark(STARTED, None)
        await self.until(everyone, lambda: self._answers(node))
        # Gossip alone takes seconds until all know it.
        for member in members:
            await self._ask(node, "CLUSTER", "MEET", member.address, str(self.settings.port))
        mark(GOSSIPING, None)
        await self.until(everyone, lambda: self._agree(everyone))
        mark(STREAMING, None)
        await self._move_slots(everyone, "--cluster-use-empty-masters")
        mark(STREAMED, None)
        await self.until(everyone, lambda: self._all_serve(everyone))
        mark(IN_SERVICE, None)

    async def _leave(self, node: Node, others: Sequence[Node], mark: MarkIt) -> None:
        mark(LEAVING, None)
        (own,) = (member for member in await self._seen(node) if member.is_myself)
        mark(STREAMING, None)
        await self._move_slots([*others, node], "--cluster-weight", f"{own.id}=0")
        mark(STREAMED, None)
        for other in others:
            await self._ask(other, "CLUSTER", "FORGET", own.id)
        await self.until(others, lambda: self._all_serve(others))
        mark(LEFT, None)

    async def _answers(self, node: Node) -> bool:
        return await self._ask(node, "PING") == "PONG\n"

    async def _agree(self, nodes: Sequence[Node]) -> bool:
        """Whether all see the same nodes up, with the same slots, and none refuses operations."""
        layouts = set()
        for node in nodes:
            seen = await self._seen(node)
            layouts.add(tuple((member.id, member.slots) for member in seen))
            if len(layouts) > 1 or len(seen) != len(nodes) or not all(member.is_up for member in seen):
                return False
        return all(["cluster_state:ok" in await self._ask(node, "CLUSTER", "INFO") for node in nodes])

    async def _all_serve(self, nodes: Sequence[Node]) -> bool:
        return await self._agree(nodes) and all(member.serves for member in await self._seen(nodes[0]))

    async def _move_slots(self, nodes: Sequence[Node], *words: str) -> None:
        """Move slots until all shares are equal but those that the words exempt. Raises SystemFault."""
        via, cli = nodes[0], (await self.programs(nodes[0])).client
        # Without brackets, also by addresses of version 6.
        contact = f"{via.address}:{self.settings.port}"
        pipeline = ("--cluster-pipeline", str(self.settings.migration_pipeline))
        argv = [cli, "--cluster", "rebalance", contact, *words, *pipeline]
        done = await run(via, argv, timeout_s=self.settings.join_timeout_s, watch=True, check=False)
        if done.exit_code != 0:
            await self.refuse_death(nodes)
            last = " | ".join((done.stdout + done.stderr).decode(errors="replace").splitlines()[-LAST_LINES:])
            hint = "slots that were moving may be open: `redis-cli --cluster fix`"
            name = nodes[-1].name
            raise SystemFault(f"{name}: slots could not be moved: {last}", hint, node=name, system=NAME)

    async def _forget(self, node: Node, members: Sequence[Node]) -> None:
        """End the server of a node whose join ended early, and have the members forget it, unless slots went with
        it."""
        await self.kill(node)
        deadline, is_known = time.monotonic() + FORGET_TIMEOUT_S, True
        while is_known and time.monotonic() < deadline:
            is_known = False
            for member in members:
                try:
                    for known in await self._seen(member):
                        if known.address == node.address and not known.slots:
                            is_known = True
                            await self._ask(member, "CLUSTER", "FORGET", known.id)
                except CommandFailed:
                    is_known = True
                    await asyncio.sleep(POLL_S)
