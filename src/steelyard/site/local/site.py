"""Site `local`: many nodes on this machine.

As root, every node is a network namespace on a bridge with its own control groups; without root, nodes are plain
processes on loopback addresses. Either way they share processor, memory, disk, clock and kernel, which the site
reports.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import field_validator

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.removal import remove_tree
from steelyard.leases.steps import Perform, Step, perform, taking_back, undone_on_error
from steelyard.model.errors import EngineError, LastingSiteError, SiteError
from steelyard.model.facts import Role
from steelyard.model.finding import Finding
from steelyard.model.link import Lateness, LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.node_limits import NodeLimits
from steelyard.model.value import Value
from steelyard.node import agent, machine_facts
from steelyard.node.base import Node
from steelyard.node.processor import RunningProgram
from steelyard.node.tasks import together
from steelyard.site.base import QUOTA, KernelTexts, LeaseTimes, Refusal, Request, hint_of, node_name, unenforced
from steelyard.site.kernel import cgroup, disk, kernel_settings, link_program, memory, processes, processors, swap
from steelyard.site.kernel import links as kernel_links
from steelyard.site.kernel import network as kernel_network
from steelyard.site.local import findings

MOST_NODES = 250
"""Limit per role: the last octet of an address."""
EXPECTED_LEASE_S = 0.1
EXPECTED_RELEASE_S = 0.2
LOOPBACK_DATABASES = "127.113.0"
LOOPBACK_LOADERS = "127.0.0"


class Settings(Value):
    """Settings under `[site]` in a study, in addition to `name`, `nodes` and `load_nodes`."""

    mode: Literal["auto", "namespaces", "loopback"] = "auto"
    """namespaces: a separate network for each node (root); loopback: plain processes; auto: the first that is
    possible."""
    subnet: str = "10.113"
    """First two octets of the nodes' addresses in mode namespaces; nothing outside a lease ever sees them."""

    @field_validator("subnet")
    @classmethod
    def _two_octets(cls, text: str) -> str:
        octets = text.split(".")
        if len(octets) != 2 or not all(octet.isascii() and octet.isdigit() and int(octet) < 256 for octet in octets):
            raise ValueError("subnet is the first two octets of an address, such as 10.113")
        if not 1 <= int(octets[0]) <= 223 or int(octets[0]) == 127:
            raise ValueError("subnet must start with 1 to 223, and not with 127")
        return text


