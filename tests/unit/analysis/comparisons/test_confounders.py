"""What differs between two sides besides what was asked."""

from __future__ import annotations

import pytest

from steelyard.analysis.comparisons.confounders import apart, warnings
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.trial_settings import TrialSettings
from tests.unit.analysis.made import record

SETTINGS = {"site": {"nodes": 1}, "system": {"name": "cassandra", "heap_mb": 256}, "workload": {"name": "a", "x": 1}}


def one(settings=None, begun_s=1000.0, **versions):
    found = record(5.0, begun_s=begun_s)
    return found.model_copy(
        update={
            "settings": TrialSettings.model_validate(settings or SETTINGS),
            "versions": versions,
            "ended_s": begun_s + 5,
        }
    )


def test_equal_sides_do_not_differ():
    facts = [{"n1": {"cores": "2", "address": "10.0.0.1"}, "system:n1": {"seed": "5"}}]
    other = [{"n1": {"cores": "2", "address": "10.0.0.9"}, "system:n1": {"seed": "6", "peers": "10.0.0.1"}}]
    assert apart([one()], [one(begun_s=1001.0)], facts, other, ()) == ()


def test_what_was_asked_is_told_apart_from_what_was_not():
    changed = {"site": {"nodes": 3}, "system": {"name": "cassandra", "heap_mb": 512}, "workload": {"name": "b", "x": 2}}
    found = apart([one()], [one(changed)], (), (), ("nodes", "workload"))
    assert {(diff.name, diff.kind) for diff in found} == {
        ("site.nodes", "asked"), ("workload.name", "asked"), ("workload.x", "asked"), ("system.heap_mb", "setting"),
    }  # fmt: skip
    assert found[-1].words() == "system.heap_mb: 256 -> 512"
    assert "settings (1)" in warnings(found)[0]


@pytest.mark.parametrize(
    ("setting", "fact"),
    [
        ("system.commitlog_total_space_mb", "setting commitlog_total_space"),
        ("system.native_port", "setting native_transport_port"),
        ("system.yaml.concurrent_reads", "setting concurrent_reads"),
        ("system.region_size_mb", "jvm options"),
        ("system.service_us", "service-us"),
    ],
)
def test_what_a_compared_setting_became_on_the_node_is_asked_for(setting: str, fact: str) -> None:
    sides = [[{"system:n1": {fact: value, "setting other": value}}] for value in ("1", "2")]
    found = {one.name: one.kind for one in apart([one()], [one()], *sides, (setting,))}
    assert found == {fact: "asked", "setting other": "system"}


def test_machines_versions_and_systems():
    facts_a = [{"n1": {"cores": "2"}, "l1": {"cores": "2"}, "system:n1": {"log": "/s/nodes/6e9e3621/n1/gc"}}]
    facts_b = [{"n1": {"cores": "4"}, "l1": {"cores": "2"}, "system:n1": {"log": "/s/nodes/aaaa1111/n1/gc"}}]
    found = apart([one(kernel="6.1")], [one(kernel="6.18")], facts_a, facts_b, ())
    assert {(diff.kind, diff.name, diff.a, diff.b) for diff in found} == {
        ("version", "kernel", ("6.1",), ("6.18",)), ("machine", "cores", ("2",), ("4",)),
    }  # fmt: skip


def test_sides_one_after_the_other_are_warned_of():
    found = apart([one()], [one(begun_s=9000.0)], (), (), ())
    assert [diff.kind for diff in found] == ["time"]
    assert "all of side a came before side b" in warnings(found)[0]


def test_servers_that_were_warmed_up_on_one_side_only_are_warned_of():
    warmth = ServerWarmth(seconds=20, rounds=2, operations=1000, reached=True)
    warm = one().model_copy(update={"server_warm_up": warmth})
    differences = apart([warm], [one()], (), (), ())
    assert [(diff.kind, diff.name, diff.a, diff.b) for diff in differences] == [
        ("setting", "servers warmed up", ("yes",), ("no",))
    ]
    assert any("of one side were warmed up" in sentence for sentence in warnings(differences))
    assert apart([warm], [warm], (), (), ()) == ()
