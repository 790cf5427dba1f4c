"""End of a lease's processes on this machine: by its mark, in its control groups, in its networks."""

from __future__ import annotations

from steelyard.leases import processes as lease_processes
from steelyard.site.kernel import cgroup, network


async def end(identity: str, hierarchies: cgroup.Hierarchies) -> None:
    """End every process of a lease and wait until it is gone. Idempotent. Raises SiteError."""
    groups = cgroup.present(hierarchies, identity).get(identity, [])
    networks = [network.path(name) for name in network.present(identity).get(identity, [])]
    await lease_processes.kill(identity, groups, networks)
