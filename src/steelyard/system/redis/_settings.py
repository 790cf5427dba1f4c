"""Settings of the system `redis`, and the options of `redis-server` that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from steelyard.model.value import Value
from steelyard.node.base import Node

BASE_MB: Final = 48
"""Memory of a server with few keys, MiB: 36 to 48 were read with 85,000 keys of 200 bytes."""
BUS: Final = 10_000
"""Distance of the port between nodes from that for clients, which is Redis's own."""
RESERVED: Final = ("aclfile", "daemonize", "logfile", "requirepass", "tls-port", "user")
"""Options of the server that are not free: the client sends no password, and the log is read."""


class Settings(Value):
    """Settings of the system `redis`. All are hard to change: another value needs a new cluster."""

    replicas: int = Field(default=0, ge=0, le=100)
    """Replicas of each master, each on a node of its own."""
    appendonly: bool = False
    """Whether every write is appended to a log on the node's disk."""
    appendfsync: Literal["always", "everysec", "no"] = "everysec"
    """When that log is written to the disk itself."""
    maxmemory_mb: int | None = Field(default=None, ge=1, le=1 << 24)
    """Memory for data, MiB, beyond which writes are refused, unless `config` evicts keys; none: no limit."""
    cluster_node_timeout_ms: int = Field(default=15_000, ge=500, le=3_600_000)
    """Time without an answer after which a node counts as failed."""
    io_threads: int = Field(default=1, ge=1, le=128)
    """Threads that write to clients; the commands themselves are always executed by one."""
    port: int = Field(default=6379, ge=1024, le=65_535 - BUS)
    """TCP port for clients; nodes talk to each other on the port that is 10,000 higher."""
    migration_pipeline: int = Field(default=10, ge=1, le=10_000)
    """Keys that move at once when a node joins or leaves; larger is faster, with longer pauses."""
    join_timeout_s: float = Field(default=1800.0, gt=0, le=86_400)
    """Time limit for a node to join or to leave."""
    config: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], str | int | float | bool] = Field(
        default_factory=dict
    )
    """Any further option of `redis.conf`, with its value as `CONFIG GET` prints it (`maxmemory-policy = "allkeys-lru"`,
    sizes in bytes)."""

    @field_validator("config")
    @classmethod
    def _free(cls, given: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        own = {"dir", "bind", *_of_node("", 0), *_of_settings(cls())}
        for name in given:
            if name in own or name in RESERVED:
                setting = name.replace("-", "_")
                instead = next(
                    (one for one in (setting, f"{setting}_mb", f"{setting}_ms") if one in cls.model_fields), ""
                )
                what = f"use the setting {instead}" if instead else "set by the laboratory"
                raise ValueError(f"option {name!r} is reserved: {what}")
        return given

    @property
    def memory_mb(self) -> int:
        """Memory that one node needs at least, MiB."""
        return BASE_MB + (self.maxmemory_mb or 0)


def options(settings: Settings, node: Node) -> Mapping[str, str]:
    """Options of a node's server and their values, as `CONFIG GET` prints them. Pure."""
    further = {name: _word(value) for name, value in settings.config.items()}
    return {"bind": node.address, **_of_node(node.address, settings.port), **_of_settings(settings), **further}


def _of_node(address: str, port: int) -> dict[str, str]:
    return {
        "port": str(port), "cluster-port": str(port + BUS), "cluster-announce-ip": address, "protected-mode": "no",
        "cluster-enabled": "yes", "cluster-config-file": "nodes.conf", "save": "", "shutdown-on-sigterm": "save",
    }  # fmt: skip


def _of_settings(settings: Settings) -> dict[str, str]:
    return {
        "appendonly": _word(settings.appendonly),
        "appendfsync": settings.appendfsync,
        "maxmemory": str((settings.maxmemory_mb or 0) << 20),
        "cluster-node-timeout": str(settings.cluster_node_timeout_ms),
        # A master that gives its last slot away would copy the data of another one.
        "cluster-allow-replica-migration": _word(settings.replicas > 0),
        "io-threads": str(settings.io_threads),
    }


def _word(value: str | int | float | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
