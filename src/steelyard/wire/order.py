"""Orders: what the conductor asks of an engine, as a frozen value. `Order.text` is what `steelyard-agent load` reads.

An order is what all have in common, its *target* (by protocol), and its *work* (by kind). The definitions match
`crates/steelyard-wire/src/order.rs`, which gives the meaning of each field; fields that have their default are not
written. `schema/order.schema.json` is generated from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import Field

from steelyard.model.client import Consistency
from steelyard.model.job_inputs import Kind
from steelyard.model.load import BACKLOG_LIMIT
from steelyard.model.value import Value, later
from steelyard.wire.program import Chooser, Program
from steelyard.wire.record import FORMAT
from steelyard.wire.schedule import Schedule

CQL: Final = "cql"
RESP: Final = "resp"
HTTP: Final = "http"
ETCD: Final = "etcd"
POSTGRESQL: Final = "postgresql"
SPARK: Final = "spark"
YCSB_BINDING: Final = "ycsb-binding"


class CqlTarget(Value):
    """A cluster that speaks CQL."""

    client: ClassVar = (
        "read_consistency", "write_consistency", "routing", "connections_per_node", "compression", "tls", "tls_ca",
        "tls_certificate", "tls_key", "tls_verify", "tls_name",
    )  # fmt: skip
    """Settings of the client that the protocol has."""
    port: ClassVar = 9042
    """TCP port of a server, where none is given."""
    protocol: Literal["cql"] = "cql"
    keyspace: str
    table: str = later("")
    """YCSB's table; the statements of a program name theirs."""
    key: str = later("")
    """Name of YCSB's key column."""
    read_consistency: Consistency
    write_consistency: Consistency
    serial_consistency: Literal["SERIAL", "LOCAL_SERIAL"] = later("SERIAL")
    """Consistency level of the first part of lightweight transactions."""
    routing: Literal["token", "round-robin"]
    """token: to a replica of the key; round-robin: to each node in turn."""
    compression: Literal["lz4", "snappy"] | None = later(None)
    """Compression of frames, in both directions."""


class RespTarget(Value):
    """A server or a cluster that speaks RESP."""

    client: ClassVar = ("connections_per_node",)
    port: ClassVar = 6379
    protocol: Literal["resp"] = "resp"
    index: str | None = later(None)
    """Key of the sorted set of all keys, to which inserts add and which scans read; None: scans are not possible."""


class HttpTarget(Value):
    """Servers that speak HTTP/1.1, all with the same documents."""

    client: ClassVar = ("keep_alive",)
    port: ClassVar = 80
    protocol: Literal["http"] = "http"
    keep_alive: bool = later(True)
    """False: a connection for each request, opened and closed within its response time."""


class EtcdTarget(Value):
    """Members of an etcd cluster, asked over the JSON gateway."""

    client: ClassVar = ("serializable",)
    port: ClassVar = 2379
    protocol: Literal["etcd"] = "etcd"
    serializable: bool = later(False)
    """Whether each member answers reads itself, possibly with old data."""


class PostgresqlTarget(Value):
    """A primary with or without replicas that speak PostgreSQL's protocol."""

    client: ClassVar = ("read_from", "connections_per_node", "tls", "tls_ca", "tls_verify", "tls_name")
    port: ClassVar = 5432
    protocol: Literal["postgresql"] = "postgresql"
    database: str = later("steelyard")
    user: str = later("steelyard")
    """Name of the role; its password is in no order."""
    table: str = later("")
    """YCSB's table."""
    key: str = later("")
    """Name of YCSB's key column."""
    read_from: Literal["primary", "replicas", "any"] = later("primary")
    """Servers that reads and scans go to; everything else goes to the primary."""


class JobTarget(Value):
    """A cluster that runs jobs. The agent does not know it: jobs are submitted by other engines."""

    client: ClassVar[tuple[str, ...]] = ()
    port: ClassVar = 7077
    protocol: Literal["spark"] = "spark"
    files: str = later("")
    """Root of the file system that jobs read and write, as `hdfs://10.0.0.1:9000`."""
    submit: tuple[str, ...] = later(())
    """argv, on a load node, that submits the program whose path and arguments follow; `{folder}` in it and in `remove`
    is the load node's folder."""
    program: str = later("")
    """File, on this machine, that does the system's own jobs: called as `PROGRAM NAME INPUT OUTPUT`."""
    remove: tuple[str, ...] = later(())
    """argv, on a load node, that removes the folder whose URL follows; without it outputs stay until the start ends."""


class YcsbBindingTarget(Value):
    """A store that YCSB reaches by a binding of its own. The agent does not know it: engines of others run YCSB."""

    client: ClassVar[tuple[str, ...]] = ()
    port: ClassVar = 27017
    protocol: Literal["ycsb-binding"] = "ycsb-binding"


