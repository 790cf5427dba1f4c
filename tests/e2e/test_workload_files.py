"""Workload files against one real node: the shipped ones, filled and driven with every value compared, kept as a
snapshot and restored; and the study of one, from file to report."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from steelyard.dropin import agent_run
from steelyard.model.data_model import Schema
from steelyard.plugins import find
from steelyard.store import Store
from steelyard.system.cassandra import Cassandra
from steelyard.testing.cluster import RunningCluster
from steelyard.workload.base import Workload
from tests.e2e.laboratory import BUSY_MACHINE, COLD, ROOT, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.cassandra, pytest.mark.usefixtures("brief_java")]

FILES = ROOT / "studies" / "workloads"
OPERATIONS = 2000
SMALL = {"timeseries": "records=600", "accounts": "records=500", "catalogue": "records=500"}


def workload_of(name: str) -> Workload:
    module = find.find("workload", str(FILES / f"{name}.toml"))
    setting, _, value = SMALL[name].partition("=")
    made: Workload = module.create(module.Settings.model_validate({setting: int(value)}))
    return made


async def loaded(laboratory: Laboratory, cluster: RunningCluster, name: str, *more: str) -> Any:
    """`steelyard load` as a user says it; the last order's only phase."""
    words = [
        "load",
        FILES / f"{name}.toml",
        "--contact",
        ",".join(cluster.contacts),
        "--set",
        SMALL[name],
        "--json",
        *more,
    ]
    done = await asyncio.to_thread(laboratory.call, *words)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)[-1]
    assert "operations/s" in done.stderr
    (phase,) = outcome["phases"].values()
    assert (phase["errors"], phase["errors_by_kind"], phase["not_found"], phase["dropped"]) == (0, {}, 0, 0)
    return phase


async def driven(laboratory: Laboratory, cluster: RunningCluster, name: str) -> dict[str, dict[str, int]]:
    """Outcomes by operation of the load, with every value compared."""
    words = ["--operations", str(OPERATIONS), "--threads", "8", "--set", "validate_fraction=1"]
    phase = await loaded(laboratory, cluster, name, *words)
    assert phase["operations"] == OPERATIONS
    return {operation: found["outcomes"] for operation, found in phase["by_operation"].items()}


async def counts(cluster: RunningCluster, schema: Schema) -> dict[str, int]:
    """Rows of every table."""
    questions = [f"SELECT count(*) AS n FROM {schema.full_name(table.name)}" for table in schema.all_tables()]
    answers = await agent_run.cql(cluster.contacts, questions)
    return {table.name: int(rows[0]["n"]) for table, rows in zip(schema.all_tables(), answers, strict=True)}


def test_shipped_files_hold_what_was_written(laboratory: Laboratory, real_node: RunningCluster) -> None:
    async def body() -> None:
        await _timeseries(laboratory, real_node)
        assert await _visits_after_a_restore(laboratory, real_node) == 500
        await _catalogue(laboratory, real_node)

    asyncio.run(body())


async def _timeseries(laboratory: Laboratory, cluster: RunningCluster) -> None:
    filled = await loaded(laboratory, cluster, "timeseries", "--create", "--populate")
    assert filled["operations"] == 600
    schema = workload_of("timeseries").schema()
    assert await counts(cluster, schema) == {"readings": 6000}
    outcomes = await driven(laboratory, cluster, "timeseries")
    assert set(outcomes) == {"report", "newest", "chart"}
    # On a busy machine a report may take longer than the operations after which its keys count as written.
    assert set(outcomes["newest"]) <= {"ok", "not-found"}
    assert outcomes["newest"]["ok"] >= 0.98 * sum(outcomes["newest"].values())
    assert (await counts(cluster, schema))["readings"] == 6000 + 10 * outcomes["report"]["ok"]


async def _visits_after_a_restore(laboratory: Laboratory, cluster: RunningCluster) -> int:
    """Accounts filled, driven and restored; the sum of their counters, one for each at the snapshot."""
    workload = workload_of("accounts")
    key = await filled(laboratory, cluster, workload)
    outcomes = await driven(laboratory, cluster, "accounts")
    assert set(outcomes["look"]) == {"ok"}
    assert set(outcomes["open-again"]) == {"not-applied"}
    assert set(outcomes["change"]) == {"ok", "not-applied"}
    assert (await counts(cluster, workload.schema()))["visits"] > 500
    await restored(cluster, workload, key)
    assert await counts(cluster, workload.schema()) == {"accounts": 500, "visits": 500}
    ((row,),) = await agent_run.cql(cluster.contacts, ["SELECT sum(visits) AS n FROM accounts.visits"])
    return int(row["n"])


async def _catalogue(laboratory: Laboratory, cluster: RunningCluster) -> None:
    workload = workload_of("catalogue")
    key = await filled(laboratory, cluster, workload)
    phase = await loaded(
        laboratory, cluster, "catalogue", "--operations", str(OPERATIONS), "--set", "validate_fraction=1"
    )
    assert phase["rows"] > 0
    await restored(cluster, workload, key)
    assert await counts(cluster, workload.schema()) == {"articles": 500}
    (rows,) = await agent_run.cql(cluster.contacts, ["SELECT id, maker FROM catalogue.articles WHERE maker = 7"])
    assert [row["maker"] for row in rows] == [7] * 5
    await driven(laboratory, cluster, "catalogue")


async def filled(laboratory: Laboratory, cluster: RunningCluster, workload: Workload) -> str:
    """Tables as a study makes them, with ids that files of a snapshot fit; filled, with a snapshot."""
    system = cluster.system
    assert isinstance(system, Cassandra)
    await system.create_schema(cluster.nodes, workload.schema())
    assert [await system.differing(node) for node in cluster.nodes] == [{}]
    await loaded(laboratory, cluster, workload.name, "--populate")
    key = system.snapshot_key(cluster.nodes, workload.schema(), workload.data())
    await system.snapshot(cluster.nodes, workload.schema(), key)
    return key


async def restored(cluster: RunningCluster, workload: Workload, key: str) -> None:
    assert isinstance(cluster.system, Cassandra)
    await cluster.system.restore(cluster.nodes, workload.schema(), key)


def test_the_study_of_one(laboratory: Laboratory, tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "workloads")
    text = (ROOT / "studies" / "timeseries.toml").read_text()
    for shipped, reduced in {"\ntrials = 3": "\ntrials = 1", "warm_up_trials = 1": "warm_up_trials = 0"}.items():
        assert shipped in text
        text = text.replace(shipped, reduced)
    (tmp_path / "timeseries.toml").write_text(text + BUSY_MACHINE + COLD)
    done = laboratory.run(tmp_path / "timeseries.toml", "--scale", "0.25", timeout_s=600.0)
    assert done.returncode == 0, done.stderr
    (folder,) = laboratory.store.iterdir()
    store = Store(folder)
    # A busy machine may have voided attempts, which were repeated.
    records = [record for record in store.trials() if record.verdict.outcome == "valid"]
    assert len({record.id for record in records}) == 4
    for record in records:
        assert record.settings.root["workload"]["name"] == "workloads/timeseries.toml"
        assert (record.responses.operations, record.responses.errors, record.responses.not_found) == (500, 0, 0)
        assert set(store.intervals(record)["operation"]) == {"report", "newest", "chart"}
    page = laboratory.folder / "report.html"
    done = laboratory.call("report", folder, "--output", page)
    assert done.returncode == 0, done.stderr  # voided attempts that were repeated do not count
    assert store.study.study.question in page.read_text()
