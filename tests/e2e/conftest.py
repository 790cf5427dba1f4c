"""A laboratory per test; whatever it leaves behind fails the test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.laboratory import Laboratory, cgroups, left_behind, lent_elsewhere, namespaces

LOOKS = 10


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    state = tmp_path / "state"
    yield Laboratory(tmp_path)
    assert left_behind(state) == []
    assert unknown(state) == []


def unknown(state: Path) -> list[str]:
    """Namespaces and cgroups that belong to no lease of others, who may release one between two looks."""
    for _ in range(LOOKS):
        seen = sorted(namespaces() | cgroups())
        others = lent_elsewhere(state)
        names = [name for name in seen if not any(lease in name for lease in others)]
        if not names:
            break
        time.sleep(0.2)
    return names
