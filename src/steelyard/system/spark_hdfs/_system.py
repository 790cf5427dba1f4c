"""The system `spark-hdfs`: its methods in the order in which the laboratory calls them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.model import job_inputs
from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, StudyError, SystemFault
from steelyard.model.finding import Finding, failed, judged
from steelyard.model.load import Load
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import files, kept
from steelyard.node.base import Node
from steelyard.node.command import end, run, spawn
from steelyard.node.fetch import Say
from steelyard.node.tasks import together
from steelyard.system.base import ClusterTimes, Endpoint
from steelyard.system.one_server import data, logs
from steelyard.system.packaged import CURL, Packaged
from steelyard.system.spark_hdfs import _configuration as configuration
from steelyard.system.spark_hdfs import _release, _state
from steelyard.system.spark_hdfs._daemons import Daemon, DataNode, Master, NameNode, Worker
from steelyard.system.spark_hdfs._release import Prepared, fault
from steelyard.system.spark_hdfs._settings import (
    WORKER,
    Settings,
    conf,
    hdfs_properties,
    root_of,
    web_of_hdfs,
    web_of_spark,
)
from steelyard.wire.order import SPARK

NAME = "spark-hdfs"
SAY_S, GET_TIMEOUT_S = "75", 90.0
TEXT_CHARS = 400
HEAP = re.compile(r"-Xmx(\d+)m")
START_S, START_EACH_S = 8.0, 5.0
"""A cluster of n nodes takes about START_S + START_EACH_S n on 2 cores."""
PUT_S, PUT_PER_S = 2.0, 40e6
JOB_START_S, JOB_PER_CORE_S = 10.0, 5e6
"""Start of a driver and its executors; bytes of input that a core works on per second."""
DEPARTURES = {
    "bin, sbin": "not used: the daemons' classes are started directly, with the jars of both projects on one path",
    "format": "an empty file system is made once, and copied to each new NameNode",
    "spark.port.maxRetries": "0 for the daemons: one whose port is taken ends",
    "dfs.heartbeat.interval": "1 s, so that the NameNode knows its DataNodes sooner",
    "dfs.namenode.decommission.interval": "1 s, so that a node that leaves is seen to have no block of its own sooner",
    "spark.decommission.enabled": "true: executors of a node that leaves end their tasks first",
}
"""Differences between the way we start both and their own scripts."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Installed:
    """Programs as a node sees them."""

    java: Path
    home: Path
    curl: str


