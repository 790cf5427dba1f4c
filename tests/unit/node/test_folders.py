"""Where state and cache are."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.node.folders import cache_folder, state_folder


@pytest.mark.parametrize(
    ("environment", "state", "cache"),
    [
        ({"STEELYARD_STATE": "/s", "XDG_STATE_HOME": "/x", "STEELYARD_CACHE": "/c"}, "/s", "/c"),
        ({"XDG_STATE_HOME": "/x", "XDG_CACHE_HOME": "/y"}, "/x/steelyard", "/y/steelyard"),
        ({"XDG_STATE_HOME": "x"}, "/home/a/.local/state/steelyard", "/home/a/.cache/steelyard"),
        ({"STEELYARD_STATE": "~/s", "STEELYARD_CACHE": ""}, "/home/a/s", "/home/a/.cache/steelyard"),
    ],
)
def test_folders(environment: dict[str, str], state: str, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    assert state_folder(environment) == Path(state)
    assert cache_folder(environment) == Path(cache)


def test_relative_folders_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert state_folder({"STEELYARD_STATE": "s"}) == tmp_path / "s"
