"""Servers that are kept on a node: here, and on a node that only commands reach."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.model.errors import CommandFailed
from steelyard.node import kept
from steelyard.node.base import Node
from steelyard.node.process import KnownProcess

pytestmark = pytest.mark.agent

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
)
DEADLINE_S = 10.0


@pytest.fixture(params=["same", "through"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    """The same machine, with and without the short cut through its own /proc."""
    here = Node("n1", "database", "127.0.0.1", (), tmp_path, environment={"STEELYARD_LEASE": "0123abcd"})
    yield here if request.param == "same" else dataclasses.replace(here, files="through", processes="through")
    asyncio.run(kept.stop(here, tmp_path / "server.json", 0.0))


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "server.json"


def until(path: Path, text: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{text!r} is not in {path}"
        time.sleep(0.01)


def test_a_process_outlives_the_command_that_started_it(node: Node, record: Path, tmp_path: Path) -> None:
    argv = ["sh", "-c", 'echo "mark $STEELYARD_LEASE"; echo trouble >&2; sleep 60']
    asyncio.run(kept.launch(node, argv, record, stdout=tmp_path / "out", stderr=tmp_path / "err"))
    until(tmp_path / "out", "mark 0123abcd")
    until(tmp_path / "err", "trouble")
    server = asyncio.run(kept.living(node, record))
    assert server is not None
    assert (server.alive, server.argv, server.ended) == (True, tuple(argv), "")
    assert KnownProcess(server.pid, server.started_ticks).alive
    assert asyncio.run(kept.asked_argv(node, record)) == tuple(argv)
    asyncio.run(kept.send(node, record, signal.SIGKILL))
    assert asyncio.run(kept.ending(node, record)) == "killed by SIGKILL"
    assert asyncio.run(kept.living(node, record)) is None


@pytest.mark.parametrize(
    ("script", "words"), [("exit 3", "exited with code 3"), ("kill -ABRT $$", "killed by SIGABRT")]
)
def test_how_it_ended_is_known(node: Node, record: Path, script: str, words: str) -> None:
    asyncio.run(kept.launch(node, ["sh", "-c", script], record))
    assert asyncio.run(kept.ending(node, record)) == words


def test_stop_asks_first(node: Node, record: Path, tmp_path: Path) -> None:
    argv = ["sh", "-c", "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
    asyncio.run(kept.launch(node, argv, record, stdout=tmp_path / "out"))
    until(tmp_path / "out", "up")
    asyncio.run(kept.stop(node, record, DEADLINE_S))
    assert "asked" in (tmp_path / "out").read_text()
    assert not record.exists()
    asyncio.run(kept.stop(node, record, DEADLINE_S))
    assert asyncio.run(kept.ask(node, record)) is None


@pytest.mark.parametrize("grace_s", [0.0, 0.2])
def test_stop_kills_what_does_not_listen(node: Node, record: Path, tmp_path: Path, grace_s: float) -> None:
    asyncio.run(kept.launch(node, [sys.executable, "-c", STUBBORN], record, stdout=tmp_path / "out"))
    until(tmp_path / "out", "deaf")
    server = asyncio.run(kept.living(node, record))
    assert server is not None
    begun_s = time.monotonic()
    asyncio.run(kept.stop(node, record, grace_s))
    assert time.monotonic() - begun_s >= grace_s
    assert not KnownProcess(server.pid, server.started_ticks).alive
    assert not record.exists()


def test_what_cannot_be_executed_is_said(node: Node, record: Path) -> None:
    with pytest.raises(CommandFailed) as caught:
        asyncio.run(kept.launch(node, ["/no/such/program"], record))
    assert caught.value.exit_code == 127
    assert "/no/such/program" in caught.value.stderr_tail
    assert asyncio.run(kept.ask(node, record)) is None


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"pid": 1}', '{"pid": null, "started_ticks": 1}'])
def test_what_is_no_record_is_no_process(tmp_path: Path, record: Path, text: str | None) -> None:
    if text is not None:
        record.write_text(text)
    here = Node("n1", "database", "127.0.0.1", (), tmp_path)
    assert asyncio.run(kept.ask(here, record)) is None
    assert asyncio.run(kept.asked_argv(here, record)) == ()


def test_a_reused_id_is_never_ended(tmp_path: Path, record: Path) -> None:
    here = Node("n1", "database", "127.0.0.1", (), tmp_path)
    asyncio.run(kept.launch(here, ["sleep", "60"], record))
    server = asyncio.run(kept.living(here, record))
    assert server is not None
    written = json.loads(record.read_text())
    record.write_text(json.dumps({**written, "started_ticks": server.started_ticks - 1}))
    try:
        assert asyncio.run(kept.living(here, record)) is None
        asyncio.run(kept.stop(here, record, 0.0))
        assert KnownProcess(server.pid, server.started_ticks).alive
    finally:
        KnownProcess(server.pid, server.started_ticks).signal(signal.SIGKILL)
