"""Interface of system plug-ins: how the system under test is installed, started, queried and stopped.

A plug-in module defines `Settings` (a pydantic model; a field with `json_schema_extra={"easy": True}` can vary between
trials of one start, all others are hard to change) and `create(settings, cache_folder) -> System`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError, SystemFault
from steelyard.model.load import Load
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.value import Value
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node.base import Node


@dataclass(frozen=True)
class Endpoint:
    """Contact of the load engine with a running cluster."""

    protocol: str
    """Protocol that the system speaks."""
    contacts: tuple[str, ...]
    """`address:port` of every node."""
    keyspace: str = ""
    table: str = ""
    tls_ca: str | None = None
    """PEM file of the certificate authority of the nodes, if the system created one and clients may encrypt."""
    compared: bool = True
    """Whether values that are read are compared with those written: not where rows are made up, or another program may
    have written them."""
    files: str = ""
    """Root of the file system that jobs read and write, as `hdfs://10.0.0.1:9000`."""
    submit: tuple[str, ...] = ()
    """argv, on a load node, that submits the program whose path and arguments follow."""
    program: str = ""
    """File, on this machine, that does the system's own jobs: called as `PROGRAM NAME INPUT OUTPUT`."""
    remove: tuple[str, ...] = ()
    """argv, on a load node, that removes the folder whose URL follows."""


class System(Protocol):
    """Installs, starts, queries and stops the system under test on nodes."""

    name: str
    version: str
    protocol: str
    """Protocol of its clients, as the endpoint and the order name it."""
    memory_mb_per_node: int
    """Memory that one node needs at least; `check` compares it with the machine."""

    async def prepare(self) -> None:
        """Download what the system needs to this machine's cache (jars, Java). Slow only the first time. Raises
        SystemFault."""
        ...

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Write the configuration and data folders of a node. Idempotent. Does not start anything."""
        ...

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the node's processes and return at once. `peers` are all nodes of the cluster, including this one."""
        ...

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers clients and sees `members` nodes up and normal. Raises SystemFault if it died."""
        ...

    async def waiting_for(self, node: Node) -> str:
        """Current activity of a node that is not ready, in a few words, for the progress line."""
        ...

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create keyspace and tables, with the settings' replication, compression, compaction. Idempotent."""
        ...

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """Addresses that the load engine connects to."""
        ...

    async def stop(self, node: Node) -> None:
        """Shut down cleanly (data on disk). Idempotent."""
        ...

    async def kill(self, node: Node) -> None:
        """Stop at once. Idempotent."""
        ...

    async def wipe(self, node: Node) -> None:
        """Remove data and logs. Idempotent; also on an empty node."""
        ...

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Settings in force and versions, as reported by the running node."""
        ...

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Settings in force that differ from the requested ones: name -> (requested, in force). Empty if all agree."""
        ...

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process ids of the node's server, as the node's kernel names them, for probes without cgroups, which find its
        children themselves. Empty if it is not running."""
        ...

    def logs(self, node: Node) -> tuple[Path, ...]:
        """Folders of the node whose files are worth keeping; those below them are left out. Pure."""
        ...


@runtime_checkable
class Provides(Protocol):
    """Ability: brings its programs to nodes that have their own root file system."""

    async def provide(self, nodes: Sequence[Node]) -> None:
        """Find or bring what the nodes need to run the system, before `install`; what was brought is kept on the node
        for later leases. Raises SystemFault."""
        ...


@runtime_checkable
class ProvidesClients(Protocol):
    """Ability: load nodes run programs of the system, too, such as the one that submits jobs."""

    async def provide_clients(self, loaders: Sequence[Node], nodes: Sequence[Node]) -> None:
        """Bring to load nodes what they need to use the cluster of `nodes`. Raises SystemFault."""
        ...


@runtime_checkable
class NoticesDeath(Protocol):
    """Ability: reports that a node's server has died, without asking the server. Used every second while load is
    driven, so that no trial waits for a dead cluster until all of its operations have timed out."""

    async def death(self, node: Node) -> SystemFault | None:
        """Cause of death of a node's server, with the node's name and the last lines of its logs; None
        while it lives. Takes milliseconds, and never raises SystemFault."""
        ...


@runtime_checkable
class Observed(Protocol):
    """Ability: names the ways in which probes can read a running server. A system names its ways as other systems do
    where they are alike; which names are in use: `docs/howto/add-a-probe.md`."""

    def ways(self, node: Node) -> Mapping[str, str]:
        """Name of each way into the node's server to its address, path or class path, as the node sees it:
        {"cql": "10.0.0.1:9042", "gc_log": "/.../gc.log"}. Pure: nothing is asked or started."""
        ...


@runtime_checkable
class Dilates(Protocol):
    """Ability: its times are timers' and not those of processors or disks, so that no limit slows it down; it
    multiplies them by the node's environment variable `DILATION` itself."""

    dilates: bool


