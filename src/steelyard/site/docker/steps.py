"""Steps of one lease of containers: record, folders, daemon, image, network, containers, and how they are reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.steps import Step
from steelyard.model.errors import CommandFailed, LastingSiteError
from steelyard.node import agent, machine_facts
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.folders import cache_folder
from steelyard.node.tasks import together
from steelyard.site.docker import containers as docker_containers
from steelyard.site.docker import daemon as docker_daemon
from steelyard.site.docker import image
from steelyard.site.docker.daemon import Daemon
from steelyard.site.docker.settings import Settings
from steelyard.site.kernel import cgroup, programs

Say = Callable[[str], None]

IP_TIMEOUT_S = 20.0
CHECK_TIMEOUT_S = 20.0
NAMESPACES = ("--mount", "--uts", "--net", "--pid")
"""Namespaces that instruments share with the processes of a container: with its name, too, which its table of hosts
holds. Under the machine's they would ask a name server for themselves."""


class ContainerSteps:
    """The steps of one lease, and their findings."""

    def __init__(
        self, settings: Settings, state: Path, record: lease_records.Record, daemon: Daemon | None, say: Say
    ) -> None:
        self.record = record
        """With everything that is known of the nodes, once all steps are done."""
        self._settings = settings
        self._state = state
        self._daemon = daemon
        self._say = say
        self._image = ""
        self._path = lease_records.record_path(state, record.id)

    def in_order(self) -> list[Step]:
        """The steps in order; the record comes first."""
        steps = [Step("record", self._write), Step("folders", self._folders), Step("daemon", self._ensure_daemon)]
        steps += [Step("image", self._ensure_image)]
        if self._settings.network == "bridge":
            steps.append(Step("network", self._create_network))
        return [*steps, Step("containers", self._create_containers), Step("nodes", self._complete)]

    @property
    def _databases(self) -> list[Node]:
        return [node for node in self.record.nodes if node.role == "database"]

    @property
    def daemon(self) -> Daemon:
        """The daemon, after its step."""
        assert self._daemon is not None
        return self._daemon

    async def _write(self) -> None:
        lease_register.begin(self.record, self._state, lambda: _claim_addresses(self.record, self._state))

    async def _folders(self) -> None:
        hierarchies = cgroup.detect()
        for node in self.record.nodes:
            if node.files == "same":
                node.folder.mkdir(parents=True, exist_ok=True)
            if node.cache is not None:
                node.cache.mkdir(parents=True, exist_ok=True)
            if node.role == "load" and node.cgroups:
                cgroup.make(hierarchies, self.record.id, node.name, cgroup.NO_LIMITS)

    async def _ensure_daemon(self) -> None:
        """A daemon of our own, if no other is used; leftovers in its data are removed."""
        if self._daemon is not None:
            return
        client, own = programs.program("docker"), docker_daemon.ours()
        if client is None:
            raise LastingSiteError("program docker not found", "install it; on Debian: apt-get install docker.io")
        async with docker_daemon.locked(own):
            self._daemon = await docker_daemon.ensure(own, client)
        things = await docker_containers.labelled(self.daemon, "")
        for lease in {thing.lease for thing in things if not thing.record.exists()}:
            await docker_containers.remove(self.daemon, lease)

    async def _ensure_image(self) -> None:
        identity, named = self.record.id, self._settings.image
        self._image = await image.ensure(self.daemon, identity, named, cache_folder(), self._say)

    async def _create_network(self) -> None:
        identity, subnet = self.record.id, self._settings.subnet
        bridge = docker_containers.bridge_name(identity)
        podman = self._settings.program == "podman"
        named = ["--interface-name", bridge] if podman else ["--opt", f"com.docker.network.bridge.name={bridge}"]
        labels = lease_records.environment(self._state, identity)
        words = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
        gateway = ["--subnet", f"{subnet}.0.0/16", "--gateway", f"{subnet}.1.1"]
        name = docker_containers.network_name(identity)
        await docker_daemon.ask(self.daemon, identity, "network", "create", *words, *gateway, *named, name)
        # The first load node has the address of the bridge itself; further ones are added to it.
        for node in (node for node in self.record.nodes if node.role == "load" and node.name != "l1"):
            argv = ["ip", "address", "add", f"{node.address}/32", "dev", bridge]
            await run(None, argv, timeout_s=IP_TIMEOUT_S)

    async def _create_containers(self) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)
        seen = docker_containers.programs(cache_folder(), [Path(path) for path in self._settings.mounts])
        mounts = [docker_containers.groups_mount(), *(docker_containers.mount(path) for path in seen)]
        await together(self._create(index, node, mounts) for index, node in enumerate(self._databases))

    async def _create(self, index: int, node: Node, mounts: Sequence[str]) -> None:
        identity, on_network = self.record.id, ["--network", "host"]
        place = node.folder if node.cache is None else node.cache
        mounts = [*mounts, docker_containers.mount(place, writable=True)]
        if self._settings.network == "bridge":
            on_network = ["--network", docker_containers.network_name(identity), "--ip", node.address]
        limits = _limits(self._settings, node, index)
        filtered = not self._settings.user_namespaces
        words = docker_containers.create_words(
            node, identity, self._image, mounts, limits, on_network, filtered=filtered
        )
        await docker_daemon.ask(self.daemon, identity, *words, timeout_s=docker_containers.CREATE_TIMEOUT_S)

    async def _complete(self) -> None:
        """Find out how commands and instruments reach the nodes, and record it."""
        identity, databases = self.record.id, self._databases
        names = [docker_containers.container_name(identity, node.name) for node in databases]
        containers = await docker_containers.inspect(self.daemon, identity, names)
        by_name = {container.name: container for container in containers}
        reached = [self._reached(node, by_name[name]) for node, name in zip(databases, names, strict=True)]
        await self._check_agent(reached[0])
        if self._settings.storage == "overlay":
            argv = ["mkdir", "-p", "-m", "700"]
            folders = [(node, node.folder.parent, node.folder) for node in reached]
            await together(run(node, [*argv, *map(str, paths)], timeout_s=CHECK_TIMEOUT_S) for node, *paths in folders)
        nodes = (*reached, *(node for node in self.record.nodes if node.role == "load"))
        groups = tuple(folder for node in nodes for folder in node.cgroups)
        self.record = self.record.model_copy(update={"nodes": nodes, "cgroups": groups})
        with lease_records.locked(self._state):
            lease_records.write(self._path, self.record)

    def _reached(self, node: Node, container: docker_containers.Running) -> Node:
        """Commands go through Docker. Instruments join the container's namespaces but not its control groups; without
        the right to do so, they go through Docker, too."""
        enter = programs.program("nsenter")
        watch_prefix: tuple[str, ...] = ()
        if enter is not None and machine_facts.capable("sys_admin"):
            watch_prefix = (enter, "--target", str(container.pid), *NAMESPACES, "--")
        return replace(
            node,
            prefix=(*self.daemon.client, "exec", "--interactive", container.name),
            watch_prefix=watch_prefix,
            cgroups=docker_containers.cgroups(container.pid),
        )

    async def _check_agent(self, node: Node) -> None:
        try:
            await run(node, [str(agent.find()), "--version"], timeout_s=CHECK_TIMEOUT_S)
        except CommandFailed as error:
            raise LastingSiteError(
                f"the agent does not run in containers of {self._image}: {error.stderr_tail.strip() or error.message}",
                "set site.image to another image, as its C library may be too old, or build a static agent",
            ) from error


def _limits(settings: Settings, node: Node, index: int) -> docker_containers.Limits:
    if node.cpus is None or settings.cpu_limit == "quota":
        return docker_containers.Limits(cpus=node.cpus, memory_mb=node.memory_mb)
    cores = docker_containers.cores_of(index, round(node.cpus), os.cpu_count() or 1)
    return docker_containers.Limits(cores=cores, memory_mb=node.memory_mb)


def _claim_addresses(wanted: lease_records.Record, state: Path) -> None:
    """Claim the addresses, which two leases on one machine cannot share. Raises SiteError."""
    addresses = f"the addresses of {wanted.network} {wanted.subnet}"
    for other in lease_register.others(wanted, state):
        if (other.network, other.subnet) == (wanted.network, wanted.subnet):
            raise lease_records.claimed(
                other, has=f"uses {addresses}", otherwise="set site.subnet", left=f"containers with {addresses}"
            )
