"""The real cassandra-stress and our agent on the same real node: each reads what the other wrote, and a study compares
the two as generators."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine import _stress_tool as tool
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.node.base import Node
from steelyard.node.folders import cache_folder
from steelyard.plugins import find
from steelyard.store import Store
from steelyard.system.cassandra import _cql
from steelyard.testing.cluster import RunningCluster
from steelyard.wire.order import Order
from steelyard.wire.record import Done, Record
from steelyard.workload.stress import Settings, create
from tests.e2e.laboratory import Laboratory
from tests.unit.wire import orders

pytestmark = [pytest.mark.agent, pytest.mark.cassandra, pytest.mark.usefixtures("brief_java")]

ROWS = 2000
DRIVE_TIMEOUT_S = 120.0
FIRST_KEY = "0x30503337373039503231"
"""The key of seed 1, as the tool writes it."""


@pytest.fixture(scope="module")
def stress_tool() -> tool.Tool:
    """The tool, fetched if need be."""
    return asyncio.run(tool.ensure(cache_folder(), print))


def by_itself(stress_tool: tool.Tool, cluster: RunningCluster, *words: str) -> str:
    """The tool's own command line, errors not ignored; what it printed."""
    address = cluster.nodes[0].address
    argv = stress_tool.argv(
        (*words, "-node", address, "-port", f"native={cluster.port}", "jmx=1", "-rate", "threads=8")
    )
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DRIVE_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def order(cluster: RunningCluster, action: str, settings: Settings, keyspace: str = "keyspace1") -> Order:
    """Of the workload `stress` in a keyspace: fill it, or go through its rows once."""
    program = create(settings).order().model_dump_json().replace("keyspace1.", f"{keyspace}.")
    return orders.order(
        contacts=cluster.contacts,
        keyspace=keyspace,
        action=action,
        work=json.loads(program),
        schedule={"kind": "closed", "threads": 8},
        stop={"operations": settings.records} if action == "load" else {},
    )


def reading(**settings: Any) -> Settings:
    """Every row once, in order, compared with what it should be."""
    every = {"records": ROWS, "population": f"sequence(1..{ROWS})", "write_proportion": 0, "validate_fraction": 1}
    return Settings(**{**every, **settings})


async def driven(engine: str, made: Order, folder: Path) -> Done:
    """Carry an order out through the seam; the record of its end."""
    ends: list[Done] = []
    node = Node("l1", "load", "127.0.0.1", (), folder)
    create_engine = find.find("engine", engine).create

    def take(_node: str, record: Record) -> None:
        if isinstance(record, Done):
            ends.append(record)

    await create_engine().drive(made, [node], take, DRIVE_TIMEOUT_S)
    (end,) = ends
    return end


Outcome = tuple[int, int, dict[str, int]]
"""Operations, those that found nothing, errors by kind."""


def outcome(done: Done) -> Outcome:
    return done.operations, done.not_found, dict(done.errors_by_kind)


