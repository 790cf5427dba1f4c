"""Containers and networks of a lease: creation, view of this machine, and removal.

Everything carries the lease's id in its name and in a label, and in the environment of every process inside.
"""

from __future__ import annotations

import asyncio
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
"""The kernel lets go of the control group of a process that has just been killed after milliseconds."""
QUIET_LOOKS = 2
LOOK_S = 0.1
CONTROL_GROUPS = "/sys/fs/cgroup"
JAVA_SETTINGS = "/etc/java-*"
"""Folders that Debian's Java links to from its own."""
CONTROLLERS = frozenset({"cpu", "cpuacct", "memory"})


@dataclass(frozen=True)
class Limits:
    """Limits of a container; None or empty means no limit."""

    cpus: float | None = None
    cores: str = ""
    """Cores that it is bound to, such as `0,1`."""
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
    """A container that runs."""

    name: str
    pid: int
    """Its first process, as this machine numbers it."""


def container_name(identity: str, node: str) -> str:
    """Name of a node's container."""
    return f"sy-{identity}-{node}"


def network_name(identity: str) -> str:
    """Name of a lease's network."""
    return f"sy-{identity}"


def bridge_name(identity: str) -> str:
    """Name of its bridge on this machine; an interface has 15 letters at most."""
    return f"sy{identity}"


def create_words(
    node: Node, identity: str, image: str, mounts: Sequence[str], limits: Limits, on_network: Sequence[str]
) -> list[str]:
    """Words after the client that start a node's container: its first process only waits. Pure but for this process's
    user and its limit of open files, which the nodes of other sites inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    labels = {name: node.environment[name] for name in (lease_records.MARKER, lease_records.RECORD_MARKER)}
    return [
        *("run", "--detach", "--init", "--name", container_name(identity, node.name)),
        *(word for key, value in labels.items() for word in ("--label", f"{key}={value}")),
        *(word for key, value in node.environment.items() for word in ("--env", f"{key}={value}")),
        *("--cgroupns", "host", "--log-driver", "none", "--ulimit", f"nofile={soft}:{hard}"),
        # What runs inside owns its files, binds high ports, and signals its own processes: none takes a capability.
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *on_network,
        *(word for text in mounts for word in ("--mount", text)),
        *limit_words(limits),
        *(() if os.geteuid() == 0 else ("--user", f"{os.geteuid()}:{os.getegid()}")),
        *("--entrypoint", "sleep", image, "infinity"),
    ]


def limit_words(limits: Limits) -> list[str]:
    """Options for limits; swap must not replace memory beyond the limit. Pure."""
    words = [] if limits.cpus is None else ["--cpus", f"{limits.cpus:g}"]
    words += ["--cpuset-cpus", limits.cores] if limits.cores else []
    if limits.memory_mb is not None:
        words += ["--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m"]
    return words


def cores_of(index: int, each: int, of: int) -> str:
    """The cores of the `index`-th node where each is bound to `each` of `of`: nodes take turns. Pure."""
    return ",".join(str(core) for core in sorted({(index * each + number) % of for number in range(each)}))


def mount(path: Path, *, writable: bool = False) -> str:
    """Option that shows a path of this machine in a container under the same name, without what is mounted below it:
    a container must not hold on to other containers' file systems. Pure."""
    words = ["type=bind", f"source={path}", f"target={path}", *([] if writable else ["readonly"])]
    words += ["bind-nonrecursive"] if path.is_dir() and not writable else []
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(words)
    return text.getvalue()


def groups_mount() -> str:
    """Option that shows the machine's control groups in a container under the same name, so that instruments inside can
    read those of the node; each process finds its own by its path, as outside of containers. Pure."""
    return f"type=bind,source={CONTROL_GROUPS},target={CONTROL_GROUPS},readonly"


def programs(cache: Path, more: Sequence[Path]) -> list[Path]:
    """Paths of this machine that every container sees: the agent, every Java, the cache, and what the study names.
    Raises SiteError."""
    try:
        program = agent.find()
    except EngineError as error:
        raise LastingSiteError(error.message, error.hint) from error
    homes = [path.resolve().parent.parent for path in java.candidates() if path.is_file()]
    settings = sorted(Path("/").glob(JAVA_SETTINGS.lstrip("/"))) if homes else []
    if missing := [str(path) for path in more if not path.exists()]:
        raise LastingSiteError(f"site.mounts names {', '.join(missing)}, which does not exist")
    return list(dict.fromkeys([program, cache, *homes, *settings, *more]))


async def inspect(daemon: Daemon, identity: str, names: Sequence[str]) -> list[Running]:
    """The containers of these names, which must run. Raises SiteError."""
    described = json.loads(await ask(daemon, identity, "container", "inspect", *names))
    containers = [_running(item) for item in described]
    if dead := [container.name for container in containers if container.pid == 0]:
        raise LastingSiteError(f"{', '.join(dead)} ended immediately", "check that the image has the program sleep")
    return containers


def _running(item: Mapping[str, Any]) -> Running:
    return Running(str(item["Name"]).lstrip("/"), int(item["State"]["Pid"]))


def cgroups(pid: int) -> tuple[Path, ...]:
    """The control groups of a container by its first process, as the probe reads them. Raises SiteError if this machine
    does not show them: the daemon is then in another one."""
    mounts = cgroup.mounts_here()
    folders = folders_of(_text(Path(f"/proc/{pid}/cgroup")), mounts)
    if not folders or not all(folder.is_dir() for folder in folders):
        raise LastingSiteError(
            "the control groups of the containers are not visible here",
            "site docker needs a daemon on this very machine, not in a virtual one",
        )
    return folders


async def remove_groups(nodes: Sequence[Node]) -> None:
    """Remove the empty control groups of containers whose daemon was killed before it could. Idempotent."""
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
    """Folders of the controllers that a node is accounted by. `text` is that of /proc/PID/cgroup. Pure."""
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
    # Where version 1 accounts for anything, version 2 has no controllers.
    return tuple(first) or ((unified,) if unified is not None else ())


async def labelled(daemon: Daemon, identity: str = "") -> list[Labelled]:
    """Containers and networks of a lease, or of every one. Raises CommandFailed."""
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

    Two looks in a row must find nothing: a daemon may still be creating what a killed client asked for."""
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
