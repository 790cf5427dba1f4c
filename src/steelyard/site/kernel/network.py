"""Network namespaces of a lease: one per node, joined by a bridge in another one.

A separate namespace for the bridge keeps the machine's firewall (bridge-nf-call-iptables, dockerd's FORWARD DROP) and
its routes out of the path between nodes, and every lease can use the same addresses. `ip -batch` creates all of it
with a few processes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.leases.records import MARKER, marked
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.model.facts import Role
from steelyard.node.command import run

NETNS_FOLDER = Path("/run/netns")
NAME_PATTERN = re.compile(r"sy-([0-9a-f]{8})-(sw|[nl][0-9]+)")
BRIDGE = "steelyard"
INTERFACE = "eth0"
PREFIX_LENGTH = 16
IP_TIMEOUT_S = 30.0
BRIDGE_FILTERS = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables")


@dataclass(frozen=True)
class Member:
    """One node's place on the bridge."""

    name: str
    address: str
    role: Role = "database"


def namespace(identity: str, node: str) -> str:
    """Name of a node's network namespace."""
    return f"sy-{identity}-{node}"


def switch(identity: str) -> str:
    """Name of the network namespace that holds the bridge."""
    return namespace(identity, "sw")


def path(name: str) -> Path:
    """The file of a network namespace."""
    return NETNS_FOLDER / name


def present(identity: str | None = None, folder: Path = NETNS_FOLDER) -> dict[str, list[str]]:
    """Network namespaces that match our pattern by lease, of one lease or of all."""
    by_lease: dict[str, list[str]] = {}
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    for entry in entries:
        match = NAME_PATTERN.fullmatch(entry.name)
        if match and identity in (None, match[1]):
            by_lease.setdefault(match[1], []).append(entry.name)
    return by_lease


async def add_namespaces(identity: str, members: Sequence[Member]) -> None:
    """Create empty namespaces. Raises SiteError."""
    names = [switch(identity), *(namespace(identity, member.name) for member in members)]
    await batch(identity, None, [f"netns add {name}" for name in names])


async def add_switch(identity: str, members: Sequence[Member]) -> None:
    """Create the bridge and a veth pair to every node; the node's end is eth0. Raises SiteError."""
    lines = [f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up"]
    for member in members:
        target = namespace(identity, member.name)
        lines.append(f"link add {member.name} type veth peer name {INTERFACE} netns {target}")
        lines.append(f"link set {member.name} master {BRIDGE} up")
    await batch(identity, switch(identity), lines)
    await _no_bridge_filters(identity)


async def add_addresses(identity: str, members: Sequence[Member]) -> None:
    """Give every node its address and its loopback. Raises SiteError."""
    await asyncio.gather(*(batch(identity, namespace(identity, member.name), _interface(member)) for member in members))


async def add_taps(identity: str, names: Sequence[str], address: str) -> None:
    """Create a TAP device on the bridge for each virtual machine, and give the bridge an address from which they are
    reached. Raises SiteError."""
    lines = [f"address add {address}/{PREFIX_LENGTH} broadcast + dev {BRIDGE}", "link set lo up"]
    for name in names:
        lines += [f"tuntap add dev {name} mode tap", f"link set {name} master {BRIDGE} up"]
    await batch(identity, switch(identity), lines)


def _interface(member: Member) -> list[str]:
    return [
        "link set lo up",
        f"address add {member.address}/{PREFIX_LENGTH} broadcast + dev {INTERFACE}",
        f"link set {INTERFACE} up",
    ]


async def delete(identity: str) -> None:
    """Remove every namespace of the lease with its contents. Idempotent. Raises SiteError."""
    names = present(identity).get(identity, [])
    if not names:
        return
    error: CommandFailed | None = None
    try:
        # -force continues after a failed line: another process may have removed that namespace already.
        await _ip(identity, ["-force", "-batch", "-"], [f"netns delete {name}" for name in names])
    except CommandFailed as failed:
        error = failed
    if left := present(identity).get(identity, []):
        raise SiteError(f"network namespaces {', '.join(left)} could not be removed", "see `ip netns`") from error


async def _no_bridge_filters(identity: str) -> None:
    """Make frames between nodes skip the packet filters. The switch's namespace has no filters, so this only saves
    time; a kernel without br_netfilter has no such files, and needs none."""
    files = [f"/proc/sys/net/bridge/{name}" for name in BRIDGE_FILTERS]
    argv = ["ip", "netns", "exec", switch(identity), "tee", *files]
    await run(marked({MARKER: identity}), argv, timeout_s=IP_TIMEOUT_S, stdin=b"0\n", check=False)


async def batch(identity: str, inside: str | None, lines: Sequence[str]) -> None:
    """Lines for `ip -batch` in a network namespace; None: in the machine's. Raises SiteError."""
    where = ["-netns", inside] if inside else []
    try:
        await _ip(identity, [*where, "-batch", "-"], lines)
    except CommandFailed as error:
        raise SiteError(
            f"cannot make the network of lease {identity}: {error.stderr_tail.strip() or error.message}",
            'run `steelyard doctor` to see what this machine can do; mode = "loopback" needs no privileges',
        ) from error


async def _ip(identity: str, arguments: Sequence[str], lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    await run(marked({MARKER: identity}), ["ip", *arguments], timeout_s=IP_TIMEOUT_S, stdin=text)
