"""Site `ssh`: machines of an inventory, reached by the user's own ssh.

A machine lends one node. It needs sshd, a POSIX shell and a folder; the agent is brought there, and what a system
brings (jars, a Java runtime). While a lease has it, the file `busy` in that folder says whose it is, so that two
studies do not share a machine unawares.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.steps import taking_back, undone_on_error
from steelyard.model.errors import LastingSiteError, SiteError, StudyError
from steelyard.model.finding import Finding
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.tasks import to_the_end, together
from steelyard.site.base import LeaseTimes, Patience, Request, unenforced
from steelyard.site.kernel import node_facts
from steelyard.site.ssh import agent as ssh_agent
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import findings, scripts
from steelyard.site.ssh import inventory as ssh_inventory
from steelyard.site.ssh.agent import AgentProgram
from steelyard.site.ssh.connection import Connection
from steelyard.site.ssh.inventory import Place
from steelyard.site.ssh.scripts import busy_users, held_by
from steelyard.site.ssh.survey import identify, visit_all

EXPECTED_LEASE_S = 6.0
EXPECTED_RELEASE_S = 3.0
RELEASE_TIMEOUT_S = 120.0
"""Time limit for ending the processes of a lease on one machine and removing its files."""


class Settings(Value):
    """Settings under `[site]` in a study, in addition to `name`, `nodes` and `load_nodes`."""

    inventory: str = Field(min_length=1)
    """Inventory of the machines: a TOML file, or an Ansible inventory of the ini kind; relative to the study."""


class SshSite:
    """Lends machines of an inventory."""

    name = "ssh"
    shares = frozenset({"network"})
    patience = Patience(lease_s=900.0, release_s=300.0, inspect_s=300.0, first_reading_s=30.0)
    """A lease brings the agent to machines that may be far away; a release waits for those that are gone."""

    def __init__(self, settings: Settings, state_folder: Path) -> None:
        self._settings = settings
        self._state = state_folder.absolute()

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. Raises SiteError after undoing all completed steps, Unreachable for a machine that is away."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(
                f"site ssh cannot lend to {request.study}: {reason}", "run `steelyard doctor --site` for details"
            )
        identity = lease_register.new_id(self._state)
        inventory = self._inventory()
        places = ssh_inventory.places(inventory, request.database_nodes, request.load_nodes)
        controls = ssh_connection.control_folder()
        connections = [
            ssh_connection.connection(place.machine, controls / f"{identity}-{place.name}", inventory.ssh_config)
            for place in places
        ]
        try:
            looks = await together(
                _look(identity, place, connection, inventory.ssh_config)
                for place, connection in zip(places, connections, strict=True)
            )
            record = self._record(identity, request, until, tuple(node for node, _ in looks))
            lease = record.lease(lease_records.record_path(self._state, identity))
            with lease_records.locked(self._state):
                lease_records.write(lease.record, record)
        except BaseException:
            await to_the_end(_close(connections))
            raise
        async with undone_on_error(lambda: self.release(lease)):
            await together(self._prepare(record, node, program) for node, program in looks)
        return lease

    async def recycle(self, lease: Lease, request: Request, until: datetime) -> Lease | None:
        """The same machines for another start; None if the request is not for exactly these, or if one of them was
        restarted meanwhile. Raises SiteError, Unreachable for an unreachable machine."""
        record = lease_records.read(lease.record)
        if record is None or self.refuse(request, None) is not None:
            return None
        inventory = self._inventory()
        places = ssh_inventory.places(inventory, request.database_nodes, request.load_nodes)
        if [(place.name, place.machine.destination) for place in places] != [
            (node.name, node.prefix[-1]) for node in record.nodes
        ]:
            return None
        renewed = record.model_copy(update={"study": request.study, "until": lease_records.aware(until)})
        with lease_records.locked(self._state):
            lease_records.write(lease.record, renewed)
        handed_on = await together(self._hand_on(renewed, node) for node in record.nodes)
        return renewed.lease(lease.record) if all(handed_on) else None

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease, on every machine that can be reached. Idempotent. If one
        cannot, the record is kept and SiteError is raised."""
        controls = ssh_connection.control_folder()
        hint = "run `steelyard clean` when the machine is back: its record is kept"
        async with taking_back(lease, hint) as attempt:
            await attempt(*(_take_back(lease.id, node, controls) for node in lease.nodes))

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead."""
        return lease_records.left_over(self._state, self.name, lease_records.utc_now())

    async def facts(self, node: Node) -> dict[str, str]:
        """The machine's facts, as it reports them itself, and its place in the inventory."""
        return {
            **await node_facts.of_node(node),
            "site": self.name,
            "address": node.address,
            **self._labels(node),
        }

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Reason why the inventory cannot fulfil the request, or None. Connects to nothing."""
        try:
            ssh_inventory.places(self._inventory(), request.database_nodes, request.load_nodes)
        except StudyError as error:
            return f"{error.message}: {error.hint}" if error.hint else error.message
        except ValueError as error:
            return str(error)
        return unenforced(self, request)

    async def findings(self) -> Sequence[Finding]:
        """Findings from visits of the inventory's machines. Raises StudyError for a wrong inventory."""
        inventory = self._inventory()
        return findings.of_inventory(inventory, await visit_all(inventory))

    def machines(self, request: Request) -> Mapping[str, str]:
        """The machines of the inventory that a request gets, by the way to them. Empty if there are too few. Raises
        StudyError."""
        try:
            places = ssh_inventory.places(self._inventory(), request.database_nodes, request.load_nodes)
        except ValueError:
            return {}
        return {ssh_inventory.way_to(place.machine): place.machine.name for place in places}

    def times(self, request: Request) -> LeaseTimes:
        """A constant time: machines are prepared together."""
        return LeaseTimes(lease_s=EXPECTED_LEASE_S, release_s=EXPECTED_RELEASE_S)

    def _inventory(self) -> ssh_inventory.Inventory:
        return ssh_inventory.read(Path(self._settings.inventory).expanduser())

    def _labels(self, node: Node) -> dict[str, str]:
        """Name and hardware of the node's machine, while the inventory can be read."""
        try:
            inventory = self._inventory()
        except StudyError:
            return {}
        destination = node.prefix[-1]
        machine = next((entry for entry in inventory.machines if entry.destination == destination), None)
        if machine is None:
            return {}
        return {"machine": machine.name, **({"hardware": machine.hardware} if machine.hardware else {})}

    async def _hand_on(self, record: lease_records.Record, node: Node) -> bool:
        """Make a machine as it was when it was lent; False if it is no longer the lease's. Raises SiteError."""
        connection = connection_of(node)
        arguments = (str(node.cache), record.id, node.name, *self._terms(record), node.kernel, node.agent)
        done = await connection.shell(scripts.HAND_ON, *arguments, timeout_s=RELEASE_TIMEOUT_S)
        if done.exit_code not in (0, scripts.CHANGED):
            why = done.stderr.decode(errors="replace").strip() or f"code {done.exit_code}"
            raise SiteError(f"{connection.name}: lease {record.id} cannot be handed on: {why}")
        return done.exit_code == 0

    def _terms(self, record: lease_records.Record) -> tuple[str, str]:
        """Seconds until a lease ends, and its holder, as written on its machines."""
        seconds = round((record.until - lease_records.utc_now()).total_seconds())
        return str(seconds), f"study {record.study} {_who()}, state folder {self._state}"

    async def _prepare(self, record: lease_records.Record, node: Node, program: AgentProgram) -> None:
        """Claim a machine for the lease and bring the agent. Raises SiteError."""
        connection = connection_of(node)
        former: list[str] = []

        async def claim() -> None:
            former.extend(await _claim(connection, node, record.id, self._terms(record)))

        # What is in progress on the machine cannot be called back: it must be there, or not, when the lease is undone.
        await to_the_end(claim())
        await ssh_agent.bring(connection, Path(str(node.cache)), program)
        for identity in former:
            await _release_on(connection, node, identity)

    def _record(
        self, identity: str, request: Request, until: datetime, nodes: tuple[Node, ...]
    ) -> lease_records.Record:
        settings = self._settings.model_dump(mode="json")
        return lease_records.Record(
            id=identity,
            site=self.name,
            study=request.study,
            owner=lease_records.owner(),
            created=lease_records.utc_now(),
            until=lease_records.aware(until),
            nodes=nodes,
            settings=settings | {"inventory": str(Path(self._settings.inventory).expanduser().absolute())},
        )


