"""Site `vm`: database nodes are virtual machines of this machine; load nodes are network namespaces beside them.

A command on a node is ssh into its machine, so a node has a kernel, a clock, a memory and disks of its own: its memory
can be a factor. Machines and load nodes hang on one bridge in a network namespace of the lease. The load generator
stays outside: it is what measures.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.removal import remove_record, remove_tree
from steelyard.model.errors import CommandFailed, FileError, LastingSiteError, SiteError, SteelyardError
from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.folders import cache_folder
from steelyard.node.processor import Program
from steelyard.node.tasks import together
from steelyard.site import (
    _cgroup,
    _network,
    _ssh_connection,
    _vm_accelerator,
    _vm_facts,
    _vm_image,
    _vm_lending,
    _vm_machine,
    _vm_refusals,
    _vm_scripts,
)
from steelyard.site._vm_lending import Lending, Step, perform
from steelyard.site._vm_refusals import missing_packages
from steelyard.site._vm_settings import Settings
from steelyard.site.base import LeaseTimes, Patience, Request

__all__ = ["Settings", "Step", "VmSite", "create", "missing_packages"]

OWN_PROCESSORS = True
"""`node.cpus` is a machine's number of processors, from its start on; no quota that could be set later."""
EXPECTED_LEASE_S = 6.0
EXPECTED_NODE_S = 12.0
"""An emulated machine on a processor of its own; under KVM a third of it."""
EXPECTED_RELEASE_S = 2.0
SYNC_TIMEOUT_S = 60.0
PROCESS = re.compile(r"sy-(?:[0-9a-f]{8}-n[0-9]*|trial)")
"""Names of virtual machines in the table of processes."""
say = logging.getLogger(__name__).info


def create(settings: Any, state_folder: Path) -> VmSite:
    """Make the site; no side effects. `settings` is a `Settings`."""
    return VmSite(Settings.model_validate(settings), state_folder)


