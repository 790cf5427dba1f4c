"""Every disruption that is shipped keeps the contract of a disruption."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.testing.disruption import DisruptionContract

pytestmark = pytest.mark.agent


class TestNone(DisruptionContract):
    module = "none"


class TestNoop(DisruptionContract):
    module = "noop"


class TestKill(DisruptionContract):
    module = "kill"


class TestPause(DisruptionContract):
    module = "pause"


class TestStressCpu(DisruptionContract):
    module = "stress-cpu"


class TestStressMemory(DisruptionContract):
    module = "stress-memory"
    settings: ClassVar = {"mb": 16}


@pytest.mark.root
class TestDiskFull(DisruptionContract):
    module = "disk-full"
    settings: ClassVar = {"free_mb": 1}

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """A disk of its own."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", tmp_path], check=True)
        yield tmp_path
        subprocess.run(["umount", tmp_path], check=True)
