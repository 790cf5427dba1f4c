"""Steps of one lease of virtual machines: record, image, accelerator, files, network, boot, way in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.steps import Step
from steelyard.model.errors import SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.folders import cache_folder
from steelyard.node.tasks import together
from steelyard.site.kernel import cgroup, memory, network
from steelyard.site.ssh import agent as ssh_agent
from steelyard.site.ssh import keys
from steelyard.site.ssh.connection import Connection, Unreachable
from steelyard.site.vm import accelerator, image
from steelyard.site.vm import machine as vm_machine
from steelyard.site.vm.accelerator import Accelerator
from steelyard.site.vm.image import ARCHITECTURE, Image
from steelyard.site.vm.machine import Files, Shape
from steelyard.site.vm.settings import Settings

Say = Callable[[str], None]

BOOT_TIMEOUT_S = 300.0
"""An emulated machine takes 10 to 20 s, several at once on few processors longer."""
ATTEMPT_TIMEOUT_S = 30.0
POLL_S = 0.25
OTHERWISE = (
    "interrupt that study and rerun it later: a machine has one lease of site vm at a time, whatever "
    "STEELYARD_CACHE and STEELYARD_STATE say"
)
"""Alternative to waiting for another study's virtual machines."""
READ_CLOCK = "date +%s.%N"
SET_CLOCK = 'date --set="$1 seconds" > /dev/null'
"""Argument: seconds by which the clock is behind. The machine read it to the second when it booted."""


class MachineSteps:
    """The steps of one lease, and their findings."""

    def __init__(self, settings: Settings, state: Path, record: lease_records.Record, say: Say) -> None:
        self.record = record
        """With everything that is known of the nodes, once all steps are done."""
        self._settings = settings
        self._state = state
        self._say = say
        self._path = lease_records.record_path(state, record.id)
        self._caller = lease_records.marked(lease_records.environment(state, record.id))
        self._image: Image | None = None
        self._accelerator: Accelerator | None = None
        self._program: ssh_agent.AgentProgram | None = None

    def in_order(self) -> list[Step]:
        """The steps in order; the record comes first."""
        return [
            Step("record", self._write),
            Step("image", self._ensure_image),
            Step("accelerator", self._choose_accelerator),
            Step("files", self._make_files),
            Step("network", self._make_network),
            Step("machines", self._boot),
            Step("nodes", self._reach),
        ]

    @property
    def _databases(self) -> list[Node]:
        return [node for node in self.record.nodes if node.role == "database"]

    @property
    def _loaders(self) -> list[Node]:
        return [node for node in self.record.nodes if node.role == "load"]

    def _files(self, node: Node) -> Files:
        return vm_machine.files(self._state, cache_folder(), self.record.id, node.name)

    async def _write(self) -> None:
        lease_register.begin(self.record, self._state, lambda: _claim_disks(self.record, self._state))

    async def _ensure_image(self) -> None:
        self._image = await image.build(cache_folder(), self._say)
        self._program = ssh_agent.program("virtual machines", ARCHITECTURE)

    async def _choose_accelerator(self) -> None:
        """Accelerator of the machines, and check that they fit into memory with its overhead."""
        assert self._image is not None
        self._accelerator = await accelerator.choose(self._settings.accelerator, self._image, self._caller)
        each_mb = shape_of(self._settings, self._databases[0]).memory_mb + self._accelerator.overhead_mb
        if reason := memory.too_many(len(self._databases), each_mb, len(self._loaders)):
            raise SiteError(
                f"site vm cannot lend to {self.record.study}: {reason}", "fewer nodes, or less node.memory_mb"
            )
        chosen = {"accelerator": self._accelerator.name, "accelerator_why": self._accelerator.why}
        self._keep(self.record.model_copy(update=chosen))

    async def _make_files(self) -> None:
        """Keys, disks, identities; folders and control groups of load nodes."""
        assert self._image is not None
        hierarchies = cgroup.detect()
        for node in self._loaders:
            node.folder.mkdir(parents=True, exist_ok=True)
            if node.cgroups:
                cgroup.make(hierarchies, self.record.id, node.name, NodeLimits())
        folder = lease_records.nodes_folder(self._state, self.record.id)
        await keys.make(self._caller, folder / "key")
        user_key = (folder / "key.pub").read_bytes()
        addresses = {node.name: node.address for node in self.record.nodes}
        known = [
            await vm_machine.prepare(self._caller, node.name, addresses, self._files(node), self._image, user_key)
            for node in self._databases
        ]
        (folder / "known_hosts").write_text("".join(known), encoding="ascii")
        config = keys.ssh_config("root", folder / "key", folder / "known_hosts")
        ssh_config(self._state, self.record.id).write_text(config, encoding="utf-8")

    async def _make_network(self) -> None:
        """Namespaces of load nodes on a bridge, as of site local, and a TAP device for each machine on it."""
        members = [network.Member(node.name, node.address) for node in self._loaders]
        await network.add_namespaces(self.record.id, members)
        await network.add_switch(self.record.id, members)
        await network.add_addresses(self.record.id, members)
        names = [node.name for node in self._databases]
        await network.add_taps(self.record.id, names, own_address(self._settings))

    async def _boot(self) -> None:
        assert self._image is not None
        assert self._accelerator is not None
        program = agent.find()
        for number, node in enumerate(self._databases, 1):
            process = vm_machine.process_name(self.record.id, node.name)
            shape = shape_of(self._settings, node)
            machine = (process, number, node.name, self._files(node))
            words = vm_machine.qemu_words(*machine, self._image, shape, self._accelerator)
            await vm_machine.boot(self._caller, self.record.id, program, words, node.name)
        self._say(f"{len(self._databases)} virtual machines boot ({self._accelerator.name}: {self._accelerator.why})")

    async def _reach(self) -> None:
        """Wait until each machine lets in, and bring the agent."""
        nodes = await together(self._reached(node) for node in self._databases)
        self._keep(self.record.model_copy(update={"nodes": (*nodes, *self._loaders)}))

    async def _reached(self, node: Node) -> Node:
        connection = connection_of(self._state, self.record.id, node)
        await self._until_it_answers(node, connection)
        assert node.cache is not None
        assert self._program is not None
        path = await ssh_agent.bring(connection, node.cache, self._program)
        await _set_clock(connection)
        return replace(node, prefix=connection.argv, agent=path)

    async def _until_it_answers(self, node: Node, connection: Connection) -> None:
        """Log in and make the node's folders. Raises SiteError with the machine's console output."""
        places = self._files(node)
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        last = "it did not reach sshd"
        while time.monotonic() < deadline:
            if not runs(self.record.id, node.name):
                raise SiteError(f"{node.name}: its virtual machine ended: {vm_machine.console_tail(places)}")
            if vm_machine.is_up(places):
                try:
                    folders = (str(node.folder), f"{node.cache}/bin")
                    done = await connection.shell('umask 077 && mkdir -p "$@"', *folders, timeout_s=ATTEMPT_TIMEOUT_S)
                except Unreachable as error:
                    last = error.message
                else:
                    if done.exit_code == 0:
                        return
                    last = done.stderr.decode(errors="replace").strip()
            await asyncio.sleep(POLL_S)
        raise SiteError(
            f"{node.name}: its virtual machine was not ready within {BOOT_TIMEOUT_S:g} s: {last}",
            vm_machine.console_tail(places),
        )

    def _keep(self, record: lease_records.Record) -> None:
        self.record = record
        with lease_records.locked(self._state):
            lease_records.write(self._path, record)


