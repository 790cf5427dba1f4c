"""What a study of identical systems leaves in the state folder, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.lab.noise_floor import keep
from steelyard.node import noise_floor
from steelyard.node.folders import state_folder
from tests.unit.verify import made

SAME = (
    made.STUDY.replace("starts = 3", 'kind = "same"\nstarts = {starts}')
    .replace("trials = 1", "trials = 2")
    .replace("[factors]\nnodes = [1, 2]\n", "")
)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))


def kept(tmp_path: Path, starts: int, *, scaled: bool = False) -> tuple[str, list[Path]]:
    folder = made.store(tmp_path, text=SAME.format(starts=starts))
    return keep(folder, scaled=scaled), list(noise_floor.folder_in(state_folder()).glob("*"))


def test_three_pairs_are_kept_and_two_are_not(tmp_path: Path) -> None:
    said, files = kept(tmp_path / "two", 2)
    assert not files
    assert "it needs at least 6 starts" in said
    said, files = kept(tmp_path / "three", 3)
    assert len(files) == 1
    assert "later studies here are judged against it" in said
    assert "This study compares identical systems" in said


def test_a_study_that_was_tried_small_is_not_kept(tmp_path: Path) -> None:
    said, files = kept(tmp_path, 3, scaled=True)
    assert not files
    assert "--scale" in said
