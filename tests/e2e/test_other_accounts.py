"""What another account of the machine finds of a real node: a port that asks for a password, and nothing to read."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from steelyard.system.base import Observed
from steelyard.system.cassandra import Cassandra
from steelyard.testing.cluster import RunningCluster

pytestmark = [pytest.mark.cassandra, pytest.mark.agent]


def called(ways: dict[str, str], words: list[str]) -> subprocess.CompletedProcess[str]:
    """A call of the management beans by the shipped client."""
    argv = [ways["java"], "-Xmx32M", "-XX:+UseSerialGC", "-cp", ways["beans"], "Beans", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_management_beans_answer_only_to_the_password(real_node: RunningCluster, tmp_path: Path) -> None:
    (node,) = real_node.nodes
    assert isinstance(real_node.system, Observed)
    ways = dict(real_node.system.ways(node))
    right = Path(ways["jmx_password_file"])
    guess = tmp_path / "guess"
    guess.write_text("steelyard guess\n", encoding="ascii")
    answered, refused = (called(ways, ["compiled", "-", str(file), ways["jmx"]]) for file in (right, guess))
    assert answered.returncode == 0, answered.stderr
    assert refused.returncode == 1
    assert "Authentication failed" in refused.stderr
    assert right.stat().st_mode & 0o777 == 0o600
    assert node.folder.parent.stat().st_mode & 0o777 == 0o700, "no other account enters the folders of a lease"
    assert isinstance(real_node.system, Cassandra)
    assert asyncio.run(real_node.system.compile_times_s([node]))[node.name] > 0


def test_the_server_has_no_capabilities_and_gains_none(real_node: RunningCluster) -> None:
    (pid,) = asyncio.run(real_node.system.process_ids(real_node.nodes[0]))
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    own = Path("/proc/self/status").read_text(encoding="ascii")
    root = "CapEff:\t0000000000000000" not in own
    assert status["CapBnd"] == "0" * 16 or not root


def test_only_the_owner_reads_the_servers_command_line_in_its_record(real_node: RunningCluster) -> None:
    record = real_node.nodes[0].folder / "cassandra.pid"
    assert record.stat().st_mode & 0o777 == 0o600
