"""Settings of the system `cassandra`, and validation of further `cassandra.yaml` keys before anything starts.

A new setting is one field of `Settings`. Its annotation says where it is written: `YamlKey`, `JvmOption` or
`TableOption`. Configuration, schema and reference page follow from the field; so does the check of what is in force,
except for options of the JVM, and so do the keys of snapshots, with `changes_files`. A key of `cassandra.yaml` that
gets a setting is no longer free in `system.yaml`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from steelyard.model.value import Value, later
from steelyard.system.cassandra import _build, _lines
from steelyard.system.cassandra._build import Build
from steelyard.system.cassandra._contact import contact_of
from steelyard.system.cassandra._lines import Line

DEFAULT_VERSION = "5.0.5"
JOIN_TIMEOUT_S = 1800.0

COMPRESSORS = {
    "lz4": "LZ4Compressor",
    "snappy": "SnappyCompressor",
    "deflate": "DeflateCompressor",
    "zstd": "ZstdCompressor",
    "none": "",
}
COMPACTIONS = {
    "size-tiered": "SizeTieredCompactionStrategy",
    "leveled": "LeveledCompactionStrategy",
    "unified": "UnifiedCompactionStrategy",
    "time-window": "TimeWindowCompactionStrategy",
}

KEYS_OF_THE_LABORATORY = {
    "initial_token": "num_tokens",
    "native_transport_port": "native_port",
    **dict.fromkeys(
        (
            "cluster_name", "seed_provider", "auto_bootstrap", "listen_address", "listen_interface", "rpc_address",
            "rpc_interface", "broadcast_address", "broadcast_rpc_address", "partitioner", "data_file_directories",
            "commitlog_directory", "hints_directory", "saved_caches_directory", "cdc_raw_directory",
            "local_system_data_file_directory", "start_native_transport", "start_rpc",
        ),
        "",
    ),
}  # fmt: skip
"""Keys of `cassandra.yaml` that the system writes itself, and the setting to use instead, if there is one."""

_OF_THE_LABORATORY = "set by the laboratory"
_OF_MANAGEMENT = "the laboratory opens the port of the management beans, with a password"
_DEBUGGING = "a debugger's port has no password: every account on the machine could run code as the node's user"
OWN_JVM_OPTIONS = {
    **dict.fromkeys(("-Xms", "-Xmx"), "the heap is set with heap_mb"),
    **dict.fromkeys(
        ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-Dcassandra.config=", "-cp"), _OF_THE_LABORATORY
    ),
    **dict.fromkeys(("-Dcom.sun.management.", "-Dcassandra.jmx.", "-Djava.rmi."), _OF_MANAGEMENT),
    **dict.fromkeys(("-agentlib:jdwp", "-Xrunjdwp"), _DEBUGGING),
}
"""Beginnings of options of the JVM that are not free, with the reason."""

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class YamlKey:
    """The key of `cassandra.yaml` that a setting is written to; not written if the setting is None."""

    name: str
    unit: str = ""
    """Text after the number, such as `MiB`."""
    changes_files: bool = False
    """Whether it changes how SSTables are written, so that a snapshot is valid for one value only."""

    def value(self, setting: Any) -> Any:
        """The value in the file."""
        return f"{setting}{self.unit}" if self.unit else setting


@dataclass(frozen=True)
class JvmOption:
    """The option of the Java virtual machine that a setting is written to; not written if the setting is None."""

    text: str
    """The option, with `{}` in place of the value: `-XX:MaxDirectMemorySize={}m`."""


@dataclass(frozen=True)
class TableOption:
    """The CQL option, named like the setting, for every table that does not specify it itself; not set if it is
    None."""

    literal: Callable[[Any], str] = str
    """Converts the setting to a CQL literal."""
    in_force: Callable[[Any], str] = str
    """Converts the column of `system_schema.tables` to the setting's word."""
    changes_files: bool = True
    """Whether it changes how SSTables are written, so that a snapshot is valid for one value only."""


@dataclass(frozen=True)
class CassandrasOwn:
    """Cassandra's own default, as shown on the reference page."""

    text: str


OF_EXISTING = ("contact_points", "keyspace", "watched")
"""Settings of an existing cluster, in addition to `managed`."""


def _compressor(word: str) -> str:
    return f"{{'class': '{COMPRESSORS[word]}'}}" if COMPRESSORS[word] else "{'enabled': 'false'}"


def _compression_in_force(column: Mapping[str, str]) -> str:
    compressor = "" if column.get("enabled") == "false" else _last_part(column.get("class"))
    return next((word for word, name in COMPRESSORS.items() if name == compressor), compressor)


def _compaction_in_force(column: Mapping[str, str]) -> str:
    strategy = _last_part(column.get("class"))
    return next((word for word, name in COMPACTIONS.items() if name == strategy), strategy)


