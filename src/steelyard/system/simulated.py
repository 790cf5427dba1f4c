"""Simulated cluster with a known scalability law, to test the laboratory against a known answer.

A study of it must recover the law in its settings, or the laboratory is wrong. Each node is one `steelyard-agent sim`,
which speaks Cassandra's native protocol. Data are in the servers' memory and disappear with them. Without `remember`
nothing is stored and every key exists with a made-up row, so that no filling is needed; with it, each row is stored by
the node that received it.

Nodes join a running cluster and leave it, and are missed when they die, in times that are planted, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from steelyard.model.activity import IN_SERVICE, LEFT, LISTENING, STARTED, STREAMED
from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.model.value import Value, later
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import agent, files, kept
from steelyard.node.base import DILATION, START, Node, with_port
from steelyard.node.command import run
from steelyard.system import join_marks
from steelyard.system.base import ClusterTimes, Endpoint, MarkIt
from steelyard.system.join_marks import JOIN_LINES, LEAVE_LINES, Patterns, marks
from steelyard.system.one_server import OneServer, logs
from steelyard.wire.order import CQL

NAME = "simulated"
VERSION = "4.0.0-steelyard-sim"
"""Version that the simulated nodes report to drivers."""
LEASE = "STEELYARD_LEASE"
OUT, ERR = "sim.out", "sim.err"
SCHEMA_TIMEOUT_S = 30.0
EXPECTED_START_S = 0.3
EXPECTED_SCHEMA_S = 0.8
"""Including a check whether there is anything to fill."""
EXPECTED_FILL_S = 0.2
EXPECTED_WIPE_S = 0.2
ROOM = 2.0
"""Disk space that `check` reserves relative to the stored data: an upper bound, since rows are kept in memory."""
LOG_POLL_S = 0.2
"""Time between two looks at the log of a node that joins or leaves; marks have the times of its lines."""
MEMBERS_SAY = {IN_SERVICE: "Node {node} state jump to NORMAL", LEFT: "Removing tokens .* for {node}"}
"""Lines of every member, and of a node that joins, about the node."""
NO_CONNECTION = 3
"""Exit code of `steelyard-agent cql` when the node does not accept connections."""


class Settings(Value):
    """Planted law and its noise; see `steelyard-agent sim --help`."""

    service_us: float = Field(default=500.0, gt=0, le=1e9)
    """Mean service time of an operation on a cluster of one node, s(1)."""
    contention: float = Field(default=0.02, ge=0, le=1000)
    """s(n) = s(1) (1 + contention (n - 1) + coherency n (n - 1)): Gunther's universal scalability law."""
    coherency: float = Field(default=0.0, ge=0, le=1000)
    """See contention."""
    servers: int = Field(default=1, ge=1, le=4096)
    """Number of operations that a node serves at the same time."""
    service_distribution: Literal["constant", "exponential"] = "constant"
    """Variation of single service times around the planted mean."""
    start_cv: float = Field(default=0.0, ge=0, le=10)
    """Coefficient of variation of a factor on all service times of one start of a cluster: variance between starts."""
    trial_cv: float = Field(default=0.0, ge=0, le=10)
    """Coefficient of variation of a factor that each load phase redraws: variance between trials."""
    stall: tuple[str, ...] | None = None
    """`AT_S:FOR_S`: every node stops AT_S seconds after the first operation of each load phase, for FOR_S seconds. One
    text, or a list of them."""
    warm_up: str | None = None
    """`FACTOR:OPERATIONS`: each node begins with FACTOR times the service time, and the excess falls by 1 / e per
    OPERATIONS that the node has served itself, as in a server that compiles what it runs."""
    remember: bool = False
    """Keep rows in memory, each on the node that received it: needs one node or token routing."""
    boot_s: float = later(0.0, ge=0, le=1e6)
    """Time from the start of a node that joins until it talks to the others."""
    ring_delay_s: float = later(0.0, ge=0, le=1e6)
    """Time from announcing that a node joins or leaves until its data move. A node that has left goes on answering for
    so long again, 2 s at least."""
    data_mb: float = later(0.0, ge=0, le=1e12)
    """Data of the whole cluster, of which a node that makes it n nodes receives 1 / n, and one of n that leaves sends
    1 / n."""
    stream_mb_per_s: float = later(100.0, gt=0, le=1e9)
    """Rate at which they move."""
    stream_cost: float = later(1.0, gt=0, le=1e6)
    """Factor on the service times of all members while data move."""
    detect_s: float = later(0.0, ge=0, le=1e6)
    """Time after which the other members take a node that has died out of their ring; 0: never."""
    port: int = Field(default=9042, ge=1, le=65535)
    """TCP port on which the nodes listen for clients."""
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    """Seed of all random draws; every start of a cluster derives a new one from it."""

    @field_validator("stall", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """Accepts a single text, so that a stall can be the level of a factor: "" is none."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip()) or None
        return value

    @field_validator("stall")
    @classmethod
    def _are_times(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for text in value or ():
            at, colon, length = text.partition(":")
            if not (colon and _is_seconds(at) and _is_seconds(length)):
                raise ValueError(f"a stall is AT_S:FOR_S, such as 10:0.5, not {text!r}")
        return value

    @field_validator("warm_up")
    @classmethod
    def _is_warm_up(cls, value: str | None) -> str | None:
        factor, _, operations = (value or "1:1").partition(":")
        try:
            right = 1 <= float(factor) <= 1e6 and 1 <= float(operations) <= 1e12
        except ValueError:
            right = False
        if not right:
            raise ValueError(f"a warm-up is FACTOR:OPERATIONS, such as 3:2000, not {value!r}")
        return value or None

    @model_validator(mode="after")
    def _keeps_members_with_rows(self) -> Self:
        if self.remember and self.detect_s:
            raise ValueError("detect_s needs a cluster without remember: rows do not move to the other nodes")
        return self


def _stretched(stall: str, dilation: float) -> str:
    """A stall in stretched time."""
    if dilation == 1:
        return stall
    return ":".join(repr(float(part) * dilation) for part in stall.split(":"))


def _is_seconds(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1e6
    except ValueError:
        return False


class Simulated(OneServer):
    """Simulated cluster: one `steelyard-agent sim` per node."""

    name = NAME
    dead = "the simulated node has died"
    record_name = "sim.json"
    outputs = (OUT, ERR)
    stop_timeout_s = 5.0
    version = VERSION
    protocol = CQL
    offers = ("simulated_load",)
    memory_mb_per_node = 64
    dilates = True
    """Planted times are timers', which no limit slows down: they are multiplied by the dilation."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.port)
        self.settings = settings
        self._statements: tuple[str, ...] = ()
        """Those that created the schema, which is in the memory of servers."""
        self._restarted: set[str] = set()
        """Names of nodes that were started since."""

    async def prepare(self) -> None:
        """Check that there is an agent; nothing else is needed. Raises EngineError if there is none."""
        agent.find()

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the server and return at once; does nothing if it is running. One that is started again has no schema
        until it is ready."""
        if self._statements and not await self.runs(node):
            self._restarted.add(node.name)
        await super().start(node, peers)

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """The simulator with what is planted."""
        return self.argv(node, peers)

    def argv(self, node: Node, peers: Sequence[Node], *, joins: bool = False) -> list[str]:
        """The node's command line; one that joins asks the first of its peers for the others."""
        asked = self.settings
        others = [with_port(peer.address, asked.port) for peer in peers if peer.name != node.name]
        argv = [agent.on(node), "sim", "--listen", with_port(node.address, asked.port)]
        dilation = float(node.environment.get(DILATION, 1.0))
        if joins:
            argv += ["--join", others[0], *_planted_unless(0.0, "--boot-ms", asked.boot_s * 1000 * dilation)]
        elif others:
            argv += ["--peers", ",".join(others)]
        planted = {
            name: getattr(asked, name) for name in ("service_us", "contention", "coherency", "start_cv", "trial_cv")
        }
        planted["service_us"] *= dilation
        for name, value in planted.items():
            argv += [f"--{name.replace('_', '-')}", repr(value)]
        argv += ["--servers", str(asked.servers), "--service-distribution", asked.service_distribution]
        start = node.environment.get(START) or node.environment.get(LEASE, "")
        argv += ["--seed", str(start_seed(asked.seed, start))]
        for stall in asked.stall or ():
            argv += ["--stall", _stretched(stall, dilation)]
        if asked.warm_up:
            argv += ["--warm-up", asked.warm_up]
        argv += _planted_unless(0.0, "--ring-delay-ms", asked.ring_delay_s * 1000 * dilation)
        if asked.data_mb:
            argv += ["--data-bytes", repr(asked.data_mb * 1e6)]
            argv += ["--stream-bytes-per-s", repr(asked.stream_mb_per_s * 1e6 / dilation)]
        argv += _planted_unless(1.0, "--stream-cost", asked.stream_cost)
        argv += _planted_unless(0.0, "--detect-ms", asked.detect_s * 1000 * dilation)
        return [*argv, "--remember"] if asked.remember else argv

    def keeps_size(self) -> str:
        """With rows that it remembers."""
        return "with system.remember rows stay on the node that received them" if self.settings.remember else ""

    async def join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int:
        """Start a node that joins running ones; returns the bytes planted for it, once all have it in their ring."""
        if why := self.keeps_size():
            raise SystemFault(f"{node.name} cannot join: {why}", node=node.name, system=NAME)
        await self.install(node, (*members, node))
        before = await self._lengths((node, *members))
        mark(STARTED, None)
        await self.launch(node, self.argv(node, members, joins=True))
        listening_s = await self._follow(node, before, mark, JOIN_LINES, LISTENING)
        mark(IN_SERVICE, max(listening_s, await self._seen(node, (node, *members), before, IN_SERVICE)))
        return self._share(len(members) + 1)

    async def leave(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int:
        """Have a node leave; returns the bytes planted for it, once its server, too, has ended."""
        before = await self._lengths(members)
        await self._say(node, "LEAVE")
        streamed_s = await self._follow(node, before, mark, LEAVE_LINES, STREAMED)
        others = [member for member in members if member.name != node.name]
        left_s = await self._seen(node, others, before, LEFT)
        # Where no other has its clock, the lines of the others are not comparable.
        mark(LEFT, max(streamed_s, left_s) if left_s else None)
        while await self.runs(node):  # noqa: ASYNC110 - a server has no event
            await asyncio.sleep(LOG_POLL_S)
        await self.stop(node)
        return self._share(len(members))

    async def clean_up(self, nodes: Sequence[Node]) -> bool:
        """Does nothing: no node keeps rows that it does not own."""
        return False

    def _share(self, nodes: int) -> int:
        return int(self.settings.data_mb * 1e6 / nodes)

    async def _lengths(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Bytes of each node's output so far, by its name."""
        return {node.name: (await files.sizes(node, logs(node))).get(OUT, 0) for node in nodes}

    async def _follow(
        self, node: Node, before: Mapping[str, int], mark: MarkIt, patterns: Patterns, last: str
    ) -> float:
        """Pass on the marks in a node's output up to the `last`; returns its time. Raises SystemFault if the node dies
        first, or cannot go on."""
        marked: set[str] = set()
        while True:
            alive = await self.runs(node)
            lines = await self._added(node, before)
            for name, t_s in marks(lines, patterns):
                if name not in marked:
                    marked.add(name)
                    mark(name, t_s)
                if name == last:
                    return t_s
            if wrong := [line for line in lines if line.startswith("ERROR")]:
                raise SystemFault(f"{node.name}: {wrong[0].partition(' - ')[2]}", node=node.name, system=NAME)
            if not alive:
                await self.refuse_death([node])
            await asyncio.sleep(LOG_POLL_S)

    async def _seen(self, node: Node, by: Sequence[Node], before: Mapping[str, int], name: str) -> float:
        """Wait until all of `by` have logged a mark of the node; returns the last time of those that have its clock, 0
        if none has."""
        last_s, patterns = 0.0, members_say(name, node.address)
        for other in by:
            while not (of := dict(marks(await self._added(other, before), patterns))).get(name):
                await self.refuse_death([other])
                await asyncio.sleep(LOG_POLL_S)
            if other.kernel == node.kernel:
                last_s = max(last_s, of[name])
        return last_s

    async def seen_down(self, viewer: Node, node: Node, since_s: float) -> float | None:
        """As the viewer's output says."""
        return join_marks.seen_down(await self._added(viewer, {viewer.name: 0}), node.address, since_s)

    async def _added(self, node: Node, before: Mapping[str, int]) -> list[str]:
        """Whole lines of a node's output behind the bytes that were there before."""
        output = await files.read(node, logs(node) / OUT, before[node.name])
        return output.decode(errors="replace").rpartition("\n")[0].splitlines()

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers and knows `members` nodes. Raises SystemFault if it died."""
        await self.refuse_death([node])
        try:
            (peers,) = await self._ask(node, "SELECT peer FROM system.peers_v2")
        except CommandFailed as error:
            if error.exit_code == NO_CONNECTION:
                return False
            raise SystemFault(error.message, error.hint, node=node.name, system=NAME) from error
        if len(peers) != members - 1:
            return False
        if node.name in self._restarted:
            await self._say(node, *self._statements)
            self._restarted.discard(node.name)
        return True

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Create keyspace and tables on all nodes (the first informs the others). Idempotent. Raises SystemFault for
        schemas that the simulated cluster does not support."""
        self._statements = (schema.create_keyspace(1), *schema.create_rest())
        await self._say(nodes[0], *self._statements)

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """Port of every node; what is read there is made up unless the nodes remember."""
        return replace(super().endpoint(nodes, schema), compared=self.settings.remember)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Version as reported by the node, and its options as reported by the kernel."""
        (local,) = await self._say(node, "SELECT release_version FROM system.local")
        return {"version": str(local[0]["release_version"]), **_options(await self._command_line(node))}

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Options requested at start that differ from those of the running process."""
        asked = _options(await kept.asked_argv(node, self.record(node)))
        force = _options(await self._command_line(node))
        names = asked.keys() | force.keys()
        return {
            name: (asked.get(name, ""), force.get(name, "")) for name in names if asked.get(name) != force.get(name)
        }

    def ways(self, node: Node) -> Mapping[str, str]:
        """The port, for its own table: it has none of Cassandra's."""
        return {"simulated_load": with_port(node.address, self.settings.port)}

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """There is no background work."""
        return {"background work": 0.0}

    def snapshot_key(self, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any]) -> str:
        """Name of the state."""
        parts = [VERSION, self.settings.remember, len(nodes), str(schema), sorted(data.items())]
        return f"{NAME}-{hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]}"

    async def has(self, nodes: Sequence[Node], key: str) -> bool:
        """Whether the state exists: always if the cluster stores nothing, since it has every row; never if it
        remembers, since it must be filled."""
        return not self.settings.remember

    async def snapshot(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Does nothing: `has` determines whether the state exists."""

    async def restore(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Discard the data written by a trial. Raises SystemFault for a cluster that remembers: it has no snapshot."""
        if not await self.has(nodes, key):
            raise SystemFault(
                "the simulated cluster cannot restore snapshots of its rows", "set data.state to reload", system=NAME
            )
        await self.truncate(nodes, schema)

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Empty the tables on all nodes."""
        await self._say(nodes[0], *(f"TRUNCATE {schema.full_name(table.name)}" for table in schema.all_tables()))

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times: almost 0 for everything but the operations, whose times are planted."""
        service_ms = self.settings.service_us / 1000.0
        return ClusterTimes(
            start_s=EXPECTED_START_S,
            schema_s=EXPECTED_SCHEMA_S,
            fill_s=EXPECTED_FILL_S,
            wipe_s=EXPECTED_WIPE_S,
            service_ms=service_ms,
            most_per_s=nodes * 1000.0 / service_ms,
            always_filled=not self.settings.remember,
        )

    def copies(self, nodes: int) -> int:
        """One: each row is on the node that received it."""
        return 1

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """Upper bound of writable data."""
        return int(stored_bytes * ROOM)

    async def _say(self, node: Node, *statements: str) -> list[list[dict[str, Any]]]:
        try:
            return await self._ask(node, *statements)
        except CommandFailed as error:
            raise SystemFault(error.message, error.hint, node=node.name, system=NAME) from error

    async def _ask(self, node: Node, *statements: str) -> list[list[dict[str, Any]]]:
        argv = [agent.on(node), "cql", "--contact", with_port(node.address, self.settings.port), *statements]
        done = await run(node, argv, timeout_s=SCHEMA_TIMEOUT_S, watch=True)
        return [json.loads(line)["rows"] for line in done.stdout.splitlines() if line.strip()]

    async def _command_line(self, node: Node) -> tuple[str, ...]:
        await self.refuse_death([node])
        server = await kept.ask(node, self.record(node))
        return () if server is None else server.argv


def _planted_unless(nothing: float, option: str, value: float) -> list[str]:
    """The option, unless it plants nothing: clusters that never grow have the command line that they always had."""
    return [] if value == nothing else [option, repr(value)]


def members_say(name: str, address: str) -> Patterns:
    """The line of a member with which the node of an address reaches a mark."""
    return ((name, re.compile(MEMBERS_SAY[name].format(node=join_marks.named(address)))),)


def start_seed(seed: int, start: str) -> int:
    """Seed of one start of a cluster: the same for all its nodes, different for each start; `start` is the study's name
    for it, or the lease outside a study. The agent adds the node's own address for the service times, not for the
    factors: a start is slow or fast as a whole."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{start}".encode()).digest()[:8], "big") >> 1


def create(settings: Settings, cache_folder: Path) -> Simulated:
    """Make the system; no side effects."""
    return Simulated(settings)


def _options(argv: Sequence[str]) -> dict[str, str]:
    """`--name value` pairs after the word `sim`; repeated options are joined, flags are "true"."""
    words = list(argv)
    behind = words[words.index("sim") + 1 :] if "sim" in words else []
    options: dict[str, str] = {}
    name = ""
    for word in behind:
        if word.startswith("--"):
            name = word[2:]
            options.setdefault(name, "")
        elif name:
            options[name] = f"{options[name]},{word}" if options[name] else word
    return {name: value or "true" for name, value in options.items()}
