"""The machine-wide register of leases: others' leases are reported, and never an obstacle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register


def test_a_record_of_another_version_is_for_that_one_to_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_register, "FOLDER", tmp_path / "register")
    path = tmp_path / "other" / "leases" / "0123abcd.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1, "id": "0123abcd", "a_field_of_tomorrow": 1}')
    lease_register.enter("0123abcd", path)
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
