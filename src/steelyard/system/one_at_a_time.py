"""Nodes that join and leave a cluster that runs: one at a time, each within a time limit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, ClassVar

from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.tasks import to_the_end
from steelyard.system.base import MarkIt
from steelyard.system.one_server import Waits

HINT = "one node joins or leaves at a time: wait until the other has finished"


class OneAtATime:
    """Guard of the changes of size of one cluster."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._under_way = ""

    @asynccontextmanager
    async def __call__(self, node: Node, moves: str) -> AsyncIterator[None]:
        """Keep all others out while a node `joins` or `leaves`. Raises SystemFault if one is under way."""
        if self._under_way:
            what = f"{node.name}: refused while {self._under_way}"
            raise SystemFault(what, HINT, node=node.name, system=self._system)
        self._under_way = f"{node.name} {moves}"
        try:
            yield
        finally:
            self._under_way = ""


class JoinsAndLeaves(Waits):
    """Joins and leaves as far as they are alike, whatever a node takes along; with them a system implements `Elastic`.
    The class of the system comes before it among the bases."""

    settings: Any
    """Those of the system; `join_timeout_s` is one of them."""
    received: ClassVar[int | None] = None
    """Bytes that a node receives when it joins; None: unknown."""

    @cached_property
    def _alone(self) -> OneAtATime:
        return OneAtATime(self.name)

    @abstractmethod
    async def kill(self, node: Node) -> None:
        """Of the system."""

    @abstractmethod
    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Of the system."""

    @abstractmethod
    async def _join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> None:
        """Start a node and wait until it is in service."""

    @abstractmethod
    async def _leave(self, node: Node, others: Sequence[Node], mark: MarkIt) -> None:
        """Have a node leave all others; its server is ended afterwards."""

    @abstractmethod
    async def _stays(self, node: Node, others: Sequence[Node]) -> str:
        """Reason why a node cannot leave the others; empty if it can."""

    async def _forget(self, node: Node, members: Sequence[Node]) -> None:
        """End the server of a node whose join ended early, and remove what the members know of it."""
        await self.kill(node)

    def keeps_size(self) -> str:
        """Never: nodes can join whatever the settings are."""
        return ""

    async def clean_up(self, nodes: Sequence[Node]) -> bool:
        """Does nothing: nothing is left behind by a join."""
        return False

    async def join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Start a node next to the members, as `Elastic` says. Raises SystemFault."""
        async with self._alone(node, "joins"):
            self._refuse(node, "it runs already" if await self.process_ids(node) else "")
            try:
                await self.in_time(node, self._join(node, members, mark), self.settings.join_timeout_s)
            except BaseException:
                await to_the_end(self._forget(node, members))
                raise
        return self.received

    async def leave(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Have a node leave the members, as `Elastic` says; how many bytes it sent is unknown. Raises SystemFault."""
        others = [member for member in members if member.name != node.name]
        async with self._alone(node, "leaves"):
            self._refuse(node, "" if self.keeps_size() else await self._stays(node, others))
            await self.in_time(node, self._leave(node, others, mark), self.settings.join_timeout_s)
            await self.kill(node)
        return None

    def _refuse(self, node: Node, why: str) -> None:
        if reason := self.keeps_size() or why:
            what = f"{node.name} can neither join nor leave: {reason}"
            raise SystemFault(what, node=node.name, system=self.name)
