"""Which agent a node of another processor gets."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from steelyard.model.errors import EngineError
from steelyard.node import agent, agents

OTHER = "aarch64" if platform.machine() != "aarch64" else "x86_64"


@pytest.fixture
def places(tmp_path: Path, no_agent: list[Path]) -> tuple[Path, Path]:
    folders = (tmp_path / "first", tmp_path / "second")
    for folder in folders:
        folder.mkdir()
    no_agent += [folder / agent.PROGRAM for folder in folders]
    return folders


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_another_processor_gets_its_own(places: tuple[Path, Path]) -> None:
    program(places[0], "steelyard-agent")
    wanted = program(places[1], f"steelyard-agent-{OTHER}")
    assert agents.find(OTHER) == wanted


def test_the_same_processor_gets_a_static_one_or_this_machine_s(places: tuple[Path, Path]) -> None:
    own = program(places[0], "steelyard-agent")
    name = agents.ARCHITECTURES[platform.machine()]
    assert agents.find(platform.machine()) == own
    static = program(places[0], f"steelyard-agent-{name}")
    assert agents.find(platform.machine()) == static


def test_one_that_is_named_wins_over_a_static_one_elsewhere(places: tuple[Path, Path]) -> None:
    own = program(places[0], "steelyard-agent")
    program(places[1], f"steelyard-agent-{agents.ARCHITECTURES[platform.machine()]}")
    assert agents.find(platform.machine()) == own


def test_what_is_missing_is_named_with_its_hint(places: tuple[Path, Path]) -> None:
    program(places[0], "steelyard-agent")
    with pytest.raises(EngineError, match=f"no steelyard-agent-{OTHER} in {places[0]}, {places[1]}") as missing:
        agents.find(OTHER)
    assert "make agents" in missing.value.hint


def test_other_processors_have_none() -> None:
    with pytest.raises(EngineError, match="no agent supports processors of type riscv64") as missing:
        agents.find("riscv64")
    assert missing.value.hint == "use one of x86_64, aarch64, armv7"
