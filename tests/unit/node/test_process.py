"""A process is known by id and start time, over the life of whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from steelyard.node import kept
from steelyard.node.process import KnownProcess
from steelyard.node.processor import start_ticks


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def test_a_reused_id_is_another_process(child: subprocess.Popen[bytes]) -> None:
    server = KnownProcess(child.pid, start_ticks(child.pid) or 0)
    earlier = KnownProcess(child.pid, server.started_ticks - 1)
    assert (server.alive, earlier.alive) == (True, False)
    earlier.signal(signal.SIGKILL)
    assert server.alive


def test_a_process_that_ended_is_gone_before_it_is_waited_for(child: subprocess.Popen[bytes]) -> None:
    server = KnownProcess(child.pid, start_ticks(child.pid) or 0)
    assert not asyncio.run(kept.gone(server, 0.05))
    os.kill(child.pid, signal.SIGKILL)
    assert asyncio.run(kept.gone(server, 5.0))
    server.signal(signal.SIGTERM)
