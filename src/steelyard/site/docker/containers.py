"""Containers and networks of a lease: creation, visible paths of this machine, and removal.

Everything carries the lease's id in its name and a label; every process inside has it in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from steelyard.leases import records as lease_records
from steelyard.model.errors import CommandFailed, EngineError, LastingSiteError, SiteError
from steelyard.node import agent, java
from steelyard.node.base import Node
from steelyard.site.docker.daemon import Daemon, ask
from steelyard.site.kernel import cgroup

Kind = Literal["container", "network"]

CREATE_TIMEOUT_S = 60.0
REMOVE_TIMEOUT_S = 60.0
GROUPS_TIMEOUT_S = 5.0
"""The kernel releases the control group of a killed process within milliseconds."""
QUIET_LOOKS = 2
LOOK_S = 0.1
CONTROL_GROUPS = "/sys/fs/cgroup"
JAVA_SETTINGS = "/etc/java-*"
"""Folders that Debian's Java installation links to."""
CONTROLLERS = frozenset({"cpu", "cpuacct", "memory"})


@dataclass(frozen=True)
class Limits:
    """Limits of a container; None or empty means no limit."""

    cpus: float | None = None
    cores: str = ""
    """Cores to which it is pinned, such as `0,1`."""
    memory_mb: int | None = None


@dataclass(frozen=True)
class Labelled:
    """A container or network that carries a lease's label."""

    kind: Kind
    name: str
    lease: str
    record: Path


@dataclass(frozen=True)
class Running:
    """A running container."""

    name: str
    pid: int
    """Process id of its first process on this machine."""


def container_name(identity: str, node: str) -> str:
    """Name of a node's container."""
    return f"sy-{identity}-{node}"


def network_name(identity: str) -> str:
    """Name of a lease's network."""
    return f"sy-{identity}"


def bridge_name(identity: str) -> str:
    """Name of its bridge on this machine; interface names have at most 15 characters."""
    return f"sy{identity}"


def create_words(
    node: Node,
    identity: str,
    image: str,
    mounts: Sequence[str],
    limits: Limits,
    on_network: Sequence[str],
    *,
    filtered: bool = True,
) -> list[str]:
    """Arguments for the client that start a node's container, whose first process only waits. Pure, except that it
    reads this process's user and limit of open files, which nodes of other sites inherit. Without `filtered` programs
    may use every system call."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    labels = {name: node.environment[name] for name in (lease_records.MARKER, lease_records.RECORD_MARKER)}
    return [
        *("run", "--detach", "--init", "--name", container_name(identity, node.name)),
        *(word for key, value in labels.items() for word in ("--label", f"{key}={value}")),
        *(word for key, value in node.environment.items() for word in ("--env", f"{key}={value}")),
        *("--cgroupns", "host", "--log-driver", "none", "--ulimit", f"nofile={soft}:{hard}"),
        # Programs inside own their files, bind high ports and signal their own processes, which needs no capability.
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *(() if filtered else ("--security-opt", "seccomp=unconfined")),
        *on_network,
        *(word for text in mounts for word in ("--mount", text)),
        *limit_words(limits),
        *(() if os.geteuid() == 0 else ("--user", f"{os.geteuid()}:{os.getegid()}")),
        *("--entrypoint", "sleep", image, "infinity"),
    ]


def limit_words(limits: Limits) -> list[str]:
    """Options for limits; swap must not extend memory beyond its limit. Pure."""
    words = [] if limits.cpus is None else ["--cpus", f"{limits.cpus:g}"]
    words += ["--cpuset-cpus", limits.cores] if limits.cores else []
    if limits.memory_mb is not None:
        words += ["--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m"]
    return words


def cores_of(index: int, each: int, of: int) -> str:
    """The cores of the `index`-th node if each is pinned to `each` of `of`, round robin. Pure."""
    return ",".join(str(core) for core in sorted({(index * each + number) % of for number in range(each)}))


def mount(path: Path, *, writable: bool = False) -> str:
    """Option that mounts a path of this machine in a container at the same path, without mounts below it: a container
    must not keep other containers' file systems busy. Pure."""
    words = ["type=bind", f"source={path}", f"target={path}", *([] if writable else ["readonly"])]
    words += ["bind-nonrecursive"] if path.is_dir() and not writable else []
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(words)
    return text.getvalue()


def groups_mount() -> str:
    """Option that mounts the machine's control groups in a container at the same path, so that probes inside can read
    those of the node; each process finds its own by path, as it would outside containers. Pure."""
    return f"type=bind,source={CONTROL_GROUPS},target={CONTROL_GROUPS},readonly"


def programs(cache: Path, more: Sequence[Path]) -> list[Path]:
    """Paths of this machine that every container sees: the agent, every Java, the cache, and the study's own. Raises
    SiteError."""
    try:
        program = agent.find()
    except EngineError as error:
        raise LastingSiteError(error.message, error.hint) from error
    homes = [path.resolve().parent.parent for path in java.candidates() if path.is_file()]
    settings = sorted(Path("/").glob(JAVA_SETTINGS.lstrip("/"))) if homes else []
    if missing := [str(path) for path in more if not path.exists()]:
        raise LastingSiteError(f"site.mounts names missing paths: {', '.join(missing)}")
    return list(dict.fromkeys([program, cache, *homes, *settings, *more]))


