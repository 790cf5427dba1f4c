"""All or none, and to the end whatever comes."""

from __future__ import annotations

import asyncio
import threading

import pytest

from steelyard.model.errors import NodeError
from steelyard.node.tasks import in_a_thread, to_the_end, together


def test_the_first_error_wins_after_the_others_have_ended() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append("slow")

    async def fails() -> None:
        raise NodeError("n1 is gone")

    async def both() -> None:
        with pytest.raises(NodeError):
            await together([slow(), fails()])
        assert ended == ["slow"]
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(both())


def test_results_come_in_order_and_none_is_fine() -> None:
    async def number(value: int) -> int:
        await asyncio.sleep(0.001 * (3 - value))
        return value

    async def both() -> None:
        assert await together(number(value) for value in range(3)) == [0, 1, 2]
        assert await together([]) == []

    asyncio.run(both())


def test_a_cancelled_caller_waits_for_its_children_and_stays_cancelled() -> None:
    ended: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("child")

    async def main() -> None:
        task = asyncio.ensure_future(together([child(), child()]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["child", "child"]

    asyncio.run(main())


def test_a_clean_up_ends_however_often_it_is_interrupted() -> None:
    steps: list[str] = []

    async def clean() -> None:
        for step in ("kill", "wipe", "release"):
            await asyncio.sleep(0.01)
            steps.append(step)

    async def main() -> None:
        task = asyncio.ensure_future(to_the_end(clean()))
        for _ in range(3):
            await asyncio.sleep(0.005)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["kill", "wipe", "release"]

    asyncio.run(main())


def test_a_deadline_fires_while_a_file_is_read() -> None:
    forever = threading.Event()

    async def wait() -> None:
        async with asyncio.timeout(0.05):
            await in_a_thread(forever.wait)

    with pytest.raises(TimeoutError):
        asyncio.run(wait())
    forever.set()


def test_what_is_read_and_what_fails_comes_back() -> None:
    assert asyncio.run(in_a_thread(lambda: 42)) == 42
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_a_thread(lambda: 1 // 0))
