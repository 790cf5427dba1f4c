"""The system `postgresql`: its methods in the order in which the laboratory calls them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final

from steelyard.format import count
from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, STARTED, STREAMED, STREAMING
from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, StudyError, SystemFault
from steelyard.model.facts import PROMISE
from steelyard.model.load import Load
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import files, kept
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.base import ClusterTimes, MarkIt
from steelyard.system.one_at_a_time import JoinsAndLeaves
from steelyard.system.one_server import data
from steelyard.system.packaged import ASK_TIMEOUT_S, Packaged, PackagedServer
from steelyard.system.postgresql._settings import BASE_MB, HBA, ROLE, Settings, most_log_bytes, options, refused, word
from steelyard.wire.order import POSTGRESQL

NAME: Final = "postgresql"
INSTALLED: Final = Path("/usr/lib/postgresql")
"""Where Debian's packages have the programs of each major version, as `15/bin/postgres`."""
DEFAULT_VERSION: Final = 15
SCHEMA_TIMEOUT_S = TRUNCATE_TIMEOUT_S = 90.0
PROMOTE_TIMEOUT_S = 60.0
CONFIGURATION: Final = "postgresql.conf"
START: Final = "start.sh"
MAY_CONNECT: Final = f"host all {ROLE} all trust\nhost replication {ROLE} all trust\n".encode()
IN_FORCE: Final = "SELECT json_object_agg(name, current_setting(name)) FROM pg_settings"
STATE: Final = """
SELECT json_build_object(
  'follows', pg_is_in_recovery(),
  'position', CASE WHEN pg_is_in_recovery()
    THEN greatest(pg_last_wal_replay_lsn(), '0/0') ELSE pg_current_wal_lsn() END - '0/0',
  'received', greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(), '0/0') - '0/0',
  'receives', (SELECT status FROM pg_stat_wal_receiver),
  'replicas', (SELECT json_object_agg(application_name, sync_state) FROM pg_stat_replication
    WHERE state = 'streaming' AND application_name <> 'pg_basebackup'),
  'checkpoints', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'checkpointer'
    AND coalesce(wait_event, '') NOT IN ('CheckpointerMain', 'CheckpointWriteDelay')),
  'vacuums', (SELECT count(*) FROM pg_stat_progress_vacuum),
  'base backups', (SELECT count(*) FROM pg_stat_progress_basebackup))
"""
"""State of a server and of its replicas in its own words, without a checkpoint that pauses between its writes."""
BUSY: Final = ("checkpoints", "vacuums", "base backups")
DEPARTURES: Final = {
    "postgresql.conf": "ours alone; nothing of /etc/postgresql is read, and no service of the package is used",
    "role": f"{ROLE}, which is no superuser and connects without a password; no other role can connect",
    "locale": "C, encoding UTF8: text is compared byte by byte",
    "cluster_name": "the node's address and port: the primary lists its replicas by it, and the load finds them",
    "max_wal_senders, max_replication_slots": "100 instead of 10: more replicas, and copies for those that join",
    "wal_receiver_status_interval": "1s instead of 10s: replicas report more often how far they are",
    "wal_retrieve_retry_interval": "500ms instead of 5s: replicas connect again soon",
    "dynamic_shared_memory_type": "mmap instead of posix: a killed server leaves nothing in /dev/shm",
    "unix sockets": "none: nodes on one machine would share the default one",
    "user": "that of the study, without capabilities; if it is root, in a user namespace in which it is not",
}
"""Differences between the way we start PostgreSQL and Debian's."""
START_S, START_EACH_S = 3.0, 2.5
"""`initdb` with the primary; a copy of it with its replica."""
RATE_PER_CORE = 5_000.0
"""Operations per second and core, clients included."""
FILL_PER_S, FILL_REPLICA, FILL_SYNCHRONOUS = 2_500.0, 0.5, 1.75
"""Records per second that fill a server, each synced to its disk; what a replica adds to the time; and how much longer
the fill takes where it waits for replicas."""
SERVICE_MS = 0.2
ROOM = 3.0
"""Disk for each byte of records: the rows, their index, and what updates leave until it is vacuumed."""
EMPTY_BYTES: Final = 64 << 20
"""Disk of an empty server, with the first file of its write-ahead log."""
NOT_FOR_LOAD: Final = 6
"""Connections that a load cannot have: three that PostgreSQL keeps for superusers (superuser_reserved_connections), the
probe's, and those by which the laboratory asks."""


