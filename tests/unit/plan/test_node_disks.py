"""Rows of a plan against the nodes' own disks."""

from __future__ import annotations

from pathlib import Path

from steelyard.model.plan import Plan
from steelyard.plan import expand, node_disks
from steelyard.plan.abilities import Abilities
from steelyard.plugins.find import Plugins
from steelyard.study import read_text
from tests.unit.plan.test_estimate import record
from tests.unit.small_study import SMALL_STUDY

CASSANDRA = 'name = "cassandra"\nreplication_factor = 2'


def plan(node: str, records: int = 1_000_000) -> Plan:
    text = SMALL_STUDY.replace('name = "simulated"', CASSANDRA)
    lines = [line for line in text.splitlines() if not line.startswith("records")]
    lines.insert(lines.index("[workload]") + 1, f"records = {records}")
    return expand(read_text("\n".join(lines) + f"\n[node]\n{node}\n"))


def abilities(folder: Path) -> Abilities:
    return Abilities(Plugins(), state_folder=folder, cache_folder=folder)


def test_a_node_without_a_disk_of_its_own_has_the_machines(tmp_path: Path) -> None:
    of = plan("memory_mb = 512", 10**9)
    assert list(node_disks.refusals(of, (), abilities(tmp_path))) == []
    assert list(node_disks.notes(of, (), abilities(tmp_path))) == []


def test_rows_that_do_not_fit_are_refused_with_numbers_and_a_hint(tmp_path: Path) -> None:
    """A million records of 1,000 bytes, as many copies as nodes: 1 GB a node, at its peak 4 with its commit log."""
    of = plan("disk_gb = 0.5")
    (error,) = node_disks.refusals(of, (), abilities(tmp_path))
    assert error.key == "node.disk_gb"
    assert "1,000,000 records of 1,000 bytes, " in error.message
    assert "take 954 MiB per node, including writes of the trials; its disk has 477 MiB" in error.message
    assert "node.disk_gb = 4.1" in error.hint
    fixed = plan("disk_gb = 4.1")
    assert list(node_disks.refusals(fixed, (), abilities(tmp_path))) == []
    assert list(node_disks.notes(fixed, (), abilities(tmp_path))) == []


def test_a_peak_that_may_not_fit_is_a_note(tmp_path: Path) -> None:
    of = plan("disk_gb = 1.5")
    assert list(node_disks.refusals(of, (), abilities(tmp_path))) == []
    (note,) = node_disks.notes(of, (), abilities(tmp_path))
    assert "node.disk_gb = 4.1" in note


def test_the_size_that_a_rate_brings_with_it_counts(tmp_path: Path) -> None:
    (error,) = node_disks.refusals(plan("disk_write_mb_per_s = 40", 20_000_000), (), abilities(tmp_path))
    assert error.read == 16.0


def test_a_store_that_has_done_it_goes_on(tmp_path: Path) -> None:
    of = plan("disk_gb = 0.5")
    history = [record(trial, 1.0) for trial in of.trials]
    assert list(node_disks.refusals(of, history, abilities(tmp_path))) == []
