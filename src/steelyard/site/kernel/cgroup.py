"""Control groups (versions 1, 2, and hybrid): resource limits of a node, and exact accounting of its use.

Each controller is used from the version that has it. What is missing is reported, never guessed: a site works without
accounting, but refuses a limit that it cannot enforce.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node.base import Node
from steelyard.site.kernel import mountinfo as kernel_mountinfo

ROOT = "steelyard"
"""Our folder in every hierarchy."""
CONTROLLERS = ("cpu", "cpuacct", "memory")
MOUNTED_CONTROLLERS = frozenset({*CONTROLLERS, "blkio", "cpuset", "pids", "freezer"})
"""Those of version 1 that are looked for where it is mounted."""
VERSION_2_CONTROLLERS = ("cpu", "memory")
"""Version 2 has accounting of CPU time without any controller."""
ON_DEMAND = ("cpuset", "io")
"""Controllers of version 2 that are handed down only to nodes whose limits need them."""
CPU_PERIOD_US = 100_000
LEAST_CPUS = 0.01
"""The kernel takes no quota of less than 1 ms. Sites refuse it (`_processors.refusal`)."""
FROM_START = 'node.cpus_from = "start" sets it when the nodes are lent'
QUOTA_PERIOD = "limit_cpu_period_ms"
MEBIBYTE = 1024 * 1024
REMOVE_TIMEOUT_S = 10.0
REMOVE_POLL_S = 0.02
MAKE_ATTEMPTS = 5
NO_LIMITS = NodeLimits()


@dataclass(frozen=True)
class Mount:
    """One mounted hierarchy."""

    path: Path
    version: int
    controllers: frozenset[str]


@dataclass(frozen=True)
class Hierarchies:
    """Usable hierarchies: controller -> parent of our folder, and why other controllers cannot be used."""

    version_1: Mapping[str, Path]
    version_2: Path | None
    version_2_controllers: frozenset[str]
    problems: tuple[str, ...]
    cpuset: Path | None = None
    """Mount point of controller cpuset in version 1; only nodes that are bound to cores get a group there."""
    blkio: Path | None = None
    """Mount point of controller blkio in version 1, whose top group throttles devices."""
    version_2_on_demand: frozenset[str] = frozenset()

    @property
    def bases(self) -> tuple[Path, ...]:
        """Our folders, one for each hierarchy in use."""
        parents = [*self.version_1.values(), *([self.version_2] if self.version_2 else [])]
        return tuple(dict.fromkeys(parent / ROOT for parent in parents))

    @property
    def every_base(self) -> tuple[Path, ...]:
        """Our folders, also in hierarchies that only some nodes use."""
        return (*self.bases, *([self.cpuset / ROOT] if self.cpuset else []))

    def has(self, controller: str) -> bool:
        """Whether a limit of this kind can be enforced."""
        if controller == "cpuset":
            return self.cpuset is not None or controller in self.version_2_on_demand
        if controller == "io":
            return self.blkio is not None or controller in self.version_2_on_demand
        return controller in self.version_1 or controller in self.version_2_controllers

    @property
    def version(self) -> str:
        """`1`, `2`, `1 and 2` or `none`."""
        used = [name for name, here in (("1", self.version_1), ("2", self.version_2)) if here]
        return " and ".join(used) or "none"


def parse_mounts(mountinfo: str) -> tuple[Mount, ...]:
    """The cgroup hierarchies in the text of a mountinfo. Pure."""
    mounts = []
    for mounted in kernel_mountinfo.parse(mountinfo):
        if mounted.kind == "cgroup2":
            mounts.append(Mount(mounted.point, 2, frozenset()))
        elif mounted.kind == "cgroup":
            mounts.append(Mount(mounted.point, 1, frozenset(mounted.more_options.split(",")) & MOUNTED_CONTROLLERS))
    return tuple(mounts)


def mounts_here() -> tuple[Mount, ...]:
    """The cgroup hierarchies that this process sees."""
    return parse_mounts(_read(kernel_mountinfo.MOUNTINFO))


def parse_enabled(cgroups: str) -> frozenset[str]:
    """Controllers that the kernel has and that are not switched off, from the text of /proc/cgroups."""
    rows = [line.split() for line in cgroups.splitlines() if not line.startswith("#")]
    return frozenset(row[0] for row in rows if len(row) == 4 and row[3] == "1")


def detect() -> Hierarchies:
    """The hierarchies that we can use on this machine. Read-only."""
    mounts = mounts_here()
    # Newer kernels list version 1 controllers only, or have no such file.
    enabled = parse_enabled(_read(Path("/proc/cgroups"))) or frozenset(CONTROLLERS)
    return choose(mounts, enabled, _own_path(_read(Path("/proc/self/cgroup"))))


def choose(mounts: Sequence[Mount], enabled: frozenset[str], own_path: str) -> Hierarchies:
    """Each controller from version 1 where it is mounted there, otherwise from version 2. Read-only.

    `own_path`: this process's group in version 2."""
    version_1: dict[str, Path] = {}
    problems = []
    for controller in CONTROLLERS:
        place = next((mount.path for mount in mounts if controller in mount.controllers), None)
        if place is None:
            continue
        if controller not in enabled:
            problems.append(f"controller {controller} is switched off")
        elif not _may_make(place):
            problems.append(f"no permission to create groups in {place}")
        else:
            version_1[controller] = place
    unified = next((mount.path for mount in mounts if mount.version == 2), None)
    base, controllers, on_demand = None, frozenset[str](), frozenset[str]()
    if unified is not None and not version_1:
        base, controllers, why = _delegated(unified, own_path)
        problems += why
    if base is not None and controllers:
        # A group that holds processes can only continue handing down what it hands down already.
        file = "cgroup.subtree_control" if _blocked(base) else "cgroup.controllers"
        on_demand = frozenset(_read(base / file).split()) & set(ON_DEMAND)
    if not mounts:
        problems.append("no cgroup hierarchy is mounted")
    extra = {
        name: next((m.path for m in mounts if name in m.controllers and name in enabled and _may_make(m.path)), None)
        for name in ("cpuset", "blkio")
    }
    return Hierarchies(
        version_1, base, controllers, tuple(dict.fromkeys(problems)), extra["cpuset"], extra["blkio"], on_demand
    )


