"""`steelyard doctor`: plug-ins are asked; what is left over, here and elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.commands import doctor
from steelyard.cli.commands.doctor import leftovers
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.plugins import find


def test_leftovers_of_other_state_folders_are_named(tmp_path: Path, register: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    lease_register.enter("5eedbee7", lease_records.record_path(other, "5eedbee7"), "vm", lease_records.owner())
    none = leftovers(own, [], {})
    assert (none.state, none.hint) == ("good", "")
    assert none.found == f"none in {own}, nor in other state folders that {tmp_path}/register or a living process names"
    both = leftovers(own, ["5eedbee8"], {"5eedbee7": other})
    assert both.state == "poor"
    assert both.found == f"5eedbee8 in {own}; 5eedbee7 in {other}"
    assert both.hint == f"steelyard clean; STEELYARD_STATE={other} steelyard clean vm"


def test_plug_ins_say_what_they_need_in_order_and_the_default_site_first() -> None:
    asked = doctor.asked()
    seams = ("engine", "system", "site")
    assert [seam for seam, _ in asked] == [seam for seam in seams for _ in find.names(seam)]
    assert [name for seam, name in asked if seam == "site"][:2] == ["local", "docker"]


def test_a_plug_in_with_settings_of_its_own_or_without_findings_says_nothing() -> None:
    assert doctor._said_by("site", "ssh") == ()
    assert doctor._said_by("system", "simulated") == ()


def test_a_plug_in_that_cannot_be_made_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seam: str, name: str) -> None:
        raise ImportError("No module named 'boto'")

    # A package that lacks another one is not installed here.
    monkeypatch.setattr(doctor, "default_plug_in", broken)
    (found,) = doctor._said_by("site", "ec2")
    assert (found.name, found.state, found.found) == ("site ec2", "poor", "No module named 'boto'")
    assert found.hint
