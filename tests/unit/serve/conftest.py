"""Servers that tests ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.serve.served import Served, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of the test's own."""
    with serving(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests that change nothing."""
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found
