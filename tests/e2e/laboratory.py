"""Run the command line as a user does, in folders of the test's own, and make sure that nothing is left."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e import forked

BUSY_MACHINE = """
[limits]
background_cpu_fraction = 1
steal_fraction = 1
link_late_ms = 1000
link_stalled_fraction = 1
link_unread_fraction = 1
"""
"""End of a study file: other tests run at the same time."""
COLD = """
[server_warm_up]
mode = "off"
"""
"""End of a study file whose test is not about warm servers."""
ROOT = Path(__file__).resolve().parents[2]
STEELYARD = Path(sys.executable).parent / "steelyard"


@contextmanager
def loopback_addresses() -> Iterator[None]:
    """The addresses of site `local` on loopback, for one test at a time: each has a state folder of its own, so their
    leases do not see each other."""
    with (Path(tempfile.gettempdir()) / "steelyard-tests-loopback.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Laboratory:
    """State and store below `folder`; the cache of programs (jars, archives) is the user's, snapshots too."""

    folder: Path
    state: Path | None = None
    """Folder of leases; `state` below `folder` where None."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the commands."""
        return {**os.environ, "STEELYARD_STATE": str(self.state or self.folder / "state"), "NO_COLOR": "1"}

    @property
    def store(self) -> Path:
        """Root of the stores."""
        return self.folder / "store"

    def argv(self, *words: str | Path) -> list[str]:
        """The command line."""
        return [str(STEELYARD), *(str(word) for word in words)]

    def start(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """Start a command."""
        return subprocess.Popen(
            self.argv(*words),
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "stderr.txt").open("ab"),
        )

    def call(self, *words: str | Path, timeout_s: float = 600.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return forked.run([str(word) for word in words], self.environment, ROOT, timeout_s)

    def run(self, study: Path, *options: str, timeout_s: float = 600.0) -> subprocess.CompletedProcess[str]:
        """`steelyard run`."""
        return self.call("run", study, "--store", self.store, "--plain", *options, timeout_s=timeout_s)

    def tables(self, study: str) -> Any:
        """`steelyard report --json`."""
        done = self.call("report", self.store / study, "--output", self.folder / "report.html", "--json")
        # 1: a trial has no valid attempt, where a busy machine voided all of them. One that was repeated is 0.
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)
