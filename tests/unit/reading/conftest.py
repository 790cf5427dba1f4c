"""Stores on disk with synthetic trials, for everything that reads one or compares two."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.reading import read
from steelyard.reading.opened import Opened
from tests.unit.report import synthetic
from tests.unit.verify import made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return synthetic.stored(tmp_path)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return read(made.store(tmp_path_factory.mktemp("base")))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return read(made.store(tmp_path_factory.mktemp("other")))
