"""Settings of the system `cassandra`, and validation of further `cassandra.yaml` keys before anything starts."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from steelyard.model.value import Value

DEFAULT_VERSION = "5.0.5"

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

OWN_KEYS = {
    "num_tokens": "num_tokens",
    "initial_token": "num_tokens",
    "auto_snapshot": "auto_snapshot",
    "commitlog_total_space": "commitlog_total_space_mb",
    "native_transport_port": "native_port",
    "cluster_name": "",
    "seed_provider": "",
    "auto_bootstrap": "",
    "listen_address": "",
    "listen_interface": "",
    "rpc_address": "",
    "rpc_interface": "",
    "broadcast_address": "",
    "broadcast_rpc_address": "",
    "partitioner": "",
    "data_file_directories": "",
    "commitlog_directory": "",
    "hints_directory": "",
    "saved_caches_directory": "",
    "cdc_raw_directory": "",
    "local_system_data_file_directory": "",
    "start_native_transport": "",
}
"""Keys of `cassandra.yaml` that the system writes by itself, and the setting to use instead, if there is one."""

OWN_JVM_PREFIXES = ("-Xms", "-Xmx", "-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-Dcassandra.config=", "-cp")

YamlValue = str | int | float | bool | list[Any] | dict[str, Any] | None


@cache
def known_keys() -> frozenset[str]:
    """The keys of `cassandra.yaml` that this release knows: the field names of its class Config."""
    text = (resources.files(__package__) / "config_keys.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def nearest(word: str, known: frozenset[str]) -> str:
    """`; did you mean 'x'?`, or nothing."""
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


class Settings(Value):
    """Settings of the system `cassandra`. All are hard to change: another value needs a new cluster."""

    version: str = Field(default=DEFAULT_VERSION, pattern=r"^5\.0\.\d+$")
    """Release, as Maven names it."""
    jars: str | None = None
    """A folder of jars, or a tarball of a release, instead of Maven's."""
    heap_mb: int = Field(default=256, ge=96, le=262_144)
    """Java heap of each node, MiB: least and most alike, as Cassandra's own start script sets it."""
    gc: Literal["serial", "g1"] = "serial"
    """Garbage collector. Cassandra's own choice is g1, which costs 65 MB and a core second more on a small heap."""
    replication_factor: int = Field(default=1, ge=1, le=1000)
    """Copies of each row."""
    compression: Literal["lz4", "snappy", "deflate", "zstd", "none"] = "lz4"
    """Compression of the table."""
    compaction: Literal["size-tiered", "leveled", "unified", "time-window"] = "size-tiered"
    """Compaction strategy of the table."""
    num_tokens: int = Field(default=16, ge=1, le=256)
    """Tokens of each node, evenly interleaved, so that each node owns exactly its share."""
    commitlog_total_space_mb: int | None = Field(default=None, ge=64)
    """Most disk space of the commit log, MiB; None: Cassandra's own, the lesser of 8192 and a quarter of the volume."""
    auto_snapshot: bool = False
    """Whether truncating or dropping a table keeps a snapshot of it. Cassandra's own is true, which fills the disk."""
    native_port: int = Field(default=9042, ge=1024, le=65_535)
    """TCP port for clients."""
    storage_port: int = Field(default=7000, ge=1024, le=65_535)
    """TCP port between nodes."""
    jmx_port: int = Field(default=7199, ge=1024, le=65_535)
    """TCP port of the node's management beans."""
    client_tls: bool = False
    """Whether clients may encrypt, with a throw-away key of the cluster; whether the load does is load.tls."""
    yaml: dict[str, YamlValue] = Field(default_factory=dict)
    """Any further key of `cassandra.yaml`, in the names of 5.0 (`memtable_heap_space = "64MiB"`)."""
    jvm_options: tuple[Annotated[str, Field(pattern=r"^-\S+$")], ...] = ()
    """Further options of the Java virtual machine, one each."""

    @field_validator("yaml")
    @classmethod
    def _known(cls, given: dict[str, YamlValue]) -> dict[str, YamlValue]:
        for key in given:
            if key in OWN_KEYS:
                instead = f"use the setting {OWN_KEYS[key]}" if OWN_KEYS[key] else "the laboratory sets it"
                raise ValueError(f"yaml key {key!r} is not free: {instead}")
            if key not in known_keys():
                raise ValueError(f"cassandra.yaml has no key {key!r}{nearest(key, known_keys())}")
        return given

    @field_validator("jvm_options")
    @classmethod
    def _free(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for option in given:
            if option.startswith(OWN_JVM_PREFIXES):
                raise ValueError(f"JVM option {option!r} is not free; the heap is set with heap_mb")
        return given

    @model_validator(mode="after")
    def _encrypted_once(self) -> Settings:
        if self.client_tls and "client_encryption_options" in self.yaml:
            raise ValueError("client_tls sets client_encryption_options by itself: give one of the two")
        return self

    @model_serializer(mode="wrap")
    def _without_unused(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What later versions added is left out where it is not used: trials of before keep their ids."""
        data: dict[str, Any] = handler(self)
        return data if self.client_tls else {name: value for name, value in data.items() if name != "client_tls"}

    @property
    def memory_mb(self) -> int:
        """What one node needs at least, MiB: the heap, and what was measured beside it (classes, code, buffers)."""
        return self.heap_mb + 192 + self.heap_mb // 4
