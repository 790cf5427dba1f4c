"""Settings of the system `postgresql`, and the options of its servers that follow from them."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from steelyard.model.value import Value
from steelyard.node.base import Node, with_port

BASE_MB: Final = 64
"""Memory of a server without its shared buffers, MiB: that of its processes, with a few connections."""
ROLE: Final = "steelyard"
"""Role and database of the load and of the laboratory. It is no superuser, and no other role can connect."""
HBA: Final = "pg_hba.conf"
"""File of those who may connect, in the node's folder."""
MAX_WAL_MB: Final = 1024
"""Default of `max_wal_size`, MiB."""
ASK_TIMEOUT_S: Final = 10.0
ENGLISH: Final = {"LC_ALL": "C"}
RESERVED: Final = frozenset({"config_file", "data_directory", "hot_standby", "ident_file", "logging_collector"})
"""Further options that are not free: files are the node's, replicas are read, and the log is read."""


class Settings(Value):
    """Settings of the system `postgresql`. All are hard to change: another value needs a new cluster."""

    version: int | None = Field(default=None, ge=15, le=99)
    """Major version of Debian's packages on all nodes; none: the newest on the machine that runs the study."""
    synchronous: int = Field(default=0, ge=0, le=100)
    """Replicas, whichever are first, that must have a write before it is acknowledged; 0: none."""
    synchronous_commit: Literal["off", "local", "remote_write", "on", "remote_apply"] = "on"
    """Condition of a write's acknowledgement. off: nothing; local: the primary's disk; the others, with `synchronous`:
    the replicas' memory (remote_write), disk (on), or that they show it to readers (remote_apply)."""
    shared_buffers_mb: int = Field(default=128, ge=1, le=1 << 19)
    """Memory for pages of tables, MiB."""
    max_connections: int = Field(default=100, ge=10, le=10_000)
    """Most connections to a server, each of which is a process; six are not for the load."""
    wal_keep_mb: int = Field(default=1024, ge=0, le=1 << 19)
    """Write-ahead log that the primary keeps for replicas, MiB; one that is further behind is lost."""
    port: int = Field(default=5432, ge=1024, le=65_535)
    """TCP port."""
    join_timeout_s: float = Field(default=1800.0, gt=0, le=86_400)
    """Time limit for a node to join or to leave."""
    config: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]*$")], str | int | float | bool] = Field(
        default_factory=dict
    )
    """Any further option of `postgresql.conf`, with its value as `SHOW` prints it (`work_mem = "8MB"`, `fsync =
    false`)."""

    @field_validator("config")
    @classmethod
    def _free(cls, given: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        own = options(cls(), Node("", "database", "", (), Path()), "")
        for name in given:
            if name in own or name in RESERVED or name.startswith("ssl"):
                setting = {"wal_keep_size": "wal_keep_mb", "synchronous_standby_names": "synchronous"}.get(name, name)
                instead = next((one for one in (setting, f"{setting}_mb") if one in cls.model_fields), "")
                what = f"use the setting {instead}" if instead else "set by the laboratory"
                raise ValueError(f"option {name!r} is reserved: {what}")
        return given

    @model_validator(mode="after")
    def _waits(self) -> Self:
        if self.synchronous and self.synchronous_commit in ("off", "local"):
            raise ValueError(
                f"synchronous = {self.synchronous} with synchronous_commit = {self.synchronous_commit!r}, which waits "
                "for no replica: use remote_write, on or remote_apply, or synchronous = 0"
            )
        return self


def options(settings: Settings, node: Node, primary: str) -> Mapping[str, str]:
    """Options of a node's server and their values, as `SHOW` prints them; `primary`: connection string of the server
    that it follows. Pure."""
    return {
        "listen_addresses": node.address,
        "port": str(settings.port),
        "unix_socket_directories": "",
        # The primary lists a replica by it, so that the load finds one that joins.
        "cluster_name": with_port(node.address, settings.port),
        "hba_file": str(node.folder / HBA),
        "primary_conninfo": primary,
        "max_connections": str(settings.max_connections),
        "max_wal_senders": "100",
        "max_replication_slots": "100",
        "shared_buffers": _size(settings.shared_buffers_mb),
        # In the node's folder, and not in /dev/shm, where those of a killed server stay.
        "dynamic_shared_memory_type": "mmap",
        "synchronous_standby_names": f"ANY {settings.synchronous} (*)" if settings.synchronous else "",
        "synchronous_commit": settings.synchronous_commit,
        "wal_keep_size": _size(settings.wal_keep_mb),
        "wal_receiver_status_interval": "1s",
        "wal_retrieve_retry_interval": "500ms",
        **{name: word(value) for name, value in settings.config.items()},
    }


def most_log_bytes(settings: Settings) -> int:
    """Write-ahead log that a server keeps at most, in bytes: what is written from one checkpoint to the next
    (`max_wal_size`), and before that what replicas may need (`wal_keep_size`, with one more file of 16 MiB). Slots hold
    no more than that, except while a replica that joins is copied. Source: PostgreSQL 15, documentation, "WAL
    Configuration" (https://www.postgresql.org/docs/15/wal-configuration.html). Pure."""
    size = re.fullmatch(r"(\d+)(MB|GB|TB)", str(settings.config.get("max_wal_size")))
    between_mb = int(size[1]) << {"MB": 0, "GB": 10, "TB": 20}[size[2]] if size else MAX_WAL_MB
    return (between_mb + settings.wal_keep_mb + 16) << 20


def _size(mb: int) -> str:
    return "0" if mb == 0 else f"{mb // 1024}GB" if mb % 1024 == 0 else f"{mb}MB"


def word(value: str | int | float | bool) -> str:
    """A value of `config` as the server reads it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


@functools.cache
def refused(server: Path, name: str, value: str) -> str:
    """Reason for which a server program of this machine refuses an option, in its own words; empty if it takes it, or
    is not here. Nothing is started: it is asked for another option's value."""
    with tempfile.TemporaryDirectory(prefix="steelyard-postgresql-") as folder:
        Path(folder, "postgresql.conf").touch()
        argv = [str(server), "-C", "max_connections", "-D", folder, "-c", f"{name}={value}"]
        try:
            done = subprocess.run(argv, capture_output=True, check=False, timeout=ASK_TIMEOUT_S, env=ENGLISH)
        except (OSError, subprocess.TimeoutExpired):
            return ""
    errors = done.stderr.decode(errors="replace")
    return " ".join(re.findall(r"(?:FATAL|HINT): +(.*)", errors)) if done.returncode else ""