async def _set_clock(connection: Connection) -> None:
    """Set a machine's clock to this machine's, give or take half a round trip. Raises SiteError."""
    asked_s = time.time()
    done = await connection.shell(READ_CLOCK)
    middle_s = (asked_s + time.time()) / 2
    try:
        behind_s = middle_s - float(done.stdout)
    except ValueError as error:
        why = done.stderr.decode(errors="replace").strip()
        raise SiteError(f"{connection.name}: its virtual machine does not report its time: {why}") from error
    await connection.shell(SET_CLOCK, f"{behind_s:+.6f}")


def shape_of(settings: Settings, node: Node) -> Shape:
    """Parts of a node's machine. Pure."""
    return Shape(
        memory_mb=settings.default_memory_mb if node.memory_mb is None else node.memory_mb,
        processors=settings.default_processors if node.cpus is None else round(node.cpus),
        disk_cache=settings.disk_cache,
    )


def own_address(settings: Settings) -> str:
    """Address of the bridge, from which machines are reached. Pure."""
    return f"{settings.subnet}.255.1"


def ssh_config(state: Path, identity: str) -> Path:
    """Path of ssh's settings for a lease."""
    return lease_records.nodes_folder(state, identity) / "ssh_config"


def connection_of(state: Path, identity: str, node: Node) -> Connection:
    """Connection to a lease's machine. Raises EngineError if there is no agent here, through which ssh is started."""
    return vm_machine.connection(identity, node.name, node.address, ssh_config(state, identity), agent.find())


def runs(identity: str, name: str) -> bool:
    """Whether a lease's machine runs, which is known by the name of its process."""
    wanted = vm_machine.process_name(identity, name)[:15]
    return any(_name_of(pid) == wanted for pid in lease_processes.of(identity))


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _claim_disks(wanted: lease_records.Record, state: Path) -> None:
    """Claim the disks for data, which two leases cannot share. Which cache has them is not compared. Raises
    SiteError."""
    for other in lease_register.others(wanted, state):
        raise lease_records.claimed(
            other,
            has="has the disks of virtual machines",
            otherwise=OTHERWISE,
            left="virtual machines",
        )
