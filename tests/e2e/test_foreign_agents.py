"""Agents of other processors, run by user-mode emulation: `make agents` built them, this machine could not run them."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tools.agents import is_static

from steelyard.model.errors import EngineError
from steelyard.node import agents
from steelyard.wire import record as wire
from tests.e2e.agent_load import fill, order

pytestmark = pytest.mark.arm

EMULATED = {"aarch64": "qemu-aarch64-static", "armv7l": "qemu-arm-static"}
TIMEOUT_S = 120.0
SERVICE_US = 2000


@pytest.fixture(params=sorted(EMULATED))
def emulated(request: pytest.FixtureRequest) -> list[str]:
    """argv of an emulated agent."""
    emulator = shutil.which(EMULATED[request.param])
    if emulator is None:
        pytest.skip(f"this machine has no {EMULATED[request.param]}: apt-get install qemu-user-static")
    try:
        program = agents.find(request.param)
    except EngineError as error:
        pytest.skip(f"this machine has no agent for it: {error.message}: {error.hint}")
    return [emulator, str(program)]


def said(argv: Sequence[str], *words: str, stdin: str = "") -> str:
    done = subprocess.run([*argv, *words], input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def simulated(argv: Sequence[str], port: int) -> Iterator[str]:
    contact = f"127.0.0.1:{port}"
    words = [*argv, "sim", "--listen", contact, "--service-us", str(SERVICE_US)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                    break
                if server.poll() is not None:
                    assert server.stderr is not None
                    raise AssertionError(server.stderr.read())
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield contact
        finally:
            server.kill()


def test_it_is_static_and_of_this_version(emulated: list[str]) -> None:
    from steelyard import __version__

    assert is_static(Path(emulated[1]))
    assert said(emulated, "--version").strip() == f"steelyard-agent {__version__}"


def test_a_load_on_a_simulated_node_has_the_planted_service_time(emulated: list[str], tmp_path: Path) -> None:
    with simulated(emulated, 19242 if "aarch64" in emulated[0] else 19243) as contact:
        asked = order([contact], stop={"operations": 400, "duration_s": None})
        fill(tmp_path, asked)
        path = tmp_path / "order.json"
        path.write_text(json.dumps(asked))
        records = [wire.parse(line.encode()) for line in said(emulated, "load", "--order", str(path)).splitlines()]
    (done,) = [record for record in records if isinstance(record, wire.Done)]
    assert (done.operations, done.errors) == (400, 0)
    # One server of 2 ms: 500 a second at most.
    assert done.execution_ns / 1e9 >= 400 * SERVICE_US / 1e6 * 0.9


def test_the_probe_reads_this_machine(emulated: list[str]) -> None:
    with subprocess.Popen([*emulated, "probe", "--interval-s", "0.3"], stdout=subprocess.PIPE) as probe:
        assert probe.stdout is not None
        try:
            records = [wire.parse(probe.stdout.readline()) for _ in range(4)]
        finally:
            probe.kill()
    samples = [record for record in records if isinstance(record, wire.SampleRecord)]
    assert samples
    assert samples[-1].values["machine_memory_available_bytes"] > 0


def test_a_process_is_kept_asked_and_stopped(emulated: list[str], tmp_path: Path) -> None:
    record = tmp_path / "kept.json"
    said(emulated, "keep", "start", "--record", str(record), "--", "sleep", "600")
    kept = json.loads(said(emulated, "keep", "ask", "--record", str(record)))
    assert kept["alive"]
    said(emulated, "keep", "stop", "--record", str(record), "--grace-s", "2")
    assert not Path(f"/proc/{kept['pid']}").exists()
    assert json.loads(said(emulated, "keep", "ask", "--record", str(record)))["missing"]


def test_files_come_and_go(emulated: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    said(emulated, "files", "write", str(path), stdin="content")
    assert said(emulated, "files", "read", str(path)) == "content"
    assert json.loads(said(emulated, "files", "list", str(tmp_path))) == {"name": "a/b", "bytes": 7}
    said(emulated, "files", "remove", "--below", str(tmp_path), str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
