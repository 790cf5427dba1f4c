"""The page about a shelf of Raspberry Pis: its files are read as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.site.ssh import inventory as ssh_inventory
from steelyard.study.read import read

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "measure-a-shelf-of-raspberry-pis.md"


def test_inventory_and_study_of_the_page(tmp_path: Path) -> None:
    inventory, load_site, study = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shelf.toml").write_text(inventory)
    (tmp_path / "study.toml").write_text(study)
    machines = ssh_inventory.read(tmp_path / "shelf.toml")
    assert [place.machine.name for place in ssh_inventory.places(machines, 3, 1)] == ["pi1", "pi2", "pi3", "desk"]
    read(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(f"{study}\n{load_site}")
    assert read(tmp_path / "study.toml").load_site.name == "local"


def test_every_machine_of_the_page_gets_the_key_under_the_name_that_ssh_is_told(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "shelf.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    machines = ssh_inventory.read(tmp_path / "shelf.toml").machines
    ways = {f"{machine.user}@{machine.destination}" for machine in machines}
    (boards,) = re.findall(r"for pi in (.*); do ssh-copy-id pi@\$pi; done", text)
    assert ways == {f"pi@{board}" for board in boards.split()} | {"anna@desk"}
    assert "ssh-copy-id anna@desk" in text