@runtime_checkable
class Settles(Protocol):
    """Ability: reports how much background work is in progress."""

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Kind of work (compactions, hints, streams) -> amount outstanding over all nodes; all zero means idle."""
        ...


@runtime_checkable
class Maintains(Protocol):
    """Ability: does maintenance on a running node when it is asked to."""

    maintenance: frozenset[str]
    """The tasks that it has, of `compaction`, `cleanup`, `repair`, `flush`."""

    async def maintain(self, node: Node, task: str) -> None:
        """Do a task on a node's part of the tables, and return when it is done. Raises SystemFault."""
        ...


@runtime_checkable
class SeesDown(Protocol):
    """Ability: its members note when they take another one for dead."""

    async def seen_down(self, viewer: Node, node: Node, since_s: float) -> float | None:
        """When `viewer` first took a node for dead after `since_s`; None if it did not. Both in seconds since the epoch
        on the viewer's clock."""
        ...


MarkIt = Callable[[str, float | None], None]
"""Takes the name of a mark (`steelyard.model.activity`) that the node has reached, and its time on the NODE's clock in
seconds since the epoch; None: now."""


@runtime_checkable
class Elastic(Protocol):
    """Ability: nodes join and leave a cluster that runs, one at a time. Neither ends the load."""

    def keeps_size(self) -> str:
        """Reason in the settings why no node can join; empty if nodes can. Pure."""
        ...

    async def join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Install and start a node next to `members`, all of which are in service, and return when every member sees it
        in service: the bytes that it received, None if unknown. Marks: `OF_JOIN` from `started` to `in-service`, in
        order; those that the system has. A cancelled join leaves the node to `wipe`. Raises SystemFault, with the last
        lines of its log, if the join failed, and if another node joins or leaves."""
        ...

    async def leave(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Have a node leave the `members`, of which it is one, and return when it is gone from the view of all others
        and its server has ended: the bytes that it sent, None if unknown. Marks: `OF_LEAVE`, in order; those that
        the system has. Raises SystemFault."""
        ...

    async def clean_up(self, nodes: Sequence[Node]) -> bool:
        """Remove rows that nodes no longer own after joins, one node after the other, if the settings ask for it.
        Returns whether it did. Raises SystemFault."""
        ...


@runtime_checkable
class Existing(Protocol):
    """Ability: measures a cluster that exists, on which nothing is started, stopped or wiped: every other method of
    `System` leaves it as it is. A study of it has one start."""

    watched: bool
    """Whether the site's database nodes are the cluster's machines; otherwise the site lends none."""

    def members(self, lent: Sequence[Node], loaders: Sequence[Node]) -> tuple[Node, ...]:
        """The cluster's nodes, from the database nodes and the load nodes that the site lends; those whose machine is
        not lent take no commands. Raises SystemFault."""
        ...


@runtime_checkable
class Offers(Protocol):
    """Ability: knows before a start which ways in any node will have."""

    offers: Sequence[str]
    """The keys of `ways`."""


@runtime_checkable
class HasNotes(Protocol):
    """Ability: notes of `check` for the experimenter, before a start."""

    def notes(self) -> Sequence[str]:
        """A sentence each. Pure."""
        ...


