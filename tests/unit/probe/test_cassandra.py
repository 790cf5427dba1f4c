"""The probe `cassandra`: answers of virtual tables as samples, and the pages of metrics against the modules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.probe import cassandra, gc, jmx
from steelyard.probe.base import Watched

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cassandra-metrics.md"
ROW = re.compile(r"^\| `(?P<name>node_[a-z0-9_]+)` \| (?P<unit>[a-zA-Z/]+) \|", re.MULTILINE)


def samples(views: list[str], *answers: Any) -> dict[str, float]:
    probe = Parts(Plugins()).probe("cassandra", {"views": views})
    line = json.dumps({"t_s": 1000.0, "answers": answers}).encode()
    found = list(probe.parse("n1", line))
    assert {(sample.t_s, sample.node) for sample in found} <= {(1000.0, "n1")}
    return {sample.metric: sample.value for sample in found}


def answer(columns: str, *rows: list[Any]) -> dict[str, Any]:
    return {"columns": columns.split(), "rows": list(rows)}


def test_operations_of_all_tables_are_added_up() -> None:
    columns = "keyspace_name table_name count"
    reads = answer(columns, ["ks", "a", 100.0], ["ks", "b", 20.0])
    first, idle = answer(columns, ["ks", "a", None]), answer(columns, ["ks", "a", 0.0])
    values = samples(["operations"], reads, idle, first, None, answer(columns), answer(columns))
    expected = {"node_coordinator_reads_per_s": 120.0, "node_coordinator_writes_per_s": 0.0}
    assert values == expected, "no rate without a count before, none of a server without tables"


def test_pools_caches_disk_compactions_and_hints() -> None:
    pools = answer(
        "name active_tasks pending_tasks blocked_tasks_all_time", ["ReadStage", 4, 12, 1.5], ["GossipStage", 1, 9, 0.5]
    )
    assert samples(["pools"], pools) == {
        "node_read_active_tasks": 4.0, "node_read_pending_tasks": 12.0, "node_blocked_tasks_per_s": 2.0
    }  # fmt: skip
    caches = answer(
        "name size_bytes hit_count request_count",
        ["chunks", 2048, 90.0, 100.0],
        ["keys", 16, 0.0, 0.0],
        ["new", 1, 1, 1],
    )
    assert samples(["caches"], caches) == {
        "node_cache_chunks_bytes": 2048.0, "node_cache_chunks_hit_fraction": 0.9, "node_cache_keys_bytes": 16.0
    }  # fmt: skip
    assert samples(["disk"], answer("keyspace_name table_name mebibytes", ["ks", "a", 3], ["ks", "b", 1])) == {
        "node_tables_disk_bytes": 4 * 2**20
    }
    tasks = answer("kind progress total unit", ["compaction", 100, 400, "bytes"], ["cleanup", 1, 2, "ranges"])
    assert samples(["compactions"], tasks) == {
        "node_compactions_running": 2.0, "node_compactions_remaining_bytes": 300.0
    }  # fmt: skip
    assert samples(["hints"], answer("files", [2], [3])) == {"node_hints_pending_files": 5.0}


def test_answers_of_another_set_of_questions_are_refused() -> None:
    with pytest.raises(ProbeError, match="2 answers to 1 questions"):
        samples(["hints"], None, None)


def test_its_command_asks_what_the_views_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "steelyard-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv(agent.OVERRIDE, str(program))
    database = Watched(Node("n1", "database", "10.0.0.1", (), tmp_path), (), {"cql": "10.0.0.1:9042"})
    load = Watched(Node("l1", "load", "10.0.0.9", (), tmp_path))
    probe = cassandra.create(cassandra.Settings(views=("hints",)))
    (placement,) = probe.placements([database, load], 1.0)
    assert placement.on == database.node
    assert placement.argv[:6] == (str(program), "cql", "--contact", "10.0.0.1:9042", "--every", "1")
    assert placement.argv[-1] == "SELECT files FROM system_views.pending_hints"
    with pytest.raises(ProbeError, match="offers no way in at all"):
        probe.placements([load], 1.0)


def test_answers_stand_in_the_order_of_the_questions_wherever_a_view_stands_in_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A question that is added below those that are asked in turn is still answered before them."""
    # The order of the questions is not to matter.
    monkeypatch.setattr(cassandra, "QUESTIONS", tuple(reversed(cassandra.QUESTIONS)))
    pools = answer("name active_tasks pending_tasks blocked_tasks_all_time", ["ReadStage", 4, 12, None])
    disk = answer("keyspace_name table_name mebibytes", ["ks", "a", 3])
    assert ("disk" in cassandra.IN_TURN, "pools" in cassandra.IN_TURN) == (True, False)
    values = samples(["disk", "pools"], pools, disk)
    assert (values["node_read_active_tasks"], values["node_tables_disk_bytes"]) == (4.0, 3 * 2**20)


def test_the_page_has_the_metrics_of_the_modules() -> None:
    probes = (gc.create(), cassandra.create(cassandra.Settings()), jmx.create(jmx.Settings()))
    listed = {metric.name: metric.unit for probe in probes for metric in probe.metrics}
    assert len(listed) == sum(len(probe.metrics) for probe in probes), "no two probes share a metric"
    assert {row["name"]: row["unit"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))} == listed
