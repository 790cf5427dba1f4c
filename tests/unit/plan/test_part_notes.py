"""Notes of sites and probes before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.plan import expand, part_notes
from steelyard.plan.abilities import Abilities
from steelyard.plan.part_notes import PLANTED
from steelyard.plugins.find import Plugins
from steelyard.site import docker, fake
from steelyard.study import read_text
from tests.unit.lab.fakes import plan_of, study
from tests.unit.small_study import SMALL_STUDY

STUDIES = Path(__file__).parents[3] / "studies"


def notes(tmp_path: Path, **changes: Any) -> list[str]:
    chosen = study(**changes)
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    return list(part_notes.notes(chosen, plan_of(chosen), 2, abilities))


def compared(tmp_path: Path, node: str, cpu_limit: str) -> list[str]:
    """Notes of a study of sites local and docker."""
    sites = f'[site.docker]\ncpu_limit = "{cpu_limit}"\n[node]\n{node}\ncpus_from = "start"\n[system]'
    text = SMALL_STUDY.replace("[system]", sites) + 'site = ["local", "docker"]\n'
    chosen = read_text(text)
    return list(
        part_notes.notes(chosen, expand(chosen), 2, Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path))
    )


def test_a_probe_that_reads_more_slowly_than_a_trial_lasts_is_a_note(tmp_path: Path) -> None:
    short = {"duration_s": 8.0}
    (jmx,) = notes(tmp_path, load=short, probes=["os", "jmx"])
    assert jmx.startswith("probe jmx reads each metric in turn, every 15 s, and the shortest trial measures 8 s")
    assert jmx.endswith("longer trials, or [probe.jmx] every_s = 1, which reads each every 5 s")
    assert notes(tmp_path, load=short, probes=["jmx"], probe={"jmx": {"every_s": 1}}) == []
    assert notes(tmp_path, load={"duration_s": 20.0}, probes=["jmx", "cassandra"]) == []
    (fastest,) = notes(tmp_path, load={"duration_s": 3.0}, probes=["jmx"], probe={"jmx": {"every_s": 1}})
    assert fastest.endswith("rates cover more than the trial; longer trials")
    (cassandra,) = notes(tmp_path, load=short, probes=["cassandra"])
    assert "longer trials, or fewer of operations, " in cassandra
    assert "([probe.cassandra] views)" in cassandra


def test_what_a_site_says_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def notes_of(self: object, request: object) -> Sequence[str]:
        return ["`run` starts it"]

    # A class of its own: what isinstance said of an ability stays in its cache.
    announcing = type("AnnouncingSite", (fake.FakeSite,), {"notes": notes_of})
    # Sites are found by name.
    monkeypatch.setattr(fake, "create", announcing)
    assert notes(tmp_path, site={"name": "fake"}) == ["site fake: `run` starts it"]


def test_sites_that_limit_processors_in_different_ways_are_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its own notes depend on the Docker of this machine.
    monkeypatch.setattr(docker.DockerSite, "notes", lambda self, request: [])
    note, planted = sorted(compared(tmp_path, "cpus = 1.0", "cpuset"), key=lambda text: text == PLANTED)
    assert planted == PLANTED, "the system is simulated"
    assert note.startswith(
        "node.cpus is enforced in different ways, site docker by whole cores and site local by a quota of CPU time"
    )
    assert compared(tmp_path, "cpus = 1.0", "quota") == [PLANTED]
    assert compared(tmp_path, "memory_mb = 512", "cpuset") == [PLANTED], "no limit, no difference"


def test_a_system_has_notes_on_numbers_of_nodes(tmp_path: Path) -> None:
    text = (STUDIES / "etcd.toml").read_text(encoding="utf-8").replace("nodes = [1, 3, 5]", "nodes = [1, 2]")
    chosen = read_text(text)
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    even, disk = [note for note in part_notes.notes(chosen, expand(chosen), 2, abilities) if note.startswith("etcd: ")]
    assert "2 members tolerate no more failures than 1" in even
    assert "one disk" in disk
