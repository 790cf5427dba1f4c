"""The processes of a lease: found by mark and group, and ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.model.errors import SiteError
from tests.unit.leases.test_records import record


def test_processes_are_found_by_mark_and_by_group(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert lease_processes.of("5eedbeef") == {sleeper.pid}
    assert lease_processes.of("5eedbee0") == set()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "cgroup.procs").write_text(f"{sleeper.pid}\n0\n{os.getpid()}\n")
    assert lease_processes.of("5eedbee0", [tmp_path]) == {sleeper.pid}


def test_kill_ends_the_lease_s_processes_and_no_other(sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, lease_records.MARKER: "5eedbee0"}) as other:
        asyncio.run(lease_processes.kill("5eedbeef"))
        assert sleeper.wait(5) == -9
        assert other.poll() is None
        other.kill()
    asyncio.run(lease_processes.kill("5eedbeef"))


def test_a_process_that_does_not_die_is_named(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No process outlives SIGKILL on request.
    monkeypatch.setattr(lease_processes, "_kill_verified", lambda *arguments: None)
    with pytest.raises(SiteError, match=str(sleeper.pid)):
        asyncio.run(lease_processes.kill("5eedbeef", timeout_s=0.05))


def test_a_process_whose_record_is_gone_is_a_stray(tmp_path: Path) -> None:
    path = lease_records.record_path(tmp_path, "5eedbeef")
    lease_records.write(path, record("5eedbeef"))
    with subprocess.Popen(
        ["sleep", "60"], env={**os.environ, **lease_records.environment(tmp_path, "5eedbeef")}
    ) as process:
        assert lease_processes.strays("local", tmp_path) == []
        path.unlink()
        (stray,) = lease_processes.strays("local", tmp_path)
        assert (stray.id, stray.record) == ("5eedbeef", path)
        assert lease_processes.strays("local", tmp_path / "other") == [], "another installation's"
        now = lease_records.utc_now()
        assert "5eedbeef" not in lease_processes.left_elsewhere(tmp_path, now)
        assert lease_processes.left_elsewhere(tmp_path / "other", now)["5eedbeef"] == tmp_path
        assert lease_processes.described(lease_processes.of(stray.id)) == f"process {process.pid} (sleep 60)"
        asyncio.run(lease_processes.kill(stray.id))
        assert process.wait(5) == -9


def test_an_abandoned_lease_of_another_state_folder_is_known_by_its_processes(tmp_path: Path, register: Path) -> None:
    """Without root, no register says where its record is."""
    path, now = lease_records.record_path(tmp_path, "5eedbee6"), lease_records.utc_now()
    lease_records.write(path, record("5eedbee6"))
    marks = lease_records.environment(tmp_path, "5eedbee6")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **marks}) as process:
        living = lease_processes.left_elsewhere(tmp_path / "own", now)
        late = lease_processes.left_elsewhere(tmp_path / "own", now + timedelta(days=2))
        process.kill()
    assert "5eedbee6" not in living
    assert late["5eedbee6"] == tmp_path


def test_a_registered_lease_whose_record_is_gone_is_a_stray_of_its_site(tmp_path: Path, register: Path) -> None:
    path = lease_records.record_path(tmp_path, "5eedbee5")
    lease_register.enter("5eedbee5", path, "docker", lease_records.owner())
    strays = {site: [stray.record for stray in lease_processes.strays(site, tmp_path)] for site in ("docker", "vm")}
    assert strays == {"docker": [path], "vm": []}
    lease_records.write(path, record("5eedbee5"))
    assert lease_processes.strays("docker", tmp_path) == []
