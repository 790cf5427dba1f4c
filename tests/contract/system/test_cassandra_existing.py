"""A cluster that exists: started here by hand, as its owner would, and measured by a study that must not touch it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.model.load import Load
from steelyard.node.base import Node
from steelyard.system.cassandra import Cassandra, ExistingCassandra, Settings, create
from steelyard.system.cassandra._cql import ask_at
from steelyard.testing import cluster
from steelyard.testing.system import SCHEMA

PORT = 19_542
PORTS = {"native_port": PORT, "storage_port": 19_543, "jmx_port": 19_544, "heap_mb": 192, "auto_snapshot": True}
LOADER = Node("l1", "load", "127.0.0.1", (), Path("/"))
OTHERS = (
    "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE shop.orders (id int PRIMARY KEY, what text) WITH comment = 'precious'",
    "INSERT INTO shop.orders (id, what) VALUES (1, 'a scale')",
    "INSERT INTO shop.orders (id, what) VALUES (2, 'a weight')",
)
SEEN = (
    "SELECT * FROM system_schema.keyspaces",
    "SELECT * FROM system_schema.tables",
    "SELECT id, what, writetime(what) FROM shop.orders",
    "SELECT name, value FROM system_views.settings",
)


def test_contact_points_are_addresses_with_and_without_ports() -> None:
    settings = Settings(managed=False, contact_points=("10.0.0.1", "10.0.0.2:9999", "[fd00::1]:9042", "fd00::2"))
    system = create(settings, Path("/none"))
    assert isinstance(system, ExistingCassandra)
    nodes = system.members((), (LOADER,))
    assert [node.name for node in nodes] == ["n1", "n2", "n3", "n4"]
    assert not any(node.commands for node in nodes)
    contacts = system.endpoint(nodes, SCHEMA).contacts
    assert contacts == ("10.0.0.1:9042", "10.0.0.2:9999", "[fd00::1]:9042", "[fd00::2]:9042")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"managed": False}, "contact_points"),
        ({"contact_points": ["10.0.0.1"]}, "managed = false"),
        ({"keyspace": "mine"}, "managed = false"),
        ({"managed": False, "contact_points": ["a:b"]}, "not a contact point"),
        ({"managed": False, "contact_points": ["[fd00::1"]}, "not a contact point"),
        ({"managed": False, "contact_points": ["a"], "yaml": {"concurrent_reads": 8}}, "not configured"),
    ],
)
def test_settings_that_contradict_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings.model_validate(settings)


def test_what_cannot_be_asked_of_it_is_foretold() -> None:
    system = create(Settings(managed=False, contact_points=("10.0.0.1",)), Path("/none"))
    (problem,) = system.problems(3, Load(operations=1))
    assert "site.nodes is 3, but system.contact_points names 1" in problem.message


def test_watched_machines_are_the_lent_nodes() -> None:
    settings = Settings(managed=False, contact_points=("10.0.0.1", "10.0.0.2"), watched=True)
    system = create(settings, Path("/none"))
    assert isinstance(system, ExistingCassandra)
    lent = [Node(f"n{number}", "database", f"10.0.0.{number}", ("ssh",), Path("/")) for number in (2, 1)]
    assert system.members(lent, (LOADER,)) == (lent[1], lent[0])
    with pytest.raises(SystemFault, match=r"10\.0\.0\.2"):
        system.members(lent[1:], (LOADER,))


@asynccontextmanager
async def somebodys_cluster(tmp_path: Path) -> AsyncIterator[Node]:
    async with cluster.running(tmp_path / "state", system_settings=PORTS) as running:
        (node,) = running.nodes
        await ask_at(f"{node.address}:{PORT}", OTHERS, client=None, of=node)
        yield node


async def what_is_seen(node: Node) -> str:
    """Hash of everything that belongs to others: schema, rows and their times, settings."""
    answers = await ask_at(f"{node.address}:{PORT}", SEEN, client=None, of=node)
    return hashlib.sha256(json.dumps(answers, sort_keys=True, default=str).encode()).hexdigest()


async def rows(node: Node, statement: str) -> Sequence[object]:
    (answer,) = await ask_at(f"{node.address}:{PORT}", [statement], client=None, of=node)
    return answer


def snapshots(below: Path) -> list[Path]:
    """What a server with auto_snapshot keeps of the tables that are emptied or dropped."""
    return [path for kind in ("dropped-*", "truncated-*") for path in below.rglob(f"snapshots/*{kind}")]


@pytest.mark.cassandra
@pytest.mark.agent
@pytest.mark.usefixtures("brief_java")
def test_nothing_of_others_is_touched(tmp_path: Path) -> None:
    """Tables without the laboratory's mark stay as they are; its own are made, filled, emptied and dropped."""

    async def body() -> None:
        async with somebodys_cluster(tmp_path) as owner:
            before = await what_is_seen(owner)
            contact = f"{owner.address}:{PORT}"
            system = create(Settings(managed=False, contact_points=(contact,)), tmp_path)
            assert isinstance(system, ExistingCassandra)
            nodes = system.members((), (LOADER,))
            for act in (system.install, system.start):
                await act(nodes[0], nodes)
            assert await system.ready(nodes[0], 1)
            await system.create_schema(nodes, SCHEMA)
            keyspace = system.endpoint(nodes, SCHEMA).keyspace
            assert await system.differing(nodes[0]) == {}
            await ask_at(contact, [f"INSERT INTO {keyspace}.rows (k, f0) VALUES ('a', 'b')"], client=None, of=owner)
            again = create(Settings(managed=False, contact_points=(contact,)), tmp_path)
            assert isinstance(again, ExistingCassandra)
            await again.create_schema(again.members((), (LOADER,)), SCHEMA)
            assert await rows(owner, f"SELECT * FROM {keyspace}.rows") == (), "rows of a killed study are no data"
            facts = await system.facts(nodes[0])
            assert facts["managed"].startswith("false")
            assert facts["setting native_transport_port"] == str(PORT)
            for act_on in (system.stop, system.kill, system.wipe, system.wipe):
                await act_on(nodes[0])
            assert await what_is_seen(owner) == before

            foreign = create(Settings(managed=False, contact_points=(contact,), keyspace="shop"), tmp_path)
            assert isinstance(foreign, ExistingCassandra)
            members = foreign.members((), (LOADER,))
            orders = Schema("ignored", "orders", "k", ("f0",))
            with pytest.raises(SystemFault, match=r"not Steelyard's: orders; nothing was touched"):
                await foreign.create_schema(members, orders)
            await foreign.truncate(members, orders)
            await foreign.wipe(members[0])
            assert await what_is_seen(owner) == before
            await foreign.create_schema(members, SCHEMA)
            assert len(await rows(owner, "SELECT * FROM shop.orders")) == 2
            await foreign.wipe(members[0])
            assert await what_is_seen(owner) == before
            assert facts["snapshots of dropped tables"] == "none"
            assert snapshots(tmp_path) == []
            await rows(owner, "DROP TABLE shop.orders")
            assert len(snapshots(tmp_path)) == 1, "this server keeps what others drop"

    asyncio.run(body())
    assert Cassandra.name == ExistingCassandra.name
