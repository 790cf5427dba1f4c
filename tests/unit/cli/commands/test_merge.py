"""`steelyard merge`: what was taken from where, what was left out, conflicts, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.commands.merge import EXIT_CONFLICT, EXIT_DONE, EXIT_LOST, merge
from tests.unit.cli.screen import printed
from tests.unit.store import test_merge as stores
from tests.unit.verify import made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.store(tmp_path_factory.mktemp("whole"))


def test_it_says_what_it_took_and_left_out(whole: Path, tmp_path: Path) -> None:
    a, b = stores.two(whole, tmp_path)
    done = printed(lambda: merge([a, b], tmp_path / "c"))
    assert done.code == EXIT_DONE
    for line in (f"{a}: 4 attempts", f"{b}: 2 attempts", "6 of 6 planned trials; 1 attempt in several stores"):
        assert line in done.err
    lost = stores.trials_of(whole)[0]
    stores.torn_record(a / "trials" / lost)
    done = printed(lambda: merge([a, b], tmp_path / "d"))
    assert done.code == EXIT_LOST
    assert f"damaged: {a}/trials/{lost}/trial.json" in done.err
    assert f"lost by damage: {lost}" in done.err


def test_conflicts_are_named_with_both_places(whole: Path, tmp_path: Path) -> None:
    a, b = stores.two(whole, tmp_path)
    name = stores.trials_of(whole)[3]
    stores.measured_again(b, name)
    done = printed(lambda: merge([a, b], tmp_path / "c"))
    assert done.code == EXIT_CONFLICT
    assert f"conflict: {name} was measured more than once: {a}/trials/{name}" in done.err
    assert f"{b}/trials/{name}" in done.err
    assert not (tmp_path / "c").exists()
