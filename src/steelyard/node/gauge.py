"""Measures a node's performance within its limits (`steelyard-agent gauge`)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from steelyard.model.errors import NodeError
from steelyard.model.node_limits import DISK_RATES, NodeLimits
from steelyard.node import agent, files, machine_facts
from steelyard.node.base import Node
from steelyard.node.command import run

TIMEOUT_S = 120.0
"""Least time limit; 4 times the expected time, if that is more."""
CPU_S = 0.8
DISK_S = 2.2
MEMORY_S_PER_GIB = 0.5
FURTHER_S_PER_GIB = 2.5
"""Expected seconds of the parts, on a node with one processor: memory up to 1 GiB and beyond, which the host of a
virtual machine often has to find first."""
BEYOND = 1.25
"""Amount of memory touched beyond its limit, so that a limit that does not hold is seen."""
MIB_PER_GIB = 1024
MEMORY, WITH_SWAP = "memory_mb", "memory_and_swap_mb"
MACHINE_MEMORY = "machine_memory_mb"
"""In place of `memory_mb` where a node has its own kernel, as a virtual machine has, and as much memory as it was
asked to have: nothing is killed at such a limit."""
MEMORY_MAP = Path("/proc/iomem")


def wanted(limits: NodeLimits) -> bool:
    """Whether nodes with these limits are measured: any limit, or a profile, was asked for."""
    return limits != NodeLimits()


def expected_s(limits: NodeLimits) -> float:
    """Expected seconds of measuring one node; 0 if it is not measured."""
    if not wanted(limits):
        return 0.0
    memory_gib = (limits.memory_mb or 0) / MIB_PER_GIB
    memory_s = min(memory_gib, 1.0) * MEMORY_S_PER_GIB + max(0.0, memory_gib - 1.0) * FURTHER_S_PER_GIB
    slow = max(1.0, 1.0 / limits.cpus) if limits.cpus else 1.0
    return CPU_S + memory_s * slow + (DISK_S if limits.slow_disk else 0.0)


def timeout_s(limits: NodeLimits) -> float:
    """Time limit of measuring one node, in seconds."""
    return max(TIMEOUT_S, 4 * expected_s(limits))


async def gauge(node: Node, limits: NodeLimits) -> tuple[dict[str, float], dict[str, float]]:
    """Requested and measured values of a node, by limit. The command runs as a process of the node,
    charged to it. Raises CommandFailed, or NodeError if the answer cannot be read."""
    argv = [agent.on(node), "gauge"]
    argv += ["--folder", str(node.folder)] if limits.slow_disk else []
    if limits.memory_mb is not None:
        most_mb = math.ceil((limits.memory_mb + (limits.swap_mb or 0)) * BEYOND) + 16
        argv += ["--memory-mb", str(most_mb)]
    done = await run(node, argv, timeout_s=timeout_s(limits))
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
        asked, measured, too_little = _asked(limits, answer), _measured(limits, answer), _too_little(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise NodeError(f"{node.name}: the answer of the gauge cannot be read: {error}", node=node.name) from error
    if too_little and node.kernel and limits.memory_mb is not None:
        others = {name: number for name, number in asked.items() if name not in (MEMORY, WITH_SWAP)}
        return others | {MACHINE_MEMORY: float(limits.memory_mb)}, measured | await _machine_memory(node)
    return asked, measured


async def _machine_memory(node: Node) -> dict[str, float]:
    """RAM of a node's machine, before its kernel takes a part of it; nothing if the kernel does not report it."""
    memory_map = (await files.texts(node, MEMORY_MAP)).get(MEMORY_MAP, "")
    ram_mb = machine_facts.ram_mb(memory_map)
    return {MACHINE_MEMORY: ram_mb} if ram_mb >= 1 else {}


def _too_little(answer: dict[str, Any]) -> bool:
    """Whether the machine had too little memory left for the limit to be reached."""
    return MEMORY in answer and answer["memory_ended"] == "machine"


def _swap_mb(limits: NodeLimits, answer: dict[str, Any]) -> int:
    """Swap that a node may use and the machine has, MiB."""
    return min(limits.swap_mb or 0, int(answer.get("machine_swap_mb", 0)))


def _asked(limits: NodeLimits, answer: dict[str, Any]) -> dict[str, float]:
    asked = {name: float(value) for name in ("cpus", *DISK_RATES) if (value := getattr(limits, name)) is not None}
    if limits.memory_mb is not None:
        swap_mb = _swap_mb(limits, answer)
        asked[WITH_SWAP if swap_mb else MEMORY] = float(limits.memory_mb + swap_mb)
    return asked


def _measured(limits: NodeLimits, answer: dict[str, Any]) -> dict[str, float]:
    names = ("cpus", "work_per_cpu_s", *(DISK_RATES if limits.slow_disk else ()))
    measured = {name: float(answer[name]) for name in names}
    if MEMORY in answer and not _too_little(answer):
        measured[WITH_SWAP if _swap_mb(limits, answer) else MEMORY] = float(answer[MEMORY])
    return measured
