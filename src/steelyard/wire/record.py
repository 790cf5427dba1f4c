"""Records of engines and probes, one JSON object per line, as frozen values.

The definitions match `crates/steelyard-wire/src/record.rs`; `schema/records.example.jsonl` is the common test of both.
Third-party engines translate their tool's output to these values, so all users of an engine see one type.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from steelyard.model.plausible import LARGEST, LONGEST_NS, MOST_COUNTED, Count, Moment
from steelyard.wire.tables import Tables

FORMAT: Final = 1
"""Version of orders and records; the agent reports its own in `Hello`."""
NS_PER_S: Final = 1e9
LONGEST_QUOTE: Final = 200
"""Bytes of an invalid line that errors show."""
OMITTED: Final[Mapping[str, tuple[str, ...]]] = {
    "connected": ("absent",),
    "interval": ("rows", "keys"),
    "done": ("error_texts", "carries_per_s"),
}
"""By `record`, the fields that a line omits if they are empty."""

Nanoseconds = Annotated[int, Field(ge=0, le=LONGEST_NS)]
InBucket = Annotated[int, Field(ge=0, le=MOST_COUNTED)]


class RecordError(ValueError):
    """A line that is not a record in this format: the problem (`message`), what to do about it (`hint`)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Greeting: the first line of every command that prints records."""

    record: Literal["hello"] = "hello"
    format: int
    agent: str
    """Name or version of the program."""
    optimised: bool
    """Whether the program was built with optimisation."""
    t_s: float
    """Clock of the node when the line was written, seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """Connections are open and statements are prepared."""

    record: Literal["connected"] = "connected"
    nodes: tuple[str, ...]
    """`address:port` of each node."""
    absent: tuple[str, ...] = ()
    """Contacts that do not answer, each with the cause."""
    connections: int
    server: str
    """Version of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Live figures of an interval, for people; the analysis uses `Interval.counts`."""

    rate_per_s: float
    response_ms_p50: float
    response_ms_p99: float
    service_ms_p50: float
    service_ms_p99: float
    pacing_ms_p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A histogram as a table of its occupied buckets."""

    operation: str
    """`read`, `update`, ..., or the name in the program; steps of an operation appear under their own names, with the
    measure `part`."""
    outcome: str
    """Name of an outcome, see `steelyard.model.outcome.Outcome`."""
    measure: str
    """`response`, `service`, `lag`, `pacing` or `part`; see docs/reference/wire.md."""
    buckets: tuple[tuple[Nanoseconds, Nanoseconds, InBucket], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Counts of one interval of one phase."""

    record: Literal["interval"] = "interval"
    phase: str
    """`populate`, `warm-up`, `measure`, or the phase's name in the order."""
    t_s: Moment
    """Beginning of the interval, seconds since the epoch."""
    seconds: Annotated[float, Field(ge=0, le=LARGEST)]
    """Length of the interval."""
    sent: Count
    done: Count
    errors: Count
    unsent: Count = 0
    """Operations that were due and will never be sent: neither done nor failed (open loop)."""
    rows: Mapping[str, Count] = field(default_factory=dict)
    """Rows in answers, by operation, and those that batches with `select` wrote; operations without rows are
    omitted."""
    keys: Mapping[str, Count] = field(default_factory=dict)
    """Keys of operations that draw each of theirs and ended well, by operation."""
    backlog: Count
    """Operations due but not yet sent at the end of the interval (open loop)."""
    cpu_fraction: float
    """CPU time of the generator divided by the interval's length."""
    summary: Summary
    counts: tuple[Counts, ...]

    @property
    def tables(self) -> Tables:
        """The counts by operation, outcome and measure."""
        return Tables({(one.operation, one.outcome, one.measure): one.buckets for one in self.counts})


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """End of a phase."""

    record: Literal["done"] = "done"
    phase: str
    first_sent_s: Moment
    """Time of the first operation sent, seconds since the epoch."""
    last_done_s: Moment
    """Time when the last operation was answered or abandoned."""
    execution_ns: Count
    """Last done - first sent."""
    operations: Count
    """Operations answered without error, including not-found and not-applied."""
    errors: Count
    errors_by_kind: Mapping[str, Count]
    unsent: Count = 0
    """Operations that were due and never sent: neither done nor failed (open loop)."""
    error_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Error messages from servers, by kind: the first few distinct texts."""
    not_found: Count
    """Reads that returned no row, for keys that the fill has written."""
    rows: Count
    """Rows returned by scans, and by all operations of a program."""
    cpu_ns: Count
    """User and system time of the generator during the phase."""
    busiest_thread_fraction: float
    """CPU time of the busiest thread divided by the phase's length."""
    dropped: Count
    """Records that could not be written: must be zero."""
    reconnections: Count
    carries_per_s: float | None = None
    """Rate that the permitted operations in flight allow at the phase's mean service time; None for a closed loop, and
    if nothing was answered."""

    @property
    def execution_s(self) -> float:
        """Time from the first operation sent to the last one answered."""
        return self.execution_ns / NS_PER_S

    @property
    def rate_per_s(self) -> float:
        """Operations without error per second; 0 for a phase of zero length."""
        return self.operations / self.execution_s if self.execution_ns > 0 else 0.0

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Kinds of errors with the servers' messages, sorted by kind."""
        return tuple((kind, text) for kind, texts in sorted(self.error_texts.items()) for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """First operation that was sent to a node which has joined since the load began."""

    record: Literal["routed"] = "routed"
    t_s: Moment
    contact: str
    """`address:port` of the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """Activity of an engine whose operations take minutes, in words; shown, and not kept."""

    record: Literal["doing"] = "doing"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """One reading of a probe, or of an engine."""

    record: Literal["sample"] = "sample"
    t_s: float
    values: Mapping[str, float]
    """Metric to per-second rate, fraction or amount, as the metric's name says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Reason why the agent gave up; a fault of the laboratory."""

    record: Literal["error"] = "error"
    message: str
    hint: str


Record = Hello | Connected | Interval | Done | Routed | Doing | SampleRecord | Failure
"""One line of output."""

NO_SUMMARY: Final = Summary(
    rate_per_s=0.0, response_ms_p50=0.0, response_ms_p99=0.0, service_ms_p50=0.0, service_ms_p99=0.0, pacing_ms_p99=0.0
)
"""Summary of an interval without operations."""


def nothing_done(phase: str) -> Done:
    """End of a phase that never began."""
    return Done(
        phase=phase, first_sent_s=0.0, last_done_s=0.0, execution_ns=0, operations=0, errors=0, errors_by_kind={},
        not_found=0, rows=0, cpu_ns=0, busiest_thread_fraction=0.0, dropped=0, reconnections=0,
    )  # fmt: skip


def parse(line: bytes | str) -> Record:
    """The record on a line. Unknown fields are ignored, as in the agent's own reader; all others must be present and of
    the right type. Raises RecordError for any other line, and for a greeting in another format."""
    try:
        record = _reader().validate_json(line, strict=True)
    except ValidationError as error:
        _refuse_format(_format_of(line))
        raise RecordError(_wrong(line, error)) from error
    if isinstance(record, Hello):
        _refuse_format(record.format)
    return record


def line_of(record: Record) -> str:
    """The record's line, without its line ending: byte for byte as the agent writes it."""
    plain = asdict(record)
    for name in OMITTED.get(record.record, ()):
        if not plain[name] and plain[name] != 0:
            del plain[name]
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


@functools.cache
def _reader() -> TypeAdapter[Record]:
    """The JSON decoder, created on first use, not at import; about twice as fast as `json.loads`."""
    return TypeAdapter(Annotated[Record, Field(discriminator="record")])


def _refuse_format(agent_format: object) -> None:
    if agent_format not in (None, FORMAT):
        raise RecordError(
            f"the agent writes format {agent_format}, but this version requires {FORMAT}",
            "install the same version of steelyard and steelyard-agent",
        )


def _format_of(line: bytes | str) -> object:
    """Format number in a greeting, whatever else it contains; None for any other line."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields.get("format") if isinstance(fields, dict) and fields.get("record") == "hello" else None


def _wrong(line: bytes | str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{line[:LONGEST_QUOTE]!r} is not a record: {f'{place}: ' if place else ''}{first['msg']}"
