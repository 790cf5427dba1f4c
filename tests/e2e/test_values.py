"""Values that were written, by whatever load and however it ended, are known when they are read: on each system."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from steelyard import engine_order
from steelyard.model.data_model import Schema
from steelyard.model.load import Load
from steelyard.system.base import Endpoint
from steelyard.system.packaged import CURL
from steelyard.system.postgresql._system import packaged
from steelyard.testing import cluster
from steelyard.testing.cluster import RunningCluster
from steelyard.workload import ycsb
from tests.e2e import agent_load
from tests.e2e.agent_load import Ended
from tests.unit.wire import orders

pytestmark = pytest.mark.agent

RECORDS = 2000
KILLS_VARIABLE = "STEELYARD_TEST_KILLS"
"""Kills on each system, if not its own number of them. 10 were made on each."""
BETWEEN_KILLS = 1000
"""Operations of a load, half of them writes, before it is killed."""
WHOLE_THEN_HARMED = [(RECORDS, {}), (RECORDS - 1, {"invalid": 1})]
"""Killed loads leave only values that they have written; one changed byte is found."""
FIELD = "field7"
INTERVAL_S = 0.1
WORKLOAD = ycsb.Core(
    "a",
    ycsb.Settings(
        records=RECORDS,
        read_proportion=0.5,
        update_proportion=0.5,
        request_distribution="zipfian",
        validate_fraction=1.0,
    ),
)
EVERY_RECORD = ycsb.Core(
    "c",
    ycsb.Settings(
        records=RECORDS,
        read_proportion=1.0,
        update_proportion=0.0,
        request_distribution="sequential",
        validate_fraction=1.0,
    ),
)


def said(*argv: str) -> str:
    """Output of a client."""
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.removesuffix("\n")


def other(value: str) -> str:
    """The value with one other character."""
    return value[:50] + (" " if value[50] != " " else "!") + value[51:]


def harm_redis(endpoint: Endpoint) -> None:
    """Change a byte of one field of one record."""
    host, _, port = endpoint.contacts[0].rpartition(":")
    ask = ("redis-cli", "-e", "-h", host, "-p", port)
    key = said(*ask, "ZRANGE", engine_order.INDEX, "0", "0")
    said(*ask, "HSET", key, FIELD, other(said(*ask, "HGET", key, FIELD)))


def harm_etcd(endpoint: Endpoint) -> None:
    """Change a byte of one key, which is one field of one record."""

    def ask(what: str, **body: Any) -> Any:
        return json.loads(
            said("curl", *CURL, "--data", json.dumps(body), f"http://{endpoint.contacts[0]}/v3/kv/{what}")
        )

    (found,) = ask("range", key="AA==", range_end="AA==", limit=1)["kvs"]
    value = other(base64.b64decode(found["value"]).decode())
    ask("put", key=found["key"], value=base64.b64encode(value.encode()).decode())


def harm_postgresql(endpoint: Endpoint) -> None:
    """Change a byte of one column of one row."""
    host, _, port = endpoint.contacts[0].rpartition(":")
    psql = (packaged(None).programs[1], "-Xq", "-d", f"host={host} port={port} user=steelyard dbname=steelyard")
    byte = f"CASE substr({FIELD}, 51, 1) WHEN ' ' THEN '!' ELSE ' ' END"
    changed = f"UPDATE {endpoint.table} SET {FIELD} = overlay({FIELD} PLACING {byte} FROM 51 FOR 1)"
    said(*psql, "-c", f"{changed} WHERE {ycsb.KEY} = (SELECT min({ycsb.KEY}) FROM {endpoint.table})")


def harm_cassandra(endpoint: Endpoint) -> None:
    """Change a byte of one column of one row."""
    table = f"{endpoint.keyspace}.{endpoint.table}"
    done = agent_load.ask(endpoint.contacts[0], f"SELECT {ycsb.KEY}, {FIELD} FROM {table} LIMIT 1")
    (row,) = json.loads(done.stdout)["rows"]
    key, value = (text.replace("'", "''") for text in (row[ycsb.KEY], other(row[FIELD])))
    done = agent_load.ask(endpoint.contacts[0], f"UPDATE {table} SET {FIELD} = '{value}' WHERE {ycsb.KEY} = '{key}'")
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Kind:
    """A system, its ports for tests that run at the same time, and how one byte of its data is changed."""

    settings: Mapping[str, Any]
    harm: Callable[[Endpoint], None]
    kills: int
    """Fewer where each takes seconds."""


KINDS = {
    "redis": Kind({"port": 26_379}, harm_redis, 10),
    "etcd": Kind({"port": 22_379, "peer_port": 22_380}, harm_etcd, 3),
    "postgresql": Kind({"port": 25_432}, harm_postgresql, 10),
    "cassandra": Kind({}, harm_cassandra, 3),
}


@dataclass(frozen=True)
class Loads:
    """Loads on one server."""

    folder: Path
    endpoint: Endpoint
    schema: Schema

    def fill(self) -> Ended:
        """Write every record."""
        order = engine_order.populate(self.endpoint, self.schema, WORKLOAD, 32)
        return agent_load.drive(self.folder, orders.sent(order))

    def order(self, workload: ycsb.Core, seed: int, **until: Any) -> dict[str, Any]:
        """A workload, of which every read is compared."""
        order = engine_order.measure(Load(threads=32, **until), self.endpoint, self.schema, workload, seed)
        return {**orders.sent(order), "interval_s": INTERVAL_S}

    def killed(self, seed: int) -> int:
        """Drive reads and writes, and kill the load among them; operations that it said it had done."""
        load = agent_load.start(self.folder, self.order(WORKLOAD, seed, duration_s=60.0))
        assert load.stdout is not None
        operations = 0
        for line in load.stdout:
            record = json.loads(line)
            operations += record["done"] if record["record"] == "interval" else 0
            if operations >= BETWEEN_KILLS:
                break
        load.send_signal(signal.SIGKILL)
        load.communicate()
        assert load.returncode == -signal.SIGKILL
        return operations

    def every_record(self) -> dict[str, Any]:
        """The end of a load that reads each record once."""
        return agent_load.drive(self.folder, self.order(EVERY_RECORD, 99, operations=RECORDS)).done


def check(loads: Loads, kills: int, harm: Callable[[Endpoint], None]) -> list[Any]:
    """Answered reads and errors by kind of every record: after killed loads, and after one more byte was changed."""
    filled = loads.fill().done
    assert (filled["operations"], filled["errors"]) == (RECORDS, 0)
    before_kill = [loads.killed(seed) for seed in range(1, kills + 1)]
    print(f"{kills} kills after {before_kill} operations")
    read = [loads.every_record()]
    assert read[0]["not_found"] == 0
    harm(loads.endpoint)
    read.append(loads.every_record())
    return [(done["operations"], done["errors_by_kind"]) for done in read]


async def on(running: RunningCluster, kind: Kind, folder: Path) -> list[Any]:
    """The check on a server."""
    schema = replace(WORKLOAD.schema(), keyspace="killed")
    await running.system.create_schema(running.nodes, schema)
    loads = Loads(folder, running.system.endpoint(running.nodes, schema), schema)
    kills = int(os.environ.get(KILLS_VARIABLE, kind.kills))
    return await asyncio.to_thread(check, loads, kills, kind.harm)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("etcd", marks=pytest.mark.etcd),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ],
)
def test_killed_loads_leave_only_values_that_they_have_written(name: str, tmp_path: Path) -> None:
    async def whole() -> list[Any]:
        settings = KINDS[name].settings
        async with cluster.running(tmp_path / "state", system=name, system_settings=settings) as running:
            return await on(running, KINDS[name], tmp_path)

    assert asyncio.run(whole()) == WHOLE_THEN_HARMED


@pytest.mark.cassandra
def test_so_do_killed_loads_on_cassandra(real_node: RunningCluster, tmp_path: Path) -> None:
    assert asyncio.run(on(real_node, KINDS["cassandra"], tmp_path)) == WHOLE_THEN_HARMED
