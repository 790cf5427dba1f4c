"""The probe `postgresql`: its page, its command, and its lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node.base import Node
from steelyard.probe import postgresql
from steelyard.probe.base import Watched

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "system-postgresql.md"
NODE = Node("n1", "database", "fd00::1", (), Path("/n1"))


def test_the_page_has_every_metric() -> None:
    metrics = postgresql.PostgresqlProbe.metrics
    rows = [f"| `{metric.name}` | {metric.unit} | {metric.description} |" for metric in metrics]
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in page] == []


def test_its_command_is_the_client_on_the_node() -> None:
    ways = {"postgresql": "[fd00::1]:5432", "psql": "/opt/psql"}
    (placement,) = postgresql.create().placements([Watched(NODE, (), ways), Watched(NODE)], 0.5)
    assert placement.on == NODE
    assert placement.argv[4:6] == ("/opt/psql", "host=fd00::1 port=5432 user=steelyard dbname=steelyard")
    assert placement.argv[-1] == "0.5"


def test_other_systems_are_refused() -> None:
    with pytest.raises(ProbeError, match="offers only cql"):
        postgresql.create().placements([Watched(NODE, (), {"cql": "127.0.0.1:9042"})], 1.0)


def test_rates_are_those_since_the_answer_before() -> None:
    before = {"t": 10.0, "database": {"xact_commit": 5, "xact_rollback": 1, "numbackends": 2}, "wal": {"wal_bytes": 9}}
    now = {
        "t": 12.0,
        "database": {"xact_commit": 9, "xact_rollback": 1, "numbackends": 3},
        "wal": {"wal_bytes": 5},
        "replication": {"replicas": 1, "lag_bytes": 8, "lag_s": None},
    }
    line = f"{json.dumps(before)} | {json.dumps(now)}\n".encode()
    samples = postgresql.create().parse("n1", line)
    found = {sample.metric.removeprefix("node_postgresql_"): sample.value for sample in samples}
    # A counter that was reset, and fields that the server does not have, give nothing.
    assert found == {
        "transactions_per_s": 2.0, "rollbacks_per_s": 0.0, "connections": 3.0, "replicas": 1.0, "lag_bytes": 8.0,
    }  # fmt: skip
    assert {sample.t_s for sample in samples} == {12.0}
    (only,) = postgresql.create().parse("n1", b' | {"t": 1.5, "database": {"numbackends": 2}}\n')
    assert (only.metric, only.value) == ("node_postgresql_connections", 2.0)
