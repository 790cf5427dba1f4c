"""Interface of system plug-ins: how the system under test is installed, started, queried and stopped.

A plug-in module defines `Settings` (a pydantic model; a field with `json_schema_extra={"easy": True}` can vary between
trials of one start, all others are hard to change) and `create(settings, cache_folder) -> System`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.value import Value
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node.base import Node


@dataclass(frozen=True)
class Endpoint:
    """How the load engine reaches a running cluster."""

    protocol: str
    """That of the system."""
    contacts: tuple[str, ...]
    """`address:port` of every node."""
    keyspace: str = ""
    table: str = ""
    tls_ca: str | None = None
    """PEM file of the authority of the nodes' certificates, if the system made one and clients may encrypt."""


class System(Protocol):
    """Installs, starts, asks and stops the system under test on nodes."""

    name: str
    version: str
    protocol: str
    """What its clients speak, as the endpoint and the order name it."""
    memory_mb_per_node: int
    """What one node needs at least; `check` holds it against the machine."""

    async def prepare(self) -> None:
        """Get what the system needs onto this machine's cache (jars, Java). Slow only the first time. Raises
        SystemFault."""
        ...

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Write configuration and data folders of a node. Idempotent. Does not start anything."""
        ...

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the node's processes and return at once. `peers` are all nodes of the cluster, this one included."""
        ...

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers clients and sees `members` nodes up and normal. Raises SystemFault if it died."""
        ...

    async def waiting_for(self, node: Node) -> str:
        """What a node that is not ready is doing, in a few words, for the progress line."""
        ...

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create keyspace and table, with the settings' replication, compression, compaction. Idempotent."""
        ...

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """Where the load engine connects."""
        ...

    async def stop(self, node: Node) -> None:
        """Stop in good order (data on disk). Idempotent."""
        ...

    async def kill(self, node: Node) -> None:
        """Stop at once. Idempotent."""
        ...

    async def wipe(self, node: Node) -> None:
        """Remove data and logs. Idempotent; fine on an empty node."""
        ...

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Settings in force as the running node says them, versions."""
        ...

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Settings in force that differ from those asked: name -> (asked, in force). Empty is good."""
        ...

    def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process ids of the node's server, for probes without cgroups. Empty when not running."""
        ...

    def logs(self, node: Node) -> tuple[Path, ...]:
        """Log files of the node that are worth keeping."""
        ...


@runtime_checkable
class Settles(Protocol):
    """Ability: says how much background work is going on."""

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Kind of work (compactions, hints, streams) -> amount outstanding over all nodes; all zero means quiet."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """Ability: takes a snapshot of a filled state and restores it. A state is named by what determines it."""

    def snapshot_key(self, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any]) -> str:
        """Name of the state: hash of version, nodes, replication, schema and the workload's `data` (records,
        seed...)."""
        ...

    def has(self, key: str) -> bool:
        """Whether there is a snapshot of the state."""
        ...

    async def snapshot(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Keep the data of a filled running cluster under `key`. The cluster keeps running, or is running again,
        after it."""
        ...

    async def restore(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Put a running cluster's tables back to the snapshot, without a restart."""
        ...

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables of a running cluster."""
        ...


@runtime_checkable
class CompilesCode(Protocol):
    """Ability: its servers compile code while they run, so that they get faster with what they have served. Studies of
    such a system warm the servers up before the first trial of each start."""

    async def compile_times_s(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Node's name to the seconds that its server has spent on compiling since it was started. Raises
        SystemFault."""
        ...


def warms_up(settings: ServerWarmUp, system: System) -> bool:
    """Whether the servers of a system are warmed up under these settings."""
    return settings.mode == "on" or (settings.mode == "auto" and isinstance(system, CompilesCode))


class ClusterTimes(Value):
    """Expected times of a cluster, before anything was measured: rules of thumb, which a store's history corrects."""

    start_s: float
    """From the start of the nodes until every one is ready."""
    schema_s: float
    """Creating the tables."""
    fill_s: float
    """Filling the tables of a cluster that has just started."""
    snapshot_s: float = 0.0
    """Keeping the filled state."""
    restore_s: float = 0.0
    """Going back to a kept state, or emptying the tables."""
    settle_s: float = 0.0
    """Seeing before a trial that nothing goes on in the background."""
    wipe_s: float
    """Removing data and logs of all nodes."""
    service_ms: float
    """Service time of an operation while the cluster has little to do."""
    most_per_s: float
    """Operations a second that the cluster carries, however many are in flight."""
    always_filled: bool = False
    """Whether every record is there from the start, so that no start is spent on filling."""


@runtime_checkable
class Timed(Protocol):
    """Ability: says how long its work takes. Without it a plan assumes, and says so."""

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times of `nodes` nodes that share `cores` processor cores, under a workload of this shape. Pure."""
        ...


@runtime_checkable
class Footprint(Protocol):
    """Ability: says how much disk it takes. Memory is in `memory_mb_per_node`. Without it a plan assumes, and says
    so."""

    def copies(self, nodes: int) -> int:
        """Copies of each record that a cluster of `nodes` nodes keeps."""
        ...

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """Most disk that the nodes take together while they keep `stored_bytes`, all copies counted: with what is
        written anew in the background and logs of what was written."""
        ...


@runtime_checkable
class Foretells(Protocol):
    """Ability: says before anything starts what could never work."""

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """What `nodes` nodes under these settings cannot do for a load; each error names the `key` of the study that
        it is about."""
        ...
