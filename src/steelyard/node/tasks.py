"""Ways of waiting that asyncio lacks: all or none, uninterruptible to the end, blocking work that a deadline can leave.

asyncio.TaskGroup would be the first, but up to Python 3.12 it leaves its caller marked as cancelled when a child fails
while the group is being left, so that a real cancellation cannot be distinguished from an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
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
        interrupted = await _all_done(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # looked at, so that the loop does not report those after the first as forgotten
        if interrupted:
            raise asyncio.CancelledError
    for task in failed:
        task.result()
    return [task.result() for task in tasks]


async def alongside(driving: Awaitable[None], meanwhile: Coroutine[Any, Any, None]) -> None:
    """Await what drives a load, and do something else until that is done or the load ends. The first error of either
    wins."""
    following = asyncio.ensure_future(meanwhile)

    async def drive() -> None:
        try:
            await driving
        finally:
            following.cancel()

    async def follow() -> None:
        # Cancelled by the end of the load, which is no error.
        with contextlib.suppress(asyncio.CancelledError):
            await following

    try:
        await together([drive(), follow()])
    finally:
        following.cancel()


async def to_the_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a clean-up to its end, however often the caller is cancelled meanwhile; then propagate the cancellation."""
    task = asyncio.ensure_future(coroutine)
    cancelled = await _all_done([task])
    task.result()
    if cancelled:
        raise asyncio.CancelledError


async def in_a_thread(work: Callable[[], Result]) -> Result:
    """Do blocking work outside the event loop, so that a deadline around it can fire and probes are read meanwhile.

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
        except BaseException as error:  # handed to the waiting task
            failure = error
        # The loop may have ended without us.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(answer, result, failure)

    # No pool: a pool's threads are waited for when the process ends.
    threading.Thread(target=labour, name="steelyard-collect", daemon=True).start()
    return await done


async def _all_done(tasks: Sequence[asyncio.Future[Any]]) -> bool:
    """Wait for all, and return whether the caller was cancelled meanwhile."""
    cancelled = False
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
    return cancelled
