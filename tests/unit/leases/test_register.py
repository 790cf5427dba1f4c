"""The machine-wide register of leases: others' leases are reported, and never an obstacle."""

from __future__ import annotations

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
