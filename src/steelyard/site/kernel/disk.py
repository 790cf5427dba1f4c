"""Disks of nodes: an ext4 file system each, on a loop device over a sparse file in the lease's folder, throttled.

Throttling a node's control group would miss what it writes in the background: with version 1 the kernel writes that
back as no node's. A device of its own has all of a node's traffic. Version 1 throttles the device in the top group,
where reads and write-back arrive, and `strict_limit` of its backing device info makes writers wait early, instead of
filling memory first (Linux, Documentation/ABI/testing/sysfs-class-bdi). Version 2 throttles it in the node's group,
which has the write-back too. Direct input and output of the loop device keeps the file out of the machine's page cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steelyard.leases.records import ID_PATTERN, MARKER, marked
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.model.node_limits import DEFAULT_DISK_GB, DISK_RATES, NodeLimits, fact_of_rate
from steelyard.node import machine_facts
from steelyard.node.command import run
from steelyard.site.base import WRITE_OUT_TIMEOUT_S, KernelTexts
from steelyard.site.kernel import mountinfo
from steelyard.site.kernel.cgroup import ROOT, Hierarchies

SUFFIX = ".disk"
"""End of the name of a node's file system in a file; before it, the node's name."""
BLOCK_DEVICES = Path("/sys/block")
BACKING_DEVICES = Path("/sys/class/bdi")
LOOP_CONTROL = Path("/dev/loop-control")
PROGRAMS = ("mke2fs", "losetup", "mount", "umount", "sync")
PACKAGES = {"mke2fs": "e2fsprogs", "losetup": "mount", "mount": "mount", "umount": "mount", "sync": "coreutils"}
SYSTEM_FOLDERS = "/usr/sbin:/sbin"
COMMAND_TIMEOUT_S = 60.0
BUSY_TIMEOUT_S = 10.0
BUSY_POLL_S = 0.05
BYTES_PER_MB = 1_000_000
BYTES_PER_INODE = 262_144
LEAST_DIRTY_BYTES = 4 << 20
DIRTY_S = 0.5
"""Seconds of writing at the limit that a node may have in memory before its writers wait."""
VERSION_1_FILES: Final = {
    "disk_read_mb_per_s": "blkio.throttle.read_bps_device",
    "disk_write_mb_per_s": "blkio.throttle.write_bps_device",
    "disk_read_ops_per_s": "blkio.throttle.read_iops_device",
    "disk_write_ops_per_s": "blkio.throttle.write_iops_device",
}
VERSION_2_KEYS: Final = {
    "disk_read_mb_per_s": "rbps",
    "disk_write_mb_per_s": "wbps",
    "disk_read_ops_per_s": "riops",
    "disk_write_ops_per_s": "wiops",
}
DELETED = " (deleted)"
LEAVING = "1"
"""Kernel's name for a device that was detached while in use: it disappears with its last user."""


def rates(limits: NodeLimits) -> dict[str, int]:
    """The rates of a node's limits by field, in bytes/s and operations/s."""
    named = {field: getattr(limits, field) for field in VERSION_1_FILES}
    return {
        field: round(value * BYTES_PER_MB) if field.endswith("mb_per_s") else int(value)
        for field, value in named.items()
        if value is not None
    }


def lacking(
    hierarchies: Hierarchies, limits: NodeLimits, *, control: Path = LOOP_CONTROL, folders: str = SYSTEM_FOLDERS
) -> str | None:
    """Reason why this machine cannot give nodes disks with these limits, or None."""
    if missing := [name for name in PROGRAMS if _program(name, folders) is None]:
        packages = " ".join(dict.fromkeys(PACKAGES[name] for name in missing))
        return f"a separate disk needs {', '.join(missing)} (Debian: apt-get install {packages})"
    if not control.exists():
        return "a separate disk needs loop devices (as root: modprobe loop)"
    if not machine_facts.capable("sys_admin"):
        return "a separate disk needs root; this process lacks sys_admin"
    if rates(limits) and not hierarchies.has("io"):
        return "disk rates need control group controller blkio (version 1) or io (version 2); neither is available"
    return None


def image(folder: Path) -> Path:
    """The file that holds the file system mounted at a node's folder."""
    return folder.with_name(folder.name + SUFFIX)


async def make_file_system(identity: str, folder: Path, limits: NodeLimits) -> None:
    """Create a node's file system in a sparse file, complete: nothing is left for the kernel to do in the background.
    Raises SiteError."""
    path = image(folder)
    try:
        with path.open("wb") as file:
            file.truncate(round(limits.disk_size_bytes or DEFAULT_DISK_GB * 1e9))
    except OSError as error:
        raise SiteError(f"cannot make {path}: {error.strerror}") from error
    now = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    await _run(
        identity, "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-i", str(BYTES_PER_INODE), "-E", now, str(path)
    )


