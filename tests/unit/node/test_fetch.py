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
    line = "Downloaded from $i: https://x/a.jar (50 kB at 1 MB/s)"
    script = f'for i in $(seq 60); do echo "{line}"; done; echo $WORD; exit 4'
    followed = fetch.followed(
        ["sh", "-c", script], said.append, {"WORD": "end"}, measure=fetch.downloaded_mb, unit="MB"
    )
    code, tail = asyncio.run(followed)
    assert (code, tail[-1], len(tail)) == (4, "end", fetch.TAIL_LINES)
    assert said[:2] == ["1 MB", "2 MB"]
    assert all(isinstance(text, fetch.Progress) for text in said)


@pytest.mark.parametrize(
    ("line", "mb"),
    [
        ("Downloaded from central: https://x/y/a-1.0.jar (1.5 MB at 4.5 MB/s)", 1.5),
        ("Downloaded from central: https://x/y/a-1.0.pom (250 B at 3.2 kB/s)", 0.00025),
        ("Downloading from central: https://x/y/a-1.0.jar", 0.0),
    ],
)
def test_the_size_of_a_download(line: str, mb: float) -> None:
    assert fetch.downloaded_mb(line) == pytest.approx(mb)


def test_a_command_that_does_not_end_is_killed() -> None:
    with pytest.raises(CommandFailed, match=r"limit 0\.1 s"):
        asyncio.run(fetch.followed(["sleep", "60"], lambda text: None, {}, measure=len, unit="", timeout_s=0.1))
