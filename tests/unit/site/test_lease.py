"""The lease's record, its owner and its processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.model.errors import SiteError
from steelyard.node.base import Node
from steelyard.site import _lease


def record(identity: str = "0a1b2c3d", **changes: object) -> _lease.Record:
    node = Node("n1", "database", "10.113.0.1", ("agent", "enter", "--"), Path("/x/n1"), cgroups=(Path("/g/n1"),))
    now = _lease.utc_now()
    whole = {
        "id": identity,
        "site": "local",
        "mode": "loopback",
        "study": "s",
        "owner": _lease.owner(),
        "created": now,
        "until": now + timedelta(hours=1),
        "nodes": (node,),
    }
    return _lease.Record.model_validate({**whole, **changes})


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, _lease.MARKER: "5eedbeef"}) as process:
        yield process
        process.kill()


def test_record_comes_back_as_it_went(tmp_path: Path) -> None:
    path = _lease.record_path(tmp_path, "0a1b2c3d")
    written = record()
    _lease.write(path, written)
    assert _lease.read(path) == written
    assert _lease.records(tmp_path, "local") == [(path, written)]
    assert _lease.records(tmp_path, "docker") == []
    lease = written.lease(path)
    assert (lease.id, lease.nodes, lease.record) == ("0a1b2c3d", written.nodes, path)
    assert [entry.name for entry in path.parent.iterdir()] == ["0a1b2c3d.json"]


def test_no_record_and_no_such_record(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert _lease.read(path) is None
    path.write_text('{"format": 2}')
    with pytest.raises(SiteError, match=r"x\.json is not a lease's record"):
        _lease.read(path)


def test_record_that_cannot_be_written_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("a file")
    with pytest.raises(SiteError, match="leases"):
        _lease.write(_lease.record_path(tmp_path, "0a1b2c3d"), record())


def test_owner_lives_until_it_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    who = _lease.owner(sleeper.pid)
    assert _lease.lives(who)
    assert not _lease.lives(who.model_copy(update={"start_ticks": who.start_ticks + 1}))
    assert not _lease.lives(who.model_copy(update={"boot_id": "another"}))
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    # Now a zombie: its number is still taken, but it does nothing any more.
    assert not _lease.lives(who)
    sleeper.wait()
    assert not _lease.lives(who)
    with pytest.raises(SiteError):
        _lease.owner(sleeper.pid)


def test_abandoned_by_death_or_by_time() -> None:
    now = _lease.utc_now()
    mine = record()
    assert _lease.abandoned(mine, now) == ""
    assert "has passed" in _lease.abandoned(mine, now + timedelta(hours=2))
    dead = mine.owner.model_copy(update={"start_ticks": 1})
    assert "no longer lives" in _lease.abandoned(record(owner=dead), now)


def test_moments_without_a_zone_are_this_machines() -> None:
    assert _lease.aware(datetime(2026, 1, 1)).tzinfo is not None
    assert _lease.aware(_lease.utc_now()).utcoffset() == timedelta(0)


@given(st.sets(st.text("0123456789abcdef", min_size=8, max_size=8), max_size=5))
def test_ids_are_new_and_of_the_pattern(taken: set[str]) -> None:
    identity = _lease.new_id(taken)
    assert identity not in taken
    assert _lease.ID_PATTERN.fullmatch(identity)


def test_processes_are_found_by_mark_and_by_group(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert _lease.processes("5eedbeef") == {sleeper.pid}
    assert _lease.processes("5eedbee0") == set()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "cgroup.procs").write_text(f"{sleeper.pid}\n0\n{os.getpid()}\n")
    assert _lease.processes("5eedbee0", [tmp_path]) == {sleeper.pid}


def test_kill_ends_the_lease_s_processes_and_no_other(sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, _lease.MARKER: "5eedbee0"}) as other:
        asyncio.run(_lease.kill("5eedbeef"))
        assert sleeper.wait(5) == -9
        assert other.poll() is None
        other.kill()
    asyncio.run(_lease.kill("5eedbeef"))


def test_a_process_that_does_not_die_is_named(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lease, "KILL_TIMEOUT_S", 0.05)
    monkeypatch.setattr(_lease, "_kill_verified", lambda *arguments: None)
    with pytest.raises(SiteError, match=str(sleeper.pid)):
        asyncio.run(_lease.kill("5eedbeef"))


def test_a_process_whose_record_is_gone_is_a_stray(tmp_path: Path) -> None:
    path = _lease.record_path(tmp_path, "5eedbeef")
    _lease.write(path, record("5eedbeef"))
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **_lease.environment(tmp_path, "5eedbeef")}) as process:
        assert "5eedbeef" not in [lease.id for lease in _lease.strays("local")]
        path.unlink()
        (stray,) = [lease for lease in _lease.strays("local") if lease.id == "5eedbeef"]
        assert stray.record == path
        asyncio.run(_lease.kill(stray.id))
        assert process.wait(5) == -9


def test_drafts_of_dead_writers_go(tmp_path: Path) -> None:
    draft = _lease.record_path(tmp_path, "0a1b2c3d").with_suffix(".draft")
    with _lease.locked(tmp_path):
        pass
    draft.write_text("{")
    with _lease.locked(tmp_path):
        assert not draft.exists()


def test_lock_is_exclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lease, "LOCK_TIMEOUT_S", 0.05)
    with _lease.locked(tmp_path), pytest.raises(SiteError, match=r"\.lock is held"), _lease.locked(tmp_path):
        pass
    with _lease.locked(tmp_path):
        pass