def _delegated(mount: Path, own_path: str) -> tuple[Path | None, frozenset[str], list[str]]:
    """The usable group of version 2: from the root down to our own, the first with the most controllers.

    A process can be moved only if the common ancestor of its old and new groups is writable, so only ancestors of our
    own group qualify. A group other than the root cannot delegate controllers while processes are in it."""
    own = mount / own_path.strip("/")
    line = [mount, *reversed([place for place in (own, *own.parents) if mount in place.parents])]
    best: tuple[Path | None, frozenset[str]] = (None, frozenset())
    problems = []
    for place in line:
        if not _may_make(place) or not os.access(place / "cgroup.procs", os.W_OK):
            problems.append(f"no permission to create groups in {place}")
            continue
        given = set(_read(place / "cgroup.controllers").split()) & set(VERSION_2_CONTROLLERS)
        handed_down = given & set(_read(place / "cgroup.subtree_control").split())
        usable = frozenset(handed_down if _blocked(place) else given)
        if missing := set(VERSION_2_CONTROLLERS) - usable:
            why = "it holds processes itself" if given >= missing else "they are not delegated to it"
            problems.append(f"{place} cannot hand down {', '.join(sorted(missing))}: {why}")
        if best[0] is None or len(usable) > len(best[1]):
            best = (place, usable)
    return best[0], best[1], [] if len(best[1]) == len(VERSION_2_CONTROLLERS) else problems


def _blocked(place: Path) -> bool:
    """Whether a group of version 2 cannot hand down more controllers, because processes are in it; the root can."""
    is_top = not (place / "cgroup.type").exists()
    return not is_top and bool(_read(place / "cgroup.procs").split())


def folders(hierarchies: Hierarchies, identity: str, node: str, limits: NodeLimits = NO_LIMITS) -> tuple[Path, ...]:
    """The groups of a node, one in every hierarchy that its limits use."""
    bases = hierarchies.every_base if bound_to_cores(limits) else hierarchies.bases
    return tuple(base / identity / node for base in bases)


def bound_to_cores(limits: NodeLimits) -> bool:
    """Whether a node gets dedicated cores instead of a quota of time."""
    return limits.cpus is not None and limits.cpu_limit == "cpuset"


def make(hierarchies: Hierarchies, identity: str, node: str, limits: NodeLimits, cores: str = "") -> None:
    """Create a node's groups and set its limits. `cores`: those of a node that is bound to cores, such as `0,1`. Raises
    SiteError."""
    try:
        for group in folders(hierarchies, identity, node, limits):
            base = group.parent.parent
            if hierarchies.version_2 is not None and base.parent == hierarchies.version_2:
                controllers = hierarchies.version_2_controllers | _on_demand(hierarchies, limits)
                for upper in (base.parent, base, base / identity):
                    _make_folder(upper)
                    _hand_down(upper, controllers)
            _make_folder(group)
            if base.parent == hierarchies.cpuset:
                for place in (base, base / identity, group):
                    _inherit_cores(place)
        for file, text in _settings(hierarchies, identity, node, limits, cores):
            file.write_text(text, encoding="ascii")
    except OSError as error:
        raise SiteError(
            f"cannot make the control groups of {node}: {error.filename}: {error.strerror}",
            "run `steelyard doctor` to see what this machine can do",
        ) from error


