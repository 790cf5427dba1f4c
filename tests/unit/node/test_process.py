"""A process is known by id and start time, over the life of whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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


FIRST_THREAD_ENDS = """
import ctypes, socket, threading, time
listening = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=time.sleep, args=(60,)).start()
print(listening.getsockname()[1], flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_still_exists() -> None:
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            assert int(started.stdout.readline()) > 0
            server = KnownProcess(started.pid, start_ticks(started.pid) or 0)
            stat = Path(f"/proc/{started.pid}/stat")
            for _ in range(500):
                if ") Z " in (text := stat.read_text(encoding="utf-8")):
                    break
                asyncio.run(asyncio.sleep(0.01))
            assert ") Z " in text
            assert server.alive, "its port is still taken"
        finally:
            started.kill()
        assert asyncio.run(kept.gone(server, 5.0))
