"""Layout of a cluster: the file from which servers know it at their start, and what a node says of it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.node.base import Node
from steelyard.system.redis._settings import BUS, Settings

SLOTS = 16_384
NOT_UP = {"fail", "fail?", "handshake", "noaddr"}


@dataclass(frozen=True)
class Member:
    """A node of the cluster as one of them sees it."""

    id: str
    address: str
    is_master: bool
    is_up: bool
    slots: tuple[str, ...]
    """Ranges of slots that it serves."""
    is_myself: bool = False

    @property
    def serves(self) -> bool:
        """Whether it is up, and has slots or is a replica."""
        return self.is_up and bool(self.slots or not self.is_master)


def masters(nodes: int, settings: Settings) -> int:
    """Masters of a cluster of `nodes` nodes."""
    return max(1, nodes // (settings.replicas + 1))


def file_of(node: Node, peers: Sequence[Node], settings: Settings) -> str:
    """Text of `nodes.conf` for one of the first nodes. The first ones are masters with equal shares of the slots, and
    the others replicas in turn, so that all nodes start at once and need not be introduced to each other."""
    count = masters(len(peers), settings)
    lines = []
    for place, peer in enumerate(peers):
        of = place % count
        flags = ("myself," if peer.name == node.name else "") + ("master" if place < count else "slave")
        master = "-" if place < count else _id(peers[of])
        own = f" {SLOTS * of // count}-{SLOTS * (of + 1) // count - 1}" if place < count else ""
        contact = f"{peer.address}:{settings.port}@{settings.port + BUS}"
        lines.append(f"{_id(peer)} {contact} {flags} {master} 0 0 {of + 1} connected{own}\n")
    return "".join([*lines, f"vars currentEpoch {count} lastVoteEpoch 0\n"])


def seen(text: str) -> tuple[Member, ...]:
    """The answer to CLUSTER NODES, by id."""
    return tuple(sorted((_member(line.split()) for line in text.splitlines() if line), key=lambda member: member.id))


def _member(words: Sequence[str]) -> Member:
    flags = set(words[2].split(","))
    return Member(
        id=words[0],
        address=words[1].partition("@")[0].rpartition(":")[0],
        is_master="master" in flags,
        is_up=words[7] == "connected" and flags.isdisjoint(NOT_UP),
        slots=tuple(word for word in words[8:] if not word.startswith("[")),
        is_myself="myself" in flags,
    )


def _id(node: Node) -> str:
    return hashlib.sha256(node.name.encode()).hexdigest()[:40]
