"""Resources of this machine for a study: cores, memory, free disk. Reads, never changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from steelyard.model.value import Value
from steelyard.node import machine_facts


class Machine(Value):
    """Cores and memory that this process may use, and free disk where data will go."""

    cores: int
    memory_mb: int
    """Available now, MiB: free memory and memory that the kernel can reclaim immediately."""
    disk_free_bytes: int
    store_free_bytes: int | None = None
    """The same of the store's disk, if it is another one."""


def read_machine(folder: Path, store: Path | None = None) -> Machine:
    """This machine; `folder` and `store` (or their nearest existing parents) say which disks."""
    existing = _existing(folder)
    near = existing if store is None else _existing(store)
    apart = near.stat().st_dev != existing.stat().st_dev
    return Machine(
        store_free_bytes=shutil.disk_usage(near).free if apart else None,
        cores=len(os.sched_getaffinity(0)),
        memory_mb=machine_facts.memory_mb(machine_facts.read("/proc/meminfo"))["MemAvailable"],
        disk_free_bytes=shutil.disk_usage(existing).free,
    )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
