"""The system `cassandra`: its methods in the order in which the laboratory calls them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError, SystemFault
from steelyard.model.finding import Finding
from steelyard.model.load import Load
from steelyard.model.replication import replication_problems
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import files, kept
from steelyard.node.base import Node, with_port
from steelyard.node.tasks import in_a_thread, together
from steelyard.system import join_marks
from steelyard.system.base import ClusterTimes, Endpoint
from steelyard.system.cassandra import (
    _archive,
    _beans,
    _build,
    _config,
    _cql,
    _estimates,
    _facts,
    _findings,
    _jars,
    _java,
    _process,
    _snapshots,
    _state,
    _tls,
)
from steelyard.system.cassandra._settings import Settings
from steelyard.wire.order import CQL

STOP_TIMEOUT_S = 30.0
AGREEMENT_TIMEOUT_S = 30.0
AGREEMENT_POLL_S = 0.1
SCHEMA_TIMEOUT_S = 60.0
TRUNCATE_TIMEOUT_S = 90.0
MAINTENANCE_TIMEOUT_S = 3600.0
"""Longer than any disruption of a trial."""
MOST_LOG_BYTES = 64 << 20
"""Limit on the growth of a log since the last read."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """Java, jars and archives installed on this machine."""

    java: _java.Java
    jars: tuple[Path, ...]
    jars_hash: str
    archive: _archive.Archive
    beans: Path


@dataclass(frozen=True)
class Installed:
    """The same as one node sees it."""

    java: Path
    jars: tuple[Path, ...]
    beans: Path
    archive_options: tuple[str, ...] = ()


class Cassandra:
    """Cassandra; implements `System` and all abilities of `steelyard.system.base`."""

    name = "cassandra"
    protocol = CQL
    maintenance = frozenset({"compaction", "cleanup", "repair", "flush"})
    offers: tuple[str, ...] = ("cql", "gc_log", "jmx", "jmx_password_file", "java", "beans")

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        self.settings = settings
        self.version = settings.build.release or settings.build.label
        self.memory_mb_per_node = settings.memory_mb
        self._cache_folder = cache_folder
        self._snapshots = _snapshots.KeptSnapshots(cache_folder)
        self._prepared: Prepared | None = None
        self._installed: dict[tuple[str, Path], Installed] = {}
        self._keys = _tls.Keys()
        self._peers: dict[Path, tuple[Node, ...]] = {}
        self._logs: dict[tuple[str, Path], _state.LogSoFar] = {}
        self._schema: Schema | None = None

    async def prepare(self) -> None:
        """Install Java, jars and archives of classes. Slow only the first time. Raises SystemFault."""
        await self.fetch(log.info)

    async def fetch(self, say: _jars.Say) -> Prepared:
        """Like `prepare`, with progress messages to `say`; returns the prepared parts."""
        if self._prepared is None:
            java = await _java.ensure(self.settings.line, self._cache_folder, say)
            jars = await _jars.ensure(self.settings, self._cache_folder, java, say)
            checksums = await in_a_thread(lambda: _jars.checked(self.settings, self._cache_folder, jars, say))
            folder = _jars.folder_of(self.settings, self._cache_folder)
            beans = await _beans.ensure(folder, java, jars, say)
            archive = await _archive.ensure(folder, self.settings, java, jars, say)
            self._prepared = Prepared(java, jars, _build.hash_of(checksums), archive, beans)
            self.version = self.settings.build.release or _build.version_of(jars) or self.settings.build.label
        return self._prepared

    async def findings(self) -> Sequence[Finding]:
        """Java and Maven on this machine."""
        return await _findings.of_this_machine()

    async def provide(self, nodes: Sequence[Node]) -> None:
        """Find Java on nodes with their own programs, or bring it, and bring jars. Slow only the first time."""
        await together(self._provide(node) for node in nodes)

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Write configuration and folders. Idempotent."""
        await _config.write(self.settings, node, peers)
        if self.settings.client_tls:
            await self._keys.put((await self.fetch(log.info)).java, node, peers)

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the server and return at once; does nothing if it is running."""
        self._peers[node.folder] = tuple(peers)
        if await _process.living(node) is not None:
            return
        installed = await self._provide(node)
        folders = _config.Folders(node.folder)
        for name, aside in _state.earlier_name(await files.sizes(node, folders.logs)).items():
            await files.move(node, folders.logs / name, folders.logs / aside)
        server = _config.server_argv(
            self.settings,
            installed.java,
            installed.jars,
            node,
            installed.archive_options,
            joining=_config.joins(node, peers),
        )
        # glibc gives two arenas to a process on one core; with eight per core, a node takes 60 MB more.
        argv = ["env", "MALLOC_ARENA_MAX=2", *server]
        stdout, stderr = folders.logs / "stdout.log", folders.logs / "stderr.log"
        self._logs.pop((node.name, node.folder), None)
        await files.make_folders(node, folders.logs)
        await kept.launch(node, argv, folders.process, stdout=stdout, stderr=stderr)

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers CQL and sees `members` nodes up and normal. Raises SystemFault if it died."""
        if await _process.living(node) is None:
            raise await self._died(node)
        # Reading the log is cheap; the node is only queried when the log shows that it will answer.
        if not (await self._seen(node, members)).ready:
            return False
        return await self._sees(node, members)

    async def _sees(self, node: Node, members: int) -> bool:
        """Whether the node itself says so."""
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
        """Cause of the server's death; None while it lives."""
        if await _process.living(node) is not None:
            return None
        return await self._died(node)

    async def waiting_for(self, node: Node) -> str:
        """Current activity of a node that is not ready."""
        if await _process.living(node) is None:
            return "not running"
        return (await self._seen(node, len(self._peers.get(node.folder, (node,))))).doing

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create keyspace, types, tables and indexes, and wait for schema agreement. Idempotent."""
        self._schema = schema
        await self._ask(nodes[0], *_state.schema_statements(self.settings, schema), timeout_s=SCHEMA_TIMEOUT_S)
        await self._agreed(nodes)

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """CQL port of every node."""
        contacts = tuple(with_port(node.address, self.settings.native_port) for node in nodes)
        ca = str(self._keys.certificate(nodes)) if self.settings.client_tls else None
        return Endpoint(self.protocol, contacts, schema.keyspace, schema.table, tls_ca=ca)

    async def stop(self, node: Node) -> None:
        """Send SIGTERM, which drains; SIGKILL after a time limit. Idempotent."""
        await kept.stop(node, _config.Folders(node.folder).process, STOP_TIMEOUT_S)

    async def kill(self, node: Node) -> None:
        """Send SIGKILL. Idempotent."""
        await kept.stop(node, _config.Folders(node.folder).process, 0.0)

    async def wipe(self, node: Node) -> None:
        """Remove data, logs and configuration. Idempotent. Kills a server that is still running."""
        await self.kill(node)
        folders = _config.Folders(node.folder)
        await files.remove(node, folders.storage, folders.logs, folders.conf, folders.root / "tmp", below=folders.root)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Versions, heap and collector in force, every setting as listed by the node, and how our start differs."""
        version, java, settings = await self._in_force(node)
        units = self.settings.line.units
        line = await _process.command_line(node)
        joined = _config.joins(node, self._peers.get(node.folder, (node,)))
        departures = _facts.departures(joined=joined, ring_delay_ms=self.settings.ring_delay_ms)
        listed = _facts.in_force(settings, units=units)
        return {
            "version": version,
            "jars": (await self.fetch(log.info)).jars_hash,
            "java": java,
            "heap": _facts.option(line, "-Xmx") or "",
            "collector": await _process.collector(node),
            "jvm options": " ".join(word for word in line if word.startswith(("-X", "-ea"))),
            **{f"setting {name}": value for name, value in listed.items()},
            **{f"departs: {what}": how for what, how in departures.items()},
            **_facts.promises(listed),
            **self.settings.line.facts,
        }

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Settings in force that differ from those requested: the node's yaml, heap, collector, tables."""
        peers = self._peers.get(node.folder, (node,))
        version, _, settings = await self._in_force(node)
        differences = _facts.compare(_config.yaml_of(self.settings, node, peers), settings)
        asked = {"version": self.version, "heap": f"{self.settings.heap_mb} MiB", "collector": self.settings.gc}
        heap = _facts.heap_mb(_facts.option(await _process.command_line(node), "-Xmx") or "")
        force = {
            "version": version,
            "heap": f"{heap:g} MiB" if heap is not None else "unknown",
            "collector": await _process.collector(node),
        }
        if self.settings.build.release is None:
            del asked["version"]  # not given: only the jars know it
        if self._schema is not None:
            asked |= _state.asked_of_tables(self.settings, self._schema)
            answers = await self._ask(node, *_state.table_questions(self.settings, self._schema))
            force |= _state.tables_in_force(self.settings, self._schema, answers)
        return differences | {key: (asked[key], force[key]) for key in asked if asked[key] != force[key]}

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process id of the server."""
        server = await _process.living(node)
        return (server.pid,) if server else ()

    def logs(self, node: Node) -> tuple[Path, ...]:
        """Folders of system.log, gc.log, stdout and stderr, and of the configuration."""
        folders = _config.Folders(node.folder)
        return folders.logs, folders.conf

    def ways(self, node: Node) -> Mapping[str, str]:
        """CQL port, management beans with the program that reads them, and the collector's log."""
        ways = {
            "cql": with_port(node.address, self.settings.native_port),
            "gc_log": str(_config.Folders(node.folder).logs / "gc.log"),
        }
        installed = self._installed.get((node.name, node.folder))
        if installed is not None:
            password = _config.Folders(node.folder).management_password
            ways |= {"jmx": self._beans_of(node), "jmx_password_file": str(password)}
            ways |= {"java": str(installed.java), "beans": str(installed.beans)}
        return ways

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Compactions, flushes, hints, streams that are running or pending, over all nodes."""
        answers = await asyncio.gather(*(self._ask(node, *_state.BUSY_QUESTIONS) for node in nodes))
        return _state.busy(answers)

    async def seen_down(self, viewer: Node, node: Node, since_s: float) -> float | None:
        """As the viewer's log says."""
        await self._seen(viewer, 1)
        lines = self._logs[viewer.name, viewer.folder].text.splitlines()
        return join_marks.seen_down(lines, node.address, since_s)

    async def compile_times_s(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Time of each node's just-in-time compiler, as its Java machine reports it. Raises SystemFault."""
        contacts = {node.name: [self._beans_of(node)] for node in nodes}
        lines = await self._call(nodes, "compiled", "-", contacts)
        times_ms = {name: float(line.rsplit(" ", 1)[1]) for name, line in lines.items()}
        return {name: time_ms / 1000.0 for name, time_ms in times_ms.items()}

    def snapshot_key(self, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any]) -> str:
        """Name of the state that these settings, nodes, schema and data determine."""
        jars_hash = "" if self._prepared is None else self._prepared.jars_hash
        return _snapshots.key_of(self.settings, nodes, schema, data, jars_hash)

    async def has(self, nodes: Sequence[Node], key: str) -> bool:
        """Whether every node has its part of the state."""
        return all(await together(self._snapshots.has(node, key) for node in nodes))

    async def snapshot(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Flush all nodes and link their SSTables. The cluster keeps running."""
        await self._on_tables(nodes, "flush", schema)
        await together(self._snapshots.keep(node, schema, key) for node in nodes)

    async def restore(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Truncate, link the snapshot's SSTables into each node's volume, and have the running nodes import them."""
        kept_files = await together(self._snapshots.files(node, key) for node in nodes)
        await self.truncate(nodes, schema)
        staged = await together(
            self._snapshots.stage(node, schema, key, sizes) for node, sizes in zip(nodes, kept_files, strict=True)
        )
        await self._take_in(nodes, schema, staged)

    async def maintain(self, node: Node, task: str) -> None:
        """Flush, compact, clean up or repair a node's part of the tables, as `nodetool` does: `compact`, `cleanup`,
        `repair --full`, `flush`."""
        if self._schema is not None:
            await self._on_tables([node], task, self._schema, MAINTENANCE_TIMEOUT_S)

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

    def notes(self) -> Sequence[str]:
        """Notes if this version is not on this machine yet, and if no checksums are shipped for it."""
        build, notes = self.settings.build, []
        size = _jars.size_of(self.settings)
        if build.files is not None:
            return ()
        if _jars.installed_class_path(self.settings, self._cache_folder) is None:
            notes.append(f"Cassandra {build.label} is not on this machine yet: `run` downloads it first, {size}")
        if _jars.shipped_list(self.settings) is None:
            notes.append(
                f"Cassandra {build.label}: Steelyard ships no checksums for it, so its jars are compared with those "
                "of their first use"
            )
        return tuple(notes)

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Errors for a missing build, for more copies than nodes, and for consistency levels that need more
        copies than there are."""
        build = self.settings.build
        if self.settings.source is not None and build.files is not None and not build.files.exists():
            yield StudyError(
                f"the build {build.label} is missing: no folder or tarball {build.files}",
                "put the build's jars there first; Steelyard builds nothing, and paths are relative to the current "
                "folder",
                key="system.source",
                read=self.settings.source,
            )
        yield from replication_problems(self.settings.replication_factor, nodes, load)

    async def _in_force(self, node: Node) -> tuple[str, str, Sequence[Mapping[str, Any]]]:
        """Version and Java of a node, and the rows of its settings."""
        local, properties, settings = await self._ask(
            node,
            "SELECT release_version FROM system.local",
            "SELECT name, value FROM system_views.system_properties",
            "SELECT name, value FROM system_views.settings",
        )
        system = {str(row["name"]): str(row["value"]) for row in properties}
        java = f"{system.get('java.vm.name', '')} {system.get('java.version', '')}".strip()
        return str(local[0]["release_version"]), java, settings

    async def _take_in(self, nodes: Sequence[Node], schema: Schema, staged: Sequence[Mapping[str, Path]]) -> None:
        """Have running nodes import what is in these folders, by table."""
        targets = {
            node.name: [f"{self._beans_of(node)}={table}={folder}" for table, folder in folders.items()]
            for node, folders in zip(nodes, staged, strict=True)
        }
        await self._call(nodes, "import", schema.keyspace, targets)

    async def _on_tables(
        self, nodes: Sequence[Node], what: str, schema: Schema, timeout_s: float = _beans.CALL_TIMEOUT_S
    ) -> None:
        tables = ",".join(table.name for table in schema.all_tables())
        targets = {node.name: [f"{self._beans_of(node)}={tables}"] for node in nodes}
        await self._call(nodes, what, schema.keyspace, targets, timeout_s)

    def _beans_of(self, node: Node) -> str:
        return with_port(_config.management_address(node), self.settings.jmx_port)

    async def _call(
        self,
        nodes: Sequence[Node],
        what: str,
        keyspace: str,
        targets: Mapping[str, Sequence[str]],
        timeout_s: float = _beans.CALL_TIMEOUT_S,
    ) -> Mapping[str, str]:
        """Call management beans: for all nodes at once where one client reads the passwords of all, as on this machine,
        otherwise on each node: a container sees its own folder alone. Returns the node's last line of output, by name,
        where it printed any."""
        shared = [node for node in nodes if node.processes == "same"]
        groups = [shared] if shared else []
        groups += [[node] for node in nodes if node not in shared]

        async def of_group(group: Sequence[Node]) -> dict[str, str]:
            password = {node.name: str(_config.Folders(node.folder).management_password) for node in group}
            words = [word for node in group for target in targets[node.name] for word in (password[node.name], target)]
            if not words:
                return {}
            installed = await self._provide(group[0])
            called = [what, keyspace, *words]
            lines = await _beans.call(installed.java, installed.beans, group[0], called, timeout_s)
            by_contact = {line.rsplit(" ", 1)[0]: line for line in lines}
            return {node.name: line for node in group if (line := by_contact.get(self._beans_of(node)))}

        lines: dict[str, str] = {}
        for printed in await together(of_group(group) for group in groups):
            lines |= printed
        return lines

    async def _provide(self, node: Node) -> Installed:
        """Java, jars and the client of the beans as a node sees them."""
        prepared = await self.fetch(log.info)
        installed = self._installed.get((node.name, node.folder))
        if installed is None and node.programs == "same":
            options = tuple(prepared.archive.options)
            installed = Installed(prepared.java.path, prepared.jars, prepared.beans, options)
        elif installed is None:
            java = await _java.needed(self.settings.line).find_on(node, prepared.java)
            library = await files.bring(node, prepared.jars[0].parent, f"cassandra-{prepared.jars_hash}")
            beans = await files.bring(node, prepared.beans)
            installed = Installed(java, tuple(library / jar.name for jar in prepared.jars), beans)
        self._installed[node.name, node.folder] = installed
        return installed

    async def _seen(self, node: Node, members: int) -> _state.Seen:
        """Lines of the node's log; only what was added since the last time is read."""
        so_far = self._logs.setdefault((node.name, node.folder), _state.LogSoFar())
        log = _config.Folders(node.folder).logs / "system.log"
        so_far.append(await files.read(node, log, so_far.bytes_read, MOST_LOG_BYTES))
        return _state.seen(so_far.text, members)

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

    async def _died(self, node: Node) -> SystemFault:
        how = await kept.ending(node, _config.Folders(node.folder).process)
        reason, hint = await _process.why_dead(node, how)
        return SystemFault(f"{node.name}: Cassandra is not running: {reason}", hint, node=node.name, system=self.name)
