"""Engine `cassandra-stress`: the tool of Cassandra 3.11, so that the load generator can be a factor of a study.

It runs orders of the workload `stress`, including filling. docs/reference/engines.md compares its figures with
our agent's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from steelyard.engine import _stress_tool as tool
from steelyard.engine._stress_line import Line, line
from steelyard.engine._stress_output import Output
from steelyard.engine.base import Engine
from steelyard.model.errors import EngineError
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.folders import cache_folder
from steelyard.node.tasks import together
from steelyard.wire.order import Order
from steelyard.wire.record import FORMAT, Hello, Interval, Record

DRAIN_GRACE_S = 15.0
STDERR = "cassandra-stress.stderr"
JAVA_PACKAGE = "openjdk-17-jre-headless"
MAVEN_PACKAGE = "maven"

log = logging.getLogger(__name__)


class CassandraStress:
    """Compiles an order to a command line, and parses the tool's output into records."""

    name = "cassandra-stress"
    version = tool.VERSION
    stamped_here: Literal[True] = True
    """The tool prints no time of day: its lines are stamped as they come in."""
    falls_silent: Literal[True] = True
    """The tool prints no line for an interval in which no operation ended."""

    async def prepare(self) -> None:
        """Fetch the tool. Slow only the first time. Raises EngineError."""
        await tool.ensure(cache_folder(), log.info)

    def check(self, order: Order, load_nodes: int) -> None:
        """Raises EngineError for anything that the tool does not support, or if it is not installed."""
        line(order, 0, load_nodes)
        tool.installed(cache_folder())

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Run an order. Raises EngineError if the tool does not support it, fails, or takes too long."""
        lines = [line(order, index, len(nodes)) for index in range(len(nodes))]
        program = await tool.find(cache_folder())
        pairs = zip(lines, nodes, strict=True)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await together(_drive_one(program, order, own, node, on_record) for own, node in pairs)
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"cassandra-stress did not end within {timeout_s:g} s"
            raise EngineError(message, "raise limits.trial_timeout_s") from error


async def _drive_one(
    program: tool.Tool, order: Order, own: Line, node: Node, on_record: Callable[[str, Record], None]
) -> None:
    phase = "populate" if order.action == "populate" else "measure"
    output = Output(own.names, order.contacts, phase, order.warm_up_s)
    version = f"{CassandraStress.name} {CassandraStress.version}"
    on_record(node.name, Hello(format=FORMAT, agent=version, optimised=True, t_s=time.time()))
    errors = node.folder / STDERR
    # Messages of failed operations are counted, so the file must not contain those of an earlier order.
    errors.unlink(missing_ok=True)
    process = await spawn(node, program.argv(own.words), stdout=asyncio.subprocess.PIPE, stderr=errors)
    cpu = _Cpu(process.pid)
    try:
        assert process.stdout is not None
        async for raw in process.stdout:
            text = raw.decode(errors="replace")
            if text.startswith(("type ", "total,")):
                cpu.read()
            for record in output.take(text, time.time(), cpu.whole_s):
                if isinstance(record, Interval) and record.phase == phase:
                    cpu.measured(record.seconds)
                on_record(node.name, record)
        code = await process.wait()
    finally:
        await end(process, DRAIN_GRACE_S)
    if code != 0 or not output.ended:
        tail = " | ".join(text for text in output.tail if text.strip())[-500:]
        with contextlib.suppress(OSError):
            tail = f"{tail} {errors.read_text(errors='replace')[-500:]}".strip()
        raise EngineError(f"{node.name}: cassandra-stress exited with code {code}: {tail}")
    with errors.open(errors="replace") as messages:
        on_record(node.name, output.done(messages, cpu.busiest_thread_fraction))


class _Cpu:
    """CPU time of a local process and of its threads, over the measured intervals; 0 if it cannot be read."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}/task")
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._threads: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._since: dict[str, float] | None = None
        self._measured_s = 0.0
        self.whole_s = 0.0

    def read(self) -> None:
        """Read the CPU time at the end of an interval."""
        self._before, self._threads = self._threads, {}
        with contextlib.suppress(OSError):
            self.whole_s = self._used_s(self._folder.parent / "stat")
            for thread in self._folder.iterdir():
                with contextlib.suppress(OSError):
                    self._threads[thread.name] = self._used_s(thread / "stat")

    def measured(self, seconds: float) -> None:
        """Count the interval that has just ended as measured."""
        if self._since is None:
            self._since = self._before
        self._measured_s += seconds

    @property
    def busiest_thread_fraction(self) -> float:
        """CPU time of the busiest thread divided by the length of the measured intervals."""
        since = self._since or {}
        used = [total_s - since.get(name, 0.0) for name, total_s in self._threads.items()]
        return max(used, default=0.0) / self._measured_s if self._measured_s else 0.0

    def _used_s(self, path: Path) -> float:
        # Fields 14 and 15, see proc_pid_stat(5); the name in parentheses may hold anything.
        fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / self._ticks_per_s


async def missing_packages() -> tuple[str, ...]:
    """Debian packages that `prepare` needs: a Java 17, and Maven until the jars are installed."""
    missing = []
    try:
        await tool.find_java()
    except EngineError:
        missing.append(JAVA_PACKAGE)
    if shutil.which("mvn") is None and not tool.is_installed(cache_folder()):
        missing.append(MAVEN_PACKAGE)
    return tuple(missing)


def create() -> Engine:
    """The engine."""
    return CassandraStress()
