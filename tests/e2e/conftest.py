"""A laboratory per test; whatever it leaves behind fails the test. A real node for tests that need any node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.campaigns.leftovers import left_behind, unknown

from steelyard.testing.cluster import RunningCluster
from tests.e2e import shared_node
from tests.e2e.laboratory import Laboratory


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    state = tmp_path / "state"
    yield Laboratory(tmp_path)
    assert left_behind(state) == []
    assert unknown(state) == []


@pytest.fixture(scope="session")
def real_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """A running Cassandra node that tests share."""
    with shared_node.started(tmp_path_factory.mktemp("real-node")) as cluster:
        yield cluster
