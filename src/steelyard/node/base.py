"""Node: a machine, or something like one, that has an address and runs commands.

A node is a command prefix (`steelyard-agent enter ... --`, `docker exec -i n1`, `ssh pi3`, nothing at all) plus an
address. Everything that the laboratory does on a node goes through `steelyard.node`: commands (`command`), files
(`files`), processes that outlive a command (`kept`). So a site stays one short file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from steelyard.model.facts import Role

START = "STEELYARD_START"
"""Environment variable of every process on a leased node: the start and study, from the plan alone. Systems seed their
random choices with it, so that a repeated study repeats them."""

DILATION = "STEELYARD_DILATION"
"""Environment variable of every process on a node of a dilated study: by how much its time is stretched. A system whose
times are timers' multiplies them by it; processors and disks are slowed down by the site."""


@dataclass(frozen=True)
class Node:
    """One leased node, as the records of leases keep it. `prefix` is put before every argv; `folder` is the node's own
    directory, as the node sees it."""

    name: str
    """`n1`, `n2`, ... for databases, `l1`, ... for load; the same in every lease from the same site."""
    role: Role
    address: str
    """IP address that the other nodes of the lease can reach."""
    prefix: tuple[str, ...]
    """Command prefix that runs a command on the node, within its limits."""
    folder: Path
    """Working directory of the node, empty when lent."""
    watch_prefix: tuple[str, ...] = ()
    """Command prefix that runs a command on the node outside its limits, so that instruments are not charged to it."""
    commands: bool = True
    """Whether commands can be run on it. Not on a member of a cluster that exists, whose machine is not lent."""
    words: Literal["argv", "shell"] = "argv"
    """Treatment of the words after the prefix. argv: it passes them on as they are; shell: it joins them for a
    shell, as ssh does, so they are quoted and passed as one."""
    inherits: bool = True
    """Whether a command gets the environment of the process that starts the prefix; if not, `env` sets it there."""
    files: Literal["same", "through"] = "same"
    """same: the conductor sees `folder` and `cache` under the same paths; through: only commands on the node do."""
    programs: Literal["same", "own"] = "same"
    """same: the conductor's programs are there, at the same paths; own: the node has its own root file system, and
    programs are found there or brought."""
    processes: Literal["same", "through"] = "same"
    """same: process ids of the node are those of the conductor's /proc; through: only commands on the node see them."""
    hardware: str = ""
    """Name of the machine under the node, for its facts; empty for the conductor's. Which nodes share a
    processor follows from `kernel`."""
    kernel: str = ""
    """Name of the kernel that the node runs on, whose clock and /proc it has; empty for the conductor's. Nodes with
    equal names share processor, memory and clock."""
    agent: str = ""
    """Path of steelyard-agent as the node sees it; empty if it is the conductor's own."""
    cache: Path | None = None
    """Folder on the node that outlives the lease; None if it is the conductor's own."""
    memory_mb: int | None = None
    cpus: float | None = None
    cgroups: tuple[Path, ...] = ()
    """cgroup directories of this machine that hold the node's processes; empty if there are none."""
    own_disk: bool = False
    """Whether `folder` is a file system on a block device that nothing but the node uses, whose counters are its."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables that every process on the node gets; they mark processes as belonging to the lease."""


def with_port(address: str, port: int) -> str:
    """`address:port`, with brackets around an IPv6 address."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def is_loopback(address: str) -> bool:
    """Whether an address reaches only its own machine, or its own network namespace."""
    return ip_address(address).is_loopback
