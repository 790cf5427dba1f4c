"""Agents for other processors: what they are built from, and when they are built anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import agents
from tools.agents import TARGETS, NotBuilt, agent_for, crates_hash, is_static, main

from steelyard.node.agents import ARCHITECTURES

STATIC = b"\x7fELF\x02\x01" + bytes(58)
"""Beginning of a program without a dynamic linker."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "checkout"
    for name in ("Cargo.toml", "Cargo.lock", "crates/a/src/lib.rs", "crates/a/tests/t.rs", "crates/a/README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_there_is_one_for_each_name_that_the_finder_knows() -> None:
    assert set(TARGETS) == set(ARCHITECTURES.values())


def test_the_hash_is_of_what_it_is_made_from(root: Path) -> None:
    before = crates_hash(root)
    (root / "crates/a/tests/t.rs").write_text("other")
    (root / "crates/a/README.md").write_text("other")
    assert crates_hash(root) == before
    (root / "crates/a/src/lib.rs").write_text("other")
    changed = crates_hash(root)
    assert changed != before
    (root / "Cargo.lock").write_text("other")
    assert crates_hash(root) not in (before, changed)


def test_an_agent_of_another_profile_is_another(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = crates_hash(root)
    monkeypatch.setenv("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
    assert crates_hash(root) != before


def test_the_same_crates_are_built_once(root: Path) -> None:
    built: list[str] = []

    def build(target: agents.Target, where: Path) -> Path:
        built.append(target.name)
        path = where / "agent"
        path.write_bytes(STATIC + target.name.encode())
        return path

    first = agent_for(TARGETS["armv7"], root, build)
    assert agent_for(TARGETS["armv7"], root, build) == first
    assert first.read_bytes() == STATIC + b"armv7"
    agent_for(TARGETS["aarch64"], root, build)
    (root / "Cargo.lock").write_text("other")
    agent_for(TARGETS["armv7"], root, build)
    assert built == ["armv7", "aarch64", "armv7"]


def test_one_that_is_not_static_is_refused(root: Path) -> None:
    python = Path(sys.executable).resolve()
    if is_static(python):
        pytest.skip("this machine has no dynamic Python")
    with pytest.raises(NotBuilt, match="is not static"):
        agent_for(TARGETS["x86_64"], root, lambda target, where: python)


def test_without_a_compiler_the_packages_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--into", str(tmp_path), "aarch64"], root) == 3
    assert "as root: dpkg --add-architecture arm64" in capsys.readouterr().err
    assert not list(tmp_path.glob("steelyard-agent*"))


def test_they_are_put_beside_the_agent(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "cache" / "agents" / crates_hash(root) / "steelyard-agent-armv7"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"x" * 100)
    assert main(["--into", str(tmp_path), "armv7"], root) == 0
    assert (tmp_path / "steelyard-agent-armv7").read_bytes() == b"x" * 100
    with pytest.raises(SystemExit):
        main(["--into", str(tmp_path), "sparc"])


def test_a_shell_script_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("#!/bin/sh\n")
    assert not is_static(tmp_path / "x")


def test_the_module_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.agents", "--help"],
        cwd=agents.ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "aarch64" in done.stdout
