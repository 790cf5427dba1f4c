"""The simulated cluster as a public driver sees it: connect, create, write, read, scan."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Cluster, ExecutionProfile, Session
from cassandra.policies import RoundRobinPolicy, TokenAwarePolicy
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement

from steelyard.node import agent

pytestmark = pytest.mark.agent

START_LIMIT_S = 10.0
FIELDS = tuple(f"field{index}" for index in range(10))


def _agent() -> str:
    return str(agent.find())


def _begin(*options: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([_agent(), "sim", *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening "), line
    return process, line.split()[1]


@contextmanager
def _simulated(*options: str, listen: str = "127.0.0.1:0") -> Iterator[str]:
    process, address = _begin("--listen", listen, *options)
    try:
        yield address
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def _session(address: str, protocol: int | None = 4) -> Iterator[Session]:
    host, port = address.split(":")
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(RoundRobinPolicy()), request_timeout=START_LIMIT_S
    )
    profiles = {"default": profile}
    # None: the driver begins with the newest version that it knows and comes down.
    version = {} if protocol is None else {"protocol_version": protocol}
    cluster = Cluster([host], port=int(port), execution_profiles=profiles, connect_timeout=START_LIMIT_S, **version)
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


def _create(session: Session) -> None:
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    columns = ", ".join(f"{field} text" for field in FIELDS)
    session.execute(f"CREATE TABLE IF NOT EXISTS ycsb.usertable (y_id text PRIMARY KEY, {columns})")


def _fill(session: Session, keys: list[str]) -> None:
    marks = ", ".join("?" * (len(FIELDS) + 1))
    insert = session.prepare(f"INSERT INTO ycsb.usertable (y_id, {', '.join(FIELDS)}) VALUES ({marks})")
    for key in keys:
        session.execute(insert, (key, *(f"{key}-{field}" for field in FIELDS)))


def test_rows_come_back_as_they_were_written() -> None:
    with _simulated("--remember", "--service-us", "50") as address, _session(address) as session:
        _create(session)
        keys = [f"user{number}" for number in range(20)]
        _fill(session, keys)
        read = session.prepare("SELECT * FROM ycsb.usertable WHERE y_id = ?")
        row = session.execute(read, ("user3",)).one()
        assert row.y_id == "user3"
        assert row.field9 == "user3-field9"
        assert session.execute(read, ("nobody",)).one() is None

        update = session.prepare("UPDATE ycsb.usertable SET field0 = ? WHERE y_id = ?")
        session.execute(update, ("changed", "user3"))
        some = session.prepare("SELECT field0, field1 FROM ycsb.usertable WHERE y_id = ? LIMIT 1")
        assert tuple(session.execute(some, ("user3",)).one()) == ("changed", "user3-field1")

        scan = session.prepare("SELECT y_id FROM ycsb.usertable WHERE token(y_id) >= token(?) LIMIT ?")
        everything = [found.y_id for found in session.execute("SELECT y_id FROM ycsb.usertable")]
        assert sorted(everything) == sorted(keys)
        from_the_fifth = [found.y_id for found in session.execute(scan, (everything[5], 4))]
        assert from_the_fifth == everything[5:9]

        batch = BatchStatement()
        batch.add(update, ("b1", "user1"))
        batch.add(update, ("b2", "user2"))
        session.execute(batch)
        session.execute("DELETE FROM ycsb.usertable WHERE y_id = 'user4'")
        assert session.execute(some, ("user2",)).one().field0 == "b2"
        assert session.execute("SELECT count(*) FROM ycsb.usertable").one().count == 19

        session.set_keyspace("ycsb")
        session.execute("TRUNCATE usertable")
        assert session.execute("SELECT count(*) FROM usertable").one().count == 0


def test_the_drivers_picture_of_schema_and_server() -> None:
    with _simulated() as address, _session(address) as session:
        _create(session)
        metadata = session.cluster.metadata
        table = metadata.keyspaces["ycsb"].tables["usertable"]
        assert [column.name for column in table.partition_key] == ["y_id"]
        assert set(table.columns) == {"y_id", *FIELDS}
        assert metadata.keyspaces["ycsb"].replication_strategy.replication_factor == 1
        (host,) = metadata.all_hosts()
        assert host.release_version.endswith("steelyard-sim")
        assert isinstance(host.host_id, uuid.UUID)
        local = session.execute(
            "SELECT release_version, native_protocol_version FROM system.local WHERE key='local'"
        ).one()
        assert local.native_protocol_version == "4"
        session.execute("DROP KEYSPACE ycsb")
        assert "ycsb" not in metadata.keyspaces


def test_without_remembering_every_key_exists() -> None:
    with _simulated("--service-us", "50") as address, _session(address) as session:
        _create(session)
        read = session.prepare("SELECT * FROM ycsb.usertable WHERE y_id = ?")
        row = session.execute(read, ("user7",)).one()
        assert row.y_id == "user7"
        assert len(row.field3) == 100
        scan = session.prepare("SELECT * FROM ycsb.usertable WHERE token(y_id) >= token(?) LIMIT ?")
        assert len(session.execute(scan, ("user7", 25)).all()) == 25


def test_three_nodes_share_schema_and_ring() -> None:
    with ExitStack() as stack:
        ports = [stack.enter_context(_simulated()) for _ in range(3)]
        # Their addresses are known only now: begin again with them as peers.
        stack.close()
        for own in ports:
            peers = ",".join(address for address in ports if address != own)
            stack.enter_context(_simulated("--remember", "--peers", peers, "--service-us", "50", listen=own))
        session = stack.enter_context(_session(ports[0]))
        _create(session)
        hosts = session.cluster.metadata.all_hosts()
        assert {f"{host.endpoint.address}:{host.endpoint.port}" for host in hosts} == set(ports)
        assert len(session.cluster.metadata.token_map.ring) == 3
        # Token routing brings each key to the node that keeps it.
        keys = [f"user{number}" for number in range(30)]
        _fill(session, keys)
        read = session.prepare("SELECT y_id FROM ycsb.usertable WHERE y_id = ?")
        assert [session.execute(read, (key,)).one().y_id for key in keys] == keys
        counts = [_count_at(address) for address in ports]
        assert sum(counts) == 30
        assert min(counts) > 0
        session.execute("TRUNCATE ycsb.usertable")
        assert [_count_at(address) for address in ports] == [0, 0, 0]


def _count_at(address: str) -> int:
    """Rows of one node, asked by our own client, which asks nobody else."""
    argv = [_agent(), "cql", "--contact", address, "SELECT count(*) FROM ycsb.usertable"]
    done = subprocess.run(argv, check=True, capture_output=True, timeout=START_LIMIT_S)
    return int(json.loads(done.stdout)["rows"][0]["count"])


@pytest.mark.parametrize("protocol", [3, None])
def test_drivers_of_other_versions_find_a_common_one(protocol: int | None) -> None:
    with _simulated() as address, _session(address, protocol) as session:
        assert session.execute("SELECT cluster_name FROM system.local").one() is not None


def test_refusals_say_why() -> None:
    with _simulated() as address, _session(address) as session:
        with pytest.raises(InvalidRequest, match="unconfigured table"):
            session.execute("SELECT * FROM nowhere.nothing")
        with pytest.raises(SyntaxException, match="GRANT"):
            session.execute("GRANT ALL")
