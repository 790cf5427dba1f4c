"""The machine-wide register of leases: others' leases are reported, and never an obstacle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register


def test_a_record_that_cannot_be_read_is_not_abandoned(tmp_path: Path, register: Path) -> None:
    path = tmp_path / "other" / "leases" / "0123abcd.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1, "id": "0123abcd", "a_field_of_tomorrow": 1}')
    lease_register.enter("0123abcd", path, "local", lease_records.owner())
    assert lease_register.known() == {"0123abcd": path}
    assert lease_register.abandoned_elsewhere(tmp_path / "own", lease_records.utc_now()) == {}


def test_what_is_no_plain_file_or_no_text_is_no_abandoned_record(tmp_path: Path) -> None:
    """Any process names any path as that of its record: a pipe would be waited for."""
    now, pipe, binary = lease_records.utc_now(), tmp_path / "pipe.json", tmp_path / "binary.json"
    os.mkfifo(pipe)
    binary.write_bytes(b"\xff\xfe\x00")
    assert not lease_register.is_abandoned(pipe, now)
    assert not lease_register.is_abandoned(binary, now)
    assert lease_register.is_abandoned(tmp_path / "gone.json", now)


LOOK = """
import json, subprocess, sys
from pathlib import Path
from steelyard.leases import processes, records, register
from steelyard.site import docker, local
register.FOLDER, state = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "none", str(state)], check=True)
for folder in sys.argv[3:]:
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
now = records.utc_now()
site = local.create(local.Settings(mode="loopback"), state)
print(json.dumps({
    "lost": sorted(register.lost(state, "fake")),
    "strays": [stray.id for stray in processes.strays("fake", state)],
    "orphans": [orphan.id for orphan in site._orphans(set(), now)],
    "elsewhere": sorted(processes.left_elsewhere(state.parent / "other", now)),
    "living": sorted(register.abandoned_elsewhere(state.parent / "other", now)),
}))
"""
OWNER = """
import sys, time
from pathlib import Path
from steelyard.leases import records, register
from tests.unit.leases.test_records import record
register.FOLDER = Path(sys.argv[1])
mine = record(sys.argv[3]).model_copy(update={"owner": records.owner(), "site": "fake"})
register.begin(mine, Path(sys.argv[2]), lambda: None)
print("begun", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_a_living_lease_is_none_that_is_left_over_in_a_mount_namespace_of_its_own(tmp_path: Path) -> None:
    """Its state folder is hidden there, also by another folder at the same path."""
    register, state = tmp_path / "register", tmp_path / "state"
    state.mkdir()

    def looked() -> dict[str, object]:
        argv = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", LOOK, str(register), str(state)]
        text = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
        # Others' leases are on this machine, too.
        return {kind: [one for one in leases if one == "5eedbee9"] for kind, leases in json.loads(text).items()}

    argv = [sys.executable, "-c", OWNER, str(register), str(state), "5eedbee9"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"begun\n"
        marks = lease_records.environment(state, "5eedbee9")
        with subprocess.Popen(["sleep", "60"], env={**os.environ, **marks}) as server:
            living = looked()
            owner.kill()
            owner.wait()
            server.kill()
    left = looked()
    assert living == {"lost": [], "strays": [], "orphans": [], "elsewhere": [], "living": []}
    assert (left["lost"], left["strays"], left["elsewhere"]) == (["5eedbee9"], ["5eedbee9"], ["5eedbee9"])


def test_what_cannot_be_told_from_here_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, register: Path
) -> None:
    """An entry that was torn does not say whose it is."""
    (tmp_path / "register").mkdir()
    (tmp_path / "register" / "5eedbee8").write_text(f"{lease_records.record_path(tmp_path, '5eedbee8')}\n")
    assert list(lease_register.lost(tmp_path, "")) == ["5eedbee8"]
    # As in a mount namespace of its own.
    monkeypatch.setattr(lease_register, "hidden_files", lambda: True)
    assert list(lease_register.lost(tmp_path, "")) == []
    assert lease_register.abandoned_elsewhere(tmp_path / "other", lease_records.utc_now()) == {}


def test_an_owner_in_another_namespace_of_process_ids() -> None:
    """A container and its host may share a state folder: neither takes the other's leases."""
    here = lease_records.owner()
    assert lease_records.lives(here)
    elsewhere = here.model_copy(update={"pid_namespace": here.pid_namespace + 1})
    assert lease_records.lives(elsewhere, 0), "cannot be told"
    assert not lease_records.lives(elsewhere, here.pid_namespace), "all are seen from here, and it is none of them"
    assert not lease_records.lives(elsewhere.model_copy(update={"boot_id": "before"}))


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces")
def test_a_process_within_a_namespace_of_its_own_is_seen_from_outside(tmp_path: Path) -> None:
    ask = "import time; from steelyard.leases import records; print(records.owner().model_dump_json(), flush=True)"
    argv = ["unshare", "-p", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", f"{ask}; time.sleep(60)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        inside = lease_records.Owner.model_validate_json(process.stdout.readline())
        assert inside.pid == 1
        assert lease_records.lives(inside)
        seen = lease_records.as_seen_by(inside, Path("/proc/self"))
        assert seen.parts[1] == "proc"
        assert seen.parts[3] == "root"
        process.kill()
