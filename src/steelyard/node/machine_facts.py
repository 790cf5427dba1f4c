"""Facts about this machine: processor, memory, kernel, clock, virtualisation, privileges. Read-only."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

CPU_MODEL_KEYS = ("model name", "Model", "Hardware", "cpu model", "Processor")
CAPABILITIES = {"setpcap": 8, "net_admin": 12, "ipc_lock": 14, "sys_admin": 21}
"""Bit numbers; see linux/capability.h."""
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def read(path: str) -> str:
    """The stripped text of a file, or "" if it does not exist or cannot be read."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip("\0\n ")
    return ""


def cpu_model(cpuinfo: str) -> str:
    """Name of the processor in the text of /proc/cpuinfo; machines with a device tree say their board's name there."""
    pairs = dict(_pairs(cpuinfo))
    named = (pairs[key] for key in CPU_MODEL_KEYS if pairs.get(key))
    return next(named, "") or read("/proc/device-tree/model") or platform.machine()


def memory_mb(meminfo: str) -> dict[str, int]:
    """`MemTotal`, `MemAvailable`, `SwapTotal` ... of /proc/meminfo in MiB."""
    return {key: int(value.split()[0]) // 1024 for key, value in _pairs(meminfo) if value.split()[0].isdigit()}


def capable(name: str, status: str | None = None) -> bool:
    """Whether this process has a capability now (container roots often lack them); `status` is /proc/self/status."""
    mask = dict(_pairs(read("/proc/self/status") if status is None else status)).get("CapEff", "0")
    return bool(int(mask, 16) >> CAPABILITIES[name] & 1)


def virtualisation() -> str:
    """Hints that the hardware is shared with others: hypervisor bit, product, container. Empty if there are none."""
    product = " ".join(filter(None, (read("/sys/class/dmi/id/sys_vendor"), read("/sys/class/dmi/id/product_name"))))
    flags = dict(_pairs(read("/proc/cpuinfo"))).get("flags", "").split()
    container = Path("/.dockerenv").exists() or "container=" in read("/proc/1/environ")
    hints = ["hypervisor"] if "hypervisor" in flags else []
    hints += [read("/sys/hypervisor/type")] + ([product] if product else []) + (["container"] if container else [])
    return ", ".join(hint for hint in hints if hint)


def governor() -> str:
    """Frequency governor of the first core; empty if unknown."""
    return read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def facts() -> dict[str, str]:
    """Facts about the machine, shared by all of its nodes."""
    memory = memory_mb(read("/proc/meminfo"))
    clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    known = {
        "cpu_model": cpu_model(read("/proc/cpuinfo")),
        "cores": str(os.cpu_count() or 1),
        "memory_mb": str(memory.get("MemTotal", 0)),
        "memory_available_mb": str(memory.get("MemAvailable", 0)),
        "swap_mb": str(memory.get("SwapTotal", 0)),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "clock_source": clock,
        "governor": governor(),
        "virtualisation": virtualisation(),
    }
    return {key: value for key, value in known.items() if value}


def _pairs(text: str) -> list[tuple[str, str]]:
    """`key : value` lines; if there are several processors, the last one counts."""
    cut = (line.partition(":") for line in text.splitlines())
    return [(key.strip(), value.strip()) for key, separator, value in cut if separator and value.strip()]
