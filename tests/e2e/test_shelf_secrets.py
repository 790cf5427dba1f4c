"""User and password of a cluster reach load nodes behind sshd, and nobody else: no command line, no file, no store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.contract import shelf as shelves
from tests.contract.shelf import Machine, Shelf
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = [pytest.mark.root, pytest.mark.agent, pytest.mark.sshd]

SECRET = 'pla"nted 2718'
STUDY = f"""
[study]
name = "told"
question = "who is told the password?"
[site]
name = "ssh"
inventory = "shelf.toml"
[system]
name = "simulated"
[workload]
name = "ycsb-c"
records = 200
[load]
duration_s = 3
threads = 4
[design]
starts = 1
trials = 1
{BUSY_MACHINE}{COLD}"""


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    with shelves.running(2) as running:
        yield running


def holding(machine: Machine, name: str) -> set[str]:
    """Programs on a machine that hold the secret in this file of theirs in /proc: `cmdline` or `environ`."""
    programs = set()
    for place in Path(f"{machine.root}/proc").glob("[0-9]*"):
        try:
            if SECRET.encode() in (place / name).read_bytes():
                programs.add(" ".join((place / "cmdline").read_text(errors="replace").split("\0")[1:2]))
        except OSError:
            continue  # it has ended meanwhile
    return programs


def test_a_password_reaches_the_load_on_another_machine_and_nothing_else(
    shelf: Shelf, laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = shelf.inventory().read_text().replace('"ssh_config"', f'"{shelf.ssh_config}"')
    (tmp_path / "shelf.toml").write_text(inventory)
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    monkeypatch.setenv("STEELYARD_CQL_USER", "ada")
    monkeypatch.setenv("STEELYARD_CQL_PASSWORD", SECRET)
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    told: set[str] = set()
    while process.poll() is None:
        for machine in shelf.machines:
            told |= holding(machine, "environ")
            assert holding(machine, "cmdline") == set()
        time.sleep(0.1)
    assert process.returncode == 0, (laboratory.folder / "stderr.txt").read_text()
    assert told == {"load"}, "the load alone connects to the cluster over CQL"
    (record,) = Store(laboratory.store / "told").trials()
    assert record.verdict.outcome == "valid"
    machines = [path for machine in shelf.machines for path in machine.steelyard.rglob("*")]
    stored = list(laboratory.store.rglob("*"))
    assert stored
    for path in [*machines, *stored, laboratory.folder / "stderr.txt"]:
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
            assert b"nted 2718" not in path.read_bytes(), path