def _quota_us(cpus: float) -> int:
    return round(cpus * CPU_PERIOD_US)


def _on_demand(hierarchies: Hierarchies, limits: NodeLimits) -> frozenset[str]:
    """Controllers of version 2 that these limits need beyond those of every node."""
    needed = {"cpuset"} if bound_to_cores(limits) else set()
    needed |= {"io"} if limits.own_disk else set()
    return hierarchies.version_2_on_demand & needed


def _inherit_cores(group: Path) -> None:
    """Cores and memory nodes of the group above: a new group of version 1 has none, and takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not _read(group / name).strip():
            (group / name).write_text(_read(group.parent / name).strip(), encoding="ascii")


def _settings(
    hierarchies: Hierarchies, identity: str, node: str, limits: NodeLimits, cores: str = ""
) -> list[tuple[Path, str]]:
    bound = bound_to_cores(limits)
    files: list[tuple[Path, str]] = []
    if bound and (place := hierarchies.cpuset or hierarchies.version_2):
        files.append((place / ROOT / identity / node / "cpuset.cpus", cores))
    quota_us = None if limits.cpus is None or bound else _quota_us(limits.cpus)
    memory = None if limits.memory_mb is None else str(limits.memory_mb * MEBIBYTE)
    if quota_us is not None:
        if place := hierarchies.version_1.get("cpu"):
            group = place / ROOT / identity / node
            files += [(group / "cpu.cfs_period_us", str(CPU_PERIOD_US)), (group / "cpu.cfs_quota_us", str(quota_us))]
        elif hierarchies.version_2:
            files.append((hierarchies.version_2 / ROOT / identity / node / "cpu.max", f"{quota_us} {CPU_PERIOD_US}"))
    if memory is not None:
        swap_bytes = (limits.swap_mb or 0) * MEBIBYTE
        if place := hierarchies.version_1.get("memory"):
            group = place / ROOT / identity / node
            files.append((group / "memory.limit_in_bytes", memory))
            swap = (group / "memory.memsw.limit_in_bytes", str(int(memory) + swap_bytes))
        elif hierarchies.version_2:
            group = hierarchies.version_2 / ROOT / identity / node
            files.append((group / "memory.max", memory))
            swap = (group / "memory.swap.max", str(swap_bytes))
        else:
            return files
        # Swap must not replace memory beyond the limit; kernels without swap accounting have no such file (`_swap`).
        files += [swap] if swap[0].exists() else []
    return files


def throttle(groups: Sequence[Path], cpus: float | None) -> None:
    """Set the quota of CPU time of a node's groups while its processes run; None lifts it. Raises SiteError if no group
    has one, or it cannot be written."""
    quota_us = None if cpus is None else _quota_us(cpus)
    period = str(CPU_PERIOD_US)
    written = False
    try:
        for group in groups:
            if (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text(period, encoding="ascii")
                (group / "cpu.cfs_quota_us").write_text(str(quota_us or -1), encoding="ascii")
                written = True
            elif (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{quota_us or 'max'} {period}", encoding="ascii")
                written = True
    except OSError as error:
        raise SiteError(
            f"cannot write the CPU quota of a node: {error.filename}: {error.strerror}", FROM_START
        ) from error
    if not written and cpus is not None:
        raise SiteError("a node has no control group with a CPU quota", FROM_START)


def throttle_all(nodes: Iterable[Node], *, limited: bool) -> None:
    """Set or lift the quotas of those nodes that have a limit of processors. Idempotent. Raises SiteError."""
    for node in nodes:
        if node.cpus is not None:
            throttle(node.cgroups, node.cpus if limited else None)


def in_force(groups: Sequence[Path]) -> dict[str, str]:
    """The limits of a node as the kernel reports them: cpus and the period of their quota, cores, memory and swap in
    bytes; `none` where there is no limit."""
    facts: dict[str, str] = {}
    for group in groups:
        if quota := _read(group / "cpu.cfs_quota_us").strip():
            period_us = float(_read(group / "cpu.cfs_period_us"))
            facts["limit_cpus"] = "none" if int(quota) < 0 else f"{int(quota) / period_us:g}"
            facts |= {} if int(quota) < 0 else {QUOTA_PERIOD: f"{period_us / 1000:g}"}
        elif len(pair := _read(group / "cpu.max").split()) == 2:
            facts["limit_cpus"] = "none" if pair[0] == "max" else f"{int(pair[0]) / int(pair[1]):g}"
            facts |= {} if pair[0] == "max" else {QUOTA_PERIOD: f"{int(pair[1]) / 1000:g}"}
        if memory := _read(group / "memory.limit_in_bytes").strip() or _read(group / "memory.max").strip():
            # Version 1 reports "no limit" as the largest number of pages, near 2^63.
            facts["limit_memory_bytes"] = "none" if memory == "max" or int(memory) > 2**62 else memory
            facts |= _swap_in_force(group, facts["limit_memory_bytes"])
    for group in groups:
        if group.parent.parent.name == ROOT and (cores := _read(group / "cpuset.cpus").strip()):
            facts |= {"limit_cores": cores, "limit_cpus": str(len(cores_in(cores)))}
    return facts


def _swap_in_force(group: Path, memory: str) -> dict[str, str]:
    """The limit of swap in bytes, where there is one of memory; `none` if the kernel counts no swap of groups."""
    both, swap = _read(group / "memory.memsw.limit_in_bytes").strip(), _read(group / "memory.swap.max").strip()
    if memory == "none":
        return {}
    if both:
        return {"limit_swap_bytes": str(max(0, int(both) - int(memory)))}
    return {"limit_swap_bytes": swap if swap.isdecimal() else "none"}


def cores_in(text: str) -> frozenset[int]:
    """The cores in a kernel's list such as `0-2,5`; an empty one has none. Pure."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return frozenset(core for first, _, last in ranges for core in range(int(first), int(last or first) + 1))


