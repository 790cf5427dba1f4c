"""A store on disk with synthetic trials, for everything that reads one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.report import synthetic


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return synthetic.stored(tmp_path)
