"""The scripts that site `ssh` runs on a machine, run here in folders of their own."""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path

import pytest

from steelyard.site.ssh import scripts

LEASE, OTHER = "0123abcd", "89ef4567"


def sh(
    script: str, *arguments: object, stdin: bytes = b"", name: str = "steelyard"
) -> subprocess.CompletedProcess[bytes]:
    argv = ["sh", "-c", script, name, *map(str, arguments)]
    return subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=20)


def claim(folder: Path, lease: str = LEASE, node: str = "n1", seconds: int = 100) -> subprocess.CompletedProcess[bytes]:
    return sh(scripts.CLAIM, folder, lease, node, seconds, "study x of anna on laptop")


def release(folder: Path, lease: str = LEASE, agent: object = "/nowhere/agent") -> int:
    return sh(scripts.RELEASE, folder, lease, agent).returncode


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_a_machine_says_of_itself(tmp_path: Path) -> None:
    identity = scripts.parse(sh(scripts.IDENTIFY, tmp_path / "own folder").stdout.decode())
    assert identity.folder == str(tmp_path / "own folder")
    assert identity.kernel == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(identity.now_s - time.time()) < 5
    assert identity.holder is None
    assert not list(tmp_path.iterdir())


def test_a_home_is_the_machine_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/p i")
    assert scripts.parse(sh(scripts.IDENTIFY, "~/.cache/x").stdout.decode()).folder == "/home/p i/.cache/x"


def test_what_a_study_needs_besides() -> None:
    identity = scripts.parse(sh(scripts.IDENTIFY + scripts.SURVEY, "/tmp/steelyard-not-there").stdout.decode())
    assert int(identity.get("cores")) > 0
    assert int(identity.get("MemTotal")) > 0
    assert identity.get("privileges") in ("root", "sudo", "none")
    assert len(identity.get("disk").split()) >= 6


@pytest.mark.parametrize("text", ["", "folder /x\narchitecture x86_64\n", "Welcome!\n"])
def test_anything_else_is_no_identity(text: str) -> None:
    with pytest.raises(ValueError, match="it did not report its"):
        scripts.parse(text)


def test_lines_of_an_identity() -> None:
    identity = scripts.parse(
        "Welcome to the shelf\nfolder /x\narchitecture aarch64\nkernel b\nuser pi\nnow 100\nbusy_lease 0123abcd\n"
        "busy_until 160\nbusy_note study x\nagent_of anna 17\nagent_of anna 18\naddress 10.0.0.1\naddress fe80::1\n"
    )
    assert identity.holder == scripts.Holder(LEASE, 160.0, "study x")
    assert identity.agents_of == {"anna": (17, 18)}
    assert identity.addresses == {"10.0.0.1", "fe80::1"}


def test_claim_and_release(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "steelyard"
    assert claim(folder).returncode == 0
    assert names(folder) == ["bin", "busy", "nodes", f"nodes/{LEASE}", f"nodes/{LEASE}/n1"]
    holder = scripts.holder_of((folder / "busy").read_text())
    assert holder is not None
    assert (holder.lease, holder.note) == (LEASE, "study x of anna on laptop")
    assert 90 < holder.until_s - time.time() < 101
    assert release(folder) == 0
    assert release(folder) == 0
    assert names(folder) == ["bin", "nodes"]


def test_a_machine_has_one_lease_at_a_time(tmp_path: Path) -> None:
    claim(tmp_path)
    refused = claim(tmp_path, OTHER)
    assert refused.returncode == scripts.BUSY
    holder = scripts.holder_of(refused.stdout.decode())
    assert holder is not None
    assert holder.lease == LEASE
    assert claim(tmp_path, LEASE, "n2").returncode == scripts.SAME_MACHINE
    assert release(tmp_path, OTHER) == 0
    assert names(tmp_path) == ["bin", "busy", "nodes", f"nodes/{LEASE}", f"nodes/{LEASE}/n1"]


def test_a_lease_whose_end_has_passed_is_taken_over(tmp_path: Path) -> None:
    claim(tmp_path, seconds=-10)
    taken = claim(tmp_path, OTHER)
    assert (taken.returncode, taken.stdout) == (0, f"expired {LEASE}\n".encode())
    assert claim(tmp_path, LEASE).returncode == scripts.BUSY
    assert release(tmp_path) == 0
    assert names(tmp_path) == ["bin", "busy", "nodes", f"nodes/{OTHER}", f"nodes/{OTHER}/n1"]


def test_files_are_not_removed_without_an_agent(tmp_path: Path) -> None:
    claim(tmp_path)
    (tmp_path / "nodes" / LEASE / "n1" / "data").write_text("x")
    assert release(tmp_path) == scripts.NO_AGENT
    assert (tmp_path / "busy").exists()


def test_release_asks_the_agent(tmp_path: Path) -> None:
    """What it says fails the release, and the machine stays taken."""
    claim(tmp_path)
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ "$1" != sweep ]\n')
    agent.chmod(0o755)
    assert release(tmp_path, LEASE, agent) == 1
    asked = ["--version", f"sweep --lease {LEASE}", f"files remove --below {tmp_path}/nodes {tmp_path}/nodes/{LEASE}"]
    assert (tmp_path / "asked").read_text().splitlines() == asked
    assert (tmp_path / "busy").exists()


def test_release_waits_for_a_claim_that_is_under_way(tmp_path: Path) -> None:
    name = scripts.CLAIM_NAME.format(lease=LEASE)
    with subprocess.Popen(["sh", "-c", "sleep 0.4; : end", name]) as late:
        assert release(tmp_path) == 0
        assert late.poll() is not None or late.wait(1) == 0


def test_a_file_is_brought_whole_or_not_at_all(tmp_path: Path) -> None:
    content = bytes(range(256)) * 100
    digest = hashlib.sha256(content).hexdigest()
    target = tmp_path / "agent"
    assert sh(scripts.BRING, target, len(content), digest, stdin=content[:-1]).returncode != 0
    assert sh(scripts.BRING, target, len(content), "0" * 64, stdin=content).returncode != 0
    assert names(tmp_path) == []
    assert sh(scripts.BRING, target, len(content), digest, stdin=content).returncode == 0
    assert target.read_bytes() == content
    assert target.stat().st_mode & 0o777 == 0o755
    assert names(tmp_path) == ["agent"]
