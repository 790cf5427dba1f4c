"""Engine `agent`: our own load generator, one process per load node, each with its share of the operations."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from steelyard.engine import _agent_findings
from steelyard.engine.base import Engine
from steelyard.model.errors import EngineError
from steelyard.model.finding import Finding
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.files import put
from steelyard.node.secrets import load_credentials
from steelyard.node.tasks import together
from steelyard.wire.order import Order, Share
from steelyard.wire.record import Connected, Failure, Record, RecordError, parse
from steelyard.wire.schedule import Schedule, Trace, in_flight, with_in_flight
from steelyard.wire.word import Go, PhaseWord, Stop, Word
from steelyard.wire.word import line_of as word_line

DRAIN_GRACE_S = 15.0
STDERR_TAIL_CHARS = 500
TLS_FILES = ("ca", "certificate", "key")
LAST_RECORD_S = 1.0
WORD_AHEAD_S = 0.02
"""From reading a word to the start of its phase: several load nodes read it at almost the same time."""


class AgentEngine:
    """Runs `steelyard-agent load` on every load node and passes its records on as they arrive."""

    calibrated_as = "agent"
    reports_routing = True
    reads_back: Literal[True] = True

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Run an order. Raises EngineError if the generator fails or does not end in time."""
        if len(nodes) > 1 and order.action == "load":
            await _talk(order.model_copy(update={"go": True}), nodes, on_record, lambda talk: talk.go(), timeout_s)
            return
        shares = [_share(order, index, len(nodes)) for index in range(len(nodes))]
        pairs = zip(shares, nodes, strict=True)
        async with _ending_within(timeout_s):
            await together(carry_out(share, node, on_record) for share, node in pairs)

    async def drive_by_words(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        phases: AsyncIterator[PhaseWord],
        timeout_s: float,
    ) -> None:
        """Run an order whose phases come as words. Raises EngineError if a generator fails, ends too soon, or does not
        end in time."""
        await _talk(order, nodes, on_record, lambda talk: talk.say(phases), timeout_s)

    async def findings(self) -> Sequence[Finding]:
        """The program, and its capacity on this machine by the last calibration."""
        return await _agent_findings.of_this_machine()


async def _talk(
    order: Order,
    nodes: Sequence[Node],
    on_record: Callable[[str, Record], None],
    saying: Callable[[Talk], Coroutine[Any, Any, None]],
    timeout_s: float,
) -> None:
    """Run an order whose generators wait for words; `saying` sends them."""
    shares = [_share(order, index, len(nodes)) for index in range(len(nodes))]
    talk = Talk(len(nodes), on_record)
    pairs = zip(shares, nodes, strict=True)
    listening = [talk.carry_out(share, node, place) for place, (share, node) in enumerate(pairs)]
    async with _ending_within(timeout_s):
        await together([saying(talk), *listening])


@asynccontextmanager
async def _ending_within(timeout_s: float) -> AsyncIterator[None]:
    """Raises EngineError if the block takes longer."""
    try:
        async with asyncio.timeout(timeout_s) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        message = f"the load generator did not end within {timeout_s:g} s"
        raise EngineError(message, "raise limits.trial_timeout_s") from error


class Talk:
    """A conversation with the generators of one load: words to all of them at once."""

    def __init__(self, nodes: int, on_record: Callable[[str, Record], None]) -> None:
        self._nodes = nodes
        self._on_record = on_record
        self._connected: set[str] = set()
        self._all_connected = asyncio.Event()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        """By the place of the node among the load nodes."""
        self._last_said = False

    async def carry_out(self, order: Order, node: Node, place: int) -> None:
        """Run the generator of one node to its end. Raises EngineError if that comes before the last word."""

        def started(process: asyncio.subprocess.Process) -> None:
            self._processes[place] = process

        await carry_out(order, node, self._take, on_start=started, words=True)
        if not self._last_said:
            raise EngineError(f"{node.name}: the load generator ended too soon", "repeat the trial")

    def _take(self, node: str, record: Record) -> None:
        if isinstance(record, Connected):
            self._connected.add(node)
            if len(self._connected) == self._nodes:
                self._all_connected.set()
        self._on_record(node, record)

    async def go(self) -> None:
        """Send `go`, the only word, once all are connected: all start at one instant, whatever their clocks say."""
        await self._all_connected.wait()
        self._last_said = True
        await self._to_all(Go(in_s=WORD_AHEAD_S))

    async def say(self, phases: AsyncIterator[PhaseWord]) -> None:
        """Say go once all are connected, then the phases as they are decided, then stop."""
        await self._all_connected.wait()
        await self._to_all(Go(in_s=WORD_AHEAD_S))
        async for phase in phases:
            await self._to_all(replace(phase, in_s=max(WORD_AHEAD_S, phase.in_s)))
        self._last_said = True
        await self._to_all(Stop())

    async def _to_all(self, word: Word) -> None:
        for place, process in self._processes.items():
            assert process.stdin is not None
            line = word_line(_share_of_word(word, place, self._nodes))
            try:
                process.stdin.write(f"{line}\n".encode())
                await process.stdin.drain()
            except (BrokenPipeError, ConnectionResetError) as error:
                # Its own last record says more: it is read meanwhile, and ends this conversation first.
                await asyncio.sleep(LAST_RECORD_S)
                message = "the load generator has ended and accepts no more words"
                raise EngineError(message, "repeat the trial") from error


