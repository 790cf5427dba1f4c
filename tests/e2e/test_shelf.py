"""A study on machines behind real sshd processes: it runs, and a conductor that is killed leaves nothing on them."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.leases import processes as lease_processes
from steelyard.store import Store
from tests.contract import shelf as shelves
from tests.contract.shelf import Shelf
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = [pytest.mark.root, pytest.mark.agent, pytest.mark.sshd]

SEED = 20261122
KILLS = 6
LONGEST_S = 5.0
STUDY = f"""
probes = ["os", "raspberry-pi"]
[study]
name = "shelf"
question = "does it run elsewhere?"
[site]
name = "ssh"
inventory = "shelf.toml"
[system]
name = "simulated"
service_us = 500
[workload]
name = "ycsb-c"
records = 200
[load]
operations = 1000
threads = 4
[design]
starts = 1
trials = 2
[factors]
nodes = [1, 2]
{BUSY_MACHINE}{COLD}"""


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    with shelves.running(3, clock_offsets_s=(0.0, 3.0)) as running:
        yield running


@pytest.fixture
def study(shelf: Shelf, tmp_path: Path) -> Path:
    inventory = shelf.inventory().read_text().replace('"ssh_config"', f'"{shelf.ssh_config}"')
    (tmp_path / "shelf.toml").write_text(inventory)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def left(shelf: Shelf, laboratory: Laboratory) -> list[str]:
    """What remains of leases: records, files on machines, marked processes of any lease."""
    things = [str(path) for path in (laboratory.folder / "state" / "leases").glob("*.json")]
    for machine in shelf.machines:
        things += [f"{machine.name}: {path}" for path in machine.steelyard.glob("nodes/*")]
        things += [f"{machine.name}: {path}" for path in machine.steelyard.glob("busy*")]
        things += [f"{machine.name}: process {pid}" for pid in agents_on(machine)]
    return things


def agents_on(machine: shelves.Machine) -> list[str]:
    """Processes on a machine that are not its sshd's own."""
    names = {path.parent.name: path.read_text().strip() for path in Path(f"{machine.root}/proc").glob("[0-9]*/comm")}
    return [pid for pid, name in names.items() if name.startswith("steelyard") or name == "sleep"]


def test_a_study_on_the_shelf(shelf: Shelf, laboratory: Laboratory, study: Path) -> None:
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    records = Store(laboratory.store / "shelf").trials()
    assert len(records) == 4
    assert {record.verdict.outcome for record in records} == {"valid"}
    assert left(shelf, laboratory) == []


def test_a_killed_conductor_leaves_nothing_after_clean_or_the_same_command(
    shelf: Shelf, laboratory: Laboratory, study: Path
) -> None:
    moments = random.Random(SEED)
    for number in range(KILLS):
        process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
        time.sleep(moments.uniform(0.5, LONGEST_S))
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        if number % 2:
            cleaned = laboratory.call("clean")
            assert cleaned.returncode == 0, cleaned.stderr
            assert left(shelf, laboratory) == [], number
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    assert left(shelf, laboratory) == []
    assert all(there for _, there in lease_processes.marked_by().values())


def test_a_study_goes_on_when_a_board_has_started_anew(shelf: Shelf, laboratory: Laboratory, study: Path) -> None:
    """What was on it is gone, with its programs: the attempt is void, and the next start finds it empty."""
    machine = shelf.machines[0]
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    deadline = time.monotonic() + 60
    while not list(machine.steelyard.glob("nodes/*/n1/*")):
        assert time.monotonic() < deadline
        assert process.poll() is None, (laboratory.folder / "stderr.txt").read_text()
        time.sleep(0.05)
    shelf.stop(machine)
    shelf.start(machine)
    assert process.wait(300) == 0, (laboratory.folder / "stderr.txt").read_text()
    assert len(Store(laboratory.store / "shelf").trials()) == 4
    assert left(shelf, laboratory) == []


def test_machines_are_handed_on_from_start_to_start(shelf: Shelf, laboratory: Laboratory, tmp_path: Path) -> None:
    """Two starts of the same size are one lease on the machines, and two in the store."""
    inventory = shelf.inventory().read_text().replace('"ssh_config"', f'"{shelf.ssh_config}"')
    (tmp_path / "shelf.toml").write_text(inventory)
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("starts = 1", "starts = 2").replace("nodes = [1, 2]", "nodes = [2]"))
    process = laboratory.start("run", path, "--store", laboratory.store, "--plain")
    leases: set[str] = set()
    while process.poll() is None:
        leases |= {record.stem for record in (laboratory.folder / "state" / "leases").glob("*.json")}
        time.sleep(0.05)
    assert process.returncode == 0, (laboratory.folder / "stderr.txt").read_text()
    records = Store(laboratory.store / "shelf").trials()
    assert len({record.start for record in records}) == 2
    assert {record.verdict.outcome for record in records} == {"valid"}
    assert len(leases) == 1
    assert left(shelf, laboratory) == []
