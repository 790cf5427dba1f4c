"""Every engine that is shipped keeps the contract of an engine. A stand-in says what the foreign tools once said."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.engine import _stress_tool
from steelyard.testing.engine import EngineContract

HERE = Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in.py"
SAID = HERE.parents[1] / "unit" / "engine"


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
