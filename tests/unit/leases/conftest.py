"""A process of a lease."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from steelyard.leases import records as lease_records


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, lease_records.MARKER: "5eedbeef"}) as process:
        yield process
        process.kill()
