"""Workers that join and leave a cluster that runs: a node's DataNode and its Worker together."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from steelyard.format import count
from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, STARTED, STREAMED
from steelyard.model.errors import SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import MarkIt
from steelyard.system.one_at_a_time import JoinsAndLeaves
from steelyard.system.one_server import data
from steelyard.system.spark_hdfs import _configuration as configuration
from steelyard.system.spark_hdfs import _state
from steelyard.system.spark_hdfs._settings import excluded, transfer_of, web_of_spark
from steelyard.system.spark_hdfs._system import GET_TIMEOUT_S, SparkHdfs

FORGET_TIMEOUT_S = 30.0
"""Time for NameNode and Master to forget a node whose join ended early."""


class ElasticSparkHdfs(SparkHdfs, JoinsAndLeaves):
    """Spark and HDFS whose workers join and leave while jobs run; implements `Elastic`, too. When a node leaves, HDFS
    copies what only it has, and Spark starts nothing more on it; its daemons end after its last executor."""

    received = 0
    """HDFS moves no block to a new DataNode."""

    async def _stays(self, node: Node, others: Sequence[Node]) -> str:
        copies = self.settings.replication_factor
        if node.name == self._master(node).name:
            return "NameNode and Master are on it"
        if len(others) - 1 < copies:
            return f"{count(copies, 'copy', 'copies')} of each block and {count(len(others) - 1, 'other DataNode')}"
        return ""

    async def _join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> None:
        everyone = (*members, node)
        # With the blocks of an earlier time it would be taken for the DataNode of that time.
        await files.remove(node, data(node), below=node.folder)
        await self.install(node, members)
        began_s = time.monotonic()
        await self.start(node, members)
        mark(STARTED, None)

        async def is_heard_of() -> bool:
            lasts_s = time.monotonic() - began_s
            return (await self._seen(node)).silent_s.get(node.address, lasts_s) < lasts_s

        async def serves() -> bool:
            return (await self._seen(node)).serves(node.address)

        await self.until(everyone, is_heard_of)
        await self._exclude(node, members[0], False)
        await self.until(everyone, serves)
        mark(IN_SERVICE, None)

    async def _leave(self, node: Node, others: Sequence[Node], mark: MarkIt) -> None:
        master = self._master(node)

        async def is_copied() -> bool:
            return node.address in (await self._seen(node)).decommissioned

        async def is_idle() -> bool:
            return not _state.executors(await self._get(node, f"{web_of_spark(node, master)}/json/"))

        await self._exclude(node, master, True)
        mark(LEAVING, None)
        await self._get(master, f"{web_of_spark(master, master)}/workers/kill/?host={node.address}", method="POST")
        await self.until((*others, node), is_copied)
        mark(STREAMED, None)
        await self.until((*others, node), is_idle)
        mark(LEFT, None)

    async def _exclude(self, node: Node, master: Node, is_out: bool) -> None:
        """Have the NameNode keep no blocks on a node from now on, or again. Raises CommandFailed."""
        path, line = excluded(master), transfer_of(node)
        lines = set((await files.read(master, path)).decode().split())
        if not is_out and line not in lines:
            return
        lines = lines | {line} if is_out else lines - {line}
        await files.put(master, path, "".join(f"{one}\n" for one in sorted(lines)).encode())
        of = await self._provide(master)
        argv = configuration.hdfs_argv(self.settings, master, of.java, of.home, configuration.ADMIN)
        await run(master, [*argv, "-refreshNodes"], timeout_s=GET_TIMEOUT_S, watch=True)

    async def _forget(self, node: Node, members: Sequence[Node]) -> None:
        """End the daemons of a node whose join ended early, and wait until NameNode and Master count them no more."""

        async def is_unknown() -> bool:
            seen = await self._seen(members[0])
            if node.address in seen.datanodes:
                await self._exclude(node, members[0], True)
            return node.address not in seen.datanodes | seen.workers

        await self.kill(node)
        # A master that does not answer has a fault of its own.
        with contextlib.suppress(SystemFault):
            await self.in_time(node, self.until((), is_unknown), FORGET_TIMEOUT_S)
