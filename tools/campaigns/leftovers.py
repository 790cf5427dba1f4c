"""Leftovers of a study on this machine: what belongs to its leases and outlived it."""

from __future__ import annotations

import time
from pathlib import Path

LOOKS = 10
"""So often is looked again at namespaces and cgroups that may be somebody else's."""
PAUSE_S = 0.2


def processes_of(state: Path) -> dict[int, str]:
    """Running processes that a site started for a lease of this state folder: pid to command line. Those of containers
    and machines that this kernel runs are among them while the lease has a record; a watchdog is known by its words."""
    marker = f"STEELYARD_STATE={state}".encode()
    leases = [path.stem.encode() for path in state.glob("leases/*.json")]
    marks = {b"STEELYARD_LEASE=" + lease for lease in leases}
    running: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
            own = marker in environ and any(entry.startswith(b"STEELYARD_LEASE=") for entry in environ)
            if own or not marks.isdisjoint(environ) or any(b" watch " in words and lease in words for lease in leases):
                running[int(process.name)] = words.decode(errors="replace")
        except OSError:
            continue
    return running


def left_behind(state: Path) -> list[str]:
    """Records, folders, mounts, loop devices and processes that belong to leases of `state` and should not be there."""
    records = [f"record {path.name}" for path in state.glob("leases/*.json")]
    folders = [f"folder {path}" for path in state.glob("nodes/*")]
    mounted = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    mounts = [f"mount {place}" for place in mounted if place.startswith(f"{state}/")]
    backing = Path("/sys/block").glob("loop*/loop/backing_file")
    # A device that leaves with the last copy of its mount, in another mount namespace, is nobody's any more.
    loops = [
        f"loop device {path.parent.parent.name}"
        for path in backing
        if f"{state}/" in _text(path) and _text(path.with_name("autoclear")).strip() != "1"
    ]
    return [
        *records,
        *folders,
        *mounts,
        *loops,
        *(f"process {pid} {words[:80]}" for pid, words in processes_of(state).items()),
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it is just being detached
        return ""


def unknown(state: Path) -> list[str]:
    """Network namespaces and cgroups of ours that belong to no lease of others, who may release one between two
    looks."""
    names: list[str] = []
    for _ in range(LOOKS):
        seen = sorted(_namespaces() | _cgroups())
        others = _lent_elsewhere(state)
        names = [name for name in seen if not any(lease in name for lease in others)]
        if not names:
            break
        time.sleep(PAUSE_S)
    return names


def _lent_elsewhere(state: Path) -> set[str]:
    """Ids of leases that other states hold: of somebody who works on the same machine."""
    register = Path("/run/steelyard")
    if not register.is_dir():
        return set()
    entries = (path for path in register.iterdir() if path.is_file())
    return {path.name for path in entries if not path.read_text().startswith(str(state))}


def _namespaces() -> set[str]:
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir() if path.name.startswith("sy-")} if folder.is_dir() else set()


def _cgroups() -> set[str]:
    return {str(path) for path in Path("/sys/fs/cgroup").glob("*/steelyard/*") if path.is_dir()}
