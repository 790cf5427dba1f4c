"""Site `vm`: database nodes are virtual machines of this machine; load nodes are network namespaces on the same bridge.

A command on a node is ssh into its machine, so a node has a kernel, a clock, a memory and disks of its own: its memory
can be a factor. Machines and load nodes hang on one bridge in a network namespace of the lease. The load generator
stays outside: it is what measures.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.removal import remove_tree
from steelyard.leases.steps import Perform, perform, taking_back, undone_on_error
from steelyard.model.errors import CommandFailed, LastingSiteError, SiteError, SteelyardError
from steelyard.model.finding import Finding
from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent, machine_facts
from steelyard.node.base import Node
from steelyard.node.folders import cache_folder
from steelyard.node.processor import RunningProgram
from steelyard.node.tasks import together
from steelyard.site.base import LeaseTimes, Patience, Request, hint_of
from steelyard.site.kernel import cgroup, kernel_settings, network, node_facts, processes
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.vm import accelerator as vm_accelerator
from steelyard.site.vm import findings, machine, refusals, scripts
from steelyard.site.vm import image as vm_image
from steelyard.site.vm import steps as vm_steps
from steelyard.site.vm.settings import Settings
from steelyard.site.vm.steps import MachineSteps

EXPECTED_LEASE_S = 6.0
EXPECTED_NODE_S = 12.0
"""An emulated machine on its own processor; under KVM a third of it."""
EXPECTED_RELEASE_S = 2.0
SYNC_TIMEOUT_S = 60.0
PROCESS = re.compile(r"sy-(?:[0-9a-f]{8}-n[0-9]*|trial)")
"""Names of virtual machines in the table of processes."""
say = logging.getLogger(__name__).info


class VmSite:
    """Lends virtual machines."""

    name = "vm"
    limits = frozenset({"memory_mb", "cpus"})
    patience = Patience(lease_s=1800.0, release_s=180.0, inspect_s=300.0, first_reading_s=60.0)
    """Once, an image is built; emulated machines boot slowly."""
    shares = frozenset({"cpu", "memory", "disk"})
    own_clocks = True

    def __init__(
        self,
        settings: Settings,
        state_folder: Path,
        perform: Perform = perform,
        device: Path = vm_accelerator.DEVICE,
    ) -> None:
        self._settings = settings
        self._state = state_folder.absolute()
        self._perform = perform
        self._device = device

    def cpus_by(self, limits: NodeLimits) -> str:
        """As many processors as a machine has."""
        return "the number of its processors"

    async def prepare(self) -> None:
        """Build the image if it is not in the cache yet: some minutes, once. Find out whether KVM works, also where an
        earlier trial said so: what stood in the way may be gone. Raises SiteError."""
        image = await vm_image.build(cache_folder(), say)
        caller = lease_records.marked({})
        accelerator = await vm_accelerator.choose(
            self._settings.accelerator, image, caller, again=True, device=self._device
        )
        say(f"virtual machines run with {accelerator.name}: {accelerator.why}")

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. Raises SiteError after undoing all completed steps."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(f"site vm cannot lend to {request.study}: {reason}", hint_of(reason))
        record = self._record(request, until)
        steps = MachineSteps(self._settings, self._state, record, say)
        lease = record.lease(lease_records.record_path(self._state, record.id))

        async with undone_on_error(lambda: self.release(lease)):
            try:
                for step in steps.in_order():
                    await self._perform(step)
            except CommandFailed as error:
                raise SiteError(
                    f"site vm cannot lend the nodes: {error.message}", "run `steelyard doctor` for details"
                ) from error
        return steps.record.lease(lease.record)

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease, by its id, whether or not its record still exists. Idempotent.
        Each step is performed even if an earlier one failed; then one SiteError is raised for all, and the record is
        kept."""
        hierarchies = cgroup.detect()
        state = lease.record.parent.parent
        await together(self._written_out(state, lease.id, node) for node in lease.databases)
        async with taking_back(lease, "run `steelyard clean vm` once the cause is fixed") as attempt:
            await attempt(processes.end(lease.id, hierarchies))
            await attempt(network.delete(lease.id))
            await attempt(cgroup.remove(hierarchies, lease.id))
            # A command that was starting when its conductor was killed may get its mark only now.
            await attempt(processes.end(lease.id, hierarchies))
            await attempt(remove_tree(lease_records.nodes_folder(state, lease.id)))
            for socket in ssh_connection.control_folder().glob(f"{lease.id}-*"):
                socket.unlink(missing_ok=True)

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead; processes of machines without a record. Networks without
        a record are those of site local."""
        now = lease_records.utc_now()
        left = {lease.id: lease for lease in lease_records.left_over(self._state, self.name, now)}
        for stray in lease_processes.strays(self.name, self._state):
            left.setdefault(stray.id, stray)
        return list(left.values())

    async def facts(self, node: Node) -> dict[str, str]:
        """The facts of a machine as it reports them, and its accelerator. Raises SiteError if it does not answer."""
        own = {"site": self.name, "address": node.address, "network": "a bridge of the lease"}
        if node.role == "load":
            machine = {**kernel_settings.facts(), **machine_facts.facts(), **kernel_settings.disk(node.folder)}
            return {**machine, **own, **cgroup.in_force(node.cgroups)}
        try:
            machine = await node_facts.of_node(node)
        except CommandFailed as error:
            raise SiteError(f"{node.name}: its virtual machine does not report its facts: {error.message}") from error
        identity = node.environment.get(lease_records.MARKER, "")
        lent = lease_records.read(lease_records.record_path(self._state, identity))
        shape = vm_steps.shape_of(self._settings, node)
        running = {
            "vm_accelerator": lent.accelerator if lent is not None else "",
            "vm_accelerator_reason": lent.accelerator_why if lent is not None else "",
            "vm_emulator": f"QEMU {await vm_accelerator.version(lease_records.marked({}))}",
            "vm_memory_mb": str(shape.memory_mb),
            "vm_processors": str(shape.processors),
            "vm_disk_cache": shape.disk_cache,
            "vm_image": vm_image.key_of(vm_image.recipe()),
        }
        return {**machine, **own, **{name: text for name, text in running.items() if text}}

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Reason why no virtual machines can be lent for the request, or None."""
        return refusals.refuse(self, self._settings, request, memory_mb_per_node)

    async def findings(self) -> Sequence[Finding]:
        """QEMU, the image, and whether KVM runs a guest."""
        return await findings.of_this_machine(self._settings)

    def helper_times_s(self, programs: Mapping[tuple[int, int], RunningProgram]) -> Mapping[str, float]:
        """Processor seconds of virtual machines in a census. The use of their nodes is reported by the machines
        themselves; seen from outside, it is the work of QEMU. Pure."""
        used = [program.used_s for program in programs.values() if PROCESS.fullmatch(program.name)]
        return {"qemu": sum(used)} if used else {}

    def times(self, request: Request) -> LeaseTimes:
        """A constant time for the lease, and one for each virtual machine, which share the processor."""
        lease_s = EXPECTED_LEASE_S + EXPECTED_NODE_S * request.database_nodes
        return LeaseTimes(lease_s=lease_s, release_s=EXPECTED_RELEASE_S)

    async def _written_out(self, state: Path, identity: str, node: Node) -> None:
        """Have a running machine write its memory to its disk: snapshots outlive the lease."""
        places = machine.files(state, cache_folder(), identity, node.name)
        if not (machine.is_up(places) and vm_steps.runs(identity, node.name)):
            return
        try:
            connection = vm_steps.connection_of(state, identity, node)
            await connection.shell("sync", timeout_s=SYNC_TIMEOUT_S)
            await connection.close()
        except SteelyardError as error:
            say(f"{node.name}: unwritten data are lost: {error.message}")

    def _record(self, request: Request, until: datetime) -> lease_records.Record:
        identity = lease_register.new_id(self._state)
        numbers = range(1, request.database_nodes + 1)
        databases = [self._database(identity, f"n{number}", number, request) for number in numbers]
        loaders = [self._loader(identity, f"l{number}", number) for number in range(1, request.load_nodes + 1)]
        namespaces = [network.namespace(identity, node.name) for node in loaders]
        return lease_records.Record(
            id=identity,
            site=self.name,
            study=request.study,
            owner=lease_records.owner(),
            created=lease_records.utc_now(),
            until=lease_records.aware(until),
            nodes=(*databases, *loaders),
            namespaces=(network.switch(identity), *namespaces),
            cgroups=tuple(folder for node in loaders for folder in node.cgroups),
            folders=(lease_records.nodes_folder(self._state, identity),),
            settings=self._settings.model_dump(mode="json"),
        )

    def _database(self, identity: str, name: str, number: int, request: Request) -> Node:
        """A virtual machine as it is known before it boots."""
        shared = Path(scripts.FOLDER)
        return Node(
            name=name,
            role="database",
            address=f"{self._settings.subnet}.0.{number}",
            prefix=(),
            folder=shared / "nodes" / identity / name,
            words="shell",
            inherits=False,
            files="through",
            programs="own",
            processes="through",
            kernel=name,
            cache=shared,
            memory_mb=request.limits.memory_mb,
            cpus=request.limits.cpus,
            environment={lease_records.MARKER: identity},
        )

    def _loader(self, identity: str, name: str, number: int) -> Node:
        entry = (str(agent.find()), "enter", "--netns", str(network.path(network.namespace(identity, name))))
        groups = cgroup.folders(cgroup.detect(), identity, name)
        charged = tuple(word for group in groups for word in ("--cgroup", str(group)))
        return Node(
            name=name,
            role="load",
            address=f"{self._settings.subnet}.1.{number}",
            prefix=(*entry, *charged, "--"),
            watch_prefix=(*entry, "--"),
            folder=lease_records.nodes_folder(self._state, identity) / name,
            cgroups=groups,
            environment=lease_records.environment(self._state, identity),
        )
