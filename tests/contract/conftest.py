"""A Docker daemon for tests of contracts in containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steelyard.site.docker import daemon as docker_daemon
from tests.docker_daemon import running_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker_daemon.Own]:
    with running_daemon(tmp_path_factory.mktemp("docker")) as own:
        yield own