def packaged(version: int | None, installed: Path = INSTALLED) -> Packaged:
    """The programs of a major version, or of the newest on this machine."""
    here = [int(path.parts[-3]) for path in installed.glob("[0-9]*/bin/postgres") if path.parts[-3].isdecimal()]
    chosen = version or max(here, default=DEFAULT_VERSION)
    programs = installed / str(chosen) / "bin"
    return Packaged(
        NAME, (f"postgresql-{version}" if version else "postgresql",),
        (str(programs / "postgres"), str(programs / "psql")), re.compile(r"PostgreSQL\) (\S+)"),
        more=tuple(str(programs / name) for name in ("initdb", "pg_basebackup", "pg_isready")),
        folders=(str(programs.parent / "lib"), f"/usr/share/postgresql/{chosen}"),
    )  # fmt: skip


class PostgreSQL(PackagedServer, JoinsAndLeaves):
    """PostgreSQL; implements `System` and most abilities of `steelyard.system.base`."""

    name = NAME
    protocol = POSTGRESQL
    dead = "PostgreSQL is not running"
    outputs = ("postgresql.log", "postgresql.log")
    offers = ("postgresql", "psql")
    departures: ClassVar = DEPARTURES
    memory_hint = "raise node.memory_mb, or lower system.shared_buffers_mb"

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        super().__init__(settings.port, BASE_MB + settings.shared_buffers_mb, cache_folder)
        self.packaged = packaged(settings.version)
        self.settings: Settings = settings
        self._primary = ""
        """Address of the primary."""
        self._promotion: dict[str, str] = {}

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Create the node's folders, and write what starts it and who may connect. Idempotent."""
        await super().install(node, peers)
        if any(peer.name == node.name for peer in peers):
            self._primary, self._promotion = peers[0].address, {}
        start = resources.files(__package__).joinpath("_start.sh").read_bytes()
        await files.put(node, node.folder / START, start)
        await files.put(node, node.folder / HBA, MAY_CONNECT)

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """The server with its configuration; first it creates its data, or copies the primary's."""
        await self._configure(node)
        programs = str(Path((await self.programs(node)).server).parent)
        return ["sh", str(node.folder / START), programs, str(_data(node)), str(node.folder / CONFIGURATION),
                self._follows(node)]  # fmt: skip

    def asked(self, node: Node) -> Mapping[str, str]:
        """Options of a node's server, as `SHOW` prints them."""
        return options(self.settings, node, self._follows(node))

    async def in_force(self, node: Node) -> Mapping[str, str]:
        """Version and every option."""
        force: dict[str, str] = await self._ask(node, IN_FORCE)
        return {**force, "version": force["server_version"].split()[0]}

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers; a primary sends to all others, and a replica receives. Raises SystemFault if it
        died."""
        await self.refuse_death([node])
        try:
            state = await self._ask(node, STATE)
        except CommandFailed:
            return False
        return state["receives"] == "streaming" if state["follows"] else len(state["replicas"] or ()) == members - 1

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create the tables where they are missing, and wait until every replica has them; there are no keyspaces."""
        primary = self._of_primary(nodes)
        for statement in schema.in_sql():
            await self._ask(primary, statement)
        written = (await self._ask(primary, STATE))["position"]

        async def shown() -> bool:
            return all(state["position"] >= written for state in await together(self._ask(n, STATE) for n in nodes))

        try:
            async with asyncio.timeout(SCHEMA_TIMEOUT_S):
                await self.until(nodes, shown)
        except TimeoutError as error:
            what = f"a replica does not have the tables after {SCHEMA_TIMEOUT_S:g} s"
            raise SystemFault(what, node=primary.name, system=self.name) from error

    async def stop(self, node: Node) -> None:
        """Have the server end its connections and write its data; SIGKILL after a time limit. Idempotent."""
        # On SIGTERM alone it would wait for its clients to go.
        await kept.send(node, self.record(node), signal.SIGINT)
        await super().stop(node)

    async def wipe(self, node: Node) -> None:
        """Remove data, configuration and logs; kill a server that is still running. Idempotent."""
        await super().wipe(node)
        await files.remove(node, *(node.folder / name for name in (CONFIGURATION, HBA, START)), below=node.folder)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Version, role and replicas, every setting as the node lists it, what its commits promise, and how our start
        differs."""
        facts, state = await super().facts(node), await self._ask(node, STATE)
        replicas = [f"{name} {how}" for name, how in sorted((state["replicas"] or {}).items())]
        return {
            **facts,
            "role": "replica" if state["follows"] else "primary",
            "replicas": ", ".join(replicas),
            **self._promotion,
            **_promises({name.removeprefix("setting "): value for name, value in facts.items()}),
        }

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Checkpoints, vacuums and base backups that are running, and the bytes of the write-ahead log that replicas do
        not show yet, over all nodes."""
        states = await together(self._ask(node, STATE) for node in nodes)
        newest = max(state["position"] for state in states)
        behind = sum(float(newest - state["position"]) for state in states)
        return {**{what: sum(float(state[what]) for state in states) for what in BUSY}, "bytes to replay": behind}

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables, and write everything to disk."""
        names = ", ".join(table.name for table in schema.all_tables())
        primary = self._of_primary(nodes)
        for statement in (f"TRUNCATE {names}", "CHECKPOINT"):
            await self._ask(primary, statement, timeout_s=TRUNCATE_TIMEOUT_S)

    async def promote(self, nodes: Sequence[Node]) -> Node:
        """Make the replica that has received most the primary, which the others then follow; for a primary that has
        died. Returns it; its facts say how long it took until it was one. Raises SystemFault without a replica."""
        alive = [node for node in nodes if await self.runs(node)]
        began_s = time.monotonic()
        states = await together(self._ask(node, STATE) for node in alive)
        replicas = [(state["received"], node) for state, node in zip(states, alive, strict=True) if state["follows"]]
        if not replicas or len(replicas) < len(alive):
            raise SystemFault("no replica can be promoted: the primary runs, or there is none", system=NAME)
        _, chosen = max(replicas, key=lambda one: one[0])
        promote = f"SELECT to_json(pg_promote(true, {PROMOTE_TIMEOUT_S:g}))"
        if not await self._ask(chosen, promote, timeout_s=2 * PROMOTE_TIMEOUT_S):
            what = f"{chosen.name} was not promoted within {PROMOTE_TIMEOUT_S:g} s"
            raise SystemFault(what, node=chosen.name, system=NAME)
        self._promotion = {"promoted": f"{chosen.name} within {time.monotonic() - began_s:.3f} s"}
        self._primary = chosen.address
        for node in alive:
            await self._configure(node)
            await self._ask(node, "SELECT to_json(pg_reload_conf())")
        return chosen

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times by rules of thumb, from readings on 2 cores."""
        rate = RATE_PER_CORE * cores
        per_s = FILL_PER_S / (1.0 + FILL_REPLICA * (nodes - 1))
        per_s /= FILL_SYNCHRONOUS if self.settings.synchronous else 1.0
        return ClusterTimes(
            start_s=START_S + START_EACH_S * (nodes - 1), schema_s=0.2, fill_s=0.5 + shape.records / per_s,
            restore_s=0.5, settle_s=0.2, wipe_s=0.2, service_ms=SERVICE_MS, most_per_s=rate,
        )  # fmt: skip

    def copies(self, nodes: int) -> int:
        """Every node has all data."""
        return nodes

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """The data, and for each server what it takes when empty and the write-ahead log that it keeps."""
        return int(stored_bytes * ROOM) + nodes * (EMPTY_BYTES + most_log_bytes(self.settings))

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Errors for more synchronous replicas than there are, for reads from replicas without any, for more
        connections of one load node than a server takes, and for options that the server of this machine refuses."""
        replicas = nodes - 1
        if self.settings.synchronous > replicas:
            what = f"system.synchronous = {self.settings.synchronous} with {count(replicas, 'replica')}: no write ends"
            yield StudyError(what, f"at most {replicas}, or more nodes", key="system.synchronous")
        if load.tls:
            yield StudyError("client.tls = true: these servers have no certificate", key="load.tls")
        if load.read_from == "replicas" and not replicas:
            yield StudyError("client.read_from = 'replicas' with one node: it has none", key="load.read_from")
        most, asked = self.settings.max_connections - NOT_FOR_LOAD, load.connections_per_node
        if asked > most:
            what = (
                f"client.connections_per_node = {asked} with system.max_connections = {self.settings.max_connections}: "
                f"a server has {most} for the load"
            )
            hint = f"at most {most}, or system.max_connections = {asked + NOT_FOR_LOAD}: every load node opens as many"
            yield StudyError(what, hint, key="load.connections_per_node", read=asked)
        for name, value in self.settings.config.items():
            if why := refused(Path(self.packaged.programs[0]), name, word(value)):
                yield StudyError(f"PostgreSQL refuses the option: {why}", key=f"system.config.{name}", read=value)

    async def _join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> None:
        everyone = (*members, node)
        await self.install(node, members)
        await self.start(node, members)
        mark(STARTED, None)
        # The first that it does is to copy the primary.
        mark(STREAMING, None)
        await self.until(everyone, lambda: self._answers(node))
        mark(STREAMED, None)
        await self.until(everyone, lambda: self._all_ready(everyone))
        mark(IN_SERVICE, None)

    async def _leave(self, node: Node, others: Sequence[Node], mark: MarkIt) -> None:
        mark(LEAVING, None)
        await self.stop(node)
        await self.until(others, lambda: self._all_ready(others))
        mark(LEFT, None)

    async def _stays(self, node: Node, others: Sequence[Node]) -> str:
        if node.address == self._primary:
            return "it is the primary"
        left = len(others) - 1
        return f"system.synchronous needs more than {left}" if left < self.settings.synchronous else ""

    async def _answers(self, node: Node) -> bool:
        return bool(await self._ask(node, STATE))

    async def _all_ready(self, nodes: Sequence[Node]) -> bool:
        return all(await together(self.ready(node, len(nodes)) for node in nodes))

    async def _configure(self, node: Node) -> None:
        quoted = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in self.asked(node).items()}
        text = "".join(f"{name} = '{value}'\n" for name, value in quoted.items())
        await files.put(node, node.folder / CONFIGURATION, text.encode())

    def _follows(self, node: Node) -> str:
        """Connection string of the server that a node follows; empty for the primary."""
        return "" if node.address == self._primary else self._contact(self._primary, "replication")

    def _contact(self, address: str, database: str) -> str:
        return f"host={address} port={self.settings.port} user={ROLE} dbname={database} connect_timeout=5"

    def _of_primary(self, nodes: Sequence[Node]) -> Node:
        return next((node for node in nodes if node.address == self._primary), nodes[0])

    async def _ask(self, node: Node, statement: str, *, timeout_s: float = ASK_TIMEOUT_S) -> Any:
        """A node's answer to one statement, which is JSON; None without an answer. Raises CommandFailed."""
        words = ("--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--dbname", self._contact(node.address, ROLE))
        text = await self.ask(node, *words, "--command", statement, timeout_s=timeout_s)
        return json.loads(text) if text.strip() else None


