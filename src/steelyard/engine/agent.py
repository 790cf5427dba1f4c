"""The engine `agent`: our own load generator, one process a load node, each with its share of the operations."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.engine.base import Engine, Record
from steelyard.model.errors import EngineError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.files import put
from steelyard.node.tasks import together

FORMAT = 1
DRAIN_GRACE_S = 15.0


class AgentEngine:
    """Runs `steelyard-agent load` on every load node and passes its records on as they come."""

    async def drive(
        self,
        order: Mapping[str, Any],
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Carry out an order. Raises EngineError when the generator fails or does not end in time."""
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
        path = node.folder / "order.json"
        errors = node.folder / "load.stderr"
        await put(node, path, json.dumps(order, indent=1).encode())
        argv = [str(agent.find()), "load", "--order", str(path)]
        process = await spawn(node, argv, stdout=asyncio.subprocess.PIPE, stderr=errors)
        failure: Record | None = None
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                record = _parse(line, node.name)
                if record["record"] == "error":
                    failure = record
                else:
                    on_record(node.name, record)
            code = await process.wait()
        finally:
            await end(process, DRAIN_GRACE_S)
        if failure is not None:
            raise EngineError(f"{node.name}: {failure['message']}", str(failure.get("hint", "")))
        if code != 0:
            tail = ""
            with contextlib.suppress(OSError):
                tail = errors.read_text(errors="replace")[-500:].strip()
            raise EngineError(f"{node.name}: the load generator ended with {code}: {tail}")


def _share(order: Mapping[str, Any], index: int, of: int) -> dict[str, Any]:
    """The part of one load node: every `of`-th operation, and its part of what may be in flight."""
    schedule = dict(order["schedule"])
    for key in ("threads", "in_flight"):
        if key in schedule:
            whole, rest = divmod(schedule[key], of)
            schedule[key] = max(1, whole + (1 if index < rest else 0))
    return {**order, "schedule": schedule, "share": {"index": index, "of": of}}


def _parse(line: bytes, node: str) -> Record:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise EngineError(f"{node}: a line of the load generator is no JSON: {line[:200]!r}") from error
    if record.get("record") == "hello" and record.get("format") != FORMAT:
        raise EngineError(
            f"{node}: the agent speaks format {record.get('format')}, this version needs {FORMAT}",
            "install steelyard and steelyard-agent of the same version",
        )
    return dict(record)


def create() -> Engine:
    """Make the engine."""
    return AgentEngine()
