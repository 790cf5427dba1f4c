"""`steelyard doctor`: what is left over, here and elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.commands.doctor import leftovers
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register


def test_leftovers_of_other_state_folders_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_register, "FOLDER", tmp_path / "register")
    own, other = tmp_path / "own", tmp_path / "other"
    lease_register.enter("5eedbee7", lease_records.record_path(other, "5eedbee7"), "vm", lease_records.owner())
    none = leftovers(own, [], {})
    assert (none.state, none.mend) == ("good", "")
    assert none.found == f"none in {own}, nor in other state folders that {tmp_path}/register or a living process names"
    both = leftovers(own, ["5eedbee8"], {"5eedbee7": other})
    assert both.state == "poor"
    assert both.found == f"5eedbee8 in {own}; 5eedbee7 in {other}"
    assert both.mend == f"steelyard clean; STEELYARD_STATE={other} steelyard clean vm"
