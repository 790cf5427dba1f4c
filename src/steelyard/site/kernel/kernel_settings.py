"""Kernel settings of a node's machine that database guides recommend checking: of this machine, or from texts that
another one sent. Read-only."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

from steelyard.node.machine_texts import Texts, ThisMachine
from steelyard.site.kernel import mountinfo as kernel_mountinfo
from steelyard.site.kernel.mountinfo import MountedFileSystem

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
LABELS = {
    "open_files": "Max open files",
    "locked_memory_bytes": "Max locked memory",
    "processes": "Max processes",
    "address_space_bytes": "Max address space",
    "core_file_bytes": "Max core file size",
}
"""The same as /proc/PID/limits calls them."""
CHOSEN = re.compile(r"\[([^\]]+)\]")
QUEUE_FILES = ("queue/scheduler", "queue/rotational", "queue/read_ahead_kb", "device/model", "device/name")
"""Files of a disk below /sys/block; an SD card has a name instead of a model."""


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
    """Kernel parameters, huge pages, CPU frequency and vulnerabilities of this machine, limits of this process, as far
    as available."""
    return facts_of(ThisMachine({"/proc": proc, "/sys": sys})) | limits()


def facts_of(texts: Texts) -> dict[str, str]:
    """Kernel parameters, huge pages, CPU frequency and vulnerabilities of the machine that wrote the texts.

    The kernel's command line is left out, because it may hold secrets.
    """
    values = {f"sysctl {name}": texts.text(f"/proc/sys/{name.replace('.', '/')}") for name in SYSCTLS}
    pages, processors = "/sys/kernel/mm/transparent_hugepage", "/sys/devices/system/cpu"
    values |= {
        "transparent_hugepage": chosen(texts.text(f"{pages}/enabled")),
        "transparent_hugepage_defrag": chosen(texts.text(f"{pages}/defrag")),
        "smt": texts.text(f"{processors}/smt/control"),
        "turbo": {"0": "on", "1": "off"}.get(texts.text(f"{processors}/intel_pstate/no_turbo"), ""),
        "frequency_most_khz": texts.text(f"{processors}/cpu0/cpufreq/scaling_max_freq"),
        "frequency_driver": texts.text(f"{processors}/cpu0/cpufreq/scaling_driver"),
        "numa_nodes": texts.text("/sys/devices/system/node/online"),
        "mitigations": "; ".join(_mitigations(texts, f"{processors}/vulnerabilities/*")),
    }
    return {name: " ".join(value.split()) for name, value in values.items() if value}


def _mitigations(texts: Texts, pattern: str) -> Iterator[str]:
    for path in texts.matching(pattern):
        state = texts.text(path)
        if state.startswith(("Mitigation", "Vulnerable")):
            yield f"{path.rpartition('/')[2]}: {state}"


def limits() -> dict[str, str]:
    """Soft and hard limits of this process; programs that it starts inherit them."""
    return {
        f"ulimit {name}": "/".join(_limit(one) for one in resource.getrlimit(kind)) for name, kind in LIMITS.items()
    }


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def limits_of(text: str) -> dict[str, str]:
    """Soft and hard limits in the text of a /proc/PID/limits."""
    values = {}
    for name, label in LABELS.items():
        if match := re.search(rf"^{label}\s+(\w+)\s+(\w+)", text, re.MULTILINE):
            values[f"ulimit {name}"] = f"{match[1]}/{match[2]}"
    return values


def disk(folder: Path, mounts: str | None = None, sys: Path = Path("/sys")) -> dict[str, str]:
    """File system, device, model, scheduler and read-ahead below a folder; unknown ones are left out.

    `mounts` is the text of /proc/self/mountinfo.
    """
    text = read(kernel_mountinfo.MOUNTINFO) if mounts is None else mounts
    mount = _mount(os.path.realpath(folder), text)
    if mount is None:
        return {}
    queue = _queue(sys, mount.numbers)
    here = ThisMachine({"/queue": queue, "/device": queue.parent / "device"}) if queue else None
    return _mount_facts(mount) | (_queue_facts(here, "/queue", "/device") if here else {})


def disk_of(texts: Texts, folder: str) -> dict[str, str]:
    """The same from texts of another machine, where `folder` must not be a symbolic link."""
    mount = _mount(folder, texts.text(str(kernel_mountinfo.MOUNTINFO)))
    disks = {texts.text(path): path.removesuffix("/dev") for path in texts.matching("/sys/block/*/dev")}
    parts = {
        texts.text(path): path.rpartition("/")[0].rpartition("/")[0] for path in texts.matching("/sys/block/*/*/dev")
    }
    for pattern in QUEUE_FILES:
        texts.matching(f"/sys/block/*/{pattern}")
    if mount is None:
        return {}
    device = (parts | disks).get(mount.numbers)
    return _mount_facts(mount) | (_queue_facts(texts, f"{device}/queue", f"{device}/device") if device else {})


def _mount(place: str, mountinfo: str) -> MountedFileSystem | None:
    """The file system that a path is on, by the text of a mountinfo: the innermost; of two at one point the later."""
    around = [mount for mount in kernel_mountinfo.parse(mountinfo) if Path(place).is_relative_to(mount.point)]
    # Of equal ones, max takes the first.
    return max(reversed(around), key=lambda mount: len(mount.point.parts), default=None)


def _mount_facts(mount: MountedFileSystem) -> dict[str, str]:
    return {"disk_filesystem": f"{mount.kind} ({mount.options})", "disk_device": mount.device}


def _queue_facts(texts: Texts, queue: str, device: str) -> dict[str, str]:
    values = {
        "disk": texts.text(f"{device}/model") or texts.text(f"{device}/name"),
        "disk_scheduler": chosen(texts.text(f"{queue}/scheduler")),
        "disk_rotational": {"0": "no", "1": "yes"}.get(texts.text(f"{queue}/rotational"), ""),
        "disk_read_ahead_kb": texts.text(f"{queue}/read_ahead_kb"),
    }
    return {name: value for name, value in values.items() if value}


def _queue(sys: Path, numbers: str) -> Path | None:
    """The queue of a block device by its `major:minor`; that of the whole disk for a partition."""
    device = sys / "dev" / "block" / numbers
    return next((one / "queue" for one in (device, device.resolve().parent) if (one / "queue").is_dir()), None)