class SparkHdfs:
    """Spark and HDFS; implements `System` and most abilities of `steelyard.system.base`."""

    name = NAME
    protocol = SPARK
    curl: Final = Packaged(NAME, ("curl",), ("curl", "curl"), re.compile(r"curl (\S+)"))
    offers = ("hdfs_jmx", "spark_metrics", "curl")

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        self.settings = settings
        self.version = settings.version
        self.memory_mb_per_node = settings.memory_mb
        self._cache_folder = cache_folder
        self._prepared: Prepared | None = None
        self._installed: dict[tuple[str, Path], Installed] = {}
        self._peers: dict[tuple[str, Path], tuple[Node, ...]] = {}
        """Node to the nodes of its cluster."""
        self._places = places = dict[tuple[str, Path], tuple[Path, Path]]()
        self._of_first: tuple[Daemon, ...] = (NameNode(settings, places), Master(settings, places))
        self._of_others: tuple[Daemon, ...] = (DataNode(settings, places), Worker(settings, places))

    async def prepare(self) -> None:
        """Find Java and curl; fetch the jars, compile the jobs and make an empty file system if need be. Raises
        SystemFault."""
        await self.curl.of_this_machine()
        await self.fetch(log.info)

    async def fetch(self, say: Say) -> Prepared:
        """Like `prepare`, with progress messages to `say`."""
        if self._prepared is None:
            self._prepared = await _release.ensure(self.settings, self._cache_folder, say)
        return self._prepared

    async def findings(self) -> Sequence[Finding]:
        """Java and curl on this machine."""
        there = await self.curl.find()
        of_curl = [judged("curl", "no curl" if there is None else there.version, there is not None, self.curl.hint)]
        try:
            java = await _release.JAVA.find()
        except SystemFault as error:
            return [failed("java", error), *of_curl]
        return [Finding(name="java", state="good", found=f"{java.version}, {java.path}"), *of_curl]

    async def provide(self, nodes: Sequence[Node]) -> None:
        """Find Java and curl on nodes with their own programs, or bring them, and bring the jars."""
        await together(self._provide(node) for node in nodes)

    async def provide_clients(self, loaders: Sequence[Node], nodes: Sequence[Node]) -> None:
        """The same, and the scripts that submit jobs and remove their output."""
        for node in loaders:
            of = await self._provide(node)
            text = configuration.of_client(self.settings, node, nodes[0], of.java, of.home, of.curl)
            await self._write(node, text)
            await files.make_folders(node, data(node) / "spark")

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Write the configuration and create the folders, with an empty file system on the first node. Idempotent."""
        if ":" in node.address:
            raise fault(f"{node.name}: HDFS does not listen at {node.address}", "give nodes addresses of version 4")
        self._peers[node.name, node.folder] = tuple(peers)
        master = peers[0]
        # Of a container, /proc as the conductor reads it has another name.
        own_name = (await run(node, ["uname", "-n"], timeout_s=GET_TIMEOUT_S)).stdout.decode().strip()
        await self._write(node, configuration.of_node(self.settings, node, master, own_name))
        await files.make_folders(node, data(node), logs(node))
        name = data(node) / "name" / "current"
        if node.name == master.name and not await files.sizes(node, name):
            empty = (await self.fetch(log.info)).empty
            for file in sorted(empty.iterdir()):
                await files.put(node, name / file.name, file.read_bytes())

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start both daemons and return at once; those that run are left alone."""
        of = await self._provide(node)
        self._places[node.name, node.folder] = of.java, of.home
        self._peers[node.name, node.folder] = tuple(peers)
        await together(daemon.start(node, peers) for daemon in self._daemons(node))

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the first node sees the node's DataNode and Worker in service, or, for itself, those of all others.
        Raises SystemFault if a daemon of the node died."""
        if died := await self.death(node):
            raise died
        try:
            seen = await self._seen(node)
        except (CommandFailed, LookupError, ValueError):
            return False
        if node.name != self._master(node).name:
            return seen.serves(node.address)
        return len(seen.datanodes) == len(seen.workers) == members - 1 and not seen.safe_mode

    async def waiting_for(self, node: Node) -> str:
        """Current activity of a node that is not ready, and which daemons the first node misses."""
        if await self.death(node) is not None:
            return "not running"
        try:
            seen = await self._seen(node)
        except (CommandFailed, LookupError, ValueError):
            return "starting"
        master, *others = self._peers.get((node.name, node.folder), (node,))
        late = others if node.name == master.name else [node]
        missing = seen.missing({one.name: one.address for one in late})
        return f"{len(others)} workers asked for; missing: {missing}" if missing else "ready"

    async def death(self, node: Node) -> SystemFault | None:
        """Cause of the death of one of the node's daemons; None while both live."""
        for daemon in self._daemons(node):
            if died := await daemon.death(node):
                return died
        return None

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Generate the inputs that are not there and put them into HDFS. Raises SystemFault."""
        for path, kind, size, seed in schema.inputs:
            if not await self._is_there(nodes[0], path):
                await self._put(nodes[0], path, job_inputs.write(kind, size, seed))  # type: ignore[arg-type]

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """Master and workers; scripts and files of jobs. `{folder}` in a script's path is the load node's own."""
        master = self._master(nodes[0])
        ports = {master.name: self.settings.master_port}
        contacts = tuple(f"{node.address}:{ports.get(node.name, WORKER)}" for node in nodes)
        return Endpoint(
            SPARK,
            contacts,
            files=root_of(self.settings, master),
            submit=("sh", "{folder}/conf/submit"),
            program=str(_release.jobs_of(self.settings, self._cache_folder)),
            remove=("sh", "{folder}/conf/remove"),
        )

    async def stop(self, node: Node) -> None:
        """Send SIGTERM to the daemons; SIGKILL after a time limit. Idempotent."""
        await together(daemon.stop(node) for daemon in self._daemons(node))

    async def kill(self, node: Node) -> None:
        """Send SIGKILL; executors end when their worker has. Idempotent."""
        await together(daemon.kill(node) for daemon in self._daemons(node))

    async def wipe(self, node: Node) -> None:
        """Remove data, logs and configuration; kill daemons that are still running. Idempotent."""
        for daemon in self._daemons(node):
            await daemon.wipe(node)
        await files.remove(node, conf(node), below=node.folder)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Versions, role, heaps, what a worker gives, and the properties that differ from HDFS's own."""
        force = await self._in_force(node)
        properties = {name: value for name, (value, file) in (await self._properties(node)).items() if _own(file)}
        prepared = await self.fetch(log.info)
        return {
            **force,
            "role": " and ".join(type(daemon).__name__ for daemon in self._daemons(node)),
            "jars": prepared.jars_hash,
            **{f"setting {name}": value for name, value in sorted(properties.items())},
            **{f"departs: {what}": how for what, how in DEPARTURES.items()},
        }

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Versions, heaps, worker and properties of HDFS in force that differ from those requested."""
        of, master = self.settings, self._master(node)
        force = {name: value for name, (value, _) in (await self._properties(node)).items()}
        force |= await self._in_force(node)
        asked = dict(hdfs_properties(of, node, master)) | {"version": of.version, "hadoop version": of.hadoop_version}
        asked |= {f"heap of {type(daemon).__name__}": f"{of.heap_mb} MiB" for daemon in self._daemons(node)}
        if node.name != master.name:
            asked |= {"worker cores": str(of.worker_cores), "worker memory": str(of.worker_memory_mb)}
        return {
            name: (value, force.get(name, "not listed")) for name, value in asked.items() if force.get(name) != value
        }

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process ids of the daemons."""
        ids = await together(daemon.process_ids(node) for daemon in self._daemons(node))
        return tuple(pid for each in ids for pid in each)

    def logs(self, node: Node) -> tuple[Path, ...]:
        """Folders of the daemons' output and of the configuration."""
        return logs(node), conf(node)

    def ways(self, node: Node) -> Mapping[str, str]:
        """Pages of the node's daemon of HDFS and of that of Spark, and the program that asks there."""
        master, of = self._master(node), self._installed.get((node.name, node.folder))
        path = "/metrics/master" if node.name == master.name else "/metrics"
        ways = {"hdfs_jmx": web_of_hdfs(node, master), "spark_metrics": f"{web_of_spark(node, master)}{path}"}
        return ways if of is None else {**ways, "curl": of.curl}

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Blocks with too few copies, and applications that run."""
        seen = await self._seen(nodes[0])
        return {"blocks to copy": float(seen.blocks_to_copy), "applications": float(seen.applications)}

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times by rules of thumb, from readings on 2 cores."""
        job_s = JOB_START_S + shape.record_bytes / JOB_PER_CORE_S / cores
        return ClusterTimes(
            start_s=START_S + START_EACH_S * nodes * 2 / cores, schema_s=PUT_S,
            fill_s=shape.records * shape.record_bytes * self.settings.replication_factor / PUT_PER_S,
            settle_s=0.2, wipe_s=1.0, service_ms=job_s * 1000, most_per_s=1 / job_s,
        )  # fmt: skip

    def copies(self, nodes: int) -> int:
        """Copies of each block, at most one per DataNode."""
        return max(1, min(self.settings.replication_factor, nodes - 1))

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """Inputs; as much again for outputs, and for what is shuffled."""
        return int(3 * stored_bytes)

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Errors for a cluster without workers, and for more copies than DataNodes."""
        copies = self.settings.replication_factor
        if nodes < 2:
            what = f"site.nodes = {nodes}: NameNode and Master are on the first node, DataNode and Worker on the others"
            yield StudyError(what, "allowed: 2 or more nodes", key="site.nodes", read=nodes)
        elif copies > nodes - 1:
            what = (
                f"system.replication_factor = {copies} with {nodes - 1} DataNodes ({nodes} nodes, the first has none)"
            )
            hint = f"allowed: 1 to {nodes - 1}, or more nodes"
            yield StudyError(what, hint, key="system.replication_factor", read=copies)

    async def _provide(self, node: Node) -> Installed:
        """Programs as a node sees them."""
        prepared = await self.fetch(log.info)
        of = self._installed.get((node.name, node.folder))
        if of is None:
            # A container may have the files of this machine and not its programs.
            curl = await self.curl.find(node) or await self.curl.bring(node, self._cache_folder)
            java, home = prepared.java.path, prepared.home
            if node.programs == "own":
                java = await _release.JAVA.find_on(node, prepared.java)
                home = await files.bring(node, prepared.home, f"{NAME}-{prepared.jars_hash}")
            of = self._installed[node.name, node.folder] = Installed(java, home, curl.client)
        return of

    async def _write(self, node: Node, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            await files.put(node, conf(node) / name, text.encode())

    def _master(self, node: Node) -> Node:
        return self._peers.get((node.name, node.folder), (node,))[0]

    def _daemons(self, node: Node) -> tuple[Daemon, ...]:
        """The node's daemons; all four while it is not known where it stands."""
        if (node.name, node.folder) not in self._peers:
            return (*self._of_first, *self._of_others)
        return self._of_first if node.name == self._master(node).name else self._of_others

    async def _get(self, node: Node, *urls: str, method: str = "GET") -> str:
        """Pages, asked for from a node. Raises CommandFailed."""
        curl = (await self._provide(node)).curl
        options = ("--fail-early", "--max-time", SAY_S, "--request", method, "--header", "Accept: application/json")
        argv = [curl, *CURL, *options, *(f"http://{url}" for url in urls)]
        return (await run(node, argv, timeout_s=GET_TIMEOUT_S, watch=True)).stdout.decode(errors="replace")

    async def _seen(self, node: Node) -> _state.Seen:
        """Raises CommandFailed, LookupError or ValueError of a first node that does not know yet."""
        master = self._master(node)
        beans = [f"{web_of_hdfs(master, master)}{_state.JMX}{state}" for state in _state.STATES]
        return _state.seen(await self._get(master, *beans, f"{web_of_spark(master, master)}/json/"))

    async def _properties(self, node: Node) -> Mapping[str, tuple[str, str]]:
        return _state.in_force(await self._get(node, f"{web_of_hdfs(node, self._master(node))}/conf"))

    async def _in_force(self, node: Node) -> dict[str, str]:
        """Versions, heaps and what a worker gives."""
        master = self._master(node)
        page = await self._get(node, f"{web_of_spark(node, master)}/")
        (beans,) = _state.answers(await self._get(node, f"{web_of_hdfs(node, master)}/jmx?qry=Hadoop:*"))
        versions = [bean["SoftwareVersion"] for bean in beans["beans"] if "SoftwareVersion" in bean]
        spark = _state.VERSION.search(page)
        force = {"version": spark[1] if spark else "unknown", "hadoop version": "".join(versions[:1]) or "unknown"}
        for daemon in self._daemons(node):
            running = await kept.living(node, daemon.record(node))
            heap = HEAP.search(" ".join(running.argv)) if running else None
            force[f"heap of {type(daemon).__name__}"] = f"{heap[1]} MiB" if heap else "unknown"
        if node.name != master.name:
            page = await self._get(master, f"{web_of_spark(master, master)}/json/")
            force["worker cores"], force["worker memory"] = _state.worker_of(page, node.address)
        return force

    async def _files(self, master: Node, path: Path | str, operation: str, method: str = "GET") -> str:
        """An answer of HDFS about a path. Raises CommandFailed."""
        return await self._get(master, f"{web_of_hdfs(master, master)}/webhdfs/v1{path}?op={operation}", method=method)

    async def _is_there(self, master: Node, path: str) -> bool:
        try:
            await self._files(master, path, "GETFILESTATUS")
        except CommandFailed as error:
            if "404" in error.stderr_tail:
                return False
            raise
        return True

    async def _put(self, master: Node, path: str, chunks: Iterator[bytes]) -> None:
        """Stream a file into HDFS, under another name until it is whole. Raises SystemFault."""
        of = await self._provide(master)
        await self._files(master, Path(path).parent, "MKDIRS", "PUT")
        client = configuration.hdfs_argv(self.settings, master, of.java, of.home, configuration.SHELL)
        argv, pipe = ["sh", "-c", 'exec "$@" 2>&1', "put", *client, "-put", "-", path], asyncio.subprocess.PIPE
        process = await spawn(master, argv, stdin=pipe, stdout=pipe, watch=True)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            saying = asyncio.ensure_future(process.stdout.read())
            # It says itself why it ended before its input.
            with contextlib.suppress(ConnectionError):
                for chunk in chunks:
                    process.stdin.write(chunk)
                    await process.stdin.drain()
                process.stdin.close()
            output, code = await saying, await process.wait()
        finally:
            await end(process)
        if code != 0:
            why = output.decode(errors="replace").strip()[-TEXT_CHARS:] or f"exit code {code}"
            raise SystemFault(f"{master.name}: {path} cannot be put into HDFS: {why}", node=master.name, system=NAME)


def _own(file: str) -> bool:
    """Whether a property is not from Hadoop's own defaults."""
    return not file.endswith("-default.xml")
