"""Cores, memory and free disk of this machine. Reads, never changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from steelyard.model.value import Value

KIB_PER_MIB = 1024


class Machine(Value):
    """Cores and memory that this process may use, and free disk where data will go."""

    cores: int
    memory_mb: int
    """Available now, MiB: free memory and what the kernel can give back at once."""
    disk_free_bytes: int
    store_free_bytes: int | None = None
    """The same of the store's disk, if it is another one."""


def read_machine(folder: Path, store: Path | None = None) -> Machine:
    """This machine; `folder` and `store` (or their nearest existing parents) say which disks."""
    existing = _existing(folder)
    beside = existing if store is None else _existing(store)
    apart = beside.stat().st_dev != existing.stat().st_dev
    return Machine(
        store_free_bytes=shutil.disk_usage(beside).free if apart else None,
        cores=len(os.sched_getaffinity(0)),
        memory_mb=available_memory_mb(Path("/proc/meminfo").read_text(encoding="ascii")),
        disk_free_bytes=shutil.disk_usage(existing).free,
    )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def available_memory_mb(meminfo: str) -> int:
    """`MemAvailable` of the text of /proc/meminfo, MiB."""
    values = (line.split() for line in meminfo.splitlines())
    return next(int(words[1]) // KIB_PER_MIB for words in values if words[0] == "MemAvailable:")
