"""Every study that is shipped can be planned, and is what it says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan import expand, growth, preflight, warnings
from steelyard.plan.abilities import Abilities
from steelyard.plan.estimate import estimate
from steelyard.plugins.find import Plugins
from steelyard.reference import tables as shipped
from steelyard.study import read

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "studies"
PLUGINS = Plugins(STUDIES)


REPLICATED = ("replication_factor", "consistency")
TRIAL_IDS = ROOT / "tests/fixtures/plan/trial_ids.json"


@cache
def planned(name: str) -> tuple[Study, Plan]:
    study = read(STUDIES / f"{name}.toml", plugins=PLUGINS)
    return study, expand(study, PLUGINS)


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_study_is_named_after_its_file_and_can_be_planned(path: Path) -> None:
    study, plan = planned(path.stem)
    assert study.study.name == path.stem
    assert plan.trials
    assert estimate(preflight.runnable(path, study, plan)[0], study, cores=2, abilities=Abilities(PLUGINS)).seconds > 0


def test_the_quickstart_takes_about_ten_minutes_and_starts_no_size_always_first() -> None:
    study, plan = planned("quickstart")
    assert plan.factors == {"nodes": (1, 2)}
    assert plan.hard == ("nodes",)
    assert 180 < estimate(plan, study, cores=2, abilities=Abilities(PLUGINS)).seconds < 630
    first = {trial.block: trial.treatment["nodes"] for trial in reversed(plan.trials)}
    assert set(first.values()) == {1, 2}


def missing(name: str) -> list[str]:
    study, plan = planned(name)
    return [error.key for error in preflight.runnable(STUDIES / f"{name}.toml", study, plan)[1]]


def test_richardson2017_is_as_published() -> None:
    study, plan = planned("richardson2017")
    machines, boards = 3 * (3 * 3 + 6), 4 * 2 * 6
    assert len(plan.trials) == (machines + boards) * 30
    assert plan.factors["hardware"] == ("vm-1gb", "vm-2gb", "vm-4gb", "raspberry-pi-2")
    assert plan.hard == ("hardware", "link", "nodes")
    assert [trial.replicate for trial in plan.trials[:30]] == list(range(1, 31))
    assert len({tuple(trial.treatment.items()) for trial in plan.trials[:30]}) == 1
    assert all(trial.settings.root["workload"]["records"] == 1_000_000 for trial in plan.trials)
    assert all(trial.settings.root["load"]["operations"] == 10_000 for trial in plan.trials)
    assert all(trial.settings.root["system"]["commitlog_total_space_mb"] == 512 for trial in plan.trials)
    memory_and_heap = {
        (trial.settings.node.memory_mb, trial.settings.root["system"]["heap_mb"]) for trial in plan.trials
    }
    assert memory_and_heap == {(1024, 512), (2048, 1024), (4096, 1024)}
    assert study.analysis.warm_up_trials == 9
    said = "\n".join(warnings(study, plan))
    assert "no error term for nodes" in said
    assert "drift is confounded with treatment" in said


def test_every_published_cell_of_richardson2017_is_planned_and_no_other() -> None:
    _, plan = planned("richardson2017")
    rows = shipped.tables()["trial_time_summary"].rows
    links = {"nodal": "nodal", "ethernet": "ethernet-100", "802.11": "802.11n"}
    published = {
        (row.key["workload"], f"vm-{row.key['ram_gb']}gb" if "virtual" in row.key["platform"] else row.key["platform"],
         links[row.key["link"]], row.key["cluster_size"])
        for row in rows if row.key["cluster_size"] != "overall"
    }  # fmt: skip
    ours = {
        (str(one.treatment["workload"])[-1].upper(), one.treatment["hardware"], one.treatment["link"],
         str(one.treatment["nodes"]))
        for one in plan.trials
    }  # fmt: skip
    assert ours == published


def test_every_shipped_study_has_all_that_it_needs() -> None:
    assert [path.stem for path in STUDIES.glob("*.toml") if missing(path.stem)] == []


def test_richardson2017_can_be_tried_small() -> None:
    study = read(STUDIES / "richardson2017.toml", scale=0.01, plugins=PLUGINS, leave_out_missing=True)
    plan = expand(study, PLUGINS)
    assert study.study.name == "richardson2017-scale-0.01"
    assert {trial.settings.root["workload"]["records"] for trial in plan.trials} == {10_000}
    assert {trial.settings.root["load"]["operations"] for trial in plan.trials} == {100}
    assert len(plan.trials) == 93 * 30


def cell(settings: TrialSettings) -> tuple[object, ...]:
    """What makes a cell of the thesis: hardware, link, nodes and workload."""
    hardware = settings.node.profile or f"vm-{(settings.node.memory_mb or 0) // 1024}gb"
    return hardware, settings.link.name, settings.site.nodes, settings.root["workload"]["name"]


def test_the_small_richardson2017_divides_rows_memory_and_heap_alike() -> None:
    _, published = planned("richardson2017")
    whole = {cell(one.settings): one.settings for one in published.trials}
    halves = [planned(f"richardson2017-{half}")[1].trials for half in ("memory", "boards")]
    trials = [*halves[0], *halves[1]]
    assert len({cell(one.settings) for one in trials}) == 24
    for trial in trials:
        small, large = trial.settings, whole[cell(trial.settings)]
        assert small.root["workload"]["records"] * 2 == large.root["workload"]["records"]
        assert small.root["system"]["heap_mb"] * 2 == large.root["system"]["heap_mb"]
        assert (small.node.memory_mb or 0) * 2 == large.node.memory_mb
        assert small.node.disk_rates_from == large.node.disk_rates_from
    cpus = {one.settings.node.profile: one.settings.node.cpus for one in trials}
    assert cpus.pop("raspberry-pi-2") == 0.36
    assert set(cpus.values()) == {None}


def test_the_pilot_has_compression_by_link_on_three_boards() -> None:
    _, plan = planned("richardson2017-pilot")
    assert plan.hard == ("system.compression", "link")
    assert {one.settings.root["site"]["nodes"] for one in plan.trials} == {3}
    assert {one.settings.node.profile for one in plan.trials} == {"raspberry-pi-2"}
    assert len({str(one.treatment) for one in plan.trials}) == 3 * 2 * 2


def test_chekkilla2016_is_as_published() -> None:
    _, plan = planned("chekkilla2016")
    assert len(plan.trials) == 2 * 3 * 2 * 10
    assert (plan.factors["site"], plan.hard) == (("local", "docker"), ("site",))
    alike = {(one.settings.site.name, one.settings.part("site")["site"].get("mode", "host")) for one in plan.trials}
    assert alike == {("local", "loopback"), ("docker", "host")}, "both sites have the same network"
    shares = {str(one.treatment["mix"]): one.settings.root["workload"] for one in plan.trials}
    assert {name: (one["read_proportion"], one["write_proportion"]) for name, one in shares.items()} == {
        "mixed": (3.0, 1.0), "write": (0.0, 1.0), "read": (1.0, 0.0),
    }  # fmt: skip


def test_the_small_chekkilla2016_has_its_cells_on_three_clusters_each() -> None:
    (_, plan), (_, published) = planned("chekkilla2016-small"), planned("chekkilla2016")
    assert {str(one.treatment) for one in plan.trials} == {str(one.treatment) for one in published.trials}
    assert len(plan.trials) == 3 * 12
    assert {one.settings.root["load"]["duration_s"] for one in plan.trials} == {32.0}


def test_srinadhuni2018_is_as_published() -> None:
    study, plan = planned("srinadhuni2018")
    rows = shipped.tables()["ec2_latency"].rows
    published = {tuple(row.key[name] for name in ("nodes_before", "nodes_after", *REPLICATED)) for row in rows}
    runs: Counter[tuple[str, ...]] = Counter()
    for one in plan.trials:
        settings = one.settings
        copies, consistency = one.treatment["replication"][2:].split(" ")
        assert settings.root["system"]["replication_factor"] == int(copies)
        assert settings.root["load"]["read_consistency"] == settings.root["load"]["write_consistency"] == consistency
        nodes, most = one.treatment["step"].split(" to ")
        assert (settings.site.nodes, settings.most_nodes) == (
            int(nodes),
            int(most if settings.policy.changes else nodes),
        )
        runs[nodes, most, copies, consistency, settings.policy.name] += not one.control
    assert set(runs) == {(*cell, policy) for cell in published for policy in ("none", "threshold")}
    assert set(runs.values()) == {5}
    policies = [trial.settings.policy.name for trial in plan.trials if not trial.control]
    assert policies == ["none"] * 40 + ["threshold"] * 40
    assert len({trial.start for trial in plan.trials}) == len(plan.trials) == 85
    said = "\n".join(growth.notes(study, plan, 2, Abilities(PLUGINS)))
    assert "threshold acts by chance in about 21% of trials" in said
    assert "all come before those that use it" in said


def test_the_small_srinadhuni2018_takes_less_than_an_hour() -> None:
    study, plan = planned("srinadhuni2018-small")
    assert len([trial for trial in plan.trials if not trial.control]) == 12
    assert estimate(plan, study, cores=2, abilities=Abilities(PLUGINS)).seconds < 3600
    assert {trial.settings.policy.name for trial in plan.trials if trial.control} == {"none"}
    assert [trial.control or trial.settings.policy.changes for trial in plan.trials] == [False] * 6 + [True] * 9


def test_the_sizes_of_srinadhuni2018_are_the_published_ones_and_no_other() -> None:
    _, plan = planned("srinadhuni2018-sizes")
    rows = shipped.tables()["ec2_latency"].rows
    published = {
        tuple(row.key[name] for name in (size, *REPLICATED)) for row in rows for size in ("nodes_before", "nodes_after")
    }
    names = ("nodes", "system.replication_factor", "consistency")
    assert {tuple(str(one.treatment[name]) for name in names) for one in plan.trials} == published
    assert len(published) == 13


def test_trial_ids_of_the_shipped_studies_stay() -> None:
    """Ids, starts and seeds: a change of a setting's name or default that goes unnoticed would orphan every store."""
    for name, recorded in json.loads(TRIAL_IDS.read_text()).items():
        _, plan = planned(name)
        assert sorted({trial.id.split("-")[0] for trial in plan.trials}) == recorded["cells"], name
        lines = "\n".join(sorted(f"{trial.id} {trial.start} {trial.seed}" for trial in plan.trials))
        assert hashlib.sha256(lines.encode()).hexdigest() == recorded["plan"], name


def test_the_simulated_study_takes_no_time_and_has_sizes_enough_for_a_law() -> None:
    study, plan = planned("simulated")
    assert estimate(plan, study, cores=2, abilities=Abilities(PLUGINS)).low_s < 60
    assert "law" not in "\n".join(warnings(study, plan))
