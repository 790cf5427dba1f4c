"""The line about what one trial does: what all trials have in common, of stores of any version."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.report.prose.provenance import _systems, enclosed, one_trial
from tests.unit.report import synthetic

CLOSED = {"schedule": "closed", "threads": 1, "operations": 2000, "duration_s": None}
OPEN = {"schedule": "constant", "threads": 64, "rate_per_s": 500, "operations": None, "duration_s": 60.0}


def trials(*loads: dict[str, Any], copies: int | None = 1) -> list[TrialRecord]:
    (record, *_) = synthetic.records(synthetic.study())
    system = {"name": "cassandra", **({} if copies is None else {"replication_factor": copies})}
    parts = {"system": system, "workload": {"name": "ycsb-c", "records": 5000}}
    return [record.model_copy(update={"settings": TrialSettings({**parts, "load": load})}) for load in loads]


@pytest.mark.parametrize(
    ("records", "line"),
    [
        (trials(CLOSED, CLOSED), "Each trial: ycsb-c, 2,000 operations, 1 thread, 5,000 records, replication factor 1"),
        (
            trials(CLOSED, {**CLOSED, "threads": 8}),
            "Each trial: ycsb-c, 2,000 operations, 5,000 records, replication factor 1",
        ),
        (trials(OPEN, copies=None), "Each trial: ycsb-c, 60 s of load, 5,000 records"),
        (trials(CLOSED, {**CLOSED, "of_another_version": 1}), trials),
        ([], ""),
    ],
    ids=["all alike", "threads vary", "open loop", "another version", "no trial"],
)
def test_what_all_trials_have_in_common_is_said(records: list[TrialRecord], line: Any) -> None:
    expected = one_trial(trials(CLOSED)) if line is trials else line
    assert one_trial(records) == expected


def test_what_encloses_the_nodes_is_said() -> None:
    (record, *_) = trials(CLOSED)

    def at(site: dict[str, Any]) -> TrialRecord:
        return record.model_copy(update={"settings": TrialSettings({**record.settings.root, "site": site})})

    host, bridge = at({"name": "docker", "network": "host"}), at({"name": "docker", "network": "bridge"})
    local = at({"name": "local", "mode": "loopback"})
    contained = {"docker": {"container_engine": "Docker 27.1"}}
    plain = {"local": {"cores": "2"}}
    assert enclosed([host, host], contained) == "database nodes in Docker containers, network host"
    assert enclosed([host, bridge], contained) == "database nodes in Docker containers, network bridge or host"
    of_two = enclosed([local, host], {**plain, **contained})
    assert of_two == "database nodes of site docker in Docker containers, network host"
    assert enclosed([at({"name": "vm"})], {"vm": {"vm_emulator": "QEMU 7.2"}}) == "database nodes in virtual machines"
    assert enclosed([local, record], plain) == enclosed([], {}) == ""


@pytest.mark.parametrize(
    ("own", "line"),
    [({"heap_mb": 256}, "Cassandra, heap 256 MB per node"), ({"heap_mb": 256, "managed": False}, "Cassandra")],
    ids=["of the laboratory's own", "exists"],
)
def test_the_heap_is_that_of_clusters_of_the_laboratorys_own(own: dict[str, Any], line: str) -> None:
    (record,) = trials(CLOSED)
    settings = TrialSettings({"system": {"name": "cassandra", **own}})
    assert _systems([record.model_copy(update={"settings": settings, "versions": {}})]) == (line,)


@pytest.mark.parametrize(
    ("system", "version", "line"),
    [
        ({"name": "simulated", "contention": 0.1}, "4.0.0-sim", "simulated cluster"),
        ({"name": "shelf"}, "2.1", "Shelf 2.1"),
        ({"name": "cassandra"}, "cassandra 5.0.5", "Cassandra 5.0.5"),
    ],
    ids=["planted", "of others", "shipped"],
)
def test_a_system_has_its_version_unless_its_times_are_planted(system: dict[str, Any], version: str, line: str) -> None:
    (record,) = trials(CLOSED)
    update = {"settings": TrialSettings({"system": system}), "versions": {"system": version}}
    assert _systems([record.model_copy(update=update)]) == (line,)


def test_every_system_has_all_of_its_versions() -> None:
    (record,) = trials(CLOSED)
    measured = [
        ({"name": "redis"}, "7.0.15"),
        ({"name": "cassandra", "heap_mb": 512}, "5.0.5"),
        ({"name": "postgresql", "version": 15}, "15.14"),
        ({"name": "postgresql", "version": 9}, "9.6"),
        ({"name": "postgresql", "version": 15}, "15.14"),
    ]
    records = [
        record.model_copy(
            update={"settings": TrialSettings({"system": system}), "versions": {str(system["name"]): version}}
        )
        for system, version in measured
    ]
    systems = ("Cassandra 5.0.5, heap 512 MB per node", "PostgreSQL 9.6 and 15.14", "Redis 7.0.15")
    assert _systems(records) == systems
