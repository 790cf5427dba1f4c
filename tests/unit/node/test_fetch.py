"""Fetching once: a lock that others wait for, and commands that are followed to their end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.model.errors import CommandFailed, EngineError
from steelyard.node import fetch


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    async def hold(name: str) -> None:
        async with fetch.locked(tmp_path / "made", EngineError):
            order.append(name)
            await asyncio.sleep(0.05)
            order.append(name)

    async def both() -> None:
        await asyncio.gather(hold("a"), hold("b"))

    asyncio.run(both())
    assert order in (["a", "a", "b", "b"], ["b", "b", "a", "a"])


def test_who_waits_too_long_is_told(tmp_path: Path) -> None:
    async def twice() -> None:
        async with fetch.locked(tmp_path, EngineError), fetch.locked(tmp_path, EngineError, timeout_s=0.05):
            raise AssertionError

    with pytest.raises(EngineError, match="locked by another process"):
        asyncio.run(twice())


def test_a_command_is_followed() -> None:
    said: list[str] = []
    script = 'for i in $(seq 60); do echo "Downloaded from $i"; done; echo $WORD; exit 4'
    code, tail = asyncio.run(fetch.followed(["sh", "-c", script], said.append, {"WORD": "end"}, unit="jars"))
    assert (code, tail[-1], len(tail)) == (4, "end", fetch.TAIL_LINES)
    assert said == ["25 jars", "50 jars"]


def test_a_command_that_does_not_end_is_killed() -> None:
    with pytest.raises(CommandFailed, match=r"limit 0\.1 s"):
        asyncio.run(fetch.followed(["sleep", "60"], lambda text: None, {}, timeout_s=0.1))
