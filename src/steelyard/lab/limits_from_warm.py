"""Limits of a start that begin when its cluster is warm: lifted while nodes start, are filled and warmed up.

A Java server that starts within a fifth of a core takes minutes, and what it compiles until it is warm would be what is
measured; a memory card takes minutes for rows that a trial reads in seconds
(docs/decisions/0014-processor-limits-from-warm-on.md). So whether servers are warm is judged before the limits are set.
They stay in force until the nodes are given back: while data are restored, too, and for servers that are started again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError
from steelyard.model.node_limits import DISK_RATES, NodeLimits, fact_of_rate
from steelyard.node.base import Node
from steelyard.site.base import Site, Throttling

LIMIT_TIMEOUT_S: Final = 60.0
PROCESSORS_FROM: Final = "limit_cpus_from"
"""The fact of a database node whose processors are limited once the cluster is warm."""
DISK_RATES_FROM: Final = "limit_disk_rates_from"
"""The fact of a database node whose disk is limited once the cluster is warm."""
FROM_START: Final = '{} = "start" has them in force from when the nodes are lent'


@dataclass(frozen=True)
class InForce:
    """Limits that were put in force as the site reports them, by node."""

    cpus: dict[str, float] = field(default_factory=dict)
    disk_rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """Rates in bytes/s and operations/s, by the names of facts."""
    since: dict[str, str] = field(default_factory=dict)
    """Facts of every node: when they come into force."""


async def lift(site: Site, lease: Lease, limits: NodeLimits) -> None:
    """Lift the limits of nodes just lent that are to begin once they are warm; others are left alone. Raises
    SiteError."""
    if limits.limited_when_warm:
        await _throttling(site, limits).throttle(lease, limits, limited=False)


async def enforce(site: Site, lease: Lease, limits: NodeLimits) -> None:
    """Put the limits in force. Raises SiteError."""
    await _throttling(site, limits).throttle(lease, limits, limited=True)


def in_force(databases: Sequence[Node], facts: Mapping[str, Mapping[str, str]], limits: NodeLimits) -> InForce:
    """Limits in force by the facts of the nodes. Raises SiteError if a node has none of what was set."""
    of_node = {node.name: facts.get(node.name, {}) for node in databases}
    cpus, rates, since = {}, {}, {}
    if limits.processors_from_warm:
        cpus = {name: _number(name, known, "limit_cpus", limits) for name, known in of_node.items()}
        since[PROCESSORS_FROM] = "warm"
    if limits.disks_from_warm:
        asked = [fact_of_rate(name) for name in DISK_RATES if getattr(limits, name) is not None]
        rates = {name: {fact: _number(name, known, fact, limits) for fact in asked} for name, known in of_node.items()}
        since[DISK_RATES_FROM] = "warm"
    return InForce(cpus, rates, since)


def _number(node: str, facts: Mapping[str, str], fact: str, limits: NodeLimits) -> float:
    text = facts.get(fact, "")
    if text in ("", "none"):
        raise SiteError(f"the limits of {node} were set, but the site reports no {fact} of it", _hint(limits))
    return float(text)


def _hint(limits: NodeLimits) -> str:
    settings = {"node.cpus_from": limits.processors_from_warm, "node.disk_rates_from": limits.disks_from_warm}
    return FROM_START.format(" and ".join(name for name, chosen in settings.items() if chosen))


def _throttling(site: Site, limits: NodeLimits) -> Throttling:
    if not isinstance(site, Throttling):
        raise SiteError(f"site {site.name} cannot set the limits of nodes that run", _hint(limits))
    return site