def _share_of_word(word: Word, index: int, of: int) -> Word:
    """The word for one load node: its part of the in-flight slots."""
    return replace(word, schedule=_part(word.schedule, index, of)) if isinstance(word, PhaseWord) else word


async def carry_out(
    order: Order,
    node: Node,
    on_record: Callable[[str, Record], None],
    *,
    workers: int = 1,
    words: bool = False,
    on_start: Callable[[asyncio.subprocess.Process], None] | None = None,
) -> None:
    """Run an order on one node with `workers` threads, until the agent ends; `on_start` receives its process, with a
    standard input if there are to be `words`. Raises EngineError, with the generator's message, if it fails."""
    path = node.folder / "order.json"
    order = await _with_files(order, node)
    await put(node, path, order.text.encode())
    argv = [agent.on(node), "load", "--order", str(path), "--workers", str(workers)]
    stdin = asyncio.subprocess.PIPE if words else asyncio.subprocess.DEVNULL
    with tempfile.NamedTemporaryFile(prefix="steelyard-load-") as errors:
        variables = load_credentials(order.target.protocol)
        await _carry_out(node, argv, variables, stdin, Path(errors.name), on_record, on_start)


async def _carry_out(
    node: Node,
    argv: Sequence[str],
    variables: Mapping[str, str],
    stdin: int,
    errors: Path,
    on_record: Callable[[str, Record], None],
    on_start: Callable[[asyncio.subprocess.Process], None] | None,
) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await spawn(node, argv, stdin=stdin, stdout=pipe, stderr=errors, variables=variables)
    failure: Failure | None = None
    try:
        if on_start is not None:
            on_start(process)
        assert process.stdout is not None
        async for line in process.stdout:
            record = _parse(line, node.name)
            if isinstance(record, Failure):
                failure = record
            else:
                on_record(node.name, record)
        code = await process.wait()
    finally:
        await end(process, DRAIN_GRACE_S)
    if failure is not None:
        raise EngineError(f"{node.name}: {failure.message}", failure.hint)
    if code != 0:
        tail = errors.read_text(errors="replace")[-STDERR_TAIL_CHARS:].strip()
        raise EngineError(f"{node.name}: the load generator exited with code {code}: {tail}")


async def _with_files(order: Order, node: Node) -> Order:
    """The order with its files (traces, the certificate of the cluster) copied to a node that does not see this
    machine's."""
    if node.programs == "same":
        return order
    path_by_file: dict[str, str] = {}

    async def bring(file: str) -> str:
        if file not in path_by_file:
            path = node.folder / f"file-{len(path_by_file)}{Path(file).suffix}"
            await put(node, path, await asyncio.to_thread(Path(file).read_bytes), mode=0o600)
            path_by_file[file] = str(path)
        return path_by_file[file]

    async def with_trace(schedule: Schedule) -> Schedule:
        if not isinstance(schedule, Trace):
            return schedule
        return schedule.model_copy(update={"file": await bring(schedule.file)})

    tls = order.tls
    if tls is not None:
        named = {name: file for name in TLS_FILES if (file := getattr(tls, name))}
        tls = tls.model_copy(update={name: await bring(file) for name, file in named.items()})
    schedules = [await with_trace(schedule) for schedule in order.schedules]
    return order.with_schedules(schedules).model_copy(update={"tls": tls})


def _share(order: Order, index: int, of: int) -> Order:
    """The share of one load node: every `of`-th operation, and its part of the operations in flight."""
    parts = [_part(schedule, index, of) for schedule in order.schedules]
    return order.with_schedules(parts).model_copy(update={"share": Share(index=index, of=of)})


def _part(schedule: Schedule, index: int, of: int) -> Schedule:
    """A schedule with one load node's part of the in-flight slots."""
    whole, rest = divmod(in_flight(schedule), of)
    return with_in_flight(schedule, max(1, whole + (1 if index < rest else 0)))


def _parse(line: bytes, node: str) -> Record:
    try:
        return parse(line)
    except RecordError as error:
        raise EngineError(f"{node}: the load generator: {error.message}", error.hint) from error


def create() -> Engine:
    """The engine."""
    return AgentEngine()
