"""Settings of a command line as frozen values; `parse_settings` creates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steelyard.dropin.stress.parse.distributions import Distribution, Ratio

UNITS = {"s": (1, "SECONDS"), "m": (60, "MINUTES"), "h": (3600, "HOURS")}


@dataclass(frozen=True)
class Command:
    """The command. One of `count`, `duration` and `uncertainty` is set and ends the load."""

    name: str
    count: int | None
    duration: tuple[int, str] | None
    """Number and unit, such as `(15, "MINUTES")`."""
    uncertainty: float | None
    measurements: tuple[int, int]
    """With `uncertainty`: the smallest and the largest number of measurements."""
    warm_up: bool
    truncate: Literal["never", "once", "always"]
    consistency: str
    serial_consistency: str
    key_size: int
    add: Distribution
    ratios: Mapping[str, float]
    """Share by operation, sorted by name; a single operation unless the command is a mixture."""
    clustering: Distribution | None
    profile: str
    """Paths, separated by commas."""

    @property
    def duration_s(self) -> float | None:
        """Seconds, if a duration ends the load."""
        if self.duration is None:
            return None
        return self.duration[0] * next(float(s) for s, name in UNITS.values() if name == self.duration[1])

    @property
    def writes(self) -> bool:
        """Whether the command changes data; then `auto` pauses between two thread counts."""
        return self.name not in ("read", "counter_read")


@dataclass(frozen=True)
class Rate:
    """The number of threads, or the range to try."""

    threads: int | None
    throttle_per_s: int
    fixed_per_s: int
    auto: bool
    least: int
    most: int


@dataclass(frozen=True)
class Population:
    """Keys, in `sequence` or drawn from `drawn`, as seeds of cassandra-stress, which begin with 1."""

    sequence: tuple[int, int] | None
    drawn: Distribution | None
    wrap: bool


@dataclass(frozen=True)
class Insert:
    """How partitions are written; None if the command line has no value."""

    partitions: Distribution | None
    batch: str | None
    select: Ratio | None


@dataclass(frozen=True)
class Columns:
    """Columns of standard1 and counter1. `names`: in byte order; `given`: whether the user named them."""

    names: tuple[str, ...]
    given: bool
    size: Distribution
    timestamp: str | None
    slice: bool


@dataclass(frozen=True)
class Errors:
    """Error handling. `tries`: attempts per operation, the first included."""

    ignore: bool
    tries: int
    validate: bool


@dataclass(frozen=True)
class SchemaOptions:
    """Keyspace and tables that a write creates."""

    keyspace: str
    strategy: str
    options: Mapping[str, str]
    compression: str | None
    compaction: str | None
    compaction_options: Mapping[str, str]


@dataclass(frozen=True)
class Connection:
    """Nodes, and how to connect to them."""

    nodes: tuple[str, ...]
    whitelist: bool
    datacenter: str | None
    port: int
    user: str | None
    password: str | None
    compression: str
    trusted: Path | None
    own: Path | None


@dataclass(frozen=True)
class Log:
    """Destination of the output."""

    file: Path | None
    histograms: Path | None
    interval_ms: int
    level: str
    row_every_s: int | None = None
    """Seconds between two rows; None: every interval has one."""
    header_every_s: int | None = None


@dataclass(frozen=True)
class Graph:
    """The page of `-graph`, if it is wanted."""

    file: Path | None
    revision: str
    title: str | None
    operation: str


@dataclass(frozen=True)
class Settings:
    """All settings of a command line. `notes`: messages for standard error about accepted words without effect."""

    command: Command
    rate: Rate
    population: Population
    insert: Insert
    columns: Columns
    errors: Errors
    schema: SchemaOptions
    connection: Connection
    log: Log
    graph: Graph
    notes: tuple[str, ...] = ()