async def _look(identity: str, place: Place, connection: Connection, ssh_config: str) -> tuple[Node, AgentProgram]:
    """The node that a machine becomes, and the agent for it, after a look that changes nothing. Raises SiteError."""
    machine = await identify(connection, place.machine.folder)
    address = await ssh_connection.address(place.machine, ssh_config)
    if machine.addresses and address not in machine.addresses:
        raise SiteError(
            f"{place.machine.name} does not have the address {address}, but {', '.join(sorted(machine.addresses))}",
            f"give `address` of {place.machine.name} in the inventory",
        )
    if others := busy_users(machine):
        raise SiteError(f"{place.machine.name} is busy: {others}", "wait for it, or ask that user")
    program = ssh_agent.program(place.machine.name, machine.architecture)
    folder = Path(machine.folder)
    same = machine.kernel == lease_records.boot_id()
    node = Node(
        name=place.name,
        role=place.role,
        address=address,
        prefix=connection.argv,
        folder=folder / "nodes" / identity / place.name,
        words="shell",
        inherits=False,
        files="through",
        programs="own",
        processes="through",
        hardware="" if same else machine.kernel,
        kernel="" if same else machine.kernel,
        agent=str(ssh_agent.path_on(folder, program)),
        cache=folder,
        environment={lease_records.MARKER: identity},
    )
    return node, program


