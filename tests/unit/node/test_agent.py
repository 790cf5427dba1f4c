"""The finder of the agent's program."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import EngineError
from steelyard.node import agent


def test_named_program_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.touch(mode=0o755)
    monkeypatch.setenv(agent.OVERRIDE, str(program))
    assert agent.find() == program


def test_says_where_it_looked(no_agent: list[Path], tmp_path: Path) -> None:
    no_agent += [tmp_path / "gone", tmp_path / "too"]
    with pytest.raises(EngineError) as caught:
        agent.find()
    assert all(name in caught.value.message for name in ("gone", "too"))
    assert agent.OVERRIDE in caught.value.hint
