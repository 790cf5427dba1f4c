"""Site `docker`: database nodes are containers on this machine; load nodes are plain processes.

A command on a node is `docker exec` in its container, so that servers run under whatever Docker puts around them:
control groups, seccomp, capabilities, layers of file systems. The agent, Java and the cache are seen inside under the
same paths, so that only the container differs from a node of site `local`. The load generator stays outside: it is what
measures.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.removal import remove_tree
from steelyard.leases.steps import Perform, perform, taking_back, undone_on_error
from steelyard.model.errors import CommandFailed, LastingSiteError, SiteError
from steelyard.model.facts import Role
from steelyard.model.finding import Finding
from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent, machine_facts
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.folders import cache_folder
from steelyard.node.processor import RunningProgram
from steelyard.node.tasks import in_a_thread
from steelyard.site.base import QUOTA, LeaseTimes, Patience, Request, hint_of, node_name
from steelyard.site.docker import containers, findings, image, refusals
from steelyard.site.docker import daemon as docker_daemon
from steelyard.site.docker import facts as docker_facts
from steelyard.site.docker.daemon import Daemon
from steelyard.site.docker.settings import Settings
from steelyard.site.docker.steps import IP_TIMEOUT_S, ContainerSteps
from steelyard.site.kernel import cgroup, processes
from steelyard.site.kernel import programs as kernel_programs

LOOPBACK_LOADERS = "127.0.0"
LEASE_TIMEOUT_S = 1800.0
"""Once, an image is built or pulled; afterwards seconds are enough."""
EXPECTED_DAEMON_S = 4.0
EXPECTED_LEASE_S = 1.0
EXPECTED_NODE_S = 0.4
EXPECTED_RELEASE_S = 1.5
LAYER_FOLDER = Path("/var/lib/steelyard")
"""Folder of nodes within the layers of containers."""
UNKNOWN_LEASE = "00000000"
"""Stands for our own daemon that no lease uses."""
say = logging.getLogger(__name__).info


class DockerSite:
    """Lends containers."""

    name = "docker"
    limits = frozenset({"memory_mb", "cpus"})
    charges_programs = True
    patience = Patience(lease_s=LEASE_TIMEOUT_S)
    entered = True

    def __init__(self, settings: Settings, state_folder: Path, perform: Perform = perform) -> None:
        self._settings = settings
        self._state = state_folder.absolute()
        self._perform = perform
        shared = {"network"} if settings.network == "host" else set()
        self.shares = frozenset({"cpu", "memory", "disk", "clock", "kernel"} | shared)

    def cpus_by(self, limits: NodeLimits) -> str:
        """A quota, or with `site.cpu_limit = "cpuset"` whole cores."""
        return "whole cores" if self._settings.cpu_limit == "cpuset" else QUOTA

    def notes(self, request: Request) -> Sequence[str]:
        """Daemon and image that `run` has to start, pull or build first."""
        return refusals.notes(self._settings)

    async def prepare(self) -> None:
        """Build the image if it is Steelyard's own and not in the cache yet: a minute or two, once. Raises
        SiteError."""
        if not self._settings.image:
            await image.build(cache_folder(), say)

    def uncuttable(self) -> str:
        """Nodes share a network, this user may not enter theirs, or there is no packet filter."""
        if self._settings.network == "host":
            return 'with site.network = "host" all nodes share one network'
        if not (machine_facts.capable("net_admin") and machine_facts.capable("sys_admin")):
            return "only root may enter the containers' networks"
        return "" if shutil.which("nft") else "the program nft is missing (Debian: apt install nftables)"

    def in_network(self, node: Node) -> Node:
        """This machine in a container's network, by one of its processes: inside, no program may filter packets."""
        inside = ("enter", "--netns", f"/proc/{containers.process_of(node)}/ns/net", "--")
        return Node(
            node.name, node.role, node.address, (str(agent.find()), *inside), node.folder, environment=node.environment
        )

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. Raises SiteError after undoing all completed steps."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(f"site docker cannot lend to {request.study}: {reason}", hint_of(reason))
        looked = refusals.looked(self._settings)
        record = self._record(request, until, "running" if looked.daemon else "own")
        steps = ContainerSteps(self._settings, self._state, record, looked.daemon, say)
        lease = record.lease(lease_records.record_path(self._state, record.id))

        async with undone_on_error(lambda: self.release(lease)):
            try:
                for step in steps.in_order():
                    await self._perform(step)
            except CommandFailed as error:
                raise SiteError(f"Docker cannot lend the nodes: {error.message}", error.hint) from error
        return steps.record.lease(lease.record)

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease, by its id, whether or not its record still exists. Idempotent.
        Each step is performed even if an earlier one failed; then one SiteError is raised for all, and the record is
        kept."""
        hierarchies = cgroup.detect()
        async with taking_back(lease, "run `steelyard clean docker` once the cause is fixed") as attempt:
            # Clients first: what they have asked for must not come after the look for it.
            await attempt(processes.end(lease.id, hierarchies))
            for daemon in await asyncio.to_thread(self._daemons):
                await attempt(containers.remove(daemon, lease.id))
            await attempt(processes.end(lease.id, hierarchies))
            await attempt(_remove_link(containers.bridge_name(lease.id)))
            await attempt(cgroup.remove(hierarchies, lease.id))
            await attempt(_stop_unused(lease.id))
            await attempt(containers.remove_groups(lease.nodes))
            await attempt(remove_tree(lease_records.nodes_folder(lease.record.parent.parent, lease.id)))

    async def throttle(self, lease: Lease, limits: NodeLimits, *, limited: bool) -> None:
        """Set or lift the CPU quotas of the containers that have one, in their control groups, if they begin when they
        are warm. Idempotent. Raises SiteError."""
        if limits.processors_from_warm:
            cgroup.throttle_all(lease.databases, limited=limited)

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead; containers, networks, processes without a record; a
        daemon of our own that no lease uses."""
        now = lease_records.utc_now()
        left = {lease.id: lease for lease in lease_records.left_over(self._state, self.name, now)}
        for daemon in await asyncio.to_thread(self._daemons):
            try:
                things = await containers.labelled(daemon)
            except CommandFailed:
                continue
            ours = [thing for thing in things if lease_register.of_state(thing.record, self._state)]
            orphans = {
                thing.lease: thing.record for thing in ours if not lease_register.is_kept(thing.lease, thing.record)
            }
            left |= {lease: Lease(lease, self.name, (), now, path) for lease, path in orphans.items()}
        for stray in lease_processes.strays(self.name, self._state):
            left.setdefault(stray.id, stray)
        if docker_daemon.lives(docker_daemon.ours()) and not docker_daemon.users(UNKNOWN_LEASE):
            path = lease_records.record_path(self._state, UNKNOWN_LEASE)
            left.setdefault(UNKNOWN_LEASE, Lease(UNKNOWN_LEASE, self.name, (), now, path))
        return list(left.values())

    async def facts(self, node: Node) -> dict[str, str]:
        """The machine's facts, and the container's as Docker and the kernel report them."""
        return await docker_facts.of(node)

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Reason why no containers can be lent for the request, or None."""
        return refusals.refuse(self, self._settings, request, memory_mb_per_node)

    async def findings(self) -> Sequence[Finding]:
        """Client, daemon and image."""
        return await in_a_thread(lambda: findings.of_this_machine(self._settings))

    def helper_times_s(self, programs: Mapping[tuple[int, int], RunningProgram]) -> Mapping[str, float]:
        """Processor seconds of the daemon's processes, by name, in a census. Pure."""
        return docker_daemon.time_s(programs)

    def times(self, request: Request) -> LeaseTimes:
        """Constant times for the daemon and the lease, and one for each container."""
        lease_s = EXPECTED_LEASE_S + EXPECTED_NODE_S * request.database_nodes
        lease_s += 0.0 if self._settings.daemon == "running" else EXPECTED_DAEMON_S
        return LeaseTimes(lease_s=lease_s, release_s=EXPECTED_RELEASE_S)

    def _daemons(self) -> list[Daemon]:
        """Every daemon that may hold something of ours and answers."""
        reached = docker_daemon.running(self._settings.program)
        daemons = [reached.daemon] if reached.daemon is not None else []
        client, own = kernel_programs.program("docker"), docker_daemon.ours()
        if client is not None and docker_daemon.lives(own):
            daemon = Daemon(client, own.address, own=True)
            daemons += [] if docker_daemon.answers(daemon) else [daemon]
        return list({daemon.address: daemon for daemon in daemons}.values())

    def _record(self, request: Request, until: datetime, daemon: Literal["running", "own"]) -> lease_records.Record:
        identity = lease_register.new_id(self._state)
        nodes = tuple(self._node(identity, role, number, request) for role, number in request.places)
        return lease_records.Record(
            id=identity,
            site=self.name,
            network=self._settings.network,
            subnet=self._subnet(),
            daemon=daemon,
            study=request.study,
            owner=lease_records.owner(),
            created=lease_records.utc_now(),
            until=lease_records.aware(until),
            nodes=nodes,
            cgroups=tuple(folder for node in nodes for folder in node.cgroups),
            folders=(lease_records.nodes_folder(self._state, identity),),
            settings=self._settings.model_dump(mode="json"),
        )

    def _subnet(self) -> str:
        subnet = self._settings.subnet
        return f"127.{subnet.partition('.')[2]}.0" if self._settings.network == "host" else subnet

    def _node(self, identity: str, role: Role, number: int, request: Request) -> Node:
        """A node as known before its container exists: its address comes with that."""
        name = node_name(role, number)
        folder = lease_records.nodes_folder(self._state, identity) / name
        environment = lease_records.environment(self._state, identity)
        node = Node(name, role, self._address(role, number), (), folder, environment=environment)
        if role == "load":
            groups = cgroup.folders(cgroup.detect(), identity, name)
            outside = (str(agent.find()), "enter")
            charged = tuple(word for group in groups for word in ("--cgroup", str(group)))
            return replace(node, prefix=(*outside, *charged, "--"), watch_prefix=(*outside, "--"), cgroups=groups)
        limits = request.limits
        node = replace(node, memory_mb=limits.memory_mb, cpus=limits.cpus, inherits=False, processes="through")
        if self._settings.storage == "volume":
            return node
        # Snapshots outlive the layer; every name has its own folder for them.
        cache = cache_folder() / "docker" / "nodes" / name
        return replace(node, folder=LAYER_FOLDER / identity / name, files="through", cache=cache)

    def _address(self, role: Role, number: int) -> str:
        if self._settings.network == "host":
            return f"{self._subnet() if role == 'database' else LOOPBACK_LOADERS}.{number}"
        return f"{self._subnet()}.{0 if role == 'database' else 1}.{number}"


async def _stop_unused(identity: str) -> None:
    """Stop our own daemon if no other lease uses it. Raises SiteError."""
    own = docker_daemon.ours()
    if not lease_register.usable() or not (docker_daemon.processes(own) or (own.folder / "docker.pid").exists()):
        return
    async with docker_daemon.locked(own):
        if not docker_daemon.users(identity):
            await docker_daemon.stop(own)


async def _remove_link(bridge: str) -> None:
    """Remove a bridge that a daemon could not. Raises CommandFailed."""
    if Path("/sys/class/net", bridge).exists():
        await run(None, ["ip", "link", "delete", bridge], timeout_s=IP_TIMEOUT_S)
