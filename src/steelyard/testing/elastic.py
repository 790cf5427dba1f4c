"""Contract tests of a system whose nodes join and leave while it runs; authors of such systems inherit them, too.

class TestMySystemGrows(ElasticContract):
    module = "path/to/my_system.py"
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Protocol

import pytest

from steelyard.lab import clocks
from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, OF_JOIN, OF_LEAVE, RING_DELAY, STARTED
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import Elastic, System
from steelyard.testing.system import (
    COMMAND_TIMEOUT_S,
    DEATH_TIMEOUT_S,
    ROWS,
    SCHEMA,
    OnNodes,
    keys,
    log_files,
    until,
)

Interruption = Literal["killed", "cancelled"]


class ElasticSystem(System, Elastic, Protocol):
    """A system with the ability."""


class ElasticContract(OnNodes):
    """Inherit it in a class that does not inherit `SystemContract`, and set `module`; everything else has a default.
    Override a part to check more of it: parts return what they saw."""

    database_nodes: ClassVar[int] = 4
    at_first: ClassVar[int] = 2
    """Nodes that run from the beginning; the others join. If they are two or more, two begin at once."""
    interrupted_at: ClassVar[Sequence[tuple[Interruption, str]]] = (("killed", RING_DELAY), ("cancelled", RING_DELAY))
    """Ends of joins that are not completed, each with the mark that the node has reached: one before it serves."""
    rows: ClassVar[int] = ROWS
    """Result of `count` on every node once the keys are written."""

    def test_nodes_join_and_leave(self, tmp_path: Path) -> None:
        """Of two that join at once one is refused; the other leaves, and joins again after joins that were
        interrupted. One cluster for all of it, as starts may be slow."""

        async def body() -> None:
            async with self._running(tmp_path, at_first=self.at_first) as (system, nodes):
                assert isinstance(system, Elastic)
                members, spares = nodes[: self.at_first], nodes[self.at_first :]
                await system.create_schema(members, SCHEMA)
                await self.write(system.endpoint(members, SCHEMA), SCHEMA, keys("row"))
                await self.is_whole(system, members)
                joined, refused = await self.joins_at_once(system, spares[:2], members)
                await system.clean_up(members)
                await self.leaves(system, joined, (*members, joined))
                for how, mark in self.interrupted_at:
                    await self.is_interrupted(system, refused[0] if refused else joined, members, how, mark)
                await self.joins(system, joined, members)

        asyncio.run(body())

    async def joins(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """A node joins, with marks in order, and answers like the others. Returns the times of the marks, and the bytes
        that it received."""
        marks = await _Marks.of(joiner)
        received = await system.join(joiner, members, marks)
        marks.check(tuple(OF_JOIN), STARTED, IN_SERVICE)
        await self.is_whole(system, (*members, joiner))
        return marks.times_s, received

    async def leaves(
        self, system: ElasticSystem, leaver: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """One of the members leaves, without a trace. Returns the times of the marks, and the bytes that it sent."""
        marks = await _Marks.of(leaver)
        sent = await system.leave(leaver, members, marks)
        marks.check(tuple(OF_LEAVE), LEAVING, LEFT)
        await self.is_whole(system, [member for member in members if member != leaver])
        assert await system.process_ids(leaver) == ()
        await self._wipe(system, leaver)
        return marks.times_s, sent

    async def joins_at_once(
        self, system: ElasticSystem, joiners: Sequence[Node], members: Sequence[Node]
    ) -> tuple[Node, list[Node]]:
        """Of nodes that join at once, one joins undisturbed, and the others are refused. Returns it, and the others."""
        attempts = [self.joins(system, node, members) for node in joiners]
        ends = await asyncio.gather(*attempts, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, SystemFault):
                raise end
        (joined,) = [node for node, end in zip(joiners, ends, strict=True) if not isinstance(end, SystemFault)]
        refused = [(node, end) for node, end in zip(joiners, ends, strict=True) if isinstance(end, SystemFault)]
        for node, fault in refused:
            assert fault.node == node.name
            assert joined.name in fault.message or joined.address in fault.message, fault
            await self._wipe(system, node)
        return joined, [node for node, _ in refused]

    async def is_interrupted(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node], how: Interruption, mark: str
    ) -> SystemFault | None:
        """A join ends early; `wipe` leaves nothing of it, and the members go on. Returns the fault of one that was
        killed."""
        marks = await _Marks.of(joiner)
        joining = asyncio.ensure_future(system.join(joiner, members, marks))

        async def has_begun() -> bool:
            assert not joining.done(), joining.exception()
            return mark in marks.names and await system.process_ids(joiner) != ()

        await until(has_begun, self.start_timeout_s, f"the mark {mark}")
        fault = None
        if how == "killed":
            for pid in await system.process_ids(joiner):
                await run(joiner, ["sh", "-c", 'kill -9 "$1"', "sh", str(pid)], timeout_s=COMMAND_TIMEOUT_S)
            with pytest.raises(SystemFault) as caught:
                await asyncio.wait_for(joining, DEATH_TIMEOUT_S)
            fault = caught.value
            assert fault.node == joiner.name
        else:
            joining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await joining
        await self._wipe(system, joiner)
        await self.is_whole(system, members)
        return fault

    async def is_whole(self, system: ElasticSystem, nodes: Sequence[Node]) -> None:
        """Every node sees all of them and no other, runs as requested, and finds every row."""
        for node in nodes:
            assert await system.ready(node, len(nodes))
            assert (await system.facts(node))["version"] == system.version
            assert await system.differing(node) == {}
            assert await self.count(system.endpoint((node,), SCHEMA), SCHEMA) == self.rows

    async def _wipe(self, system: System, node: Node) -> None:
        """Wipe a node that is no member; nothing is left of it."""
        await system.wipe(node)
        assert await system.process_ids(node) == ()
        assert await log_files(system, node) == []


class _Marks:
    """Marks as a system passes them."""

    def __init__(self, clock: clocks.Reading) -> None:
        self.names: list[str] = []
        self._clock = clock
        self._times_s: list[float] = []
        self._begun_s = time.time()

    @property
    def times_s(self) -> Mapping[str, float]:
        """Each mark's time on the clock of this process."""
        return dict(zip(self.names, self._times_s, strict=True))

    @classmethod
    async def of(cls, node: Node) -> _Marks:
        """Marks of a node, whose clock may be another than this process's."""
        return cls((await clocks.read([node])).get(node.name, clocks.Reading(0.0, 0.0)))

    def __call__(self, name: str, t_s: float | None) -> None:
        self.names.append(name)
        self._times_s.append(time.time() if t_s is None else t_s - self._clock.offset_s)

    def check(self, known: Sequence[str], first: str, last: str) -> None:
        """Known marks from the first to the last, each once, in order, and with times of now."""
        assert self.names == [name for name in known if name in self.names]
        assert (self.names[0], self.names[-1]) == (first, last)
        assert self._times_s == sorted(self._times_s)
        # A line of a log has whole milliseconds.
        assert self._begun_s - 0.001 - self._clock.error_s <= self._times_s[0]
        assert self._times_s[-1] <= time.time() + self._clock.error_s