AnyTarget = CqlTarget | RespTarget | HttpTarget | EtcdTarget | PostgresqlTarget | JobTarget | YcsbBindingTarget
Target = Annotated[AnyTarget, Field(discriminator="protocol")]
TARGETS: Final[Mapping[str, type[AnyTarget]]] = {
    kind.model_fields["protocol"].default: kind for kind in get_args(AnyTarget)
}
"""Protocol to what an order says of it."""
OTHER_ENGINES: Final[Mapping[str, tuple[str, str]]] = {
    SPARK: ("submits no jobs", "use the engine for jobs: load.engine = 'job'"),
    YCSB_BINDING: (
        "does not run YCSB's bindings",
        "name an engine of your own that does, such as load.engine = './ycsb.py'; how: docs/reference/engines.md",
    ),
}
"""Protocols that the agent does not speak: what it does not do, and which engine to name."""


class Proportions(Value):
    """Shares of YCSB's operations, divided by their sum."""

    read: float = later(0.0, ge=0)
    update: float = later(0.0, ge=0)
    insert: float = later(0.0, ge=0)
    scan: float = later(0.0, ge=0)
    read_modify_write: float = later(0.0, ge=0)


class Ycsb(Value):
    """YCSB's core workload; names follow its properties."""

    kind: Literal["ycsb"] = "ycsb"
    fields: tuple[str, ...] = Field(min_length=1)
    """Names of the values of a record."""
    records: int = Field(ge=1)
    """Records that fill the table: keys insert_start up to insert_start + records - 1."""
    insert_start: int = later(0, ge=0)
    proportions: Proportions
    request_distribution: Chooser
    field_length: int = Field(ge=0)
    min_field_length: int = later(1, ge=0)
    field_length_distribution: Literal["constant", "uniform", "zipfian"]
    insert_order: Literal["hashed", "ordered"]
    zero_padding: int = later(1, ge=0)
    read_all_fields: bool
    write_all_fields: bool
    min_scan_length: int = later(1, ge=1)
    max_scan_length: int = Field(ge=1)
    scan_length_distribution: Literal["constant", "uniform", "zipfian"]
    hotspot_data_fraction: float = later(0.2, ge=0, le=1)
    hotspot_operation_fraction: float = later(0.8, ge=0, le=1)
    exponential_percentile: float = later(95.0, gt=0, lt=100)
    exponential_fraction: float = later(0.8571428571, gt=0)
    expected_new_keys: int | None = later(None, ge=0)
    """Keys that the zipfian key space reserves for inserts; None: operations x insert share x 2."""
    insert_lag: int | None = later(None, ge=0)
    """Requests see only keys inserted more than this many operations ago; None: 16 for each other operation that may be
    in flight."""
    validate_fraction: float = later(0.0, ge=0, le=1)
    """Share of the reads and scans whose values are compared with those written."""


class Document(Value):
    """A document that requests ask for. Its body is the letters a to z, repeated and cut to its length."""

    path: str = Field(min_length=1, pattern="^/")
    bytes: int = Field(ge=0)
    share: float = later(1.0, ge=0)
    """Share of the requests, divided by the sum of all shares."""


class Requests(Value):
    """Requests for documents."""

    kind: Literal["requests"] = "requests"
    documents: tuple[Document, ...] = Field(min_length=1)
    validate_fraction: float = later(1.0, ge=0, le=1)
    """Share of the bodies that are compared byte by byte. Status and length are checked always."""

    @property
    def records(self) -> int:
        """No records: the system has the documents."""
        return 0


class JobInput(Value):
    """Input of a job, which the system has generated before the load."""

    path: str = Field(min_length=1, pattern="^/")
    """Below the root of the file system."""
    kind: Kind
    bytes: int = Field(ge=1)
    seed: int = Field(ge=0)


class Jobs(Value):
    """Jobs, each submitted and waited for: one is an operation. The agent does not know them."""

    kind: Literal["jobs"] = "jobs"
    name: str = Field(min_length=1)
    """Name of the operation; without `program`, of one of the system's own jobs."""
    program: str = later("")
    """File of another job, on this machine: a jar or a script."""
    main_class: str = later("")
    """Class of a jar that is executed."""
    arguments: tuple[str, ...] = later(())
    """Arguments of `program`; `{input}` and `{output}` in them are the URLs of the input and of an output folder that
    does not exist."""
    input: JobInput | None = later(None)
    expected: str = later("")
    """Content that the last line of a job must have: a JSON object, of which every key must be there with its value.
    counts: the words of the input and a digest of their counts; order: its records in order. Empty: anything."""
    idle_s: float = later(0.0, ge=0)
    """Seconds before each job of a closed loop, which belong to none."""

    @property
    def records(self) -> int:
        """No records: the system has the input."""
        return 0