async def both_ways(stress_tool: tool.Tool, cluster: RunningCluster, tmp_path: Path) -> list[Outcome]:
    """Each reads what the other wrote; then what ours and the tool find of a wrong row, and of a missing one."""
    (node,) = cluster.nodes
    # The tool's own defaults: five columns of 34 bytes, and a warm-up that writes the same rows.
    await asyncio.to_thread(by_itself, stress_tool, cluster, "write", f"n={ROWS}")
    assert outcome(await driven("agent", order(cluster, "load", reading()), tmp_path)) == (ROWS, 0, {})

    varied = {"columns": 12, "column_size": "gaussian(1..90)"}
    words = ("write", f"n={ROWS}", "no-warmup", "-col", "n=fixed(12)", "size=gaussian(1..90)")
    await asyncio.to_thread(by_itself, stress_tool, cluster, *words, "-schema", "keyspace=varied")
    read = order(cluster, "load", reading(**varied), "varied")
    assert outcome(await driven("agent", read, tmp_path)) == (ROWS, 0, {})

    schema = create(Settings(records=ROWS)).schema()
    await _cql.ask(
        node,
        cluster.port,
        [
            "CREATE KEYSPACE ours WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            *(text.replace("keyspace1.", "ours.") for text in schema.create_rest()),
        ],
    )
    filled = await driven("agent", order(cluster, "populate", Settings(records=ROWS), "ours"), tmp_path)
    assert outcome(filled) == (ROWS, 0, {})
    once = ("read", f"n={ROWS}", "no-warmup", "-pop", f"seq=1..{ROWS}", "-schema", "keyspace=ours")
    said = await asyncio.to_thread(by_itself, stress_tool, cluster, *once)
    assert "Total errors              :          0 [READ: 0]" in said
    assert f"{ROWS:,} [READ: {ROWS:,}]" in said

    # Both see a row that is not as it was written, and one that is not there.
    changed = f'UPDATE keyspace1.standard1 SET "C3" = 0x00 WHERE key = {FIRST_KEY}'
    await _cql.ask(node, cluster.port, [changed])
    wrong = order(cluster, "load", reading())
    found = [outcome(await driven(engine, wrong, tmp_path)) for engine in ("agent", "cassandra-stress")]
    await _cql.ask(node, cluster.port, [f"DELETE FROM keyspace1.standard1 WHERE key = {FIRST_KEY}"])
    return [*found, *[outcome(await driven(engine, wrong, tmp_path)) for engine in ("agent", "cassandra-stress")]]


def test_each_reads_what_the_other_wrote(stress_tool: tool.Tool, real_node: RunningCluster, tmp_path: Path) -> None:
    invalid = (ROWS - 1, 0, {"invalid": 1})
    # The tool calls a row that is missing invalid too.
    assert asyncio.run(both_ways(stress_tool, real_node, tmp_path)) == [invalid, invalid, (ROWS, 1, {}), invalid]


STUDY = f"""
[study]
name = "generators"
question = "which generator?"
[site]
name = "local"
[system]
name = "cassandra"
[workload]
name = "stress"
records = {ROWS}
validate_fraction = 1
[load]
schedule = "constant"
rate_per_s = 200
threads = 8
operations = 300
[data]
state = "continue"
[server_warm_up]
mode = "off"
[limits]
attempts = 1
background_cpu_fraction = 1
steal_fraction = 1
lag_p99_ms = 1000
[design]
starts = 1
trials = 1
[factors]
"load.engine" = ["agent", "cassandra-stress"]
"""


WRONG = {
    ReasonKind.DROPPED,
    ReasonKind.SETTINGS,
    ReasonKind.ERRORS,
    ReasonKind.NOT_FOUND,
    ReasonKind.INCOMPLETE,
    ReasonKind.SYSTEM_FAULT,
    ReasonKind.LAB_FAULT,
}
"""All others a noisy machine, or an agent built for debugging, brings about."""


def test_a_study_with_the_generator_as_a_factor(stress_tool: tool.Tool, laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "generators.toml"
    study.write_text(STUDY)
    done = laboratory.run(study, timeout_s=600.0)
    # 1: trials that a noisy machine has made invalid.
    assert done.returncode in (0, 1), done.stderr
    store = Store(laboratory.store / "generators")
    trials = {record.settings.root["load"]["engine"]: record for record in store.trials()}
    assert set(trials) == {"agent", "cassandra-stress"}
    for engine, record in trials.items():
        assert not WRONG & {reason.kind for reason in record.verdict.reasons}, (engine, record.verdict)
        responses = record.responses
        assert (responses.errors, responses.not_found) == (0, 0)
        assert responses.operations == 300
        assert 0 < (responses.service_ms_p50 or 0) <= (responses.response_ms_p99 or 0)
        measures = set(store.intervals(record)["measure"])
        assert {"response", "service", "lag"} <= measures
    assert trials["cassandra-stress"].versions["agent"] == "cassandra-stress 3.11.4"
