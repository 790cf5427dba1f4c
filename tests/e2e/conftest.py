"""A laboratory per test; whatever it leaves behind fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.laboratory import Laboratory, cgroups, left_behind, lent_elsewhere, namespaces


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    state = tmp_path / "state"
    yield Laboratory(tmp_path)
    assert left_behind(state) == []
    others = lent_elsewhere(state)
    assert [name for name in sorted(namespaces() | cgroups()) if not any(lease in name for lease in others)] == []
