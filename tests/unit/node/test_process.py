"""A process is known by id and start time, over the life of whoever started it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.node import process
from steelyard.node.process import Server
from steelyard.node.processor import start_ticks

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "server.json"


def test_what_is_written_down_is_found_again(child: subprocess.Popen[bytes], record: Path) -> None:
    server = process.write_record(record, child.pid, argv=["sleep", "60"])
    assert server == Server(child.pid, start_ticks(child.pid) or 0)
    assert process.read_record(record) == process.living(record) == server
    assert json.loads(record.read_text()) == {
        "pid": child.pid,
        "started_ticks": server.started_ticks,
        "argv": ["sleep", "60"],
    }


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"pid": 1}', '{"pid": null, "started_ticks": 1}'])
def test_what_is_no_record_is_no_process(record: Path, text: str | None) -> None:
    if text is not None:
        record.write_text(text)
    assert process.read_record(record) is None
    assert process.living(record) is None


def test_a_reused_id_is_another_process(child: subprocess.Popen[bytes], record: Path) -> None:
    server = process.write_record(record, child.pid)
    assert server is not None
    earlier = Server(child.pid, server.started_ticks - 1)
    record.write_text(json.dumps({"pid": earlier.pid, "started_ticks": earlier.started_ticks}))
    assert process.read_record(record) == earlier
    assert process.living(record) is None
    earlier.signal(signal.SIGKILL)
    asyncio.run(process.stop(record, 0.0))
    assert server.alive
    assert not record.exists()


def test_a_process_that_ended_is_gone_before_it_is_waited_for(child: subprocess.Popen[bytes], record: Path) -> None:
    server = process.write_record(record, child.pid)
    assert server is not None
    assert not asyncio.run(process.gone(server, 0.05))
    os.kill(child.pid, signal.SIGKILL)
    assert asyncio.run(process.gone(server, 5.0))
    record.unlink()
    assert process.write_record(record, child.pid) is None
    assert not record.exists()
    server.signal(signal.SIGTERM)


def test_stop_asks_first(child: subprocess.Popen[bytes], record: Path) -> None:
    process.write_record(record, child.pid)
    asyncio.run(process.stop(record, 5.0))
    assert child.wait(5) == -signal.SIGTERM
    assert not record.exists()
    asyncio.run(process.stop(record, 5.0))


@pytest.mark.parametrize("grace_s", [0.0, 0.1])
def test_stop_kills_what_does_not_listen(record: Path, grace_s: float) -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        assert deaf.stdout.readline() == b"deaf\n"
        process.write_record(record, deaf.pid)
        begun_s = time.monotonic()
        asyncio.run(process.stop(record, grace_s))
        assert time.monotonic() - begun_s >= grace_s
        assert deaf.wait(5) == -signal.SIGKILL
