"""Processor limits of a start: lifted while its nodes start, are filled and warmed up; in force from then on.

A Java server that starts within a fifth of a core takes minutes, and what it compiles until it is warm would be what is
measured (docs/decisions/0014-processor-limits-from-warm-on.md). So whether servers are warm is judged before the limits
are set. They stay in force until the nodes are given back: while data are restored, too, and for servers that are
started again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node.base import Node
from steelyard.site.base import Site, Throttling

LIMIT_TIMEOUT_S: Final = 60.0
FROM: Final = "limit_cpus_from"
"""The fact of a database node whose processors are limited from when the cluster is warm on."""
FROM_START: Final = 'node.cpus_from = "start" has them in force from when the nodes are lent'


async def lift(site: Site, lease: Lease, limits: NodeLimits) -> None:
    """Lift the limits of nodes just lent that are to be limited once they are warm; others are left alone. Raises
    SiteError."""
    if limits.limited_when_warm:
        await _throttling(site).throttle(lease, limited=False)


async def enforce(site: Site, lease: Lease) -> None:
    """Put the limits in force. Raises SiteError."""
    await _throttling(site).throttle(lease, limited=True)


def in_force(databases: Sequence[Node], facts: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Processors that each database node may use, as its site reports them. Raises SiteError if one has no limit."""
    cpus = {node.name: facts.get(node.name, {}).get("limit_cpus", "") for node in databases}
    free = [name for name, text in cpus.items() if text in ("", "none")]
    if free:
        raise SiteError(f"the processor limits were set, but the site reports none of {', '.join(free)}", FROM_START)
    return {name: float(text) for name, text in cpus.items()}


def _throttling(site: Site) -> Throttling:
    if not isinstance(site, Throttling):
        raise SiteError(f"site {site.name} cannot set the processor limits of nodes that run", FROM_START)
    return site