async def inspect(daemon: Daemon, identity: str, names: Sequence[str]) -> list[Running]:
    """The containers of these names, which must be running. Raises SiteError."""
    described = json.loads(await ask(daemon, identity, "container", "inspect", *names))
    containers = [_running(item) for item in described]
    if dead := [container.name for container in containers if container.pid == 0]:
        raise LastingSiteError(f"{', '.join(dead)} exited immediately", "check that the image contains `sleep`")
    return containers


def _running(item: Mapping[str, Any]) -> Running:
    return Running(str(item["Name"]).lstrip("/"), int(item["State"]["Pid"]))


def cgroups(pid: int) -> tuple[Path, ...]:
    """The control groups of a container by its first process, as the probe reads them. Raises SiteError if they are not
    visible here because the daemon runs on another machine."""
    mounts = cgroup.mounts_here()
    folders = folders_of(_text(Path(f"/proc/{pid}/cgroup")), mounts)
    if not folders or not all(folder.is_dir() for folder in folders):
        raise LastingSiteError(
            "the containers' control groups are not visible on this machine",
            "use a Docker daemon on this machine itself, not in a virtual machine",
        )
    return folders


def process_of(node: Node) -> int:
    """A process of a container, by its control groups. Raises SiteError if it has none."""
    with contextlib.suppress(OSError, LookupError, ValueError):
        return int(Path(node.cgroups[0], "cgroup.procs").read_text(encoding="ascii").split()[0])
    raise SiteError(f"the container of {node.name} has no process")


async def remove_groups(nodes: Sequence[Node]) -> None:
    """Remove empty control groups that a killed daemon left behind. Idempotent."""
    mounts = cgroup.mounts_here()
    groups = [folder for node in nodes if node.role == "database" for folder in node.cgroups]
    deadline = time.monotonic() + GROUPS_TIMEOUT_S
    for group in groups:
        places = [mounted.path for mounted in mounts if mounted.path in group.parents]
        below = group.relative_to(max(places, key=lambda place: len(place.parts))) if places else Path("?")
        for folder in {mounted.path / below for mounted in mounts}:
            while not _removed(folder) and time.monotonic() < deadline:  # noqa: ASYNC110 - a folder has no event
                await asyncio.sleep(LOOK_S)


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def folders_of(text: str, mounts: Sequence[cgroup.Mount]) -> tuple[Path, ...]:
    """Folders of the controllers that account for a node. `text` is the content of /proc/PID/cgroup. Pure."""
    first: dict[Path, None] = {}
    unified: Path | None = None
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            place = next((mounted.path for mounted in mounts if mounted.version == 2), None)
            unified = None if place is None else place / path.lstrip("/")
        for controller in sorted(CONTROLLERS & set(controllers.split(","))):
            place = next((mounted.path for mounted in mounts if controller in mounted.controllers), None)
            if place is not None:
                first[place / path.lstrip("/")] = None
    # If version 1 accounts for anything, version 2 has no controllers.
    return tuple(first) or ((unified,) if unified is not None else ())


async def labelled(daemon: Daemon, identity: str = "") -> list[Labelled]:
    """Containers and networks of a lease, or of all leases. Raises CommandFailed."""
    wanted = f"label={lease_records.MARKER}" + (f"={identity}" if identity else "")
    keys = (lease_records.MARKER, lease_records.RECORD_MARKER)
    labels = "\t".join(f'{{{{.Label "{key}"}}}}' for key in keys)
    kinds: tuple[tuple[Kind, str, list[str]], ...] = (
        ("container", "{{.Names}}", ["--all"]),
        ("network", "{{.Name}}", []),
    )
    things = []
    for kind, name, options in kinds:
        form = f"{name}\t{labels}"
        listed = await ask(daemon, identity, kind, "ls", *options, "--filter", wanted, "--format", form)
        rows = (line.split("\t") for line in listed.splitlines())
        things += [Labelled(kind, row[0], row[1], Path(row[2])) for row in rows if len(row) == 3]
    return things


async def remove(daemon: Daemon, identity: str) -> None:
    """Remove the containers and networks of a lease. Idempotent. Raises SiteError.

    Two checks in a row must find nothing: a daemon may still be creating what a killed client requested."""
    deadline = time.monotonic() + REMOVE_TIMEOUT_S
    quiet, trouble = 0, ""
    while quiet < QUIET_LOOKS:
        try:
            things = await labelled(daemon, identity)
            await _remove(daemon, identity, things)
        except CommandFailed as error:
            things, trouble = [Labelled("container", "?", identity, Path())], error.message
        quiet = 0 if things else quiet + 1
        if things and time.monotonic() > deadline:
            names = ", ".join(thing.name for thing in things)
            raise SiteError(f"Docker did not remove {names} within {REMOVE_TIMEOUT_S:g} s: {trouble}")
        await asyncio.sleep(LOOK_S)


async def _remove(daemon: Daemon, identity: str, things: Sequence[Labelled]) -> None:
    names = [thing.name for thing in things if thing.kind == "container"]
    if names:
        await ask(daemon, identity, "container", "rm", "--force", "--volumes", *names, check=False)
    for thing in things:
        if thing.kind == "network":
            await ask(daemon, identity, "network", "rm", thing.name, check=False)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
