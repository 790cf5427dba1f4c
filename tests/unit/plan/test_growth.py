"""Studies whose clusters change their size: what is refused, and what `check` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StudyError
from steelyard.plan import growth, processor_quotas
from steelyard.plan.abilities import Abilities
from steelyard.plan.estimate import estimate
from steelyard.plan.requirements import memory_mb_of_plan
from steelyard.plugins.find import Plugins
from steelyard.study import read_text
from tests.unit.lab.fakes import plan_of, study
from tests.unit.small_study import SMALL_STUDY

POLICY = {"name": "scheduled", "times": [[20, 4]]}
ALARM = {"name": "threshold", "threshold": 80, "max_nodes": 5}
BASE: dict[str, Any] = {
    "system": {"name": "cassandra"},
    "load": {"duration_s": 60},
    "factors": {"nodes": [3]},
    "policy": POLICY,
    "probes": ["os"],
}


def refused(tmp_path: Path, **changes: Any) -> list[StudyError]:
    a_study = study(**{**BASE, **changes})
    plan = plan_of(a_study)
    return list(growth.refusals(a_study, plan, Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)))


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"load": {"duration_s": 60, "engine": "latte"}}, "load.engine", "does not report"),
        (
            {"load": {"schedule": "search", "objective": ["response_ms_p99 <= 20"], "threads": 256}},
            "policy.name",
            "one size",
        ),
        ({"data": {"state": "continue"}}, "data.state", "ends its start"),
        ({"node": {"cpus": 0.5, "dilation": 2}}, "node.dilation", "timers"),
        (
            {"policy": {"name": "scheduled", "times": [[60, 4]]}},
            "policy.times",
            "the load ends after 60 s, and the change of size at 60 s is at or after its end",
        ),
        (
            {"load": {"duration_s": 180}, "policy": {"name": "scheduled", "times": [[200, 4]]}},
            "policy.times",
            "the load ends after 180 s, and the change of size at 200 s",
        ),
        ({"policy": {"name": "scheduled", "times": [[20, 3]]}}, "policy.times", "changes nothing"),
        (
            {
                "system": {"name": "cassandra", "replication_factor": 3},
                "policy": {"name": "scheduled", "times": [[20, 2]]},
            },
            "policy.times",
            "shrinks the cluster to 2 nodes",
        ),
        ({"policy": {**ALARM, "max_nodes": 3}}, "policy.max_nodes", "changes nothing"),
        ({"policy": {**ALARM, "min_nodes": 4}}, "policy.min_nodes", "less than its policy's smallest size"),
        ({"policy": {**ALARM, "metric": "cpu_percent_max"}}, "policy.metric", "no value in each second"),
        ({"policy": ALARM, "probes": []}, "policy.metric", "read by probe os"),
        (
            {
                "system": {"name": "cassandra", "replication_factor": 3},
                "policy": {**ALARM, "min_nodes": 2},
            },
            "policy.min_nodes",
            "shrinks the cluster to 2 nodes",
        ),
    ],
)
def test_what_no_cluster_can_follow_is_refused(tmp_path: Path, changes: dict[str, Any], key: str, words: str) -> None:
    errors = refused(tmp_path, **changes)
    assert (key, True) in [(error.key, words in error.message) for error in errors]
    assert all(error.hint for error in errors)


def test_a_change_after_the_end_of_a_load_with_phases_asks_for_longer_phases(tmp_path: Path) -> None:
    phases = [{"name": name, "duration_s": 10, "schedule": "constant", "rate_per_s": 10} for name in ("calm", "busy")]
    late = {"name": "scheduled", "times": [[20, 4]]}
    hints = [error.hint for error in refused(tmp_path, load={"phases": phases}, policy=late)]
    assert "longer load.phases, or earlier times" in hints
    assert "a longer load.duration_s, or earlier times" in [
        error.hint for error in refused(tmp_path, load={"duration_s": 20}, policy=late)
    ]


def test_settings_under_which_no_node_can_join_are_refused(tmp_path: Path) -> None:
    for system in ({"name": "simulated", "remember": True}, {"name": "cassandra", "client_tls": True}):
        errors = refused(tmp_path, system=system)
        assert any(error.message.startswith("no node can join: ") for error in errors)


def test_a_system_that_cannot_grow_is_refused(tmp_path: Path) -> None:
    system = {"name": "cassandra", "managed": False, "contact_points": ["10.0.0.1"]}
    errors = refused(tmp_path, system=system, factors={}, site={"name": "local", "nodes": 3})
    assert any("cannot change its size while it runs" in error.message for error in errors)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('name = "scheduled"', "scheduled needs times"),
        ('name = "scheduled"\ntimes = [[20, 4], [10, 3]]', "not in order"),
        ('name = "schedule"', "'scheduled'"),
        ('name = "threshold"\nmax_nodes = 4', "policy.threshold: must be given"),
        ('name = "threshold"\nthreshold = 80', "needs max_nodes"),
        ('name = "threshold"\nthreshold = 80\nmax_nodes = 1\nmin_nodes = 2', "min_nodes = 2 is above max_nodes = 1"),
        ("time = [[20, 4]]", "no such key"),
        (
            "times = [[20, 4]]",
            'a setting of policy scheduled, and the policy is none; name it (policy.name = "scheduled"), or make the '
            'policy a factor (policy = ["none", "scheduled"])',
        ),
        ("stabilization_window_up_s = 3", "a setting of policy hpa, and the policy is none"),
    ],
)
def test_a_wrong_policy_is_named_with_its_line(table: str, words: str) -> None:
    with pytest.raises(StudyError, match=r"policy") as error:
        read_text(SMALL_STUDY.replace("[design]", f"[policy]\n{table}\n[design]"))
    assert words in str(error.value)
    assert error.value.line or error.value.key.startswith("policy")


def test_what_a_change_of_size_takes_is_said(tmp_path: Path) -> None:
    plan = plan_of(study(**BASE))
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    grows, alone, sizes, ends, left = growth.notes(study(**BASE), plan, 2, abilities)
    assert grows.startswith(
        "3 nodes at the beginning, and 1 spare node is lent with them: memory, disks and quotas are"
    )
    assert alone.startswith("every treatment changes the size of its cluster: without a control that keeps it")
    assert sizes == "policy scheduled: 4 nodes from 20 s on, in seconds of the measured phase"
    assert ends.endswith("4 trials take 4 starts, not 2")
    assert left.startswith("the load goes on for about 40 s after the last change of size")


def test_a_study_with_a_control_lacks_none(tmp_path: Path) -> None:
    asked = study(**{**BASE, "policy": {"times": [[20, 4]]}, "factors": {"policy": ["none", "scheduled"]}})
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    assert not any("control" in note for note in growth.notes(asked, plan_of(asked), 2, abilities))


def test_changes_that_wait_for_one_another_are_named(tmp_path: Path) -> None:
    policy = {"name": "scheduled", "times": [[5, 4], [20, 3], [50, 4], [55, 5]]}
    asked = study(**{**BASE, "policy": policy})
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    notes = list(growth.notes(asked, plan_of(asked), 2, abilities))
    assert any("4 nodes from 5 s on, 3 from 20 s on, 4 from 50 s on, 5 from 55 s on" in note for note in notes)
    (close,) = [note for note in notes if note.startswith("the change of size at")]
    assert close.startswith(
        "the change of size at 20 s comes 15 s after that at 5 s and 55 s comes 5 s after that at 50 s"
    )
    assert "only the size that was desired last counts" in close


STEPS = {"schedule": "constant", "rate_per_s": 100, "duration_s": 60}
SEARCHED = {"response": "response_ms_p99", "demand": {"capacity": "searched"}}
A_SEARCH = {"policy.name": "none", "load.schedule": "search", "load.objective": "saturation"}
BY_SEARCH: dict[str, Any] = {
    "factors": {"trial": ["grows", "of3", "of4"]},
    "levels": {"trial": {"grows": {"nodes": 3}, "of3": {"nodes": 3, **A_SEARCH}, "of4": {"nodes": 4, **A_SEARCH}}},
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": ALARM, "load": STEPS}, ["[analysis.demand] capacity"]),
        ({"load": STEPS}, []),
        ({"policy": ALARM}, []),
        ({"policy": ALARM, "load": STEPS, "analysis": {"demand": {"capacity": [[3, 10], [4, 20], [5, 30]]}}}, []),
        (
            {"policy": ALARM, "load": STEPS, "analysis": {"demand": {"capacity": [[3, 10], [5, 30]]}}},
            ["analysis.demand does not say what 4 nodes carry"],
        ),
        ({"policy": ALARM, "analysis": {"demand": {"capacity": [[3, 10], [4, 20], [5, 30]]}}}, ["has no use"]),
        ({"policy": ALARM, "load": STEPS, "analysis": SEARCHED}, ["does not say what 3, 4 and 5 nodes carry"]),
        (
            {"policy": ALARM, "load": {**STEPS, "threads": 64}, "analysis": SEARCHED, **BY_SEARCH},
            ["does not say what 5 nodes carry"],
        ),
    ],
)
def test_what_measures_of_elasticity_lack_is_said(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    asked = study(**{**BASE, **changes})
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    of_demand = [note for note in growth.notes(asked, plan_of(asked), 2, abilities) if "analysis.demand" in note]
    assert len(of_demand) == len(words)
    assert all(word in note for word, note in zip(words, of_demand, strict=True))


@pytest.mark.parametrize("capacity", ["[]", "[[3, 100], [3, 200]]", "[[3, 200], [4, 100]]", "[[0, 100]]", "[[3, 0]]"])
def test_capacities_rise_with_the_size(capacity: str) -> None:
    with pytest.raises(StudyError, match=r"analysis.demand") as error:
        read_text(f"{SMALL_STUDY}\n[analysis.demand]\ncapacity = {capacity}\n")
    assert error.value.key.startswith("analysis.demand.capacity")


def test_needs_are_those_of_the_largest_size(tmp_path: Path) -> None:
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    fixed = plan_of(study(**{**BASE, "policy": {}, "node": {"cpus": 0.4}}))
    grows = plan_of(study(**{**BASE, "node": {"cpus": 0.4}}))
    assert memory_mb_of_plan(grows, abilities) > memory_mb_of_plan(fixed, abilities)
    assert estimate(grows, study(**BASE), abilities=abilities).starts == 4
    assert not list(processor_quotas.notes(fixed, 2, abilities))
    assert "4 nodes of 0.4 processors" in next(iter(processor_quotas.notes(grows, 2, abilities)))
