"""Facts about a machine, this one unless texts of another are given: processor, memory, kernel, clock, virtualisation,
privileges. Read-only."""

from __future__ import annotations

import hashlib
import os
import platform
import re

from steelyard.node.machine_texts import Texts, ThisMachine

HERE = ThisMachine()
MACHINE_VARIABLE = "STEELYARD_MACHINE"
"""Variable that names this machine: for machines that are copies of one image and have its id, too."""
IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/device-tree/serial-number")
ID_DIGITS, MOST_NAME = 12, 40
CPU_MODEL_KEYS = ("model name", "Model", "Hardware", "cpu model", "Processor")
CAPABILITIES = {"setpcap": 8, "net_admin": 12, "ipc_lock": 14, "sys_admin": 21}
"""Bit numbers; see linux/capability.h."""
CPU_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def read(path: str) -> str:
    """The stripped text of a file, or "" if it does not exist or cannot be read."""
    return HERE.text(path)


def cpu_model(cpuinfo: str, texts: Texts = HERE, architecture: str = "") -> str:
    """Name of the processor in the text of /proc/cpuinfo; machines with a device tree say their board's name there."""
    pairs = dict(_pairs(cpuinfo))
    named = (pairs[key] for key in CPU_MODEL_KEYS if pairs.get(key))
    return next(named, "") or texts.text("/proc/device-tree/model") or architecture or platform.machine()


def memory_mb(meminfo: str) -> dict[str, int]:
    """`MemTotal`, `MemAvailable`, `SwapTotal` ... of /proc/meminfo in MiB."""
    return {key: int(value.split()[0]) // 1024 for key, value in _pairs(meminfo) if value.split()[0].isdigit()}


def ram_mb(iomem: str) -> float:
    """RAM in the memory map of a machine, the text of /proc/iomem, in MiB. Without root its addresses are zeros."""
    ends = (line.partition(" : ")[0].split("-") for line in iomem.splitlines() if line.endswith(" : System RAM"))
    return sum(int(last, 16) - int(first, 16) + 1 for first, last in ends) / 2**20


def capable(name: str, status: str | None = None) -> bool:
    """Whether this process has a capability now (container roots often lack them); `status` is /proc/self/status."""
    mask = dict(_pairs(read("/proc/self/status") if status is None else status)).get("CapEff", "0")
    return bool(int(mask, 16) >> CAPABILITIES[name] & 1)


def virtualisation(texts: Texts = HERE) -> str:
    """Hints that the hardware is shared with others: hypervisor bit, product, container. Empty if there are none."""
    vendor, product_name = texts.text("/sys/class/dmi/id/sys_vendor"), texts.text("/sys/class/dmi/id/product_name")
    product = " ".join(filter(None, (vendor, product_name)))
    flags = dict(_pairs(texts.text("/proc/cpuinfo"))).get("flags", "").split()
    container = texts.has("/.dockerenv") or "container=" in texts.text("/proc/1/environ")
    hints = ["hypervisor"] if "hypervisor" in flags else []
    hints += (
        [texts.text("/sys/hypervisor/type")] + ([product] if product else []) + (["container"] if container else [])
    )
    return ", ".join(hint for hint in hints if hint)


def governor(texts: Texts = HERE) -> str:
    """Frequency governor of the first core; empty if unknown."""
    return texts.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def facts() -> dict[str, str]:
    """Facts about this machine, shared by all of its nodes."""
    return facts_of(HERE, cores=os.cpu_count() or 1, kernel=platform.release(), architecture=platform.machine())


def facts_of(texts: Texts, *, cores: int, kernel: str, architecture: str) -> dict[str, str]:
    """Facts about the machine that wrote the texts."""
    memory = memory_mb(texts.text("/proc/meminfo"))
    known = {
        "cpu_model": cpu_model(texts.text("/proc/cpuinfo"), texts, architecture),
        "cores": str(cores),
        "memory_mb": str(memory.get("MemTotal", 0)),
        "memory_available_mb": str(memory.get("MemAvailable", 0)),
        "swap_mb": str(memory.get("SwapTotal", 0)),
        "kernel": kernel,
        "architecture": architecture,
        "clock_source": texts.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": governor(texts),
        "virtualisation": virtualisation(texts),
    }
    return {key: value for key, value in known.items() if value}


def machine_id(texts: Texts = HERE) -> str:
    """Id of the machine, the same after a restart: its name in `STEELYARD_MACHINE`, else a hash of the id that its
    system has, which is confidential; empty if there is neither."""
    if named := os.environ.get(MACHINE_VARIABLE, ""):
        return named[:MOST_NAME]
    own = next(filter(None, map(texts.text, IDS)), "")
    return hashlib.sha256(f"steelyard {own}".encode()).hexdigest()[:ID_DIGITS] if own else ""


def online(cpus: str) -> int:
    """Number of processors in a kernel's list such as `0-3,6`; 1 for a text that is none."""
    numbers = [(int(first), int(last or first)) for first, last in CPU_RANGE.findall(cpus)]
    return sum(last - first + 1 for first, last in numbers) or 1


def _pairs(text: str) -> list[tuple[str, str]]:
    """`key : value` lines; if there are several processors, the last one counts."""
    cut = (line.partition(":") for line in text.splitlines())
    return [(key.strip(), value.strip()) for key, separator, value in cut if separator and value.strip()]
