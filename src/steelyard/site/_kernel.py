"""Kernel settings of a node's machine that database guides tell people to check. Read-only."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

SYSCTLS = (
    "vm.swappiness", "vm.max_map_count", "vm.overcommit_memory", "vm.zone_reclaim_mode", "vm.dirty_ratio",
    "vm.dirty_background_ratio", "kernel.numa_balancing", "kernel.sched_autogroup_enabled", "net.core.somaxconn",
    "net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_congestion_control", "fs.file-max",
)  # fmt: skip
"""Stored kernel parameters, except those that this kernel does not have."""
LIMITS = {
    "open_files": resource.RLIMIT_NOFILE,
    "locked_memory_bytes": resource.RLIMIT_MEMLOCK,
    "processes": resource.RLIMIT_NPROC,
    "address_space_bytes": resource.RLIMIT_AS,
    "core_file_bytes": resource.RLIMIT_CORE,
}
"""Resource limits that our child processes inherit."""
CHOSEN = re.compile(r"\[([^\]]+)\]")
ESCAPED = re.compile(r"\\([0-7]{3})")


def read(path: Path) -> str:
    """The stripped text of a file, or "" if it does not exist or cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0\n ")
    except OSError:
        return ""


def chosen(text: str) -> str:
    """The word in brackets of `always [madvise] never`; a text without brackets as it is."""
    match = CHOSEN.search(text)
    return match.group(1) if match else text


def facts(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, str]:
    """Kernel parameters, huge pages, CPU frequency and vulnerabilities, process limits, as far as available.

    The kernel's command line is left out, because it may hold secrets.
    """
    values = {f"sysctl {name}": read(proc / "sys" / name.replace(".", "/")) for name in SYSCTLS}
    pages = sys / "kernel" / "mm" / "transparent_hugepage"
    processors = sys / "devices" / "system" / "cpu"
    values |= {
        "transparent_hugepage": chosen(read(pages / "enabled")),
        "transparent_hugepage_defrag": chosen(read(pages / "defrag")),
        "smt": read(processors / "smt" / "control"),
        "turbo": {"0": "on", "1": "off"}.get(read(processors / "intel_pstate" / "no_turbo"), ""),
        "frequency_most_khz": read(processors / "cpu0" / "cpufreq" / "scaling_max_freq"),
        "frequency_driver": read(processors / "cpu0" / "cpufreq" / "scaling_driver"),
        "numa_nodes": read(sys / "devices" / "system" / "node" / "online"),
        "mitigations": "; ".join(_mitigations(processors / "vulnerabilities")),
    }
    return {name: " ".join(value.split()) for name, value in values.items() if value} | limits()


def _mitigations(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*")):
        state = read(path)
        if state.startswith(("Mitigation", "Vulnerable")):
            yield f"{path.name}: {state}"


def limits() -> dict[str, str]:
    """Soft and hard limits of this process; programs that it starts inherit them."""
    return {
        f"ulimit {name}": "/".join(_limit(one) for one in resource.getrlimit(kind)) for name, kind in LIMITS.items()
    }


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def disk(folder: Path, mounts: str | None = None, sys: Path = Path("/sys")) -> dict[str, str]:
    """File system, device, model, scheduler and read-ahead below a folder; unknown ones are left out.

    `mounts` is the text of /proc/self/mountinfo.
    """
    text = read(Path("/proc/self/mountinfo")) if mounts is None else mounts
    place = os.path.realpath(folder)
    best: tuple[int, list[str], list[str]] | None = None
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(), right.split()
        if len(words) < 6 or len(kind) < 2:
            continue
        point = ESCAPED.sub(lambda match: chr(int(match.group(1), 8)), words[4])
        if (place == point or place.startswith(point.rstrip("/") + "/")) and (best is None or len(point) >= best[0]):
            best = (len(point), words, kind)
    if best is None:
        return {}
    _, words, kind = best
    queue = _queue(sys, words[2])
    values = {
        "disk_filesystem": f"{kind[0]} ({words[5]})",
        "disk_device": kind[1],
        "disk": read(queue.parent / "device" / "model") if queue else "",
        "disk_scheduler": chosen(read(queue / "scheduler")) if queue else "",
        "disk_rotational": {"0": "no", "1": "yes"}.get(read(queue / "rotational"), "") if queue else "",
        "disk_read_ahead_kb": read(queue / "read_ahead_kb") if queue else "",
    }
    return {name: value for name, value in values.items() if value}


def _queue(sys: Path, numbers: str) -> Path | None:
    """The queue of a block device by its `major:minor`; that of the whole disk for a partition."""
    device = sys / "dev" / "block" / numbers
    return next((one / "queue" for one in (device, device.resolve().parent) if (one / "queue").is_dir()), None)
