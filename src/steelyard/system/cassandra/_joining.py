"""Interpretation of the logs of a cluster whose nodes join and leave: marks, bytes, refusals. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from steelyard.system.cassandra._state import STREAM_ENDED, is_normal
from steelyard.system.join_marks import Patterns, marks

FAILED = ("Error while waiting on bootstrap to complete", "JOINING_FAILED", "DECOMMISSION_FAILED")
"""Texts after which a server stays alive, but never comes into service."""
PREPARED = re.compile(r"Prepare completed\. Receiving \d+ files\(([\d.]+)(\w+)\), sending \d+ files\(([\d.]+)(\w+)\)")
SOURCE = re.compile(r"RangeStreamer\.java:\d+ - Bootstrap: range .* for keyspace (\w+)$")
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
VIEW = (
    "SELECT address, status, status_with_port, rpc_ready FROM system_views.gossip_info",
    "SELECT id, status FROM system_views.streaming",
)
"""Questions for `movement`."""
MOVING = {"BOOT": "joining", "BOOT_REPLACE": "joining", "LEAVING": "leaving", "MOVING": "moving"}


@dataclass
class Report:
    """Content of the lines of a node's log so far."""

    patterns: Patterns
    seen: dict[str, float] = field(default_factory=dict)
    """Mark to its time on the node's clock, seconds since the epoch."""
    keyspaces: set[str] = field(default_factory=set)
    """Keyspaces of which a joining node asked for rows."""
    received_bytes: int = 0
    sent_bytes: int = 0
    failure: str = ""
    """The line that reported a failure."""

    def take(self, lines: Iterable[str]) -> list[tuple[str, float]]:
        """New marks from further lines, in order."""
        new = []
        for line in lines:
            for name, t_s in marks([line], self.patterns):
                if name not in self.seen:
                    self.seen[name] = t_s
                    new.append((name, t_s))
            if match := SOURCE.search(line):
                self.keyspaces.add(match[1])
            if match := PREPARED.search(line):
                # The sizes have three decimals.
                self.received_bytes += round(float(match[1]) * UNITS[match[2]])
                self.sent_bytes += round(float(match[3]) * UNITS[match[4]])
            if not self.failure and any(text in line for text in FAILED):
                self.failure = line
        return new


def movement(
    members: Collection[str], gossip: Sequence[Mapping[str, Any]], streams: Sequence[Mapping[str, Any]]
) -> str:
    """Reason why no node may join or leave now, as one member sees the cluster; empty if one may. `members`: addresses
    of those in service."""
    for row in gossip:
        state = _status(row)
        if state in MOVING:
            return f"{_plain(row['address'])} is {MOVING[state]}"
    seen = {_plain(row["address"]) for row in gossip if is_normal(row)}
    expected = {_plain(address) for address in members}
    if lacking := sorted(expected - seen):
        return f"{lacking[0]} is not in service"
    if others := sorted(seen - expected):
        return f"{others[0]} is in service and not among the members"
    running = [row for row in streams if str(row["status"]).lower() not in STREAM_ENDED]
    return f"{len(running)} streams are running" if running else ""


def knows(gossip: Sequence[Mapping[str, Any]], address: str) -> bool:
    """Whether a member has heard of a node, whatever has become of it."""
    return _plain(address) in [_plain(row["address"]) for row in gossip]


def _status(row: Mapping[str, Any]) -> str:
    status = str(row.get("status_with_port") or row.get("status") or "")
    return status.partition(",")[0]


def _plain(address: object) -> str:
    return str(ip_address(str(address).lstrip("/").strip("[]")))