async def _claim(connection: Connection, node: Node, identity: str, terms: tuple[str, str]) -> list[str]:
    """Take a machine for a lease; returns the expired leases before it. Raises SiteError."""
    folder = str(node.cache)
    arguments = (folder, identity, node.name, *terms)
    name = scripts.CLAIM_NAME.format(lease=identity)
    done = await connection.shell(scripts.CLAIM, *arguments, name=name)
    text = done.stdout.decode(errors="replace")
    if done.exit_code == scripts.BUSY:
        raise SiteError(
            f"{connection.name} is busy: {held_by(scripts.holder_of(text))}",
            "wait for it; if it was killed, run `steelyard clean` where it ran",
        )
    if done.exit_code == scripts.SAME_MACHINE:
        raise SiteError(
            f"{connection.name}: another machine of the inventory has the same folder {folder}",
            "give each a `folder` on its own disk: they are one machine or share a home",
        )
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise SiteError(f"{connection.name}: cannot use {folder}: {why}", "give another `folder` in the inventory")
    return [line.partition(" ")[2] for line in text.splitlines() if line.startswith("expired ")]


async def _take_back(identity: str, node: Node, controls: Path) -> None:
    """End a lease's processes on a machine, remove its files, free the machine. Idempotent. Raises SiteError."""
    connection = connection_of(node, controls)
    try:
        await _release_on(connection, node, identity)
    finally:
        await connection.close()


async def _release_on(connection: Connection, node: Node, identity: str) -> None:
    folder, agent = str(node.cache), node.agent
    done = await connection.shell(scripts.RELEASE, folder, identity, agent, timeout_s=RELEASE_TIMEOUT_S)
    if done.exit_code == scripts.NO_AGENT:
        machine = await identify(connection, folder)
        program = ssh_agent.program(connection.name, machine.architecture)
        agent = await ssh_agent.bring(connection, Path(folder), program)
        done = await connection.shell(scripts.RELEASE, folder, identity, agent, timeout_s=RELEASE_TIMEOUT_S)
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise SiteError(f"{connection.name}: lease {identity} is still there: {why or f'code {done.exit_code}'}")


async def _close(connections: Sequence[Connection]) -> None:
    await together(connection.close() for connection in connections)


def connection_of(node: Node, controls: Path | None = None) -> Connection:
    """Connection to a leased node; `controls` is where control sockets are now, if that may have changed."""
    return ssh_connection.of_node(f"{node.name} ({node.prefix[-1]})", node.prefix, controls)


def _who() -> str:
    return f"of {pwd.getpwuid(os.getuid()).pw_name} on {socket.gethostname()}"
