"""Engines refuse what they cannot run before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plan.engines import refused
from tests.unit.study.paper import HEAD, WORKLOAD, read_text

FACTORS = '[factors]\nload.engine = ["agent", "cassandra-stress"]\n'


def told(workload: str, rest: str = FACTORS) -> list[str]:
    text = HEAD.replace(WORKLOAD, workload) + rest
    return [
        f"{error.key}: {error.message} ({error.hint})"
        for error in refused(expand(read_text(text, "paper.toml")), Abilities())
    ]


def installed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if cassandra-stress were in the cache."""
    library = cache / "cassandra-stress-3.11.4" / "lib"
    library.mkdir(parents=True)
    (library / "complete").touch()
    monkeypatch.setenv("STEELYARD_CACHE", str(cache))


def test_a_foreign_engine_refuses_what_it_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    (message,) = {text.split(" (")[0] for text in told("ycsb-a")}
    assert message == "load.engine: engine cassandra-stress cannot run a workload of kind 'ycsb'"


def test_it_takes_its_own_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    assert told("stress") == []
    levels = FACTORS + 'load.read_consistency = ["ONE", "QUORUM"]\n'
    assert [text.split(" (")[0] for text in told("stress", levels)] == [
        "load.engine: engine cassandra-stress cannot run reads at QUORUM and writes at ONE"
    ]


def test_a_tool_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    assert all("run `steelyard setup cassandra-stress`" in text for text in told("stress"))
    assert told("stress")
