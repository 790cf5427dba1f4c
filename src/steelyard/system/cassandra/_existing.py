"""A Cassandra cluster that exists: measured over CQL, never started, stopped, wiped or configured.

The laboratory works in tables that it has created and marked, in its own keyspace unless the study names one. What
is not marked belongs to another user: it is neither read, written, emptied nor dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.model.data_model import Schema, Table
from steelyard.model.errors import StudyError, SystemFault
from steelyard.model.load import Load
from steelyard.model.replication import replication_problems
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node.base import Node, with_port
from steelyard.node.tasks import together
from steelyard.system.base import ClusterTimes, Endpoint
from steelyard.system.cassandra import _cql, _estimates, _facts, _state
from steelyard.system.cassandra._contact import contact_of
from steelyard.system.cassandra._settings import Settings, TableOption
from steelyard.wire.order import CQL

KEYSPACE = "steelyard"
"""The keyspace of a study that names none."""
MARK = "made by Steelyard"
"""Comment of every table that the laboratory has created; without it, a table is not touched."""
NO_SNAPSHOTS = "allow_auto_snapshot"
"""Option of a table, of Cassandra 5.0 and newer: false takes no snapshot of it when it is emptied or dropped."""
NO_SNAPSHOTS_SINCE = 5
"""The first major version with it; an older node in the same cluster could not read such a table's schema."""
SNAPSHOTS_KEPT = (
    "an existing cluster: the tables are dropped at the end; before Cassandra 5.0, with auto_snapshot = true (its "
    "default), each node keeps a copy of their files when they are emptied or dropped (snapshots/dropped-*, "
    "snapshots/truncated-*): its owner removes them on each node, `nodetool clearsnapshot --all -- {keyspace}`"
)
SCHEMA_TIMEOUT_S = 60.0
TRUNCATE_TIMEOUT_S = 90.0
AGREEMENT_TIMEOUT_S = 30.0
AGREEMENT_POLL_S = 0.2


