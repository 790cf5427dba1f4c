"""`steelyard clean`: what it says of leases of other state folders."""

from __future__ import annotations

from pathlib import Path

from steelyard.cli.commands.clean import command_elsewhere


def test_the_command_for_another_state_folder_can_be_pasted() -> None:
    command = command_elsewhere("0123abcd", Path("/tmp/my state;reboot"))
    assert command.startswith("STEELYARD_STATE='/tmp/my state;reboot' steelyard clean")
