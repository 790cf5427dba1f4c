"""Settings of the system `etcd`, and the flags of its server that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from steelyard.model.value import Value
from steelyard.node.base import Node, with_port

HEARTBEATS: Final = 5
"""Heartbeats that an election time-out must contain: the server's own limit."""
FLAGS: Final = {
    "heartbeat_ms": "heartbeat-interval", "election_ms": "election-timeout", "snapshot_count": "snapshot-count",
    "quota_backend_mb": "quota-backend-bytes", "auto_compaction_mode": "auto-compaction-mode",
    "auto_compaction_retention": "auto-compaction-retention", "port": "listen-client-urls",
    "peer_port": "listen-peer-urls",
}  # fmt: skip
"""Setting to its flag."""
RESERVED: Final = (
    "advertise-", "auth-", "auto-tls", "cert-", "client-", "config-", "data-dir", "discovery", "force-", "initial-",
    "key-file", "listen-", "log", "name", "peer-", "proxy", "trusted-", "wal-dir",
)  # fmt: skip
"""Beginnings of flags that are not free: addresses and folders are the node's, there is no TLS, and the log is read."""


class Settings(Value):
    """Settings of the system `etcd`. All are hard to change: another value needs a new cluster."""

    clients: Literal["all", "leader"] = "all"
    """Members that the load connects to. all: in turn, and followers forward writes to the leader; leader: the leader
    alone."""
    heartbeat_ms: int = Field(default=100, ge=1, le=10_000)
    """Interval between the leader's heartbeats."""
    election_ms: int = Field(default=1000, ge=5, le=50_000)
    """Time without a heartbeat after which a follower starts an election; at least five heartbeats."""
    snapshot_count: int = Field(default=100_000, ge=1, le=2**40)
    """Committed entries of the log after which a snapshot is written and the log is cut."""
    quota_backend_mb: int = Field(default=2048, ge=1, le=1 << 20)
    """Size of a member's database, MiB, beyond which writes are refused. All versions of a value count, until they are
    compacted."""
    auto_compaction_mode: Literal["periodic", "revision"] = "periodic"
    """Unit of `auto_compaction_retention`: time, or revisions."""
    auto_compaction_retention: str = Field(default="0", pattern=r"^[0-9]+(ms|s|m|h)?$")
    """Old versions that members keep: those of the last `10m`, or of the last `1000` revisions; 0: all."""
    port: int = Field(default=2379, ge=1024, le=65_535)
    """TCP port for clients."""
    peer_port: int = Field(default=2380, ge=1024, le=65_535)
    """TCP port for other members."""
    config: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], str | int | float | bool] = Field(
        default_factory=dict
    )
    """Any further flag of `etcd`, without its dashes (`max-txn-ops = 1000`)."""

    @field_validator("config")
    @classmethod
    def _free(cls, given: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        for name in given:
            setting = next((setting for setting, flag in FLAGS.items() if flag == name), "")
            if setting or name.startswith(RESERVED):
                what = f"use the setting {setting}" if setting else "set by the laboratory"
                raise ValueError(f"flag {name!r} is reserved: {what}")
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.election_ms < HEARTBEATS * self.heartbeat_ms:
            raise ValueError(f"election_ms {self.election_ms} is less than {HEARTBEATS} x heartbeat_ms")
        if self.port == self.peer_port:
            raise ValueError(f"port and peer_port are both {self.port}: clients and members need one each")
        return self


def client_url(node: Node, settings: Settings) -> str:
    """Address of a node for clients."""
    return f"http://{with_port(node.address, settings.port)}"


def peer_url(node: Node, settings: Settings) -> str:
    """Address of a node for the other members."""
    return f"http://{with_port(node.address, settings.peer_port)}"


def flags(settings: Settings, node: Node) -> Mapping[str, str]:
    """Flags of a node's server, but for those that name its peers. Pure."""
    own, peer = client_url(node, settings), peer_url(node, settings)
    return {
        "name": node.name,
        "data-dir": str(node.folder / "data"),
        "listen-client-urls": own,
        "advertise-client-urls": own,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster-state": "new",
        "log-outputs": "stderr",
        "heartbeat-interval": str(settings.heartbeat_ms),
        "election-timeout": str(settings.election_ms),
        "snapshot-count": str(settings.snapshot_count),
        "quota-backend-bytes": str(settings.quota_backend_mb << 20),
        "auto-compaction-mode": settings.auto_compaction_mode,
        "auto-compaction-retention": settings.auto_compaction_retention,
        **{name: _word(value) for name, value in settings.config.items()},
    }


def _word(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
