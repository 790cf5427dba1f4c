"""End of a lease's processes on this machine: by its mark, in its control groups, in its networks."""

from __future__ import annotations

from steelyard.leases import processes as lease_processes
from steelyard.site import _cgroup, _network


async def end(identity: str, hierarchies: _cgroup.Hierarchies) -> None:
    """End every process of a lease and wait until it is gone. Idempotent. Raises SiteError."""
    groups = _cgroup.present(hierarchies, identity).get(identity, [])
    networks = [_network.path(name) for name in _network.present(identity).get(identity, [])]
    await lease_processes.kill(identity, groups, networks)
