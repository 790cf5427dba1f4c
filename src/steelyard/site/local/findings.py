"""Findings of `doctor` about the needs of site `local`: privileges, limits of nodes, their disks, links
between them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from steelyard.format import data_size
from steelyard.model.finding import Finding, judged
from steelyard.model.node_limits import NodeLimits
from steelyard.node import machine_facts
from steelyard.node.tasks import in_a_thread
from steelyard.site.kernel import cgroup, disk, links
from steelyard.site.kernel import swap as kernel_swap

ANY_DISK = NodeLimits(disk_gb=1.0)
NO_DISKS = "without it, studies that limit a node's disk (profiles of boards and clouds) are refused"
FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


async def of_this_machine() -> list[Finding]:
    """Every finding. Nothing is created or changed."""
    hierarchies = cgroup.detect()
    return [
        *_root(),
        _limits(hierarchies),
        _disks(hierarchies),
        _rates(hierarchies),
        _cores(hierarchies),
        swap(hierarchies),
        *await in_a_thread(_links),
    ]


def _root() -> list[Finding]:
    needed = ("sys_admin", "net_admin", "setpcap")
    lacking = [name for name in needed if not machine_facts.capable(name)]
    text = f"user {os.geteuid()}" + (f" without {', '.join(lacking)}" if lacking else " with the rights for namespaces")
    hint = "as root each node gets its own network and limits; otherwise nodes are processes on loopback addresses"
    findings = [judged("privileges", text, not lacking, hint)]
    for program in ("ip", "tc"):
        path = shutil.which(program)
        needs = "as root: apt-get install -y iproute2"
        findings.append(judged(program, path or f"no {program} in PATH", path is not None, needs))
    return findings


def _limits(hierarchies: cgroup.Hierarchies) -> Finding:
    able = [name for name in ("cpu", "memory") if hierarchies.has(name)]
    text = f"version {hierarchies.version}, limits of {' and '.join(able) or 'nothing'}"
    why = "; ".join(hierarchies.problems)
    hint = f"{why}; as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes steelyard ..."
    return judged("cgroups", text, len(able) == 2, hint)


def _disks(hierarchies: cgroup.Hierarchies) -> Finding:
    why = disk.lacking(hierarchies, ANY_DISK)
    return judged("loop devices", why or "each node can have its own file system", why is None, NO_DISKS)


def _rates(hierarchies: cgroup.Hierarchies) -> Finding:
    able = hierarchies.has("io")
    kind = "blkio (version 1)" if hierarchies.blkio else "io (version 2)"
    text = f"control group controller {kind}" if able else "no control group controller blkio or io"
    hint = f"{NO_DISKS}; version 2: as root, or systemctl set-property user.slice IOAccounting=yes"
    if able and hierarchies.blkio is not None:
        held = (disk.BACKING_DEVICES / "default" / "strict_limit", *disk.BACKING_DEVICES.glob("*/strict_limit"))
        strict = any(path.exists() for path in held)
        late = "; a kernel before 6.2: writers fill memory before the limit slows them"
        return judged(
            "disk rates", text + ("" if strict else late), strict, "use a kernel of at least 6.2, or cgroup version 2"
        )
    return judged("disk rates", text, able, hint)


def _cores(hierarchies: cgroup.Hierarchies) -> Finding:
    able = hierarchies.has("cpuset")
    hint = 'node.cpu_limit = "cpuset" is refused; version 2: delegate controller cpuset (systemd: Delegate=cpuset)'
    return judged("cpuset", "nodes can have dedicated cores" if able else "no controller cpuset", able, hint)


def swap(hierarchies: cgroup.Hierarchies) -> Finding:
    """Whether nodes can have swap, and no more than they are given."""
    swap_mb = kernel_swap.there_mb()
    if not swap_mb:
        hint = "only node.swap_mb (profiles of boards) needs it: as root, mkswap and swapon a file or a partition"
        return judged("swap", "none: nodes have no swap, whatever node.swap_mb allows", False, hint)
    counted = kernel_swap.counted(hierarchies)
    text = f"{data_size(swap_mb * kernel_swap.MEBIBYTE)}, {'limited per node' if counted else 'not limited per node'}"
    hint = f"{kernel_swap.HINT}; otherwise nodes swap beyond their memory, and node.swap_mb is refused"
    return judged("swap", text, counted, hint)


def _links() -> list[Finding]:
    """TAP devices, netem and the packet filters of bridges. Takes a tenth of a second."""
    privileged = all(machine_facts.capable(name) for name in ("net_admin", "sys_admin"))
    netem = links.has_netem() if privileged else None
    filters = FILTER.read_text(encoding="ascii").strip() if FILTER.is_file() else ""
    return [
        tap(usable=os.access(links.TUN, os.R_OK | os.W_OK), there=links.TUN.exists()),
        netem_of(netem),
        bridge_filters(filters),
    ]


def tap(*, usable: bool, there: bool) -> Finding:
    """TAP devices, which the link program needs. Pure."""
    state = "available" if usable else "not readable and writable by this user" if there else "missing"
    hint = (
        "links with delay, loss or 802.11 need it: run as root"
        if there
        else "links with delay, loss or 802.11 need it. As root: modprobe tun; in a container: --device /dev/net/tun"
    )
    return judged("TAP devices", f"{links.TUN} {state}", usable, hint)


def netem_of(there: bool | None) -> Finding:
    """The kernel's emulation of delay and loss. Nothing depends on it. Pure."""
    if there is None:
        hint = "run as root to try it; links need root in any case"
        return Finding(name="netem", state="poor", found="not tried: this user lacks permission", hint=hint)
    text = (
        "the kernel emulates delay and loss"
        if there
        else "not in this kernel: the link program emulates delay and loss"
    )
    # Not a fault: the link program costs a little CPU time, which is measured and reported.
    return Finding(name="netem", state="good", found=text)


def bridge_filters(value: str) -> Finding:
    """Whether frames on bridges pass the machine's packet filters. `value`: the kernel's setting; empty without
    br_netfilter. Pure."""
    if value != "1":
        return Finding(name="bridges", state="good", found="no packet filters between nodes on bridges")
    hint = (
        "the bridges of site local are in their own namespaces and are not affected; on other bridges, a FORWARD "
        "policy of DROP, which dockerd sets, cuts nodes off. As root: sysctl -w net.bridge.bridge-nf-call-iptables=0"
    )
    return Finding(name="bridges", state="poor", found="frames on bridges of this machine pass iptables", hint=hint)
