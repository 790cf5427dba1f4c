"""Node: a machine, or something like one, that has an address and runs commands.

A node is a command prefix (`steelyard-agent enter ... --`, `ssh pi3`, nothing at all) plus an address. Everything that
the laboratory does on a node goes through `Node.prefix`, so that a site stays one short file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from steelyard.model.facts import Role

START = "STEELYARD_START"
"""Environment variable of every process on a leased node: the start and study, from the plan alone. Systems seed their
random choices with it, so that a repeated study repeats them."""


@dataclass(frozen=True)
class Node:
    """One leased node. `prefix` is put before every argv; `folder` is the node's own directory, as the node sees it."""

    name: str
    """`n1`, `n2`, ... for databases, `l1`, ... for load; the same in every lease from the same site."""
    role: Role
    address: str
    """IP address that the other nodes of the lease can reach; the same for the same name in every lease from a site."""
    prefix: tuple[str, ...]
    """Command prefix that runs a command on the node, within its limits."""
    folder: Path
    """Working directory of the node, empty when lent."""
    watch_prefix: tuple[str, ...] = ()
    """Command prefix that runs a command on the node outside its limits, so that instruments are not charged to it."""
    local: bool = True
    """Whether `folder` is on this machine's file system (hard links and plain reads work)."""
    memory_mb: int | None = None
    cpus: float | None = None
    cgroups: tuple[Path, ...] = ()
    """cgroup directories that hold the node's processes; empty where there are none."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables that every process on the node gets; they mark processes as belonging to the lease."""
