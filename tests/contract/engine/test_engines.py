"""Every engine that is shipped keeps the contract of an engine. A stand-in says what the foreign tools once said."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.engine import _stress_tool
from steelyard.model.load import Load
from steelyard.testing.engine import EngineContract
from steelyard.wire.order import HttpTarget, Order
from steelyard.wire.schedule import Steady

HERE = Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in.py"
SAID = HERE.parents[1] / "unit" / "engine"
RATE_PER_S = 300.0


@pytest.mark.agent
class TestAgent(EngineContract):
    module = "agent"


class StandInContract(EngineContract):
    """The tool asks no server, and says the same whatever was ordered."""

    exact = False

    @asynccontextmanager
    async def contacts(self, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
        yield ("127.0.0.1:9042",)


class TestLatte(StandInContract):
    module = "latte"
    workload = str(HERE / "rows.toml")
    workload_settings: ClassVar = {}

    @pytest.fixture(autouse=True)
    def _as_if_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program = tmp_path / "latte"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} latte {SAID / "latte.report.json"} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("STEELYARD_LATTE", str(program))


@dataclass(frozen=True)
class _Tool:
    """In place of the installed tool."""

    def argv(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, str(STAND_IN), "cassandra-stress", str(SAID / "cassandra_stress.mixed.txt"), *words]


class TestCassandraStress(StandInContract):
    module = "cassandra-stress"
    workload = "stress"
    workload_settings: ClassVar = {"records": 2000, "write_proportion": 1, "read_proportion": 3}

    @pytest.fixture(autouse=True)
    def _as_if_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async def found(cache_folder: Path) -> _Tool:
            return _Tool()

        # The tool and its Java are not on every machine; its own test is test_stress_tool (e2e).
        monkeypatch.setattr(_stress_tool, "find", found)
        monkeypatch.setattr(_stress_tool, "installed", lambda cache_folder: tmp_path)


@pytest.mark.httperf
class TestHttperf(EngineContract):
    """Against a server of one document; httperf's loads have a rate."""

    module = "httperf"
    workload = "documents"
    workload_settings: ClassVar = {"bytes": 1000, "validate_fraction": 0}

    @asynccontextmanager
    async def contacts(self, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" + b"x" * 1000)
                await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            yield (f"{host}:{port}",)

    def order(self, contacts: Sequence[str], load: Load) -> Order:
        steady = Steady(kind="constant", rate_per_s=RATE_PER_S, in_flight=load.threads)
        changes = {"schedule": steady, "target": HttpTarget(keep_alive=False)}
        return super().order(contacts, load).model_copy(update=changes)