async def attach(identity: str, folder: Path) -> None:
    """Attach a loop device to a node's file, past the page cache where the file system below allows it. Raises
    SiteError."""
    words = ["--find", "--nooverlap", str(image(folder))]
    try:
        await _run(identity, "losetup", "--direct-io=on", *words)
    except SiteError:
        await _run(identity, "losetup", *words)


async def mount(identity: str, folder: Path, limits: NodeLimits, hierarchies: Hierarchies) -> None:
    """Throttle a node's device, then mount it. Raises SiteError."""
    device = _own(folder)
    if limits.slow_disk:
        set_rates(folder, limits, hierarchies)
    await _run(identity, "mount", "-t", "ext4", "-o", "nosuid,nodev", f"/dev/{device}", str(folder))
    with contextlib.suppress(OSError):
        (folder / "lost+found").rmdir()


async def write_out(identity: str, folder: Path) -> None:
    """Wait until a node's data is on its disk. Raises SiteError."""
    await _run(identity, "sync", "--file-system", str(folder), timeout_s=WRITE_OUT_TIMEOUT_S)


def set_rates(folder: Path, limits: NodeLimits, hierarchies: Hierarchies) -> None:
    """Set the rates of the disk of a node that runs; those without a limit are lifted. Idempotent. Raises SiteError."""
    for file, text in throttle(_number(_own(folder)), limits, hierarchies, _group(hierarchies, folder)):
        _write(file, text)


def slowed(
    folder: Path, slow: NodeLimits, limits: NodeLimits, hierarchies: Hierarchies
) -> tuple[KernelTexts, KernelTexts]:
    """Kernel files and their contents so that the disk of a node that has `limits` keeps to the rates of `slow`, too;
    and those that end it. Raises SiteError if it has none."""
    return _slowed(_number(_own(folder)), slow, limits, hierarchies, _group(hierarchies, folder))


def _slowed(
    number: str, slow: NodeLimits, limits: NodeLimits, hierarchies: Hierarchies, group: Path | None,
    devices: Path = BACKING_DEVICES,
) -> tuple[KernelTexts, KernelTexts]:  # fmt: skip
    both = limits.model_copy(update={name: value for name, value in slow if name in DISK_RATES and value is not None})
    before, meanwhile = (throttle(number, each, hierarchies, group, devices) for each in (limits, both))
    return [line for line in meanwhile if line not in before], [line for line in before if line not in meanwhile]


def _own(folder: Path) -> str:
    """The loop device of a node's own disk. Raises SiteError if there is none."""
    device = device_of(folder)
    if device is None:
        raise SiteError(f"no loop device has {image(folder)}")
    return device


def _group(hierarchies: Hierarchies, folder: Path) -> Path | None:
    """The control group of version 2 that has a node's traffic; None if version 1 throttles devices. The lease's id is
    the name of the folder that holds those of its nodes, as in `present`."""
    if hierarchies.blkio is not None or hierarchies.version_2 is None:
        return None
    return hierarchies.version_2 / ROOT / folder.parent.name / folder.name


def throttle(
    number: str, limits: NodeLimits, hierarchies: Hierarchies, group: Path | None, devices: Path = BACKING_DEVICES
) -> KernelTexts:
    """Kernel files and their contents so that a device, `MAJOR:MINOR`, keeps to the limits and to no others; `group`:
    of version 2, which takes its limits with it where it is removed. Pure but for which files exist."""
    wanted = rates(limits)
    if hierarchies.blkio is not None:
        files = [(hierarchies.blkio / name, wanted.get(field, 0)) for field, name in VERSION_1_FILES.items()]
        lines = [(file, f"{number} {rate}") for file, rate in files]
        return lines + _strict(devices / number, wanted.get("disk_write_mb_per_s"))
    if group is None:
        return []
    words = " ".join(f"{key}={wanted.get(field, 'max')}" for field, key in VERSION_2_KEYS.items())
    return [(group / "io.max", f"{number} {words}")]


def _strict(folder: Path, bytes_per_s: int | None) -> KernelTexts:
    """Settings that make writers wait before much is written behind them; kernels before 6.2 have no such files."""
    if not (folder / "strict_limit").exists():
        return []
    if bytes_per_s is None:
        return [(folder / "strict_limit", "0"), (folder / "max_ratio", "100")]
    dirty = max(LEAST_DIRTY_BYTES, round(bytes_per_s * DIRTY_S))
    return [(folder / "max_bytes", str(dirty)), (folder / "strict_limit", "1")]