def _promises(force: Mapping[str, str]) -> dict[str, str]:
    """Promise of commits and reads under settings in force, and the use of memory."""
    on, how = force["synchronous_commit"], force["synchronous_standby_names"]
    waiting = re.match(r"ANY (\d+) ", how)
    of_them = f"of any {count(int(waiting[1]), 'replica')}" if waiting else "of the replicas"
    waits = {
        "off": "before it is on any disk: a crash loses the last ones",
        "local": "once it is on the primary's disk",
        "remote_write": f"once it is on the primary's disk, and in the memory {of_them}",
        "on": f"once it is on the primary's disk, and on that {of_them}",
        "remote_apply": f"once it is on the primary's disk and on that {of_them}, which then show it to readers",
    }
    commit = waits[on if how or on in ("off", "local") else "local"]
    disk = "" if force["fsync"] == "on" else " (fsync is off: not really)"
    return {
        f"{PROMISE}postgresql": f"PostgreSQL acknowledges a write {commit}{disk} (synchronous_commit = {on}, "
        f"synchronous_standby_names = {how or 'none'}); a write is a transaction, a read at the primary sees every one "
        f"acknowledged before it, and memory is a cache of the disk (shared_buffers = {force['shared_buffers']})."
    }


def _data(node: Node) -> Path:
    return data(node) / "server"