class ExistingCassandra:
    """Implements `System` and its abilities `Existing`, `Truncates`, `Timed`, `Footprint`, `Offers`,
    `HasNotes` and `ValidatesLoad`."""

    name = "cassandra"
    protocol = CQL
    offers = ("cql",)
    memory_mb_per_node = 0

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.version = "as it is"
        self.watched = settings.watched
        self._client: Node | None = None
        self._schema: Schema | None = None
        self._dropped = False
        self._leaves_snapshots = True

    def members(self, lent: Sequence[Node], loaders: Sequence[Node]) -> tuple[Node, ...]:
        """The contact points: as the lent nodes of these addresses where the cluster's machines are watched, otherwise
        as nodes on which no commands can be run. Raises SystemFault for an address that no lent node has."""
        self._client = loaders[0]
        contacts = [contact_of(text, self.settings.native_port) for text in self.settings.contact_points]
        if not self.watched:
            return tuple(_member(number, address) for number, (address, _) in enumerate(contacts, start=1))
        by_address = {node.address: node for node in lent}
        missing = [address for address, _ in contacts if address not in by_address]
        if missing:
            raise SystemFault(
                f"the site lends no node with the address {', '.join(missing)}, which system.contact_points names",
                "write the addresses as in the inventory, or remove system.watched",
                system=self.name,
            )
        return tuple(by_address[address] for address, _ in contacts)

    async def prepare(self) -> None:
        """Nothing is needed on this machine."""

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Nothing is installed."""

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Nothing is started."""

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers."""
        try:
            await self._ask(node, "SELECT release_version FROM system.local")
        except _cql.NotAnswering:
            return False
        return True

    async def waiting_for(self, node: Node) -> str:
        """The error that it does not answer."""
        return f"does not answer at {self._contact(node)}"

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create the tables, and the keyspace if there is none; empty those that are there with the laboratory's mark.
        Raises SystemFault for a table without it."""
        ours = self._ours(schema)
        there = await self._tables(nodes[0], ours)
        foreign = [table.name for table in ours.all_tables() if table.name in there and there[table.name] != MARK]
        if foreign:
            raise SystemFault(
                f"keyspace {ours.keyspace} has tables that are not Steelyard's: {', '.join(foreign)}; "
                "nothing was touched",
                "choose another keyspace in system.keyspace, or in the workload's file",
                system=self.name,
            )
        self._schema = ours
        self._leaves_snapshots = not await self._can_do_without_snapshots(nodes[0])
        await self._say(nodes[0], ours.create_keyspace(self.settings.replication_factor), *self._create(ours))
        left = [table.name for table in ours.all_tables() if table.name in there]
        if not self._leaves_snapshots:
            alike = [table.name for table in ours.all_tables() if table.name in left and not table.says(NO_SNAPSHOTS)]
            await self._say(nodes[0], *(f"ALTER TABLE {ours.full_name(n)} WITH {NO_SNAPSHOTS} = false" for n in alike))
        await self._agreed(nodes)
        await self._say(nodes[0], *(f"TRUNCATE {ours.full_name(name)}" for name in left))

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """The contact points."""
        contacts = tuple(self._contact(node) for node in nodes) or self.settings.contact_points
        return Endpoint(self.protocol, contacts, self._ours(schema).keyspace, schema.table)

    async def stop(self, node: Node) -> None:
        """Nothing is stopped."""

    async def kill(self, node: Node) -> None:
        """Nothing is killed."""

    async def wipe(self, node: Node) -> None:
        """Drop the tables with the laboratory's mark, and its own keyspace if nothing else is in it; once for all
        nodes. Raises SystemFault."""
        if self._schema is None or self._dropped:
            return
        self._dropped = True
        ours = self._schema
        there = await self._tables(node, ours)
        names = [table.name for table in ours.all_tables() if there.get(table.name) == MARK]
        await self._say(node, *(f"DROP TABLE IF EXISTS {ours.full_name(name)}" for name in names))
        if ours.keyspace == KEYSPACE and set(there) <= set(names):
            await self._say(node, f"DROP KEYSPACE IF EXISTS {KEYSPACE}")

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Version, data centre and rack, and settings in force as far as they may be read."""
        (local,) = await self._ask(node, "SELECT release_version, data_center, rack FROM system.local")
        known = {
            "version": str(local[0]["release_version"]),
            "data center": str(local[0]["data_center"]),
            "rack": str(local[0]["rack"]),
            "managed": "false: an existing cluster",
            "snapshots of dropped tables": "where auto_snapshot is true" if self._leaves_snapshots else "none",
        }
        try:
            (settings,) = await self._ask(node, "SELECT name, value FROM system_views.settings")
        except SystemFault as fault:
            return known | {"settings": f"could not be read: {fault.message}"}
        return known | {f"setting {name}": value for name, value in _facts.in_force(settings).items()}

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Options of the laboratory's tables that differ from those requested."""
        if self._schema is None:
            return {}
        asked = _state.asked_of_tables(self.settings, self._schema)
        answers = await self._ask(node, *_state.table_questions(self.settings, self._schema))
        force = _state.tables_in_force(self.settings, self._schema, answers)
        return {key: (asked[key], force[key]) for key in asked if asked[key] != force[key]}

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Unknown: none."""
        return ()

    def ways(self, node: Node) -> Mapping[str, str]:
        """The CQL port: management beans and logs are not the laboratory's."""
        return {"cql": self._contact(node)}

    def logs(self, node: Node) -> tuple[Path, ...]:
        """None: the files of the cluster's machines are not the laboratory's."""
        return ()

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables with the laboratory's mark."""
        ours = self._ours(schema)
        there = await self._tables(nodes[0], ours)
        names = [table.name for table in ours.all_tables() if there.get(table.name) == MARK]
        await self._say(nodes[0], *(f"TRUNCATE {ours.full_name(name)}" for name in names))

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """As for a cluster of the laboratory's own, without starting it."""
        own = _estimates.times(shape, nodes, cores)
        return own.model_copy(update={"start_s": 1.0, "snapshot_s": 0.0, "restore_s": own.fill_s, "wipe_s": 2.0})

    def copies(self, nodes: int) -> int:
        """The replication factor, but at most one copy per node."""
        return min(self.settings.replication_factor, nodes)

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """None of this machine's."""
        return 0

    def notes(self) -> Sequence[str]:
        """Files that the cluster's owner may have to remove by hand."""
        return (SNAPSHOTS_KEPT.format(keyspace=self.settings.keyspace or KEYSPACE),)

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Errors for another number of nodes than contact points, and for consistency levels that need more copies than
        there are."""
        there = len(self.settings.contact_points)
        if nodes != there:
            yield StudyError(
                f"site.nodes is {nodes}, but system.contact_points names {there}",
                "set it to the number of contact points: the load goes to these nodes",
                key="site.nodes",
                read=nodes,
                allowed=(str(there),),
            )
        yield from replication_problems(self.settings.replication_factor, nodes, load)

    def _ours(self, schema: Schema) -> Schema:
        """The schema in the keyspace that is used: a workload file's own, the study's, or the laboratory's."""
        return schema if schema.tables else replace(schema, keyspace=self.settings.keyspace or KEYSPACE)

    def _create(self, ours: Schema) -> Iterator[str]:
        def options(table: Table) -> list[str]:
            chosen = self.settings.annotated(TableOption)
            clauses = [f"{name} = {option.literal(value)}" for name, option, value in chosen if not table.says(name)]
            without = not self._leaves_snapshots and not table.says(NO_SNAPSHOTS)
            return [f"comment = '{MARK}'", *([f"{NO_SNAPSHOTS} = false"] if without else []), *clauses]

        return ours.create_rest(options)

    async def _can_do_without_snapshots(self, node: Node) -> bool:
        """Whether every node of the cluster knows tables of which no snapshots are taken."""
        local, peers, columns = await self._ask(
            node,
            "SELECT release_version FROM system.local",
            "SELECT release_version FROM system.peers",
            "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'system_schema' "
            "AND table_name = 'tables'",
        )
        versions = [str(row["release_version"]) for row in (*local, *peers)]
        return knows_tables_without_snapshots(versions, {str(row["column_name"]) for row in columns})

    async def _tables(self, node: Node, ours: Schema) -> dict[str, str]:
        """Name to comment of every table of the keyspace."""
        question = f"SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = '{ours.keyspace}'"
        (rows,) = await self._ask(node, question)
        return {str(row["table_name"]): str(row["comment"]) for row in rows}

    async def _agreed(self, nodes: Sequence[Node]) -> None:
        """Wait until the contact points have the same schema. Raises SystemFault after a time limit."""
        deadline = time.monotonic() + AGREEMENT_TIMEOUT_S
        while True:
            answers = await together(self._ask(node, "SELECT schema_version FROM system.local") for node in nodes)
            if len({str(answer[0][0]["schema_version"]) for answer in answers}) == 1:
                return
            if time.monotonic() > deadline:
                raise SystemFault(f"no agreement on the schema within {AGREEMENT_TIMEOUT_S:g} s", system=self.name)
            await asyncio.sleep(AGREEMENT_POLL_S)

    def _contact(self, node: Node) -> str:
        contacts = [contact_of(text, self.settings.native_port) for text in self.settings.contact_points]
        return with_port(node.address, dict(contacts).get(node.address, self.settings.native_port))

    async def _say(self, node: Node, *statements: str) -> None:
        if statements:
            await self._ask(node, *statements, timeout_s=max(SCHEMA_TIMEOUT_S, TRUNCATE_TIMEOUT_S))

    async def _ask(
        self, node: Node, *statements: str, timeout_s: float = _cql.TIMEOUT_S
    ) -> tuple[tuple[dict[str, Any], ...], ...]:
        return await _cql.ask_at(self._contact(node), statements, client=self._client, of=node, timeout_s=timeout_s)


def knows_tables_without_snapshots(versions: Sequence[str], columns: Collection[str]) -> bool:
    """Whether nodes of these versions, whose table of tables has these columns, know `NO_SNAPSHOTS`. Pure."""
    majors = [version.partition(".")[0] for version in versions]
    known = all(major.isdecimal() and int(major) >= NO_SNAPSHOTS_SINCE for major in majors)
    return NO_SNAPSHOTS in columns and known


def _member(number: int, address: str) -> Node:
    return Node(
        f"n{number}",
        "database",
        address,
        (),
        Path("/"),
        commands=False,
        programs="own",
        files="through",
        processes="through",
        hardware=address,
        kernel=address,
    )
