"""Databases of one site, load nodes of another: a shelf of machines behind sshd, loaded from this machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.contract import shelf as shelves
from tests.contract.shelf import Shelf
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory, loopback_addresses
from tests.e2e.test_shelf import left

STUDY = f"""
[study]
name = "apart"
question = "does the load come from another site?"
SITES
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
{BUSY_MACHINE}{COLD}"""
SHELF = """
[site]
name = "ssh"
inventory = "shelf.toml"
nodes = 3
[load_site]
name = "local"
"""
HERE = """
[site]
name = "local"
nodes = 2
[load_site]
name = "local"
nodes = 2
"""


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    with shelves.running(3, clock_offsets_s=(0.0, 3.0)) as running:
        yield running


def written(tmp_path: Path, sites: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("SITES", sites))
    return path


def on_shelf(shelf: Shelf, tmp_path: Path) -> Path:
    roles = ["database"] * len(shelf.machines)
    inventory = shelf.inventory(roles).read_text().replace('"ssh_config"', f'"{shelf.ssh_config}"')
    (tmp_path / "shelf.toml").write_text(inventory)
    return written(tmp_path, SHELF)


@pytest.mark.root
@pytest.mark.agent
@pytest.mark.sshd
def test_a_shelf_is_loaded_from_this_machine(shelf: Shelf, laboratory: Laboratory, tmp_path: Path) -> None:
    """Every machine of the inventory is a database; the clock of one of them is 3 s off."""
    done = laboratory.run(on_shelf(shelf, tmp_path))
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "apart")
    records = store.trials()
    assert [record.verdict.outcome for record in records] == ["valid", "valid"]
    facts = store.facts(records[0])
    assert {node: of["site"] for node, of in facts.items() if "site" in of} == {
        "n1": "ssh", "n2": "ssh", "n3": "ssh", "l1": "local, loopback",
    }  # fmt: skip
    assert records[0].shares == ("network",)
    assert {offset.node for offset in records[0].clocks} == {"n1", "n2", "n3"}
    assert left(shelf, laboratory) == []


@pytest.mark.root
@pytest.mark.agent
@pytest.mark.sshd
def test_a_killed_conductor_leaves_nothing_on_either_site(shelf: Shelf, laboratory: Laboratory, tmp_path: Path) -> None:
    study, leases = on_shelf(shelf, tmp_path), laboratory.folder / "state" / "leases"
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    deadline = time.monotonic() + 60
    while len(list(leases.glob("*.json"))) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    cleaned = laboratory.call("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert left(shelf, laboratory) == []


@pytest.mark.agent
def test_two_sites_of_this_machine(laboratory: Laboratory, tmp_path: Path) -> None:
    """Both have the machine's own network, so nothing of it needs root."""
    study = written(tmp_path, HERE)
    checked = laboratory.call("check", study)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "load nodes" in checked.stdout
    with loopback_addresses():
        done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "apart")
    records = store.trials()
    assert [record.verdict.outcome for record in records] == ["valid", "valid"]
    facts = store.facts(records[0])
    nodes = {node: of["address"] for node, of in facts.items() if "address" in of}
    assert nodes == {"n1": "127.113.0.1", "n2": "127.113.0.2", "l1": "127.0.0.1", "l2": "127.0.0.2"}
    assert "cpu" in records[0].shares
    assert not list((laboratory.folder / "state" / "leases").glob("*.json"))
