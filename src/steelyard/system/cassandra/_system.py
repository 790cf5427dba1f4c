"""The system `cassandra`: its methods in the order in which the laboratory calls them."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.model.data_model import CQL, Schema
from steelyard.model.errors import StudyError, SystemFault
from steelyard.model.load import Load
from steelyard.model.replication import replication_problems
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node.base import Node
from steelyard.node.command import spawn
from steelyard.node.process import KILL_TIMEOUT_S, ending_known, how_ended, stop, write_record
from steelyard.system.base import ClusterTimes, Endpoint
from steelyard.system.cassandra import (
    _archive,
    _beans,
    _build,
    _config,
    _cql,
    _estimates,
    _facts,
    _jars,
    _java,
    _process,
    _snapshots,
    _state,
    _tls,
)
from steelyard.system.cassandra._settings import Settings

STOP_TIMEOUT_S = 30.0
AGREEMENT_TIMEOUT_S = 30.0
AGREEMENT_POLL_S = 0.1
SCHEMA_TIMEOUT_S = 60.0
TRUNCATE_TIMEOUT_S = 90.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """Java, jars and archives installed on this machine."""

    java: _java.Java
    jars: tuple[Path, ...]
    jars_hash: str
    archive: _archive.Archive
    beans: Path


class Cassandra:
    """Cassandra 5.0 on nodes of this machine; implements `System` and all abilities of `steelyard.system.base`."""

    name = "cassandra"
    protocol = CQL

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        self.settings = settings
        self.version = settings.build.release or settings.build.label
        self.memory_mb_per_node = settings.memory_mb
        self._cache_folder = cache_folder
        self._snapshots = _snapshots.KeptSnapshots(cache_folder / "snapshots", former=cache_folder / "golden")
        self._prepared: Prepared | None = None
        # Kept so that the event loop reaps the servers that this process started.
        self._started: dict[Path, asyncio.subprocess.Process] = {}
        self._peers: dict[Path, tuple[Node, ...]] = {}
        self._schema: Schema | None = None
        self._key_making = asyncio.Lock()

    async def prepare(self) -> None:
        """Install Java, jars and archives of classes. Slow only the first time. Raises SystemFault."""
        await self.fetch(log.info)

    async def fetch(self, say: _jars.Say) -> Prepared:
        """Like `prepare`, with progress messages to `say`; returns the prepared parts."""
        if self._prepared is None:
            java = await _java.find()
            jars = await _jars.ensure(self.settings, self._cache_folder, java, say)
            folder = _jars.folder_of(self.settings, self._cache_folder)
            beans = await _beans.ensure(folder, java, jars, say)
            archive = await _archive.ensure(folder, self.settings, java, jars, say)
            jars_hash = await asyncio.to_thread(_build.hash_of, jars)
            self._prepared = Prepared(java, jars, jars_hash, archive, beans)
            self.version = self.settings.build.release or _build.version_of(jars) or self.settings.build.label
        return self._prepared

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Write configuration and folders. Idempotent."""
        self._local(node)
        _config.write(self.settings, node, peers)
        if self.settings.client_tls:
            async with self._key_making:
                await _tls.ensure((await self.fetch(log.info)).java, peers)

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the server and return at once; does nothing if it is running."""
        self._local(node)
        self._peers[node.folder] = tuple(peers)
        if _process.living(node) is not None:
            return
        prepared = await self.fetch(log.info)
        logs = _config.Folders(node.folder).logs
        logs.mkdir(parents=True, exist_ok=True)
        _state.set_aside(logs)
        server = _config.server_argv(self.settings, prepared.java, prepared.jars, node, prepared.archive.options)
        # glibc gives two arenas to a process on one core; with eight per core, a node takes 60 MB more.
        argv = ["env", "MALLOC_ARENA_MAX=2", *server]
        process = await spawn(node, argv, stdout=logs / "stdout.log", stderr=logs / "stderr.log")
        self._started[node.folder] = process
        if write_record(_config.Folders(node.folder).process, process.pid) is None:
            raise self._died(node)

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers CQL and sees `members` nodes up and normal. Raises SystemFault if it died."""
        if _process.living(node) is None:
            raise self._died(node)
        # Reading the log is cheap; the node is only queried when the log shows that it will answer.
        if not _state.seen(_config.Folders(node.folder).logs / "system.log", members).ready:
            return False
        try:
            gossip, peers, outbound = await _cql.ask(
                node,
                self.settings.native_port,
                (
                    "SELECT address, status, status_with_port, rpc_ready FROM system_views.gossip_info",
                    "SELECT peer FROM system.peers_v2",
                    "SELECT address, active_connections FROM system_views.internode_outbound",
                ),
            )
        except _cql.NotAnswering:
            return False
        normal = [row for row in gossip if _state.is_normal(row)]
        connected = [row for row in outbound if row["active_connections"] > 0]
        return len(normal) == members and len(peers) == members - 1 and len(connected) >= members - 1

    async def death(self, node: Node) -> SystemFault | None:
        """Why the server died; None while it lives."""
        if _process.living(node) is not None:
            return None
        await ending_known(self._started.get(node.folder))
        return self._died(node)

    async def waiting_for(self, node: Node) -> str:
        """What a node that is not ready is doing."""
        if _process.living(node) is None:
            return "not running"
        members = len(self._peers.get(node.folder, (node,)))
        return _state.seen(_config.Folders(node.folder).logs / "system.log", members).doing

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create keyspace, types, tables and indexes, and wait for schema agreement. Idempotent."""
        self._schema = schema
        await self._ask(nodes[0], *_state.schema_statements(self.settings, schema), timeout_s=SCHEMA_TIMEOUT_S)
        await self._agreed(nodes)

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """CQL port of every node."""
        contacts = tuple(f"{node.address}:{self.settings.native_port}" for node in nodes)
        ca = str(_tls.certificate(nodes)) if self.settings.client_tls else None
        return Endpoint(self.protocol, contacts, schema.keyspace, schema.table, tls_ca=ca)

    async def stop(self, node: Node) -> None:
        """Send SIGTERM, which drains; SIGKILL after a time limit. Idempotent."""
        await stop(_config.Folders(node.folder).process, STOP_TIMEOUT_S)
        await self._reap(node)

    async def kill(self, node: Node) -> None:
        """Send SIGKILL. Idempotent."""
        await stop(_config.Folders(node.folder).process, 0.0)
        await self._reap(node)

    async def wipe(self, node: Node) -> None:
        """Remove data and logs. Idempotent. Kills a server that is still running."""
        await self.kill(node)
        folders = _config.Folders(node.folder)
        for folder in (folders.storage, folders.logs, folders.root / "tmp"):
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Versions, heap and collector in force, every setting as listed by the node, and how our start differs."""
        local, properties, settings = await self._ask(
            node,
            "SELECT release_version FROM system.local",
            "SELECT name, value FROM system_views.system_properties",
            "SELECT name, value FROM system_views.settings",
        )
        system = {str(row["name"]): str(row["value"]) for row in properties}
        line = _process.command_line(node)
        return {
            "version": str(local[0]["release_version"]),
            "jars": (await self.fetch(log.info)).jars_hash,
            "java": f"{system.get('java.vm.name', '')} {system.get('java.version', '')}".strip(),
            "heap": _facts.option(line, "-Xmx") or "",
            "collector": _process.collector(node),
            "jvm options": " ".join(word for word in line if word.startswith(("-X", "-ea"))),
            **{f"setting {name}": value for name, value in _facts.in_force(settings).items()},
            **{f"departs: {what}": how for what, how in _facts.DEPARTURES.items()},
        }

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Settings in force that differ from those requested: the node's yaml, heap, collector, tables."""
        peers = self._peers.get(node.folder, (node,))
        local, settings = await self._ask(
            node,
            "SELECT release_version FROM system.local",
            "SELECT name, value FROM system_views.settings",
        )
        differences = _facts.compare(_config.yaml_of(self.settings, node, peers), settings)
        asked = {"version": self.version, "heap": f"{self.settings.heap_mb} MiB", "collector": self.settings.gc}
        heap = _facts.heap_mb(_facts.option(_process.command_line(node), "-Xmx") or "")
        force = {
            "version": str(local[0]["release_version"]),
            "heap": f"{heap:g} MiB" if heap is not None else "unknown",
            "collector": _process.collector(node),
        }
        if self.settings.build.release is None:
            del asked["version"]  # nobody asked for one: only the jars know it
        if self._schema is not None:
            asked |= _state.asked_of_tables(self.settings, self._schema)
            answers = await self._ask(node, *_state.table_questions(self.settings, self._schema))
            force |= _state.tables_in_force(self.settings, self._schema, answers)
        return differences | {key: (asked[key], force[key]) for key in asked if asked[key] != force[key]}

    def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process id of the server."""
        server = _process.living(node)
        return (server.pid,) if server else ()

    def logs(self, node: Node) -> tuple[Path, ...]:
        """system.log, gc.log, stdout and stderr, and the configuration, as far as they exist."""
        folders = _config.Folders(node.folder)
        return tuple(sorted(p for d in (folders.logs, folders.conf) if d.is_dir() for p in d.iterdir() if p.is_file()))

    def ways(self, node: Node) -> Mapping[str, str]:
        """CQL port, management beans with the program that reads them, and the collector's log."""
        ways = {
            "cql": f"{node.address}:{self.settings.native_port}",
            "gc_log": str(_config.Folders(node.folder).logs / "gc.log"),
        }
        if self._prepared is not None:
            ways |= {"jmx": self._beans_of(node), "java": str(self._prepared.java.path)}
            ways["beans"] = str(self._prepared.beans)
        return ways

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Compactions, flushes, hints, streams that are running or pending, over all nodes."""
        answers = await asyncio.gather(*(self._ask(node, *_state.BUSY_QUESTIONS) for node in nodes))
        return _state.busy(answers)

    async def compile_times_s(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Time of each node's just-in-time compiler, as its Java machine says it. Raises SystemFault."""
        prepared = await self.fetch(log.info)
        contacts = {self._beans_of(node): node.name for node in nodes}
        lines = await _beans.call(prepared.java, prepared.beans, nodes[0], ["compiled", "-", *contacts])
        times_ms = dict(line.rsplit(" ", 1) for line in lines)
        return {name: float(times_ms[contact]) / 1000.0 for contact, name in contacts.items()}

    def snapshot_key(self, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any]) -> str:
        """Name of the state that these settings, nodes, schema and data determine."""
        jars_hash = "" if self._prepared is None else self._prepared.jars_hash
        return _snapshots.key_of(self.settings, nodes, schema, data, jars_hash)

    def has(self, key: str) -> bool:
        """Whether a snapshot of the state exists."""
        return self._snapshots.has(key)

    async def snapshot(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Flush all nodes and link their SSTables. The cluster keeps running."""
        await self._flush(nodes, schema)
        await asyncio.to_thread(self._snapshots.keep, nodes, schema, key)

    async def restore(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Truncate, link the snapshot's SSTables into each node's volume, and have the running nodes import them."""
        files = await asyncio.to_thread(self._snapshots.files, key)
        await self.truncate(nodes, schema)
        targets = []
        for node in nodes:
            staged = await asyncio.to_thread(self._snapshots.stage, node, schema, key, files.get(node.name, {}))
            targets += [f"{self._beans_of(node)}={table}={folder}" for table, folder in staged.items()]
        if targets:
            await self._call(nodes[0], "import", schema, targets)

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables on all nodes."""
        statements = [f"TRUNCATE {schema.full_name(table.name)}" for table in schema.all_tables()]
        await self._ask(nodes[0], *statements, timeout_s=TRUNCATE_TIMEOUT_S)

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times by rules of thumb, from readings on 2 cores."""
        return _estimates.times(shape, nodes, cores)

    def copies(self, nodes: int) -> int:
        """The replication factor, but at most one copy per node."""
        return min(self.settings.replication_factor, nodes)

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """Disk use of tables during compaction, and of commit logs."""
        return _estimates.disk_bytes(stored_bytes, nodes, self.settings.commitlog_total_space_mb)

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Errors for a build that is not there, for more copies than nodes, and for consistency levels that need more
        copies than there are."""
        build = self.settings.build
        if self.settings.source is not None and build.files is not None and not build.files.exists():
            yield StudyError(
                f"the build {build.label} is not there: no folder or tarball {build.files}",
                "put the build's jars there first; nothing is built, and paths are relative to the current folder",
                key="system.source",
                read=self.settings.source,
            )
        yield from replication_problems(self.settings.replication_factor, nodes, load)

    async def _flush(self, nodes: Sequence[Node], schema: Schema) -> None:
        tables = ",".join(table.name for table in schema.all_tables())
        await self._call(nodes[0], "flush", schema, [f"{self._beans_of(node)}={tables}" for node in nodes])

    def _beans_of(self, node: Node) -> str:
        return f"{node.address}:{self.settings.jmx_port}"

    async def _call(self, node: Node, what: str, schema: Schema, targets: Sequence[str]) -> None:
        prepared = await self.fetch(log.info)
        await _beans.call(prepared.java, prepared.beans, node, [what, schema.keyspace, *targets])

    async def _ask(
        self, node: Node, *statements: str, timeout_s: float = _cql.TIMEOUT_S
    ) -> tuple[tuple[_cql.Row, ...], ...]:
        return await _cql.ask(node, self.settings.native_port, statements, timeout_s=timeout_s)

    async def _agreed(self, nodes: Sequence[Node]) -> None:
        """Wait until all nodes have the same schema. Raises SystemFault after a time limit."""
        deadline = time.monotonic() + AGREEMENT_TIMEOUT_S
        while True:
            answers = await asyncio.gather(*(self._ask(n, "SELECT schema_version FROM system.local") for n in nodes))
            versions = {str(answer[0][0]["schema_version"]) for answer in answers}
            if len(versions) == 1:
                return
            if time.monotonic() > deadline:
                raise SystemFault(
                    f"{len(nodes)} nodes had {len(versions)} versions of the schema after {AGREEMENT_TIMEOUT_S:g} s",
                    system=self.name,
                )
            await asyncio.sleep(AGREEMENT_POLL_S)

    async def _reap(self, node: Node) -> None:
        process = self._started.pop(node.folder, None)
        if process is not None:
            await asyncio.wait_for(process.wait(), KILL_TIMEOUT_S)

    def _died(self, node: Node) -> SystemFault:
        reason, hint = _process.why_dead(node, how_ended(self._started.get(node.folder)))
        return SystemFault(f"{node.name}: Cassandra is not running: {reason}", hint, node=node.name, system=self.name)

    def _local(self, node: Node) -> None:
        if not node.local:
            raise SystemFault(
                f"{node.name} is on another machine; the system cassandra works on nodes of this machine only",
                "use the site local",
                node=node.name,
                system=self.name,
            )