def cores_handed_down(hierarchies: Hierarchies) -> frozenset[int]:
    """Cores that the group above our nodes' can give them; empty if the kernel does not say. Read-only."""
    place = hierarchies.cpuset or hierarchies.version_2
    if place is None:
        return frozenset()
    names = ("cpuset.effective_cpus", "cpuset.cpus.effective", "cpuset.cpus")
    texts = (_read(group / name) for group in (place / ROOT, place) for name in names)
    return cores_in(next(filter(str.strip, texts), ""))


def cores_taken(hierarchies: Hierarchies) -> frozenset[int]:
    """Cores to which nodes of leases that are there are bound. Read-only."""
    place = hierarchies.cpuset or hierarchies.version_2
    files = (place / ROOT).glob("*/*/cpuset.cpus") if place is not None else ()
    return frozenset(core for file in files for core in cores_in(_read(file)))


def present(hierarchies: Hierarchies, identity: str | None = None) -> dict[str, list[Path]]:
    """Our groups by lease, deepest first, of one lease or of all."""
    by_lease: dict[str, list[Path]] = {}
    for base in hierarchies.every_base:
        names = [identity] if identity else [entry.name for entry in base.iterdir()] if base.is_dir() else []
        for name in names:
            # Bottom up: a group can only be removed after those below it. A name that is not a folder yields nothing.
            if groups := [Path(place) for place, _, _ in os.walk(base / name, topdown=False)]:
                by_lease.setdefault(name, []).extend(groups)
    return by_lease


async def remove(hierarchies: Hierarchies, identity: str, timeout_s: float = REMOVE_TIMEOUT_S) -> None:
    """Remove a lease's groups, and our folder if it was the last. Its processes must be dead. Idempotent. Raises
    SiteError if the kernel does not let go within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    for group in present(hierarchies, identity).get(identity, []):
        while not _remove_folder(group):
            if time.monotonic() > deadline:
                members = " ".join(_read(group / "cgroup.procs").split()) or "none"
                raise SiteError(f"{group} is still busy after {timeout_s:g} s; processes in it: {members}")
            await asyncio.sleep(REMOVE_POLL_S)
    for base in hierarchies.every_base:
        _remove_folder(base)


def _make_folder(path: Path) -> None:
    # Another release may remove our common folder after its creation.
    for attempt in range(MAKE_ATTEMPTS):
        try:
            path.mkdir(parents=True, exist_ok=True)
            return
        except FileNotFoundError:
            if attempt == MAKE_ATTEMPTS - 1:
                raise


def _remove_folder(path: Path) -> bool:
    """Remove the folder. Returns whether it is gone; busy or not empty is not an error."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
            return False
        raise SiteError(f"cannot remove {path}: {error.strerror}") from error
    return True


def _hand_down(group: Path, controllers: frozenset[str]) -> None:
    file = group / "cgroup.subtree_control"
    if missing := sorted(controllers - set(_read(file).split())):
        file.write_text(" ".join(f"+{name}" for name in missing), encoding="ascii")


def _may_make(place: Path) -> bool:
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK) and not os.statvfs(place).f_flag & os.ST_RDONLY


def _own_path(text: str) -> str:
    return next((line[3:] for line in text.splitlines() if line.startswith("0::")), "/")


def _read(path: Path) -> str:
    """The text of a file, or "" if it does not exist or cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8")
    return ""
