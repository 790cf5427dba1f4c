"""Answers of the NameNode and the Master about themselves and the other nodes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

JMX: Final = "/jmx?qry=Hadoop:service=NameNode,name="
STATES: Final = ("NameNodeInfo", "FSNamesystemState")
VERSION: Final = re.compile(r'class="version"[^>]*>\s*([^<\s]+)')
"""Spark's version on its pages."""


@dataclass(frozen=True)
class Seen:
    """The cluster as its first node sees it."""

    datanodes: frozenset[str]
    """Addresses of those in service."""
    decommissioned: frozenset[str]
    """Addresses of those of whose blocks there are enough copies elsewhere."""
    silent_s: Mapping[str, float]
    """Address of each DataNode that lives to the time since it was heard of, at most: one that was killed counts as
    living for minutes."""
    workers: frozenset[str]
    safe_mode: bool
    """Whether the NameNode refuses writes, because it does not know all blocks yet."""
    blocks_to_copy: int
    applications: int

    def serves(self, address: str) -> bool:
        """Whether a node's DataNode and Worker are in service."""
        return address in self.datanodes & self.workers and not self.safe_mode

    def missing(self, addresses: Mapping[str, str]) -> str:
        """Daemons that are missing, of nodes by name, in words; empty if none is."""
        parts = [
            f"{what} of {', '.join(late)}"
            for what, there in (("DataNode", self.datanodes), ("Worker", self.workers))
            if (late := [name for name, address in addresses.items() if address not in there])
        ]
        return " and ".join(parts) or ("the NameNode is in safe mode" if self.safe_mode else "")


def answers(text: str) -> list[Any]:
    """JSON values one after the other. Raises ValueError."""
    decoder, values, at = json.JSONDecoder(), list[Any](), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        values.append(value)
    return values


def seen(text: str) -> Seen:
    """From the answers of the NameNode to both of `STATES` and that of the Master. Raises ValueError, or KeyError while
    they do not know it yet."""
    info, state, spark = answers(text)
    names, blocks = [page["beans"][0] if page["beans"] else {} for page in (info, state)]
    living = {name.rpartition(":")[0]: one for name, one in json.loads(names["LiveNodes"]).items()}
    states = {address: one["adminState"] for address, one in living.items()}
    return Seen(
        datanodes=frozenset(address for address, state in states.items() if state == "In Service"),
        decommissioned=frozenset(address for address, state in states.items() if state == "Decommissioned"),
        silent_s={address: one["lastContact"] + 1.0 for address, one in living.items()},
        workers=frozenset(one["host"] for one in spark["workers"] if one["state"] == "ALIVE"),
        safe_mode=bool(names["Safemode"]),
        blocks_to_copy=int(blocks["UnderReplicatedBlocks"]) + int(blocks["PendingReplicationBlocks"]),
        applications=len(spark["activeapps"]),
    )


def in_force(text: str) -> Mapping[str, tuple[str, str]]:
    """The answer to /conf: property to its value, and the file that it is from."""
    (page,) = answers(text)
    return {row["key"]: (str(row["value"]), str(row["resource"])) for row in page["properties"]}


def worker_of(text: str, address: str) -> tuple[str, str]:
    """Cores and memory in MiB of a worker as the Master lists it; what it lacks is empty."""
    (page,) = answers(text)
    own: Sequence[Any] = [one for one in page["workers"] if one["host"] == address and one["state"] == "ALIVE"]
    return (str(own[0]["cores"]), str(own[0]["memory"])) if own else ("", "")


def executors(text: str) -> int:
    """Number of executors that run, from the answer of a Worker."""
    (page,) = answers(text)
    return len(page["executors"])
