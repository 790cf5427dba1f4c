"""Distribution of tests over the processes of pytest-xdist: each file in one process, and all files that ask for the
real node in the same one, so that one Cassandra node is started instead of one per process."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from xdist.scheduler import LoadFileScheduling

FIXTURE: Final = "real_node"


class ByFile(LoadFileScheduling):
    """Scheduler that keeps files together, and those that share the node."""

    @cached_property
    def _sharing(self) -> frozenset[str]:
        root = self.config.rootpath
        files = (root / "tests" / "e2e").glob("test_*.py")
        return frozenset(str(file.relative_to(root)) for file in files if FIXTURE in file.read_text())

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return FIXTURE if file in self._sharing else file
