"""The command and the commit that a measurement comes from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steelyard.lab import provenance
from steelyard.leases.records import boot_id


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_a_checkout_has_a_commit_and_says_that_files_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert provenance.commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    assert provenance.commit(tmp_path) == "", "no commit yet"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text("1")
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "-q", "-m", "one")
    found = provenance.commit(tmp_path)
    assert len(found) == 40
    (tmp_path / "src" / "a").write_text("2")
    assert provenance.commit(tmp_path) == f"{found}-changed"
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert provenance.commit(tmp_path) == f"{found}-changed", "variables of a hook name another checkout"


def test_what_the_journal_is_told() -> None:
    told = provenance.session_began(3, 8, ["steelyard", "run", "study.toml"])
    assert (told.todo, told.total) == (3, 8)
    assert told.command == ("steelyard", "run", "study.toml")
    assert told.folder == str(Path.cwd())
    assert told.boot == boot_id()
