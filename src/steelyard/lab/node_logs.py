"""Collection of node logs before the nodes are released, bounded in bytes and in time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from steelyard.node.base import Node
from steelyard.system.base import System

LOG_TAIL_BYTES = 2 << 20

Result = TypeVar("Result")


async def in_a_thread(work: Callable[[], Result]) -> Result:
    """Do blocking work beside the event loop, so that a deadline around it can fire and probes are read meanwhile.

    What a deadline bounds is our waiting. A read that the kernel never answers (a dead disk, a lost network folder)
    cannot be called back: its thread stays, does no harm to what comes after, and ends with this process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def answer(result: Result | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def labour() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # handed to whoever waits
            failure = error
        # The loop may have ended without us.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(answer, result, failure)

    # No pool: a pool's threads are waited for when the process ends.
    threading.Thread(target=labour, name="steelyard-collect", daemon=True).start()
    return await done


def size(path: Path) -> int:
    """Bytes of a file; 0 if it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def since(path: Path, offset: int) -> bytes:
    """What was appended to a log since `offset`, at most its last LOG_TAIL_BYTES; empty if it is not there."""
    try:
        with path.open("rb") as handle:
            handle.seek(max(offset, size(path) - LOG_TAIL_BYTES))
            return handle.read()
    except OSError:
        return b""


def tails(system: System, nodes: Sequence[Node]) -> dict[str, dict[str, bytes]]:
    """Node to name of log to its end."""
    return {node.name: {path.name: since(path, 0) for path in system.logs(node)} for node in nodes}
