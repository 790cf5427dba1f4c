"""Engine `agent`: our own load generator, one process per load node, each with its share of the operations."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.engine.base import Engine
from steelyard.model.errors import EngineError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.files import put
from steelyard.node.tasks import together
from steelyard.wire.record import Failure, Record, RecordError, parse

DRAIN_GRACE_S = 15.0
START_AHEAD_S = 5.0
"""Delay between sending the orders and the common start of several load nodes, so that all of them can connect."""


class AgentEngine:
    """Runs `steelyard-agent load` on every load node and passes its records on as they arrive."""

    calibrated_as = "agent"

    async def drive(
        self,
        order: Mapping[str, Any],
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Carry out an order. Raises EngineError if the generator fails or does not end in time."""
        if len(nodes) > 1 and order["action"] == "load":
            order = {**order, "start_at_s": time.time() + START_AHEAD_S}
        shares = [_share(order, index, len(nodes)) for index in range(len(nodes))]
        pairs = zip(shares, nodes, strict=True)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await together(self._drive_one(share, node, on_record) for share, node in pairs)
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"the load generator did not end within {timeout_s:g} s"
            raise EngineError(message, "raise limits.trial_timeout_s") from error

    async def _drive_one(self, order: Mapping[str, Any], node: Node, on_record: Callable[[str, Record], None]) -> None:
        await carry_out(order, node, on_record)


async def carry_out(
    order: Mapping[str, Any],
    node: Node,
    on_record: Callable[[str, Record], None],
    *,
    workers: int = 1,
    on_start: Callable[[asyncio.subprocess.Process], None] | None = None,
) -> None:
    """Carry out an order on one node with `workers` threads, until the agent ends; `on_start` receives its process.
    Raises EngineError, with the generator's message, if it fails."""
    path = node.folder / "order.json"
    errors = node.folder / "load.stderr"
    order = await _with_traces(order, node)
    await put(node, path, json.dumps(order, indent=1).encode())
    argv = [str(agent.find()), "load", "--order", str(path), "--workers", str(workers)]
    process = await spawn(node, argv, stdout=asyncio.subprocess.PIPE, stderr=errors)
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
        tail = ""
        with contextlib.suppress(OSError):
            tail = errors.read_text(errors="replace")[-500:].strip()
        raise EngineError(f"{node.name}: the load generator ended with {code}: {tail}")


async def _with_traces(order: Mapping[str, Any], node: Node) -> dict[str, Any]:
    """The order with its trace files copied to the node."""
    brought: dict[str, str] = {}

    async def bring(schedule: Mapping[str, Any]) -> dict[str, Any]:
        if "file" not in schedule or node.local:
            return dict(schedule)
        file = schedule["file"]
        if file not in brought:
            path = node.folder / f"trace-{len(brought)}.txt"
            await put(node, path, await asyncio.to_thread(Path(file).read_bytes))
            brought[file] = str(path)
        return {**schedule, "file": brought[file]}

    rewritten = {**order, "schedule": await bring(order["schedule"])}
    if "phases" in order:
        rewritten["phases"] = [{**phase, "schedule": await bring(phase["schedule"])} for phase in order["phases"]]
    return rewritten


def _share(order: Mapping[str, Any], index: int, of: int) -> dict[str, Any]:
    """The share of one load node: every `of`-th operation, and its part of the operations in flight."""

    def part(schedule: Mapping[str, Any]) -> dict[str, Any]:
        mine = dict(schedule)
        for key in ("threads", "in_flight"):
            if key in mine:
                whole, rest = divmod(mine[key], of)
                mine[key] = max(1, whole + (1 if index < rest else 0))
        return mine

    shared = {**order, "schedule": part(order["schedule"]), "share": {"index": index, "of": of}}
    if "phases" in order:
        shared["phases"] = [{**phase, "schedule": part(phase["schedule"])} for phase in order["phases"]]
    return shared


def _parse(line: bytes, node: str) -> Record:
    try:
        return parse(line)
    except RecordError as error:
        raise EngineError(f"{node}: the load generator: {error.message}", error.hint) from error


def create() -> Engine:
    """The engine."""
    return AgentEngine()