Work = Annotated[Ycsb | Program | Requests | Jobs, Field(discriminator="kind")]


class StopAt(Value):
    """End of a phase: the first limit that is reached, over all shares."""

    operations: int | None = later(None, ge=1)
    keys: int | None = later(None, ge=1)
    """Keys that operations take which draw each of theirs; the last takes what is left."""
    duration_s: float | None = later(None, gt=0)


class OrderPhase(Value):
    """One of several measured phases that follow each other without a pause."""

    name: str = Field(min_length=1)
    """Its name in records; each name once, not `populate` or `warm-up`."""
    schedule: Schedule
    duration_s: float = Field(gt=0)


class Share(Value):
    """The operations whose index modulo `of` is `index`."""

    index: int = Field(ge=0)
    of: int = Field(ge=1)


class Tls(Value):
    """Encryption of every connection. Paths are those of the machine that drives the load; files are PEM."""

    ca: str | None = later(None)
    """Certificates of the trusted authorities; None: those of this machine."""
    certificate: str | None = later(None)
    """Certificate of this client and its chain; requires `key`."""
    key: str | None = later(None)
    verify: Literal["full", "chain", "none"] = later("full")
    """Which parts of a node's certificate are checked."""
    name: str | None = later(None)
    """Name that the nodes' certificates must have; None: each contact's own name or address."""


class Order(Value):
    """One load: this work against these contacts by this schedule until this stop."""

    format: Literal[1] = FORMAT
    contacts: tuple[str, ...] = Field(min_length=1)
    """`address:port` of every node."""
    some_contacts: bool = later(False)
    """Whether the load goes on without contacts that do not answer, as long as one does."""
    target: Target
    action: Literal["populate", "load"]
    """Fill the table, or drive the mix."""
    work: Work
    seed: int = Field(ge=0)
    """Seed of the operation stream."""
    schedule: Schedule
    """Schedule of the measured phase and of the warm-up; if there are `phases`, of the warm-up alone."""
    stop: StopAt
    """End of the measured phase."""
    phases: tuple[OrderPhase, ...] = later(())
    """Measured phases in place of the one that `schedule` and `stop` define."""
    words: bool = later(False)
    """Whether measured phases come as words on standard input; `stop` and `phases` are then empty."""
    backlog_limit: int = later(BACKLOG_LIMIT, ge=0)
    """Operations of this process that may be due and not yet sent; one that becomes due beyond it is never sent."""
    drain_s: float | None = later(None, ge=0, le=86400)
    """Open loop: seconds after the end for which what was due before it is still sent. None: the load's length once
    more, at least a time-out."""
    start_at_s: float | None = later(None)
    """When the first phase starts, seconds since the epoch."""
    go: bool = later(False)
    """Whether the first phase waits for the word `go` on standard input. Not with `words` or `start_at_s`."""
    share: Share = later(Share(index=0, of=1))
    """Share of the operations of this process."""
    warm_up_s: float = later(0.0, ge=0)
    """Seconds of the same load before the measured phase."""
    timeout_ms: int = Field(ge=1)
    """Milliseconds after which an operation is given up."""
    tries: int = later(1, ge=1, le=1000)
    """Maximum number of times that a request is sent, until the answer is not an error."""
    connections_per_node: int = later(1, ge=1, le=1024)
    """Connections from each worker thread to each node; on a sharded node to each shard."""
    discover: bool = later(False)
    """Whether nodes that join also get a share of the operations."""
    read_again_s: float | None = later(None, ge=0, le=86400)
    """Rows that were written are read back after the last phase, and those that were not right again after this
    number of seconds: YCSB's workload, one load node. None: they are not."""
    tls: Tls | None = later(None)
    """Encryption; None: none."""
    interval_s: float = Field(gt=0)
    """Seconds of an interval record."""

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """`schedule`, then those of the phases."""
        return (self.schedule, *(phase.schedule for phase in self.phases))

    def with_schedules(self, schedules: Sequence[Schedule]) -> Order:
        """The order with other `schedules`."""
        own, *others = schedules
        pairs = zip(self.phases, others, strict=True)
        phases = tuple(phase.model_copy(update={"schedule": schedule}) for phase, schedule in pairs)
        return self.model_copy(update={"schedule": own, "phases": phases})

    def said(self) -> Iterator[tuple[str, Any]]:
        """Names and values of what the order says apart from its work: fields of its own and of its target that are
        required or differ from their defaults."""
        for part in (self, self.target):
            yield from part.model_dump(exclude={"work", "target"}).items()

    @property
    def text(self) -> str:
        """The order as the agent reads it."""
        return json.dumps(self.model_dump(mode="json"), indent=1)
