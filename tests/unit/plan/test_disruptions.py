"""Studies whose nodes are disrupted: what is refused, and what `check` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.plan import disruptions
from steelyard.plan.abilities import Abilities
from steelyard.plugins.find import Plugins
from tests.unit.lab.fakes import plan_of, study

BASE: dict[str, Any] = {"load": {"duration_s": 120}, "factors": {"nodes": [3]}}


def asked(disruption: dict[str, Any], **changes: Any) -> Study:
    return study(**{**BASE, "disruption": {"name": "kill", "at_s": 30, **disruption}, **changes})


def plan(disruption: dict[str, Any], **changes: Any) -> Any:
    return plan_of(asked(disruption, **changes))


def refused(tmp_path: Path, disruption: dict[str, Any], **changes: Any) -> list[StudyError]:
    planned = plan(disruption, **changes)
    return list(disruptions.refusals(asked(disruption, **changes), planned, abilities(tmp_path)))


def abilities(folder: Path) -> Abilities:
    return Abilities(Plugins(), state_folder=folder, cache_folder=folder)


EXISTING = {"system": {"name": "cassandra", "managed": False, "contact_points": ["10.0.0.1"]}}


@pytest.mark.parametrize(
    ("disruption", "changes", "key", "words"),
    [
        ({"name": "disk-full"}, {}, "disruption.name", "no disk of their own"),
        ({"name": "disk-slow", "write_mb_per_s": 1}, {}, "disruption.name", "no disk of their own"),
        ({"name": "disk-slow"}, {"node": {"disk_gb": 1}}, "disruption.name", "no rate is lower"),
        (
            {"name": "disk-slow", "write_mb_per_s": 5},
            {"node": {"disk_write_mb_per_s": 5}},
            "disruption.name",
            "5 MB/s are not less than the study's limit, node.disk_write_mb_per_s = 5",
        ),
        (
            {"name": "disk-slow", "write_mb_per_s": 5},
            {"node": {"disk_gb": 1}, "site": {"name": "docker"}},
            "disruption.name",
            "site docker cannot throttle the disks",
        ),
        ({"name": "stress-cpu", "threads": 16}, {"node": {"cpus": 0.5}}, "disruption.name", "at most 8"),
        ({"name": "compaction"}, {}, "disruption.name", "has no compaction"),
        ({"name": "clock"}, {}, "disruption.name", "nodes of site local have the clock of their machine"),
        ({"name": "clock", "offset_s": 0}, {"site": {"name": "vm"}}, "disruption.name", "no clock is wrong"),
        ({"name": "packet"}, {"site": {"name": "local", "mode": "namespaces"}}, "disruption.name", "no packet is lost"),
        (
            {"name": "packet", "delay_ms": 5},
            {"site": {"name": "local", "mode": "namespaces"}},
            "disruption.name",
            "link that our program moves",
        ),
        (
            {"name": "packet", "delay_ms": 5},
            {"site": {"name": "vm"}},
            "disruption.name",
            "does not move packets itself",
        ),
        (
            {"name": "partition"},
            {"site": {"name": "local", "mode": "loopback"}},
            "disruption.name",
            "share one network",
        ),
        ({"name": "partition"}, {"site": {"name": "vm"}}, "disruption.name", "site vm cannot cut links"),
        (
            {"name": "partition"},
            {"site": {"name": "docker", "network": "host"}},
            "disruption.name",
            "share one network",
        ),
        (
            {"name": "partition", "on": "all"},
            {"site": {"name": "local", "mode": "namespaces"}},
            "disruption.name",
            "fewer than 4 have no link",
        ),
        ({"name": "stress-cpu"}, {"site": {"name": "vm"}}, "disruption.name", "site vm does not charge it to the node"),
        ({"name": "stress-memory", "mb": 512}, {"node": {"memory_mb": 512}}, "disruption.name", "a node has 512 MiB"),
        (
            {},
            {"policy": {"name": "threshold", "threshold": 80, "max_nodes": 4}},
            "disruption.name",
            "is not known before",
        ),
        ({}, {"load": {"operations": 10}}, "disruption.name", "whose length this load does not say"),
        ({}, {"data": {"state": "continue"}}, "data.state", "ends its start"),
        ({}, {"node": {"cpus": 0.5, "dilation": 2}}, "node.dilation", "dilation does not slow down"),
        ({"on": "n1,n4"}, {}, "disruption.on", "there is no node n4"),
        ({"on": "minority"}, {"factors": {"nodes": [2]}}, "disruption.on", "without the majority"),
        ({"at_s": 5}, {}, "disruption.at_s", "at least 10 s before"),
        ({"at_s": 60}, {}, "disruption.at_s", "the load ends after 120 s, and nodes may take until 140 s to recover"),
        ({"every_s": 60}, {}, "disruption.every_s", "two disruptions may be at once on one node"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, disruption: dict[str, Any], changes: dict[str, Any], key: str, words: str
) -> None:
    (error,) = refused(tmp_path, disruption, **changes)
    assert error.key == key
    assert words in error.message


@pytest.mark.parametrize(
    "name", ["kill", "pause", "stress-cpu", "stress-memory", "disk-full", "disk-slow", "noop", "partition", "repair"]
)
def test_a_cluster_that_exists_is_only_measured(tmp_path: Path, name: str) -> None:
    errors = refused(tmp_path, {"name": name}, **EXISTING, node={"disk_gb": 1} if "disk" in name else {})
    assert [error.message for error in errors if "only measured" in error.message] == [
        f"disruption {name} is not possible: a cluster that exists is only measured" for _ in errors if name != "noop"
    ]
    assert bool(errors) == (name != "noop")


def test_nothing_is_refused_without_reason(tmp_path: Path) -> None:
    for disruption in ({}, {"name": "noop", "on": "all"}, {"name": "stress-cpu"}, {"on": "n3"}, {"every_s": 80}):
        assert refused(tmp_path, disruption) == []


def test_what_check_says(tmp_path: Path) -> None:
    three = plan({"every_s": 90}, load={"duration_s": 400}, design={"starts": 1, "trials": 2})
    said = list(disruptions.notes(three, abilities(tmp_path)))
    assert said[0] == "disruption kill of one for 20 s, at 30, 120, 210 and 300 s of the measured phase"
    assert "2 trials take 2 starts, not 1" in said[1]
    assert "every treatment is disrupted" in said[2]
    compared = plan_of(study(**{**BASE, "factors": {"nodes": [3], "disruption": ["none", "kill"]}}))
    assert not any("without a control" in one for one in disruptions.notes(compared, abilities(tmp_path)))


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [("kill", {}, True), ("kill", {"appendonly": True}, False), ("pause", {}, False)],
)
def test_check_says_what_a_killed_server_has_lost(
    tmp_path: Path, name: str, settings: dict[str, Any], said: bool
) -> None:
    redis = plan({"name": name}, system={"name": "redis", **settings})
    lost = "disruption kill: a server comes back empty, because system.appendonly = false keeps no data on its disk"
    assert (lost in disruptions.notes(redis, abilities(tmp_path))) == said


def test_a_main_response_must_be_one_that_the_control_has(tmp_path: Path) -> None:
    def errors(response: str, levels: list[str]) -> list[StudyError]:
        factors = {"nodes": [3], "disruption": levels}
        return refused(tmp_path, {"name": "none"}, factors=factors, analysis={"response": response})

    (error,) = errors("recovery_s", ["none", "kill"])
    assert (error.key, error.read) == ("analysis.response", "recovery_s")
    assert "nothing is disrupted, so they have no recovery_s" in error.message
    assert "availability_percent, lost_operations, ambiguous_operations" in error.hint
    assert errors("recovery_s", ["kill", "noop"]) == []
    assert errors("availability_percent", ["none", "kill"]) == []
