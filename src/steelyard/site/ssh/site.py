"""Site `ssh`: machines of an inventory, reached by the user's own ssh.

A machine lends one node. It needs sshd, a POSIX shell and a folder; the agent is brought there, and what a system
brings (jars, a Java runtime). While a lease has it, the file `busy` in that folder says whose it is, so that two
studies do not share a machine unawares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.leases.steps import taking_back, undone_on_error
from steelyard.model.errors import LastingSiteError, StudyError
from steelyard.model.finding import Finding
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.site.base import LeaseTimes, Patience, Request, unenforced
from steelyard.site.kernel import node_facts
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import findings, machines
from steelyard.site.ssh import inventory as ssh_inventory
from steelyard.site.ssh.survey import visit_all

EXPECTED_LEASE_S = 6.0
EXPECTED_RELEASE_S = 3.0


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

    def uncuttable(self) -> str:
        """Known once the machines are asked: it takes root and the program nft there."""
        return ""

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. Raises SiteError after undoing all completed steps, Unreachable for a machine that is away."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(
                f"site ssh cannot lend to {request.study}: {reason}", "run `steelyard doctor --site` for details"
            )
        identity = lease_register.new_id(self._state)
        inventory = self._inventory()
        places = ssh_inventory.places(inventory, request.database_nodes, request.load_nodes)
        async with machines.looked_at(identity, places, inventory.ssh_config) as looks:
            record = self._record(identity, request, until, tuple(node for node, _ in looks))
            lease = record.lease(lease_records.record_path(self._state, identity))
            with lease_records.locked(self._state):
                lease_records.write(lease.record, record)
        async with undone_on_error(lambda: self.release(lease)):
            await machines.take(record, self._state, looks)
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
        handed_on = await machines.hand_on(renewed, self._state, record.nodes)
        return renewed.lease(lease.record) if handed_on else None

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease, on every machine that can be reached. Idempotent. If one
        cannot, the record is kept and SiteError is raised."""
        controls = ssh_connection.control_folder()
        hint = "run `steelyard clean` when the machine is back: its record is kept"
        async with taking_back(lease, hint) as attempt:
            await attempt(*(machines.take_back(lease.id, node, controls) for node in lease.nodes))

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
