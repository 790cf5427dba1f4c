"""Two ways of waiting that asyncio lacks: all or none, and uninterruptible to the end.

asyncio.TaskGroup would be the first, but up to Python 3.12 it leaves its caller marked as cancelled when a child fails
while the group is being left, so that a real cancellation cannot be told from an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run all at once; if one fails, or the caller is cancelled, cancel and await the others before raising, so that
    nothing is still running during the caller's clean-up. The first error wins."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks if task in done and not task.cancelled() and task.exception() is not None]
    finally:
        for task in tasks:
            task.cancel()
        if await _all_done(tasks):
            raise asyncio.CancelledError
    for task in failed:
        task.result()
    return [task.result() for task in tasks]


async def to_the_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a clean-up to its end, however often the caller is cancelled meanwhile; then propagate the cancellation."""
    task = asyncio.ensure_future(coroutine)
    cancelled = await _all_done([task])
    task.result()
    if cancelled:
        raise asyncio.CancelledError


async def _all_done(tasks: Sequence[asyncio.Future[Any]]) -> bool:
    """Wait for all, and return whether the caller was cancelled meanwhile."""
    cancelled = False
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
    return cancelled