def _last_part(class_name: object) -> str:
    return str(class_name).rpartition(".")[2]


YamlValue = str | int | float | bool | list[Any] | dict[str, Any] | None


def nearest(word: str, known: frozenset[str]) -> str:
    """`; did you mean 'x'?`, or an empty string."""
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


class Settings(Value):
    """Settings of the system `cassandra`. All are hard to change: another value needs a new cluster."""

    version: str = Field(default=DEFAULT_VERSION, pattern=rf"^{_lines.VERSION_PATTERN}$")
    """Release number on Maven: of 5.0, 4.1, 3.11, 3.9 or 3.0."""
    jars: str | None = None
    """A folder of jars, or a tarball of a release, instead of Maven's."""
    source: str | None = Field(default=None, max_length=1000)
    """The build as one setting, instead of `version` and `jars`, so that it can be a factor: a version (`5.0.4`), a
    tarball, or a folder of jars with a label (`main=builds/main`). Paths are relative to the current folder."""
    heap_mb: Annotated[int, CassandrasOwn("a quarter of the memory, at most 8192")] = Field(
        default=256, ge=96, le=262_144
    )
    """Java heap per node, MiB: minimum and maximum are equal, as in Cassandra's own start script."""
    gc: Annotated[Literal["serial", "g1"], CassandrasOwn("g1")] = "serial"
    """Garbage collector. Cassandra's own default is g1, which costs 65 MB and one core second more on a small heap."""
    replication_factor: int = Field(default=1, ge=1, le=1000)
    """Copies of each row."""
    compression: Annotated[
        Literal["lz4", "snappy", "deflate", "zstd", "none"],
        TableOption(literal=_compressor, in_force=_compression_in_force),
        CassandrasOwn("lz4"),
    ] = "lz4"
    """Compression of the table."""
    compaction: Annotated[
        Literal["size-tiered", "leveled", "unified", "time-window"],
        TableOption(literal=lambda word: f"{{'class': '{COMPACTIONS[word]}'}}", in_force=_compaction_in_force),
        CassandrasOwn("size-tiered"),
    ] = "size-tiered"
    """Compaction strategy of the table."""
    num_tokens: Annotated[int, YamlKey("num_tokens"), CassandrasOwn("16")] = Field(default=16, ge=1, le=256)
    """Tokens per node, evenly interleaved, so that each node owns exactly its share."""
    commitlog_total_space_mb: Annotated[
        int | None,
        YamlKey("commitlog_total_space", unit="MiB"),
        CassandrasOwn("8192 or a quarter of the volume"),
    ] = Field(default=None, ge=64)
    """Maximum size of the commit log, MiB; None: Cassandra's own, the lesser of 8192 and a quarter of the volume."""
    auto_snapshot: Annotated[bool, YamlKey("auto_snapshot"), CassandrasOwn("true")] = False
    """Whether truncating or dropping a table takes a snapshot of it. Cassandra's own default, true, fills the disk."""
    native_port: Annotated[int, YamlKey("native_transport_port"), CassandrasOwn("9042")] = Field(
        default=9042, ge=1024, le=65_535
    )
    """TCP port for clients."""
    storage_port: Annotated[int, YamlKey("storage_port"), CassandrasOwn("7000")] = Field(
        default=7000, ge=1024, le=65_535
    )
    """TCP port between nodes."""
    jmx_port: Annotated[int, CassandrasOwn("7199")] = Field(default=7199, ge=1024, le=65_535)
    """TCP port of the node's management beans."""
    ring_delay_ms: Annotated[int | None, CassandrasOwn("30000")] = later(None, ge=100, le=600_000)
    """Time that a node which joins or leaves waits for the others to learn of it, on every node. None: 100 ms on the
    first nodes, which do not wait for each other, and Cassandra's own on nodes that join later. If it is short, joins
    fail on busy machines."""
    cleanup: Annotated[Literal["none", "after-joins"], CassandrasOwn("none")] = later("none")
    """Whether nodes remove, after joins, the rows that they no longer own; otherwise these stay on their disks."""
    join_timeout_s: float = later(JOIN_TIMEOUT_S, gt=0, le=86_400)
    """Time limit for a node to join, to leave, or to remove rows after a join."""
    client_tls: Annotated[bool, CassandrasOwn("false")] = False
    """Whether clients may encrypt, with a throw-away key of the cluster; load.tls decides whether the load does."""
    managed: bool = True
    """false: a cluster that exists is measured. Nothing is started, stopped, wiped or configured on it; of these
    settings only those of tables, `replication_factor` and `native_port` apply."""
    contact_points: tuple[str, ...] = Field(default=(), max_length=1000)
    """managed = false: addresses of the nodes that get load, each with its port if it is not `native_port`."""
    keyspace: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,47}$")
    """managed = false: keyspace of the tables. Default: one of Steelyard's own, dropped at the end."""
    watched: bool = False
    """managed = false: whether the site's database nodes are the cluster's machines, so that they can be watched."""
    yaml: dict[str, YamlValue] = Field(default_factory=dict)
    """Any further key of `cassandra.yaml`, by its name in the release (in 5.0 `memtable_heap_space = "64MiB"`)."""
    jvm_options: tuple[Annotated[str, Field(pattern=r"^-\S+$")], ...] = ()
    """Further options for the Java virtual machine, one per item."""

    @field_validator("yaml")
    @classmethod
    def _known(cls, given: dict[str, YamlValue], info: ValidationInfo) -> dict[str, YamlValue]:
        line = _line_of(info.data)
        former = {name: key for key, name in line.former.items()}
        for key in given:
            own = own_keys()
            if (named := former.get(key, key)) in own:
                instead = f"use the setting {own[named]}" if own[named] else "set by the laboratory"
                raise ValueError(f"yaml key {key!r} is reserved: {instead}")
            if key not in line.keys:
                raise ValueError(f"cassandra.yaml of {line.name} has no key {key!r}{nearest(key, line.keys)}")
        return given

    @field_validator("compression", "compaction")
    @classmethod
    def _has(cls, given: str, info: ValidationInfo) -> str:
        line = _line_of(info.data)
        if given in line.lacks:
            there = COMPRESSORS if info.field_name == "compression" else COMPACTIONS
            allowed = ", ".join(word for word in there if word not in line.lacks)
            raise ValueError(f"Cassandra {line.name} has no {info.field_name} {given!r}: {allowed}")
        return given

    @field_validator("jvm_options")
    @classmethod
    def _free(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for option in given:
            for beginning, reason in OWN_JVM_OPTIONS.items():
                if option.startswith(beginning):
                    raise ValueError(f"JVM option {option!r} is reserved: {reason}")
        return given

    @field_validator("source")
    @classmethod
    def _names_a_build(cls, given: str | None) -> str | None:
        if given is not None:
            _build.named(given)
        return given

    @model_validator(mode="after")
    def _one_build(self) -> Settings:
        if self.source is not None and (self.jars is not None or self.version != DEFAULT_VERSION):
            raise ValueError("source already names the build: remove version and jars")
        return self

    @model_validator(mode="after")
    def _encrypted_once(self) -> Settings:
        if self.client_tls and "client_encryption_options" in self.yaml:
            raise ValueError("client_tls already sets client_encryption_options: give only one of them")
        return self

    @model_validator(mode="after")
    def _exists_or_is_made(self) -> Settings:
        of_existing = [name for name in OF_EXISTING if getattr(self, name) != type(self).model_fields[name].default]
        if self.managed and of_existing:
            raise ValueError(f"{of_existing[0]} is for an existing cluster: also set managed = false")
        if not self.managed:
            if not self.contact_points:
                raise ValueError("managed = false: list the cluster's nodes in contact_points")
            for text in self.contact_points:
                contact_of(text, self.native_port)
            if self.yaml or self.jvm_options or self.client_tls:
                raise ValueError("managed = false: an existing cluster is not configured: remove yaml, jvm_options")
        return self

    @property
    def build(self) -> Build:
        """The build that these settings name."""
        if self.source is not None:
            return _build.named(self.source)
        files = None if self.jars is None else Path(self.jars).expanduser()
        return Build(self.version, release=self.version, files=files)

    @property
    def line(self) -> Line:
        """The line of releases: of a build without a number, that of `version`."""
        return _lines.of(self.build.release or self.version)

    @property
    def memory_mb(self) -> int:
        """Memory that one node needs at least, MiB: the heap, and what was measured on top of it (classes, code,
        buffers)."""
        return self.heap_mb + 192 + self.heap_mb // 4

    def annotated(self, kind: type[Kind]) -> Iterator[tuple[str, Kind, Any]]:
        """Name, annotation and value of every setting with an annotation of this kind that is not None."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            for annotation in field.metadata:
                if isinstance(annotation, kind) and value is not None:
                    yield name, annotation, value


def _line_of(given: Mapping[str, Any]) -> Line:
    """The line of settings that are being read."""
    source = given.get("source")
    release = _build.named(source).release if source else None
    return _lines.of(release or given.get("version", DEFAULT_VERSION))


@cache
def own_keys() -> Mapping[str, str]:
    """Keys of `cassandra.yaml` that are not free in `system.yaml`, and the setting to use instead, if there is one."""
    of_settings = {
        annotation.name: name
        for name, field in Settings.model_fields.items()
        for annotation in field.metadata
        if isinstance(annotation, YamlKey)
    }
    return {**KEYS_OF_THE_LABORATORY, **of_settings}