def in_force(folder: Path, hierarchies: Hierarchies) -> dict[str, str]:
    """Facts about a node's disk as the kernel reports them: device, size in bytes, rates in bytes/s and operations/s;
    none for a node without its own disk."""
    device = device_of(folder)
    if device is None:
        return {}
    number = _number(device)
    facts = {"node_disk_device": device, "node_disk_bytes": str(int(_read(BLOCK_DEVICES / device / "size") or 0) * 512)}
    facts["node_disk_direct_io"] = "yes" if _read(BLOCK_DEVICES / device / "loop" / "dio") == "1" else "no"
    for field, rate in _rates_in_force(number, hierarchies, folder).items():
        facts[fact_of_rate(field)] = rate
    return facts


def _rates_in_force(number: str, hierarchies: Hierarchies, folder: Path) -> dict[str, str]:
    """The rates of a device as the kernel reports them, by field; nothing if no controller of disks is there."""
    if hierarchies.blkio is not None:
        texts = {field: _read(hierarchies.blkio / name).splitlines() for field, name in VERSION_1_FILES.items()}
        pairs = {field: dict(line.split()[:2] for line in lines if " " in line) for field, lines in texts.items()}
        return {field: by_device.get(number, "none") for field, by_device in pairs.items()}
    group = _group(hierarchies, folder)
    if group is None or not (group / "io.max").exists():
        return {}
    lines = [line.split() for line in _read(group / "io.max").splitlines()]
    words = next((line[1:] for line in lines if line[:1] == [number]), [])
    rates = dict(word.partition("=")[::2] for word in words)
    return {field: rates.get(key, "max").replace("max", "none") for field, key in VERSION_2_KEYS.items()}


def present(nodes: Path | None = None, devices: Path = BLOCK_DEVICES) -> dict[str, list[tuple[str, Path]]]:
    """Loop devices of our files by lease: device and file. `nodes`: only those below this folder. Not those that are
    detached already: they leave with the last process of another mount namespace that has a copy of the mount, such as
    a command under `ip netns exec`."""
    by_lease: dict[str, list[tuple[str, Path]]] = {}
    for entry in sorted(devices.glob("loop*")):
        if _read(entry / "loop" / "autoclear") == LEAVING:
            continue
        path = Path(_read(entry / "loop" / "backing_file").removesuffix(DELETED))  # without symbolic links
        identity = path.parent.name
        if (
            path.suffix == SUFFIX
            and ID_PATTERN.fullmatch(identity)
            and (nodes is None or path.parent == nodes.resolve())
        ):
            by_lease.setdefault(identity, []).append((entry.name, path))
    return by_lease


async def remove(identity: str, hierarchies: Hierarchies) -> None:
    """Unmount and detach every disk of a lease, and lift its throttles. Its processes must be dead. Idempotent. Raises
    SiteError if one is still busy after BUSY_TIMEOUT_S."""
    for device, path in present().get(identity, []):
        _lift(_number(device), hierarchies)
        for place in _mounted(device):
            await _until_free(identity, place)
        await _run(identity, "losetup", "--detach", f"/dev/{device}")
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while any(name == device for name, _ in present().get(identity, [])):
            if time.monotonic() > deadline:
                raise SiteError(f"/dev/{device} still has {path}", "see `losetup` and `lsof`")
            await asyncio.sleep(BUSY_POLL_S)


async def _until_free(identity: str, place: Path) -> None:
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return await _run(identity, "umount", str(place))
        except SiteError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(BUSY_POLL_S)


def _lift(number: str, hierarchies: Hierarchies) -> None:
    """Lift the throttles of a device, whose number another user gets next, as far as there are any."""
    for file, text in throttle(number, NodeLimits(), hierarchies, None):
        with contextlib.suppress(OSError):
            file.write_text(text, encoding="ascii")


def device_of(folder: Path, devices: Path = BLOCK_DEVICES) -> str | None:
    """The loop device of the file system at a node's folder, such as `loop3`."""
    images = (pair for pairs in present(folder.parent, devices).values() for pair in pairs)
    return next((device for device, path in images if path == image(folder.resolve())), None)


def _mounted(device: str) -> list[Path]:
    """Mount points of a device, last mount first."""
    number = _number(device)
    return [mount.point for mount in reversed(mountinfo.parse(_read(mountinfo.MOUNTINFO))) if mount.numbers == number]


def _number(device: str) -> str:
    return _read(BLOCK_DEVICES / device / "dev")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="ascii")
    except OSError as error:
        raise SiteError(f"cannot write {text!r} to {file}: {error.strerror}") from error


def _program(name: str, folders: str = SYSTEM_FOLDERS) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{folders}")


async def _run(identity: str, name: str, *words: str, timeout_s: float = COMMAND_TIMEOUT_S) -> None:
    argv: Sequence[str] = [_program(name) or name, *words]
    try:
        await run(marked({MARKER: identity}), argv, timeout_s=timeout_s)
    except CommandFailed as error:
        why = error.stderr_tail.strip() or error.message
        raise SiteError(f"{name} failed: {why}", "run `steelyard doctor` to see what this machine can do") from error


def _read(path: Path) -> str:
    """The text of a file, or "" if it cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