@runtime_checkable
class HasSizeNotes(Protocol):
    """Ability: notes of `check` on a number of nodes, before a start."""

    def size_notes(self, nodes: int) -> Sequence[str]:
        """A sentence each. Pure."""
        ...


@runtime_checkable
class LosesData(Protocol):
    """Ability: may lose acknowledged data when a server is killed."""

    def lost_by_kill(self) -> str:
        """A clause on what a killed server has lost once it is started again; empty if nothing. Pure."""
        ...


def nodes_to_lend(system: System, nodes: int) -> int:
    """Number of database nodes that a site lends for a cluster of `nodes` nodes."""
    return 0 if isinstance(system, Existing) and not system.watched else nodes


@runtime_checkable
class Truncates(Protocol):
    """Ability: empties the tables of a running cluster."""

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables of a running cluster."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """Ability: takes a snapshot of a filled state and restores it. A state's name is derived from what determines
    it."""

    def snapshot_key(self, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any]) -> str:
        """Name of the state: hash of version, nodes, replication, schema and the workload's `data` (records,
        seed...)."""
        ...

    async def has(self, nodes: Sequence[Node], key: str) -> bool:
        """Whether a snapshot of the state exists on these nodes."""
        ...

    async def snapshot(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Store the data of a filled running cluster under `key`. Afterwards the cluster is still, or again,
        running."""
        ...

    async def restore(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Restore the snapshot into a running cluster's tables, without a restart."""
        ...

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables of a running cluster."""
        ...


@runtime_checkable
class CompilesCode(Protocol):
    """Ability: its servers compile code while they run, so that they get faster as they serve. Studies of
    such a system warm the servers up before the first trial of each start."""

    async def compile_times_s(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Node's name to the seconds that its server has spent on compiling since it was started. Raises
        SystemFault."""
        ...


def warms_up(settings: ServerWarmUp, system: System) -> bool:
    """Whether the servers of a system are warmed up under these settings."""
    return settings.mode == "on" or (settings.mode == "auto" and isinstance(system, CompilesCode))


class ClusterTimes(Value):
    """Expected times of a cluster, before anything has been measured: rules of thumb, corrected by a store's
    history."""

    start_s: float
    """Time from the start of the nodes until all of them are ready."""
    schema_s: float
    """Time to create the tables."""
    fill_s: float
    """Time to fill the tables of a cluster that has just started."""
    snapshot_s: float = 0.0
    """Time to take a snapshot of the filled state."""
    restore_s: float = 0.0
    """Time to restore a snapshot, or to empty the tables."""
    settle_s: float = 0.0
    """Time to check before a trial that nothing is running in the background."""
    wipe_s: float
    """Time to remove data and logs from all nodes."""
    service_ms: float
    """Service time of an operation under light load."""
    most_per_s: float
    """Maximum throughput of the cluster in operations per second, however many are in flight."""
    always_filled: bool = False
    """Whether all records exist from the start, so that no start spends time on filling."""


@runtime_checkable
class Timed(Protocol):
    """Ability: estimates its own times. Without it, a plan assumes times and reports the assumption."""

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times of `nodes` nodes that share `cores` processor cores, under a workload of this shape. Pure."""
        ...


@runtime_checkable
class Footprint(Protocol):
    """Ability: estimates its disk use. Memory is in `memory_mb_per_node`. Without it, a plan assumes the disk use and
    reports the assumption."""

    def copies(self, nodes: int) -> int:
        """Copies of each record that a cluster of `nodes` nodes keeps."""
        ...

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """Peak disk use of all nodes together while they store `stored_bytes`, all copies counted: including data
        rewritten in the background and commit logs."""
        ...


@runtime_checkable
class ValidatesLoad(Protocol):
    """Ability: reports impossible settings before anything starts."""

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Requirements of a load that `nodes` nodes cannot meet under these settings; each error names the `key` of the
        study that it concerns."""
        ...