class LocalSite:
    """Lends parts of this machine."""

    name = "local"
    limits = frozenset(NodeLimits.model_fields) - {"profile"}
    links = kernel_links.MEDIA
    charges_programs = True

    def __init__(self, settings: Settings, state_folder: Path, perform: Perform = perform) -> None:
        self._settings = settings
        self._state = state_folder.absolute()
        self._perform = perform
        self._fabrics: dict[str, kernel_links.Fabric] = {}
        """Lease to its link, for the leases that this object lent."""
        self.mode = _mode(settings)
        own_network = self.mode == "namespaces"
        self.shares = frozenset({"cpu", "memory", "disk", "clock", "kernel"} | (set() if own_network else {"network"}))

    def joined(self) -> LocalSite:
        """The site with nodes on this machine's own network, unless its settings ask for namespaces."""
        if self._settings.mode == "namespaces":
            return self
        return LocalSite(self._settings.model_copy(update={"mode": "loopback"}), self._state, self._perform)

    def cpus_by(self, limits: NodeLimits) -> str:
        """A quota, or with `node.cpu_limit = "cpuset"` whole cores."""
        return "whole cores" if limits.cpu_limit == "cpuset" else QUOTA

    def uncuttable(self) -> str:
        """Nodes share a network, or there is no packet filter."""
        if self.mode != "namespaces":
            return "in mode loopback all nodes of site local share one network (site.mode: namespaces needs root)"
        return "" if shutil.which("nft") else "the program nft is missing (Debian: apt install nftables)"

    def undelayable(self, link: LinkChoice) -> str:
        """The kernel makes the link."""
        if self.mode == "namespaces" and kernel_links.takes_program(link, netem=True):
            return ""
        return (
            "packets are late only in a link that our program moves: in mode namespaces with link.jitter_ms, "
            'link.duplex = "half" or link.medium = "802.11"'
        )

    def delay(self, targets: Sequence[Node], peers: Sequence[Node], lateness: Lateness) -> None:
        """By the link program of the nodes' lease. Raises SiteError."""
        program = self._fabrics.get(targets[0].environment.get(lease_records.MARKER, ""))
        if not isinstance(program, link_program.LinkProgram):
            raise SiteError("the nodes have no link program", self.undelayable(LinkChoice()))
        program.late([node.name for node in targets], [node.name for node in peers], lateness)

    def unslowable(self, slow: NodeLimits) -> str:
        """A controller of disks that this machine lacks."""
        return disk.lacking(cgroup.detect(), slow) or ""

    def slowed(self, node: Node, slow: NodeLimits, limits: NodeLimits) -> tuple[KernelTexts, KernelTexts]:
        """Throttles of the node's loop device. Raises SiteError."""
        return disk.slowed(node.folder, slow, limits, cgroup.detect())

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. Raises SiteError after undoing all completed steps."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(f"site local cannot lend to {request.study}: {reason}", hint_of(reason))
        hierarchies = cgroup.detect()
        record = self._record(request, until, hierarchies)
        lease = record.lease(lease_records.record_path(self._state, record.id))

        async with undone_on_error(lambda: self.release(lease)):
            for step in self._steps(record, lease, hierarchies, self._limits("database", request)):
                await self._perform(step)
            if self.mode == "namespaces":
                for step in await self._joining(record, request):
                    await self._perform(step)
        return lease

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease, by its id, whether or not its record still exists. Idempotent.
        Each step is performed even if an earlier one failed; then one SiteError is raised for all, and the record is
        kept."""
        hierarchies = cgroup.detect()
        async with taking_back(lease, "run `steelyard clean` once the cause is fixed") as attempt:
            if (fabric := self._fabrics.pop(lease.id, None)) is not None:
                await attempt(fabric.end())
            await attempt(processes.end(lease.id, hierarchies))
            await attempt(kernel_network.delete(lease.id))
            await attempt(cgroup.remove(hierarchies, lease.id))
            # A command that was starting when its conductor was killed may get its mark only now.
            await attempt(processes.end(lease.id, hierarchies))
            await attempt(disk.remove(lease.id, hierarchies))
            await attempt(remove_tree(lease_records.nodes_folder(lease.record.parent.parent, lease.id)))

    async def throttle(self, lease: Lease, limits: NodeLimits, *, limited: bool) -> None:
        """Set or lift the CPU quotas of the database nodes that have one, and the rates of their disks, as far as these
        begin when they are warm. Idempotent. Raises SiteError."""
        if limits.processors_from_warm:
            cgroup.throttle_all(lease.databases, limited=limited)
        if limits.disks_from_warm:
            hierarchies = cgroup.detect()
            if limited:
                await together(disk.write_out(lease.id, node.folder) for node in lease.databases)
            for node in lease.databases:
                disk.set_rates(node.folder, limits if limited else NodeLimits(), hierarchies)

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead; namespaces, cgroups, processes without a record."""
        now = lease_records.utc_now()
        abandoned = lease_records.left_over(self._state, self.name, now)
        recorded = {record.id for _, record in lease_records.records(self._state, self.name)}
        orphans = self._orphans(recorded, now)
        seen = {lease.id for lease in (*abandoned, *orphans)}
        strays = lease_processes.strays(self.name, self._state)
        return [*abandoned, *orphans, *(stray for stray in strays if stray.id not in seen)]

    async def facts(self, node: Node) -> dict[str, str]:
        """The machine's facts, and the node's own: address, network, limits as the kernel reports them."""
        hierarchies = cgroup.detect()
        identity = node.environment.get(lease_records.MARKER, "")
        network = kernel_network.namespace(identity, node.name) if self.mode == "namespaces" else "the machine's"
        problems = "; ".join(hierarchies.problems)
        fabric = self._fabrics.get(identity)
        link = {"link": fabric.how, "link_priority": fabric.priority} if fabric is not None else {}
        own = {
            "site": f"{self.name}, {self.mode}",
            "address": node.address,
            "network": network,
            **{name: text for name, text in link.items() if text},
            "cgroup_version": hierarchies.version if node.cgroups else "none",
            **({"cgroup_problems": problems} if problems else {}),
        }
        machine = {**kernel_settings.facts(), **machine_facts.facts(), **kernel_settings.disk(node.folder)}
        return {**machine, **own, **cgroup.in_force(node.cgroups), **disk.in_force(node.folder, hierarchies)}

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Reason why this machine cannot fulfil the request, or None."""
        if (most := max(request.database_nodes, request.load_nodes)) > MOST_NODES:
            return f"{most} nodes of one role were requested, but only {MOST_NODES} addresses are available"
        limit_mb = self._limits("database", request).memory_mb
        refusal = self._lacking() or self._unlinkable(request) or self._unenforceable(request)
        return refusal or memory.refusal(request, limit_mb, memory_mb_per_node)

    def notes(self, request: Request) -> Sequence[str]:
        """Requested swap that nodes do not get."""
        limits = self._limits("database", request)
        return list(swap.notes(cgroup.detect(), limits, request.database_nodes))

    async def findings(self) -> Sequence[Finding]:
        """Privileges, limits of nodes, their disks, links between them."""
        return await findings.of_this_machine()

    def times(self, request: Request) -> LeaseTimes:
        """A constant short time for any number of nodes."""
        return LeaseTimes(lease_s=EXPECTED_LEASE_S, release_s=EXPECTED_RELEASE_S)

    def link_failure(self, lease: Lease) -> str | None:
        """Ending of a lease's link program, or None."""
        fabric = self._fabrics.get(lease.id)
        return None if fabric is None else fabric.failure()

    async def moved_frames(self, lease: Lease, begun_s: float, ended_s: float) -> MovedFrames | None:
        """Traffic of a lease's link program; None if the kernel makes the link."""
        fabric = self._fabrics.get(lease.id)
        return None if fabric is None else await fabric.moved(begun_s, ended_s)

    def link_made_by(self, link: LinkChoice) -> str:
        """Mechanism of a link between the nodes: parts of the kernel, or the link program. Pure."""
        return kernel_links.made_by(link)

    def helper_times_s(self, programs: Mapping[tuple[int, int], RunningProgram]) -> Mapping[str, float]:
        """Processor seconds of the link programs of this object's leases, in a census. Pure."""
        running = [fabric.process_ids() for fabric in self._fabrics.values()]
        return {"link": link_program.program_time_s(frozenset().union(*running), programs)}

    def _unlinkable(self, request: Request) -> str | None:
        reason = kernel_links.lacking(request.link, namespaces=self.mode == "namespaces", tc=shutil.which("tc"))
        wired = request.link.load_nodes == "wired"
        stations = [node_name(role, number) for role, number in request.places if not (wired and role == "load")]
        idle = Refusal.at("link.queue_frames", kernel_links.idle_queue(request.link))
        return reason or idle or Refusal.at("link.hidden", kernel_links.unknown_station(request.link, stations))

    def _lacking(self) -> str | None:
        if self.mode != "namespaces":
            return None
        if missing := [name for name in ("net_admin", "sys_admin", "setpcap") if not machine_facts.capable(name)]:
            return f"mode namespaces needs root; this process lacks {', '.join(missing)}"
        if shutil.which("ip") is None:
            return "mode namespaces needs the program ip (Debian: apt install iproute2)"
        try:
            agent.find()
        except EngineError as error:
            return f"{error.message}: {error.hint}"
        return None

    def _unenforceable(self, request: Request) -> str | None:
        hierarchies, limits = cgroup.detect(), self._limits("database", request)
        why = "; ".join(hierarchies.problems) or "no such controller"
        entry = self._entry() is not None
        if reason := processors.refusal(request, limits, hierarchies, "" if entry else why):
            return reason
        if limits.memory_mb is not None and not (hierarchies.has("memory") and entry):
            return f"memory_mb = {limits.memory_mb} cannot be enforced: {why}"
        for name, needed in (("swap_mb", "memory_mb"), ("cpu_limit", "cpus")):
            if getattr(limits, name) is not None and getattr(limits, needed) is None:
                return f"{name} = {getattr(limits, name)} has no effect without {needed}"
        if reason := swap.refusal(hierarchies, limits):
            return reason
        reason = disk.lacking(hierarchies, limits) or ("" if entry else why) if limits.own_disk else None
        return reason or unenforced(self, request)

    def _record(self, request: Request, until: datetime, hierarchies: cgroup.Hierarchies) -> lease_records.Record:
        identity = lease_register.new_id(self._state)
        nodes = tuple(self._node(identity, role, number, hierarchies, request) for role, number in request.places)
        namespaces = [kernel_network.namespace(identity, node.name) for node in nodes]
        own_disks = self._limits("database", request).own_disk
        return lease_records.Record(
            id=identity,
            site=self.name,
            network=self.mode,
            study=request.study,
            owner=lease_records.owner(),
            created=lease_records.utc_now(),
            until=lease_records.aware(until),
            nodes=nodes,
            namespaces=(kernel_network.switch(identity), *namespaces) if self.mode == "namespaces" else (),
            cgroups=tuple(folder for node in nodes for folder in node.cgroups),
            folders=(lease_records.nodes_folder(self._state, identity),),
            disks=tuple(disk.image(node.folder) for node in nodes if node.role == "database") if own_disks else (),
            settings=self._settings.model_dump(mode="json"),
        )

    def _node(self, identity: str, role: Role, number: int, hierarchies: cgroup.Hierarchies, request: Request) -> Node:
        name = node_name(role, number)
        limits = self._limits(role, request)
        entry = self._entry()
        groups = cgroup.folders(hierarchies, identity, name, limits) if entry else ()
        prefix: tuple[str, ...] = ()
        watch_prefix: tuple[str, ...] = ()
        if entry:
            # As root, Cassandra would lock its whole heap in memory; a node should behave as for an ordinary user.
            dropped = ("--drop-capability", "ipc_lock") if machine_facts.capable("setpcap") else ()
            inside = str(kernel_network.path(kernel_network.namespace(identity, name)))
            network = ("--netns", inside) if self.mode == "namespaces" else ()
            # The top group of blkio is where a node's device is throttled; it is not a group of the node.
            top = (hierarchies.blkio,) if limits.own_disk and hierarchies.blkio else ()
            charged = tuple(word for group in (*groups, *top) for word in ("--cgroup", str(group)))
            prefix = (*entry, *network, *charged, *dropped, "--")
            watch_prefix = (*entry, *network, *dropped, "--")
        return Node(
            name=name,
            role=role,
            address=self._address(role, number),
            prefix=prefix,
            watch_prefix=watch_prefix,
            folder=lease_records.nodes_folder(self._state, identity) / name,
            memory_mb=limits.memory_mb,
            cpus=limits.cpus,
            cgroups=groups,
            own_disk=limits.own_disk,
            environment=lease_records.environment(self._state, identity),
        )

    def _address(self, role: Role, number: int) -> str:
        if self.mode == "namespaces":
            return f"{self._settings.subnet}.{0 if role == 'database' else 1}.{number}"
        return f"{LOOPBACK_DATABASES if role == 'database' else LOOPBACK_LOADERS}.{number}"

    def _limits(self, role: Role, request: Request) -> NodeLimits:
        """The limits of a node; load nodes have none, because they would limit the measurement."""
        return NodeLimits() if role == "load" else request.limits

    def _entry(self) -> tuple[str, str] | None:
        """The program that executes commands within a node; without it, loopback nodes have no control groups."""
        try:
            return str(agent.find()), "enter"
        except EngineError:
            return None

    def _steps(
        self, record: lease_records.Record, lease: Lease, hierarchies: cgroup.Hierarchies, limits: NodeLimits
    ) -> list[Step]:
        members = _members(record)
        bound = cgroup.bound_to_cores(limits)
        cores = processors.bindable_cores(hierarchies) if bound else ()

        async def write() -> None:
            lease_register.begin(record, self._state, lambda: self._claim_loopback(record))

        async def folders() -> None:
            for node in record.nodes:
                node.folder.mkdir(parents=True)

        def groups(node: Node) -> Callable[[], Awaitable[None]]:
            async def make() -> None:
                its_limits = limits if node.role == "database" else NodeLimits()
                its_cores = processors.cores_of(node.name, limits, cores) if cores and node.role == "database" else ""
                cgroup.make(hierarchies, record.id, node.name, its_limits, its_cores)

            return make

        steps = [Step("record", write), Step("folders", folders)]
        steps += [Step(f"cgroups of {node.name}", groups(node)) for node in record.nodes if node.cgroups]
        if limits.own_disk:
            steps += [step for node in lease.databases for step in _disk_steps(record.id, node, limits, hierarchies)]
        if self.mode == "namespaces":
            steps.append(Step("namespaces", lambda: kernel_network.add_namespaces(record.id, members)))
        return steps

    async def _joining(self, record: lease_records.Record, request: Request) -> Sequence[Step]:
        """The steps that join the namespaces of a lease."""
        folder = lease_records.nodes_folder(self._state, record.id)
        mark = lease_records.environment(self._state, record.id)
        link, k = request.link, request.dilation
        fabric = await kernel_links.fabric(record.id, _members(record), link, folder, mark, request.seed, k)
        self._fabrics[record.id] = fabric
        return fabric.steps()

    def _claim_loopback(self, wanted: lease_records.Record) -> None:
        """Claim the loopback addresses, which two leases cannot share. Raises SiteError."""
        if self.mode != "loopback":
            return
        addresses = {node.address for node in wanted.nodes}
        for _, other in lease_records.records(self._state, self.name):
            if other.network == "loopback" and not addresses.isdisjoint(node.address for node in other.nodes):
                raise lease_records.claimed(
                    other,
                    has="uses the loopback addresses",
                    otherwise='use mode = "namespaces" as root',
                    left="processes on the loopback addresses",
                )

    def _orphans(self, recorded: set[str], now: datetime) -> list[Lease]:
        """Namespaces, cgroups and disks that match our pattern and have no record anywhere; only as root. Those of
        another state folder, by the register or a process's mark, are left to that installation."""
        if not lease_register.usable():
            return []
        groups = [name for name in cgroup.present(cgroup.detect()) if lease_records.ID_PATTERN.fullmatch(name)]
        resources = {*kernel_network.present(), *groups, *disk.present()}
        # The register is read last: a lease is entered before its first resource is made.
        entered = lease_register.entries()
        places = {identity: (entry.record, entry.is_kept) for identity, entry in entered.items()}
        kept = {
            identity
            for identity, (path, there) in (*lease_processes.marked_by().items(), *places.items())
            if there or not lease_register.of_state(path, self._state)
        }
        if lease_register.hidden_files():
            resources &= entered.keys()  # the owners of the others are unknown here
        lost = resources - recorded - kept
        return [
            Lease(identity, self.name, (), now, lease_records.record_path(self._state, identity))
            for identity in sorted(lost)
        ]


def _disk_steps(identity: str, node: Node, limits: NodeLimits, hierarchies: cgroup.Hierarchies) -> list[Step]:
    """Steps that give a node its own disk."""
    return [
        Step(f"file system of {node.name}", lambda: disk.make_file_system(identity, node.folder, limits)),
        Step(f"loop device of {node.name}", lambda: disk.attach(identity, node.folder)),
        Step(f"mount of {node.name}", lambda: disk.mount(identity, node.folder, limits, hierarchies)),
    ]


def _members(record: lease_records.Record) -> list[kernel_network.Member]:
    return [kernel_network.Member(node.name, node.address, node.role) for node in record.nodes]


def _mode(settings: Settings) -> Literal["namespaces", "loopback"]:
    if settings.mode != "auto":
        return settings.mode
    able = all(machine_facts.capable(name) for name in ("net_admin", "sys_admin", "setpcap"))
    return "namespaces" if able and shutil.which("ip") else "loopback"
