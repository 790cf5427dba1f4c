"""Quotas of all nodes against the machine's cores, and the dilation that fits."""

from __future__ import annotations

from pathlib import Path

from steelyard.model.plan import Plan
from steelyard.plan import expand, processor_quotas
from steelyard.plan.abilities import Abilities
from steelyard.plugins.find import Plugins
from steelyard.study import read_text
from tests.unit.small_study import SMALL_STUDY


def plan(node: str, system: str = 'name = "simulated"') -> Plan:
    return expand(read_text(SMALL_STUDY.replace('name = "simulated"', system) + f"[node]\n{node}\n"))


def notes(of: Plan, cores: int, tmp_path: Path) -> list[str]:
    return list(processor_quotas.notes(of, cores, Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)))


def test_quotas_that_fit_need_no_note(tmp_path: Path) -> None:
    assert notes(plan("cpus = 0.75"), 2, tmp_path) == []
    assert notes(plan("memory_mb = 512"), 1, tmp_path) == []


def test_quotas_beyond_the_machine_are_said_with_the_dilation_that_fits(tmp_path: Path) -> None:
    (note,) = notes(plan("cpus = 1.0"), 2, tmp_path)
    assert note.startswith(
        "2 nodes of 1 processors may use 2 together; this machine has 2 cores, of which 0.5 are left to 1 load node"
    )
    assert "node.dilation = 1.4 makes them fit" in note
    assert notes(plan("cpus = 1.0\ndilation = 1.4"), 2, tmp_path) == []
    (still,) = notes(plan("cpus = 1.0\ndilation = 1.2"), 2, tmp_path)
    assert "node.dilation = 1.4 makes them fit" in still


def test_what_dilation_leaves_as_fast_as_it_is_is_said(tmp_path: Path) -> None:
    cassandra = 'name = "cassandra"'
    (note,) = notes(plan("cpus = 0.5\ndilation = 2", cassandra), 4, tmp_path)
    assert "the disk, which has no limit, looks 2 times as fast" in note
    assert "look 2 times shorter" in note


def test_dilation_that_slows_nothing_down_is_refused(tmp_path: Path) -> None:
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    (error,) = processor_quotas.refusals(plan("dilation = 2", 'name = "cassandra"'), abilities)
    assert error.key == "node.dilation"
    assert "at full speed" in error.message
    assert list(processor_quotas.refusals(plan("cpus = 1\ndilation = 2", 'name = "cassandra"'), abilities)) == []
    assert list(processor_quotas.refusals(plan("dilation = 2"), abilities)) == [], "planted times dilate themselves"
