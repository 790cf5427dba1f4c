"""Run the command line as a user does, in folders of the test's own, and make sure that nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BUSY_MACHINE = """
[limits]
background_cpu_fraction = 1
steal_fraction = 1
"""
"""End of a study file: other tests run at the same time."""
COLD = """
[server_warm_up]
mode = "off"
"""
"""End of a study file whose test is not about warm servers."""
ROOT = Path(__file__).resolve().parents[2]
STEELYARD = Path(sys.executable).parent / "steelyard"


@dataclass(frozen=True)
class Laboratory:
    """State and store below `folder`; the cache of programs (jars, archives) is the user's, snapshots too."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the commands."""
        return {**os.environ, "STEELYARD_STATE": str(self.folder / "state"), "NO_COLOR": "1"}

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
        return subprocess.run(
            self.argv(*words),
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def run(self, study: Path, *options: str, timeout_s: float = 600.0) -> subprocess.CompletedProcess[str]:
        """`steelyard run`."""
        return self.call("run", study, "--store", self.store, "--plain", *options, timeout_s=timeout_s)

    def tables(self, study: str) -> Any:
        """`steelyard report --json`."""
        done = self.call("report", self.store / study, "--output", self.folder / "report.html", "--json")
        # 1: a trial has no valid attempt, where a busy machine voided all of them. One that was repeated is 0.
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)


def left_behind(state: Path) -> list[str]:
    """Namespaces, cgroups, processes and records that belong to leases of `state` and should not be there."""
    marker = f"STEELYARD_STATE={state}".encode()
    found = [f"record {path.name}" for path in state.glob("leases/*.json")]
    found += [f"folder {path}" for path in state.glob("nodes/*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
            if marker in environ and any(entry.startswith(b"STEELYARD_LEASE=") for entry in environ):
                found.append(f"process {process.name} {(process / 'cmdline').read_bytes()[:80]!r}")
        except OSError:
            continue
    return found


def lent_elsewhere(state: Path) -> set[str]:
    """Ids of leases that other states hold: of somebody who works on the same machine."""
    register = Path("/run/steelyard")
    if not register.is_dir():
        return set()
    return {path.name for path in register.iterdir() if not path.read_text().startswith(str(state))}


def namespaces() -> set[str]:
    """Names of all our network namespaces."""
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir() if path.name.startswith("sy-")} if folder.is_dir() else set()


def cgroups() -> set[str]:
    """Our cgroups of leases."""
    return {str(path) for path in Path("/sys/fs/cgroup").glob("*/steelyard/*") if path.is_dir()}
