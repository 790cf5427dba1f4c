"""The lease's record and its owner."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError
from steelyard.node.base import Node


def record(identity: str = "0a1b2c3d", **changes: object) -> lease_records.Record:
    node = Node("n1", "database", "10.113.0.1", ("agent", "enter", "--"), Path("/x/n1"), cgroups=(Path("/g/n1"),))
    now = lease_records.utc_now()
    whole = {
        "id": identity,
        "site": "local",
        "network": "loopback",
        "study": "s",
        "owner": lease_records.owner(),
        "created": now,
        "until": now + timedelta(hours=1),
        "nodes": (node,),
    }
    return lease_records.Record.model_validate({**whole, **changes})


def test_record_comes_back_as_it_went(tmp_path: Path) -> None:
    path = lease_records.record_path(tmp_path, "0a1b2c3d")
    written = record()
    lease_records.write(path, written)
    assert lease_records.read(path) == written
    assert lease_records.records(tmp_path, "local") == [(path, written)]
    assert lease_records.records(tmp_path, "docker") == []
    lease = written.lease(path)
    assert (lease.id, lease.nodes, lease.record) == ("0a1b2c3d", written.nodes, path)
    assert [entry.name for entry in path.parent.iterdir()] == ["0a1b2c3d.json"]


def test_no_record_and_no_such_record(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert lease_records.read(path) is None
    for text in ('{"format": 1}', '{"site": [], "nodes": {}}', "[]"):
        path.write_text(text)
        with pytest.raises(SiteError, match=r"x\.json is not a lease record"):
            lease_records.read(path)


def test_record_that_cannot_be_written_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("a file")
    with pytest.raises(SiteError, match="leases"):
        lease_records.write(lease_records.record_path(tmp_path, "0a1b2c3d"), record())


def test_owner_lives_until_it_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    who = lease_records.owner(sleeper.pid)
    assert lease_records.lives(who)
    assert not lease_records.lives(who.model_copy(update={"start_ticks": who.start_ticks + 1}))
    assert not lease_records.lives(who.model_copy(update={"boot_id": "another"}))
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    # Now a zombie: its number is still taken, but it does nothing any more.
    assert not lease_records.lives(who)
    sleeper.wait()
    assert not lease_records.lives(who)
    with pytest.raises(SiteError):
        lease_records.owner(sleeper.pid)


def test_abandoned_by_death_or_by_time() -> None:
    now = lease_records.utc_now()
    mine = record()
    assert lease_records.abandoned(mine, now) == ""
    assert "has passed" in lease_records.abandoned(mine, now + timedelta(hours=2))
    dead = mine.owner.model_copy(update={"start_ticks": 1})
    assert "has exited" in lease_records.abandoned(record(owner=dead), now)


def test_moments_without_a_zone_are_this_machines() -> None:
    assert lease_records.aware(datetime(2026, 1, 1)).tzinfo is not None
    assert lease_records.aware(lease_records.utc_now()).utcoffset() == timedelta(0)


@given(st.sets(st.text("0123456789abcdef", min_size=8, max_size=8), max_size=5))
def test_ids_are_new_and_of_the_pattern(taken: set[str]) -> None:
    identity = lease_records.new_id(taken)
    assert identity not in taken
    assert lease_records.ID_PATTERN.fullmatch(identity)


def test_drafts_of_dead_writers_go(tmp_path: Path) -> None:
    draft = lease_records.record_path(tmp_path, "0a1b2c3d").with_suffix(".draft")
    with lease_records.locked(tmp_path):
        pass
    draft.write_text("{")
    with lease_records.locked(tmp_path):
        assert not draft.exists()


def test_lock_is_exclusive(tmp_path: Path) -> None:
    with (
        lease_records.locked(tmp_path),
        pytest.raises(SiteError, match=r"\.lock has been locked"),
        lease_records.locked(tmp_path, 0.05),
    ):
        pass
    with lease_records.locked(tmp_path):
        pass
