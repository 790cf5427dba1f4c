"""Site `ec2`: instances of Amazon EC2. They are launched for a lease, and are then machines of site `ssh`.

A lease costs money, so it ends without its conductor, too: each instance ends itself at a time that is put off when the
lease is handed on, and everything has tags by which `steelyard clean ec2` finds it (docs/decisions/0032-ec2.md).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from steelyard.format import count
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.identity import keep, known_state_id, state_id
from steelyard.leases.lease import Lease
from steelyard.leases.removal import remove_tree
from steelyard.leases.steps import taking_back, undone_on_error
from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.site.base import LeaseTimes, MarkNode, Patience, Request, hint_of, node_name, unenforced
from steelyard.site.ec2 import checks, image, instances
from steelyard.site.ec2.cloud import Cloud
from steelyard.site.ec2.instances import LEASE, UNTIL, Image, Instance
from steelyard.site.ec2.launch import Launch
from steelyard.site.ec2.settings import BAKED, BURSTABLE, Settings
from steelyard.site.kernel import node_facts
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import machines

MOST_NODES = 100
EXPECTED_LEASE_S = 90.0
EXPECTED_RELEASE_S = 5.0
RENEW_TIMEOUT_S = 60.0
BAKES = "the first lease in a region bakes an image, if `steelyard setup ec2` has not: some minutes"
INTERRUPTED = "spot instances: EC2 ends them when it likes, and the trial in progress is void then"
SLOW = "slow down when CPU credits are spent, which shows as steal and voids trials"
REGIONS = Path("ec2", "regions")
"""Folder in the state folder with an empty file per region in which a lease was ever begun."""
say = logging.getLogger(__name__).info


def regions(state: Path) -> list[str]:
    """Every region in which a lease of the state folder was ever begun, also one whose record is lost."""
    return sorted(path.name for path in (state / REGIONS).glob("[!.]*"))


class Ec2Site:
    """Lends instances."""

    name = "ec2"
    shares = frozenset({"network"})
    patience = Patience(lease_s=3600.0, release_s=300.0, inspect_s=300.0, first_reading_s=30.0)
    """Once, an image is baked; instances take a minute or two until they let in."""
    links: frozenset[str] = frozenset()

    def __init__(self, settings: Settings, state_folder: Path) -> None:
        self._settings = settings
        self._state = state_folder.absolute()
        self._cloud = Cloud(settings.region)

    @property
    def most_hours(self) -> float:
        """Hours for which a lease costs money at most."""
        return self._settings.most_hours + instances.GRACE_S / 3600

    async def prepare(self) -> None:
        """Bake the image of the settings in their region, if it is not there: some minutes, once. Raises SiteError."""
        await self._image(await checks.architecture(self._cloud, self._settings), "setup")

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes, after a look at everything that may be wrong before it costs money. Raises SiteError after
        undoing all completed steps."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(f"site ec2 cannot lend to {request.study}: {reason}", hint_of(reason))
        architecture = await checks.architecture(self._cloud, self._settings, request)
        launched = await self._image(architecture, request.study)
        nodes = tuple(self._unborn(node_name(role, number)) for role, number in request.places)
        record = self._record(request.study, until, nodes)
        lease = record.lease(lease_records.record_path(self._state, record.id))
        async with undone_on_error(lambda: self.release(lease)):
            launch = await self._begin(record, launched)
            return (await launch.bring_up(record.nodes)).lease(lease.record)

    async def extend(self, lease: Lease, names: Sequence[str], mark: MarkNode) -> Sequence[Node]:
        """Launch further instances. They end with the lease. Raises SiteError."""
        record = lease_records.read(lease.record)
        if record is None:
            raise SiteError(f"the record of lease {lease.id} is gone")
        launched = await self._image(await checks.architecture(self._cloud, self._settings), record.study)
        nodes = tuple(replace(self._unborn(name), environment={lease_records.MARKER: record.id}) for name in names)
        launch = await self._begin(record.model_copy(update={"nodes": (*record.nodes, *nodes)}), launched)
        grown = await launch.bring_up(nodes, mark)
        return [node for node in grown.nodes if node.name in names]

    async def recycle(self, lease: Lease, request: Request, until: datetime) -> Lease | None:
        """The same instances for another start, their end put off, but for `most_hours` at most; None if the request is
        not for exactly these, or if one has ended. Raises SiteError."""
        record = lease_records.read(lease.record)
        names = [node_name(role, number) for role, number in request.places]
        if record is None or self.refuse(request, None) or names != [node.name for node in record.nodes]:
            return None
        end = min(lease_records.aware(until), self._end_of(record.created))
        renewed = record.model_copy(update={"study": request.study, "until": end})
        alive = [one for one in await self._instances(lease.id) if one.state == "running"]
        if len(alive) < len(names):
            return None
        with lease_records.locked(self._state):
            lease_records.write(lease.record, renewed)
        tag = {"Key": UNTIL, "Value": renewed.until.isoformat(timespec="seconds")}
        await self._cloud.ask("create_tags", Resources=[one.id for one in alive], Tags=[tag])
        await together(self._put_off(node, renewed) for node in record.nodes)
        handed_on = await machines.hand_on(renewed, self._state, record.nodes)
        return renewed.lease(lease.record) if handed_on else None

    async def release(self, lease: Lease) -> None:
        """End every instance of the lease, by its tag, whether or not its record still exists. Idempotent."""
        record = lease_records.read(lease.record)
        where = regions(self._state) if record is None else [str(record.settings["region"])]
        controls = ssh_connection.control_folder()
        nodes = lease.nodes if record is None else record.nodes
        reached = [machines.connection_of(node, controls) for node in nodes if node.prefix]
        async with taking_back(lease, "run `steelyard clean ec2` once the cause is fixed") as attempt:
            await attempt(*(instances.end(Cloud(region), lease.id) for region in where))
            await attempt(machines.close(reached))
            for socket in controls.glob(f"{lease.id}-*"):
                socket.unlink(missing_ok=True)
            await attempt(remove_tree(lease_records.nodes_folder(self._state, lease.id)))

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead; instances and volumes of this state folder without a record,
        in every region that a record ever named."""
        now = lease_records.utc_now()
        left = {lease.id: lease for lease in lease_records.left_over(self._state, self.name, now)}
        kept = {record.id for _, record in lease_records.records(self._state)}
        owner = known_state_id(self._state)
        for region in regions(self._state) if owner else ():
            for identity in await instances.leases_of(Cloud(region), owner) - kept:
                path = lease_records.record_path(self._state, identity)
                left.setdefault(identity, Lease(identity, self.name, (), now, path))
        return list(left.values())

    async def facts(self, node: Node) -> dict[str, str]:
        """The machine's facts, as it reports them itself, and those of EC2 on its instance. Raises SiteError."""
        every = await self._instances(node.environment[lease_records.MARKER])
        instance = next((one for one in every if one.node == node.name), None)
        credit = {} if instance is None else await self._credit(instance)
        own = {} if instance is None else instance.facts
        return {**await node_facts.of_node(node), "site": self.name, "address": node.address, **own, **credit}

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Reason why no instances can be lent for the request, as far as it is known without EC2, or None."""
        wanted = request.database_nodes + request.load_nodes
        if wanted > MOST_NODES:
            return f"{wanted} nodes were requested, and a lease has at most {MOST_NODES}"
        return checks.key_file_refusal(self._settings) or unenforced(self, request)

    def notes(self, request: Request) -> Sequence[str]:
        """Instances, their longest life, and what is special about them. EC2 is not asked."""
        settings = self._settings
        where = f" in {settings.region}" if settings.region else ", in the region that boto3 finds"
        counts = {"database": request.database_nodes, "load": request.load_nodes}
        what = [f"{count(number, 'instance')} of {settings.types[role]}" for role, number in counts.items() if number]
        life = f"they end after {settings.most_hours:g} h at the latest"
        burstable = sorted(name for name in {*settings.types.values()} if name.startswith(BURSTABLE))
        sentences = {
            f"a start launches {' and '.join(what)}{where}; {life}": True,
            BAKES: settings.image == BAKED,
            INTERRUPTED: settings.market == "spot",
            f"{' and '.join(burstable)} {SLOW}": burstable and settings.credit != "unlimited",
        }
        return [sentence for sentence, holds in sentences.items() if holds]

    def link_failure(self, lease: Lease) -> str | None:
        """Instances of a lease that were not ended by this site, in words, or None."""
        try:
            answer = self._cloud.call("describe_instances", Filters=[instances.tagged(LEASE, lease.id)])
        except SiteError:
            return None
        return "; ".join(one.ended for one in instances.parsed(answer) if one.ended) or None

    def times(self, request: Request) -> LeaseTimes:
        """A constant time: instances are launched together."""
        return LeaseTimes(lease_s=EXPECTED_LEASE_S, release_s=EXPECTED_RELEASE_S)

    async def _image(self, architecture: str, study: str) -> Image:
        ready = await image.of_settings(self._cloud, self._settings, architecture)
        return ready or await self._baked(architecture, study)

    async def _baked(self, architecture: str, study: str) -> Image:
        """Make the image, from an instance that is a lease of its own. Raises SiteError."""
        base = await image.base(self._cloud, architecture)
        builder = self._unborn(node_name("database", 1))
        record = self._record(study, lease_records.utc_now() + timedelta(seconds=image.BAKE_TIMEOUT_S), (builder,))
        lease = record.lease(lease_records.record_path(self._state, record.id))
        say("baking an image in %s from %s: some minutes, once", self._cloud.region, base.id)
        async with undone_on_error(lambda: self.release(lease)):
            launch = await self._begin(record, base)
            baked = await launch.bake(record.nodes[0], architecture)
        await self.release(lease)
        return baked

    async def _begin(self, record: lease_records.Record, launched: Image) -> Launch:
        """Write down what will be launched, and where, before anything is."""
        keep(self._state / REGIONS / self._cloud.region, "")
        with lease_records.locked(self._state):
            lease_records.write(lease_records.record_path(self._state, record.id), record)
        lease_records.make_nodes_folder(self._state, record.id)
        owner = state_id(self._state)
        return Launch(self._cloud, self._settings, self._state, record, launched, owner, self._seconds_of(record))

    def _record(self, study: str, until: datetime, nodes: tuple[Node, ...]) -> lease_records.Record:
        identity, now = lease_register.new_id(self._state), lease_records.utc_now()
        marks = {lease_records.MARKER: identity}
        return lease_records.Record(
            id=identity,
            site=self.name,
            study=study,
            owner=lease_records.owner(),
            created=now,
            until=min(lease_records.aware(until), self._end_of(now)),
            nodes=tuple(replace(node, environment=marks) for node in nodes),
            settings=self._settings.model_dump(mode="json") | {"region": self._cloud.region},
        )

    def _unborn(self, name: str) -> Node:
        """A node whose instance is not launched yet: it has a name only."""
        return Node(name, "load" if name.startswith("l") else "database", "", (), Path(name), commands=False)

    def _end_of(self, created: datetime) -> datetime:
        return created + timedelta(hours=self._settings.most_hours)

    def _seconds_of(self, record: lease_records.Record) -> float:
        """Seconds after which the instances of a lease end themselves: relative, since clocks differ."""
        return max(0.0, (record.until - lease_records.utc_now()).total_seconds()) + instances.GRACE_S

    async def _put_off(self, node: Node, record: lease_records.Record) -> None:
        connection = machines.connection_of(node)
        seconds = str(round(self._seconds_of(record)))
        done = await connection.shell(instances.RENEW, seconds, timeout_s=RENEW_TIMEOUT_S)
        if done.exit_code != 0:
            why = done.stderr.decode(errors="replace").strip()
            raise SiteError(f"{connection.name}: its end cannot be put off: {why}")

    async def _instances(self, identity: str) -> list[Instance]:
        return await instances.of_tag(self._cloud, LEASE, identity)

    async def _credit(self, instance: Instance) -> dict[str, str]:
        """The credit specification of a burstable instance."""
        if not instance.facts.get("ec2_instance_type", "").startswith(BURSTABLE):
            return {}
        answer = await self._cloud.ask("describe_instance_credit_specifications", InstanceIds=[instance.id])
        credits = [str(entry["CpuCredits"]) for entry in answer["InstanceCreditSpecifications"]]
        return {"ec2_credit": credits[0]} if credits else {}
