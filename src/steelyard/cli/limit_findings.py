"""Findings of `doctor` about what makes node profiles real: disks of nodes, cores, swap."""

from __future__ import annotations

from steelyard.cli.finding import Finding, judged
from steelyard.format import data_size
from steelyard.model.node_limits import NodeLimits
from steelyard.site import _cgroup, _disk, _swap

ANY_DISK = NodeLimits(disk_gb=1.0)
NO_DISKS = "without it, studies that limit a node's disk (profiles of boards and clouds) are refused"


def look() -> list[Finding]:
    """Every finding. Nothing is created or changed."""
    hierarchies = _cgroup.detect()
    return [_disks(hierarchies), _rates(hierarchies), _cores(hierarchies), swap(hierarchies)]


def _disks(hierarchies: _cgroup.Hierarchies) -> Finding:
    why = _disk.lacking(hierarchies, ANY_DISK)
    return judged("loop devices", why or "each node can have a file system of its own", why is None, NO_DISKS)


def _rates(hierarchies: _cgroup.Hierarchies) -> Finding:
    able = hierarchies.has("io")
    kind = "blkio (version 1)" if hierarchies.blkio else "io (version 2)"
    text = f"control group controller {kind}" if able else "no control group controller blkio or io"
    mend = f"{NO_DISKS}; version 2: as root, or systemctl set-property user.slice IOAccounting=yes"
    if able and hierarchies.blkio is not None:
        held = (_disk.BACKING_DEVICES / "default" / "strict_limit", *_disk.BACKING_DEVICES.glob("*/strict_limit"))
        strict = any(path.exists() for path in held)
        late = "; a kernel before 6.2: writers fill memory before the limit slows them"
        return judged(
            "disk rates", text + ("" if strict else late), strict, "a kernel from 6.2 on, or cgroup version 2"
        )
    return judged("disk rates", text, able, mend)


def _cores(hierarchies: _cgroup.Hierarchies) -> Finding:
    able = hierarchies.has("cpuset")
    mend = 'node.cpu_limit = "cpuset" is refused; version 2: delegate controller cpuset (systemd: Delegate=cpuset)'
    return judged("cpuset", "nodes can have cores of their own" if able else "no controller cpuset", able, mend)


def swap(hierarchies: _cgroup.Hierarchies) -> Finding:
    """Whether nodes can have swap, and no more than they are given."""
    swap_mb = _swap.there_mb()
    if not swap_mb:
        mend = "only node.swap_mb needs it (profiles of boards): as root, mkswap and swapon a file or a partition"
        return judged("swap", "none: nodes have no swap, whatever node.swap_mb allows", False, mend)
    counted = _swap.counted(hierarchies)
    text = f"{data_size(swap_mb * _swap.MEBIBYTE)}, {'limited per node' if counted else 'not limited per node'}"
    mend = f"{_swap.MEND}; otherwise nodes swap beyond their memory, and node.swap_mb is refused"
    return judged("swap", text, counted, mend)
