"""Swap of nodes of this machine: whether there is any, and whether the kernel counts it per control group.

Version 1 counts it only in kernels built and booted for that (`swapaccount=1`): without, a limit of memory is one of
RAM alone, and a node swaps beyond it as far as the machine has swap.
"""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.format import data_size
from steelyard.model.node_limits import NodeLimits
from steelyard.node import machine_facts
from steelyard.site.base import Refusal
from steelyard.site.kernel.cgroup import Hierarchies

MEBIBYTE = 1024 * 1024
NOT_COUNTED = "this kernel does not count the swap of control groups"
HINT = "boot with swapaccount=1, or run as root: swapoff -a"


def there_mb() -> int:
    """Swap of this machine, MiB."""
    return machine_facts.memory_mb(machine_facts.read("/proc/meminfo")).get("SwapTotal", 0)


def counted(hierarchies: Hierarchies) -> bool:
    """Whether swap of control groups is counted, and so can be limited. Version 2 shows it only in groups that have
    controller memory; where there is none, it is assumed to be counted, as it is by default."""
    if memory := hierarchies.version_1.get("memory"):
        return (memory / "memory.memsw.limit_in_bytes").exists()
    if hierarchies.version_2 is None or not hierarchies.has("memory"):
        return False
    files = [*hierarchies.version_2.glob("memory.max"), *hierarchies.version_2.glob("*/memory.max")]
    return not files or any(file.with_name("memory.swap.max").exists() for file in files)


def refusal(hierarchies: Hierarchies, limits: NodeLimits) -> Refusal | None:
    """Reason why a limit of swap cannot be enforced, or None. On a machine without swap there is nothing to limit."""
    if limits.swap_mb is None or counted(hierarchies) or not there_mb():
        return None
    words = f"swap_mb = {limits.swap_mb} cannot be enforced: {NOT_COUNTED} ({data_size(there_mb() * MEBIBYTE)} of it)"
    return Refusal(words, "node.swap_mb", HINT)


def notes(hierarchies: Hierarchies, limits: NodeLimits, nodes: int) -> Iterator[str]:
    """A sentence where nodes with these limits do not get the swap that is asked for, or get some that is not."""
    if limits.memory_mb is None or not nodes:
        return
    asked_mb, machine_mb = limits.swap_mb or 0, there_mb()
    size = data_size(machine_mb * MEBIBYTE)
    if asked_mb and not machine_mb:
        yield f"node.swap_mb = {asked_mb}, but this machine has no swap: the kernel kills nodes at node.memory_mb"
    elif asked_mb * nodes > machine_mb:
        yield f"node.swap_mb = {asked_mb} per node, but this machine has {size} of swap for all of them together"
    if limits.swap_mb is None and machine_mb and not counted(hierarchies):
        yield (
            f"node.memory_mb limits RAM alone here: {NOT_COUNTED}, and this machine has {size} of it, so that nodes "
            f"swap beyond their memory instead of ending there ({HINT})"
        )