class VmSite:
    """Lends virtual machines."""

    name = "vm"
    limits = frozenset({"memory_mb", "cpus"})
    patience = Patience(lease_s=1800.0, release_s=180.0, inspect_s=300.0, first_reading_s=60.0)
    """Once, an image is built; emulated machines boot slowly."""
    shares = frozenset({"cpu", "memory", "disk"})

    def __init__(
        self, settings: Settings, state_folder: Path, perform: Callable[[Step], Awaitable[None]] = perform
    ) -> None:
        self._settings = settings
        self._state = state_folder.absolute()
        self._perform = perform

    def cpus_by(self, limits: NodeLimits) -> str:
        """As many processors as a machine has."""
        return "the number of its processors"

    async def prepare(self) -> None:
        """Build the image if it is not in the cache yet, and find out whether KVM works: some minutes, once. Raises
        SiteError."""
        image = await _vm_image.build(cache_folder(), say)
        accelerator = await _vm_accelerator.choose(self._settings.accelerator, image, _vm_accelerator.marked({}))
        say(f"virtual machines run by {accelerator.name}: {accelerator.why}")

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. Raises SiteError after undoing all completed steps."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(f"site vm cannot lend to {request.study}: {reason}", "`steelyard doctor` says more")
        record = self._record(request, until)
        lending = Lending(self._settings, self._state, record, say)
        lease = record.lease(lease_records.record_path(self._state, record.id))

        async def undo(
            kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> bool:
            try:
                await self.release(lease)
            except SiteError as second:
                if error is not None:
                    error.add_note(f"while taking the lease back: {second.message}")
            return False

        async with AsyncExitStack() as stack:
            stack.push_async_exit(undo)
            try:
                for step in lending.steps():
                    await self._perform(step)
            except CommandFailed as error:
                raise LastingSiteError(f"site vm cannot lend the nodes: {error.message}", error.stderr_tail) from error
            stack.pop_all()
        return lending.record.lease(lease.record)

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease, by its id, whether or not its record still exists. Idempotent.
        Each step is performed even if an earlier one failed; then one SiteError is raised for all, and the record is
        kept."""
        hierarchies = _cgroup.detect()
        state = lease.record.parent.parent
        errors: list[SiteError | CommandFailed | FileError] = []

        async def tried(action: Awaitable[None]) -> None:
            try:
                await action
            except (SiteError, CommandFailed, FileError) as error:
                errors.append(error)

        await together(self._written_out(state, lease.id, node) for node in lease.databases)
        await tried(_kill(lease.id, hierarchies))
        await tried(_network.delete(lease.id))
        await tried(_cgroup.remove(hierarchies, lease.id))
        # A command that was starting when its conductor was killed may get its mark only now.
        await tried(_kill(lease.id, hierarchies))
        await tried(remove_tree(lease_records.nodes_folder(state, lease.id)))
        for socket in _ssh_connection.control_folder().glob(f"{lease.id}-*"):
            socket.unlink(missing_ok=True)
        if not errors:
            await tried(remove_record(lease))
        if errors:
            raise SiteError(
                f"lease {lease.id} was not taken back completely: " + "; ".join(error.message for error in errors),
                "say `steelyard clean vm` when the cause is gone",
            ) from errors[0]

    async def leftovers(self) -> Sequence[Lease]:
        """Leases whose owner is dead or whose end has passed; processes of machines without a record. Networks without
        a record are those of site local."""
        now = lease_records.utc_now()
        known = lease_records.records(self._state, self.name)
        left = {record.id: record.lease(path) for path, record in known if lease_records.abandoned(record, now)}
        for stray in lease_records.strays(self.name):
            left.setdefault(stray.id, stray)
        return list(left.values())

    async def facts(self, node: Node) -> dict[str, str]:
        """The facts of a machine as it says them itself, and how it runs."""
        identity = node.environment.get(lease_records.MARKER, "")
        return await _vm_facts.of(node, lease_records.record_path(self._state, identity), self._settings)

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Why no virtual machines can be lent for the request, or None."""
        return _vm_refusals.refuse(self, self._settings, request, memory_mb_per_node)

    def helper_times_s(self, programs: Mapping[tuple[int, int], Program]) -> Mapping[str, float]:
        """Processor seconds of virtual machines in a census. What their nodes use is told by the machines themselves;
        seen from outside, it is the work of QEMU. Pure."""
        used = [program.used_s for program in programs.values() if PROCESS.fullmatch(program.name)]
        return {"qemu": sum(used)} if used else {}

    def times(self, request: Request) -> LeaseTimes:
        """A constant time for the lease, and one for each virtual machine, which share the processor."""
        lease_s = EXPECTED_LEASE_S + EXPECTED_NODE_S * request.database_nodes
        return LeaseTimes(lease_s=lease_s, release_s=EXPECTED_RELEASE_S)

    async def _written_out(self, state: Path, identity: str, node: Node) -> None:
        """Have a machine that is up write to its disk what it holds in memory: snapshots outlive the lease."""
        places = _vm_machine.files(state, cache_folder(), identity, node.name)
        if not (_vm_machine.is_up(places) and _vm_lending.runs(identity, node.name)):
            return
        try:
            connection = _vm_lending.connection_of(state, identity, node)
            await connection.shell("sync", timeout_s=SYNC_TIMEOUT_S)
            await connection.close()
        except SteelyardError as error:
            say(f"{node.name}: what it had not written is lost: {error.message}")

    def _record(self, request: Request, until: datetime) -> lease_records.Record:
        taken = {path.stem for path in (self._state / "leases").glob("*.json")} | lease_register.known().keys()
        identity = lease_records.new_id(taken)
        numbers = range(1, request.database_nodes + 1)
        databases = [self._database(identity, f"n{number}", number, request) for number in numbers]
        loaders = [self._loader(identity, f"l{number}", number) for number in range(1, request.load_nodes + 1)]
        namespaces = [_network.namespace(identity, node.name) for node in loaders]
        return lease_records.Record(
            id=identity,
            site=self.name,
            mode="",
            study=request.study,
            owner=lease_records.owner(),
            created=lease_records.utc_now(),
            until=lease_records.aware(until),
            nodes=(*databases, *loaders),
            namespaces=(_network.switch(identity), *namespaces),
            cgroups=tuple(folder for node in loaders for folder in node.cgroups),
            folders=(lease_records.nodes_folder(self._state, identity),),
            settings=self._settings.model_dump(mode="json"),
        )

    def _database(self, identity: str, name: str, number: int, request: Request) -> Node:
        """A virtual machine as it is known before it boots."""
        shared = Path(_vm_scripts.FOLDER)
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
        entry = (str(agent.find()), "enter", "--netns", str(_network.path(_network.namespace(identity, name))))
        groups = _cgroup.folders(_cgroup.detect(), identity, name)
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


async def _kill(identity: str, hierarchies: _cgroup.Hierarchies) -> None:
    groups = _cgroup.present(hierarchies, identity).get(identity, [])
    networks = [_network.path(name) for name in _network.present(identity).get(identity, [])]
    await lease_records.kill(identity, groups, networks)
