"""Contract tests of a system whose nodes join and leave while it runs; authors of such systems inherit them, too.

class TestMySystemGrows(ElasticContract):
    module = "path/to/my_system.py"
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, OF_JOIN, OF_LEAVE, RING_DELAY, STARTED
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import Elastic, System
from steelyard.testing.system import COMMAND_TIMEOUT_S, SCHEMA, OnNodes, keys, log_files, until


class ElasticContract(OnNodes):
    """Inherit it in a class that does not inherit `SystemContract`, and set `module`; everything else has a default."""

    database_nodes: ClassVar[int] = 4
    at_first: ClassVar[int] = 2
    """Nodes that run from the beginning; the two behind them join."""
    interrupted_at: ClassVar[str] = RING_DELAY
    """The mark at which a join is killed, or cancelled."""

    def test_joins_leaves_and_joins_again(self, tmp_path: Path) -> None:
        """A node joins with marks in order, answers like the others, leaves without a trace, and may come back."""

        async def body() -> None:
            async with self._running(tmp_path, at_first=self.at_first) as (system, nodes):
                assert isinstance(system, Elastic)
                members, joiner = nodes[: self.at_first], nodes[self.at_first]
                await system.create_schema(members, SCHEMA)
                await self.write(system.endpoint(members, SCHEMA), SCHEMA, keys("row"))
                rows = await self.count(system.endpoint(members, SCHEMA), SCHEMA)
                for _ in range(2):
                    marks = _Marks()
                    await system.join(joiner, members, marks)
                    marks.check(tuple(OF_JOIN), STARTED, IN_SERVICE)
                    grown = (*members, joiner)
                    await self._is_whole(system, grown)
                    assert await self.count(system.endpoint((joiner,), SCHEMA), SCHEMA) == rows
                    await system.clean_up(members)
                    marks = _Marks()
                    await system.leave(joiner, grown, marks)
                    marks.check(tuple(OF_LEAVE), LEAVING, LEFT)
                    assert await system.process_ids(joiner) == ()
                    await self._is_whole(system, members)
                    assert await self.count(system.endpoint(members, SCHEMA), SCHEMA) == rows
                    await system.wipe(joiner)
                    assert await log_files(system, joiner) == []

        asyncio.run(body())

    def test_one_at_a_time(self, tmp_path: Path) -> None:
        """Of two nodes that join at once one is refused, and the other is not disturbed."""

        async def body() -> None:
            async with self._running(tmp_path, at_first=self.at_first) as (system, nodes):
                assert isinstance(system, Elastic)
                members, two = nodes[: self.at_first], nodes[self.at_first :]
                joins = [system.join(node, members, _Marks()) for node in two]
                ends = await asyncio.gather(*joins, return_exceptions=True)
                (refused,) = [place for place, end in enumerate(ends) if isinstance(end, BaseException)]
                fault = ends[refused]
                assert isinstance(fault, SystemFault)
                assert fault.node == two[refused].name
                assert "other bootstrapping/leaving/moving nodes" in fault.message.lower()
                grown = (*members, two[1 - refused])
                await self._is_whole(system, grown)
                await system.kill(two[refused])
                await system.wipe(two[refused])
                await system.join(two[refused], grown, _Marks())
                await self._is_whole(system, (*grown, two[refused]))

        asyncio.run(body())

    @pytest.mark.parametrize("how", ["killed", "cancelled"])
    def test_a_join_that_is_interrupted(self, tmp_path: Path, how: str) -> None:
        """`wipe` leaves nothing of it, and the members go on."""

        async def body() -> None:
            async with self._running(tmp_path, at_first=self.at_first) as (system, nodes):
                assert isinstance(system, Elastic)
                members, joiner = nodes[: self.at_first], nodes[self.at_first]
                marks = _Marks()
                joining = asyncio.ensure_future(system.join(joiner, members, marks))

                async def midway() -> bool:
                    assert not joining.done(), joining.exception()
                    return self.interrupted_at in marks.names

                await until(midway, self.start_timeout_s, f"the mark {self.interrupted_at}")
                if how == "killed":
                    for pid in await system.process_ids(joiner):
                        await run(joiner, ["sh", "-c", 'kill -9 "$1"', "sh", str(pid)], timeout_s=COMMAND_TIMEOUT_S)
                    with pytest.raises(SystemFault) as caught:
                        await joining
                    assert caught.value.node == joiner.name
                else:
                    joining.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await joining
                await system.wipe(joiner)
                assert await system.process_ids(joiner) == ()
                assert await log_files(system, joiner) == []
                await self._is_whole(system, members)
                await system.join(joiner, members, _Marks())
                await self._is_whole(system, (*members, joiner))

        asyncio.run(body())

    async def _is_whole(self, system: System, nodes: Sequence[Node]) -> None:
        """Every node sees all of them and no other, and runs as requested."""

        async def ready() -> bool:
            return all([await system.ready(node, len(nodes)) for node in nodes])

        await until(ready, self.start_timeout_s, "every node sees the others")
        for node in nodes:
            assert (await system.facts(node))["version"] == system.version
            assert await system.differing(node) == {}


class _Marks:
    """Marks as a system passes them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._times_s: list[float] = []
        self._begun_s = time.time()

    def __call__(self, name: str, t_s: float | None) -> None:
        self.names.append(name)
        self._times_s.append(time.time() if t_s is None else t_s)

    def check(self, known: Sequence[str], first: str, last: str) -> None:
        """Known marks from the first to the last, each once, in order, and with times of now."""
        assert self.names == [name for name in known if name in self.names]
        assert (self.names[0], self.names[-1]) == (first, last)
        assert self._times_s == sorted(self._times_s)
        # A line of a log has whole milliseconds.
        assert self._begun_s - 0.001 <= self._times_s[0]
        assert self._times_s[-1] <= time.time()
