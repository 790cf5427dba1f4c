"""Members of a cluster as each says of itself (`/v3/maintenance/status`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Member:
    """A member's own status."""

    url: str
    id: str
    cluster: str
    version: str
    leader: str
    """Id of the member that it takes for the leader; empty: none."""
    term: int
    committed: int
    """Entries of the log that it knows to be committed."""
    applied: int
    """Entries of the log that its data contain."""
    size_bytes: int
    """Size of its database."""

    @property
    def leads(self) -> bool:
        """Whether it takes itself for the leader."""
        return self.id == self.leader


def seen(urls: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> tuple[Member, ...]:
    """Members by their addresses, and what each answers to /v3/maintenance/status."""
    return tuple(_member(url, status) for url, status in zip(urls, answers, strict=True))


def are_whole(members: Sequence[Member], count: int) -> bool:
    """Whether these are all `count` members of one cluster, and agree on a leader among them."""
    ids, leaders = {member.id for member in members}, {member.leader for member in members}
    agree = len(leaders) == len({member.cluster for member in members}) == 1
    return len(members) == len(ids) == count and agree and leaders <= ids


def _member(url: str, status: Mapping[str, Any]) -> Member:
    """Numbers are texts, and those that are 0 are left out."""
    header = status["header"]
    return Member(
        url=url,
        id=header["member_id"],
        cluster=header["cluster_id"],
        version=status["version"],
        leader=status.get("leader", ""),
        term=int(status.get("raftTerm", 0)),
        committed=int(status.get("raftIndex", 0)),
        applied=int(status.get("raftAppliedIndex", 0)),
        size_bytes=int(status.get("dbSize", 0)),
    )
