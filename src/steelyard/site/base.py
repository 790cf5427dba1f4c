"""Plug-in interface `site`: lends nodes under a lease with an end.

A plug-in module defines `Settings` (a pydantic model), and `create(settings, state_folder) -> Site`. Where settings
name files in the study's folder, `FILES` lists them (setting to what the file is); `create` gets their absolute paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self, runtime_checkable

from pydantic import Field

from steelyard.format import listed
from steelyard.judging.dilation import effective_limits
from steelyard.leases.lease import Lease
from steelyard.model.facts import Role
from steelyard.model.link import PLAIN, LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.node_limits import DISK_RATES, NodeLimits
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.processor import RunningProgram

NO_LIMITS = NodeLimits()
LETTERS: Mapping[Role, str] = {"database": "n", "load": "l"}
"""First letters of nodes' names."""


class Refusal(str):
    """Reason of a refusal that knows which key of the study is at fault, with a hint.

    `Site.refuse` may return one in place of a plain text; without it, the errors point to the number of nodes.
    """

    __slots__ = ("hint", "key")

    key: str
    """Dotted name of the field, such as `node.memory_mb`. `site.` stands for the section of the site that refuses."""
    hint: str
    """Hint, if the reason contains none."""

    def __new__(cls, reason: str, key: str, hint: str = "") -> Self:
        """A reason with its key."""
        refusal = super().__new__(cls, reason)
        refusal.key, refusal.hint = key, hint
        return refusal

    @classmethod
    def at(cls, key: str, reason: str | None) -> Self | None:
        """The reason with its key, if there is one."""
        return None if reason is None else cls(reason, key)


def hint_of(reason: str) -> str:
    """Hint to show when a refused lease is requested anyway."""
    return (reason.hint if isinstance(reason, Refusal) else "") or "run `steelyard doctor` for details"


@dataclass(frozen=True)
class Request:
    """Nodes and limits that a start requests from a site."""

    study: str
    database_nodes: int
    """None where another site lends them, or where the cluster exists."""
    load_nodes: int = 1
    """None where another site lends them."""
    limits: NodeLimits = NO_LIMITS
    """Limits of each database node, already divided by the dilation; only a site that is `Limiting` gets any."""
    link: LinkChoice = PLAIN
    """Link between the nodes, with all its numbers; only a site that is `Linking` gets another than the network that it
    has."""
    seed: int = 0
    """Determines what a site draws at random, such as lost frames."""
    dilation: float = 1.0
    """By how much time is stretched (`judging.dilation`): rates of links are divided by it, delays multiplied."""

    @property
    def places(self) -> tuple[tuple[Role, int], ...]:
        """The nodes by role and number, from 1: those of the databases first."""
        wanted: tuple[tuple[Role, int], ...] = (("database", self.database_nodes), ("load", self.load_nodes))
        return tuple((role, number) for role, count in wanted for number in range(1, count + 1))


def node_name(role: Role, number: int) -> str:
    """Name of a node in its lease: n1, n2, ... of databases, l1, ... of load nodes."""
    return f"{LETTERS[role]}{number}"


def requests_of(study: str, databases: int, settings: TrialSettings, seed: int = 0) -> tuple[Request, ...]:
    """The requests of a start that lends that many database nodes: to the site of the databases, and to that of the
    load nodes, if it is another."""
    limits, dilation, load_nodes = effective_limits(settings.node), settings.node.dilation, settings.load_nodes
    if not settings.load_site.name:
        return (Request(study, databases, load_nodes, limits, settings.link, seed, dilation),)
    return Request(study, databases, 0, limits, settings.link, seed, dilation), Request(study, 0, load_nodes)


class Site(Protocol):
    """Lends nodes and takes them back."""

    name: str
    shares: frozenset[str]
    """Resources that the nodes share: cpu, memory, disk, clock, network, kernel."""

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. The lease is recorded before anything is created. Raises SiteError."""
        ...

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease: processes, networks, limits, folders. Idempotent."""
        ...

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead."""
        ...

    async def facts(self, node: Node) -> dict[str, str]:
        """Facts about a node's hardware and limits: cpu model, cores, memory, kernel, limits in force."""
        ...

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Reason why this site cannot fulfil the request (memory, addresses, privileges), or None. Read-only."""
        ...


def on_this_machine(site: Site) -> bool:
    """Whether all nodes of a site run on the conductor's machine, so that its readings of the processor are theirs."""
    return "cpu" in site.shares


@runtime_checkable
class Joins(Protocol):
    """Ability: gives nodes their own network only where nothing else must be reached."""

    def joined(self) -> Site:
        """The site with nodes in this machine's network, for a start whose other nodes are of another site; itself,
        where its settings ask for their own networks."""
        ...


@runtime_checkable
class Entered(Protocol):
    """Ability: programs of this machine reach its nodes, although these have their own network, as containers on
    a bridge have."""

    entered: bool


def own_network(site: Site) -> bool:
    """Whether a site gives its nodes a network on the conductor's machine that leads nowhere else."""
    return on_this_machine(site) and "network" not in site.shares


def unreached(databases: Site, load: Site) -> str | None:
    """Reason why load nodes of one site cannot reach databases of another, as far as the sites know, or None."""
    if own_network(load):
        return f"load nodes of site {load.name} have a separate network without access to {databases.name}"
    if not on_this_machine(databases):
        return None
    if not on_this_machine(load):
        return f"databases of site {databases.name} have addresses that only this machine reaches, not site {load.name}"
    if own_network(databases) and not (isinstance(databases, Entered) and databases.entered):
        return f"databases of site {databases.name} have their own network, which site {load.name} cannot reach"
    return None


@runtime_checkable
class Limiting(Protocol):
    """Ability: holds database nodes to the limits of a request. A study that limits nodes on a site without it is
    refused."""

    limits: frozenset[str]
    """The fields of section `node` that it enforces."""


@runtime_checkable
class Linking(Protocol):
    """Ability: joins its nodes by the link of a request. A study that asks for a link on a site without it is
    refused."""

    links: frozenset[str]
    """The media that it can make: values of `link.medium`."""

    def link_failure(self, lease: Lease) -> str | None:
        """Reason why the link of a lease of this site no longer works as requested, or None."""
        ...


@runtime_checkable
class CountsFrames(Protocol):
    """Ability: counts what it moves between the nodes of a lease by its own program, and how late. A trial during
    which the program fell behind is voided."""

    async def moved_frames(self, lease: Lease, begun_s: float, ended_s: float) -> MovedFrames | None:
        """Traffic between two times (seconds since the epoch); None where no program moves frames."""
        ...


@runtime_checkable
class DescribesLinks(Protocol):
    """Ability: names the mechanism of a link before anything is lent."""

    def link_made_by(self, link: LinkChoice) -> str:
        """Mechanism of the link, in a few words. Pure."""
        ...


def link_failure(site: Site, lease: Lease) -> str | None:
    """Reason why the link of a lease no longer works as requested, or None."""
    return site.link_failure(lease) if isinstance(site, Linking) else None


async def moved_frames(site: Site, lease: Lease, begun_s: float, ended_s: float) -> MovedFrames | None:
    """Traffic of a site's link program between the nodes of a lease in a time; None without one."""
    return await site.moved_frames(lease, begun_s, ended_s) if isinstance(site, CountsFrames) else None


WRITE_OUT_TIMEOUT_S = 300.0
"""Timeout until data written without disk limits has reached the disks."""


@runtime_checkable
class Throttling(Protocol):
    """Ability: sets and lifts limits of nodes that run, so that a cluster starts and warms up without them. A study
    whose limits begin when the cluster is warm is refused on a site without it."""

    async def throttle(self, lease: Lease, limits: NodeLimits, *, limited: bool) -> None:
        """Set those limits of a lease's database nodes that begin when they are warm, or lift them: of processes that
        run and of those that start later. `limits`: those of the request, some of which the site may not have.
        Idempotent. Raises SiteError."""
        ...


QUOTA = "a quota of CPU time"
"""Name of a site's enforcement that can give any part of a processor; others give whole ones, which no dilation
divides."""


@runtime_checkable
class DescribesCpuLimits(Protocol):
    """Ability: names its enforcement of `node.cpus`, which differs between sites."""

    def cpus_by(self, limits: NodeLimits) -> str:
        """Its enforcement, in words such as `a quota of CPU time`. Pure."""
        ...


@runtime_checkable
class HasLeaseNotes(Protocol):
    """Ability: has notes for the user before it lends, such as an image still to be pulled."""

    def notes(self, request: Request) -> Sequence[str]:
        """A sentence per note, in which `run` is what lends. Read-only, within seconds."""
        ...


@runtime_checkable
class SelectsMachines(Protocol):
    """Ability: knows before it lends which machines a request gets, so that two requests of a start get no machine
    twice."""

    def machines(self, request: Request) -> Mapping[str, str]:
        """Address of a machine, the same in every study and file, to its name for people. Pure but for the
        files that settings name."""
        ...


def both_need(sites: Sequence[Site], requests: Sequence[Request]) -> str:
    """Machines that the databases and the load nodes of a start would both get, in words; empty if there are none."""
    picked = [
        site.machines(request) if isinstance(site, SelectsMachines) else {}
        for site, request in zip(sites, requests, strict=True)
    ]
    twice = [name for way, name in picked[0].items() if any(way in machines for machines in picked[1:])]
    return listed(twice)


NO_AMOUNTS = frozenset({"cpus_from", "disk_rates_from", "dilation", "profile"})
"""Fields of section `node` that a site need not enforce: they say when and how much of the others, or name them."""


def unenforced(site: Site, request: Request) -> str | None:
    """Reason why a site cannot enforce the limits of a request, or make its link; None if it can."""
    enforced = site.limits if isinstance(site, Limiting) else frozenset()
    asked = request.limits.model_dump(exclude_defaults=True, exclude=set(NO_AMOUNTS))
    if not isinstance(site, Throttling):
        if request.limits.processors_from_warm and "cpus" in enforced:
            return 'it cannot set the processor limits of running nodes: node.cpus_from = "start"'
        if request.limits.disks_from_warm and enforced.issuperset(DISK_RATES):
            return 'it cannot set the disk rates of running nodes: node.disk_rates_from = "start"'
    lacking = [f"node.{name} = {value}" for name, value in asked.items() if name not in enforced]
    if lacking:
        return f"it does not enforce {' and '.join(lacking)}"
    media = site.links if isinstance(site, Linking) else frozenset()
    if request.link.plain or request.link.medium in media:
        return None
    return f"it cannot make link {request.link.name}: its nodes use an existing network; site local can make links"


class Patience(Value):
    """Seconds after which the laboratory gives up waiting for a site's nodes."""

    lease_s: float = Field(default=60.0, gt=0)
    """Until the nodes are lent."""
    release_s: float = Field(default=60.0, gt=0)
    """Until data are wiped, and again until the nodes are taken back."""
    inspect_s: float = Field(default=120.0, gt=0)
    """Timeout until all nodes have reported their facts."""
    first_reading_s: float = Field(default=10.0, gt=0)
    """Until every probe has given its first reading."""


PATIENCE = Patience()


@runtime_checkable
class Patient(Protocol):
    """Ability: needs other waits than PATIENCE, as machines do that are far away or have to boot."""

    patience: Patience


def patience_of(*sites: Site) -> Patience:
    """The waits of a site; of several, which lend one after the other and are inspected together."""
    waits = [site.patience if isinstance(site, Patient) else PATIENCE for site in sites]
    return Patience(
        lease_s=sum(each.lease_s for each in waits),
        release_s=sum(each.release_s for each in waits),
        inspect_s=max(each.inspect_s for each in waits),
        first_reading_s=max(each.first_reading_s for each in waits),
    )


@runtime_checkable
class Prepares(Protocol):
    """Ability: fetches or builds the source of its nodes, such as an image, before a study needs it. `steelyard setup`
    calls it."""

    async def prepare(self) -> None:
        """Get everything ready on this machine. Slow only the first time. Raises SiteError."""
        ...


@runtime_checkable
class UsesHelpers(Protocol):
    """Ability: needs programs of this machine in addition to its nodes, such as a container daemon. Their processor
    time belongs to no node and is no background load."""

    def helper_times_s(self, programs: Mapping[tuple[int, int], RunningProgram]) -> Mapping[str, float]:
        """Processor seconds of such programs so far, by name, in a census of processes. Pure."""
        ...


def helpers_time_s(sites: Iterable[Site], programs: Mapping[tuple[int, int], RunningProgram]) -> float:
    """Processor seconds so far of the programs that sites need in addition to their nodes; 0 without any. Pure."""
    by_name = {site.name: site for site in sites if isinstance(site, UsesHelpers)}
    return sum(sum(site.helper_times_s(programs).values()) for site in by_name.values())


@runtime_checkable
class Reuses(Protocol):
    """Ability: hands a lease on from one start of a cluster to the next, so that nothing is created again."""

    async def recycle(self, lease: Lease, request: Request, until: datetime) -> Lease | None:
        """The same machines for another request, with empty folders and nothing running, until another time; None where
        the lease cannot fulfil it. The record is rewritten before anything else. Raises SiteError."""
        ...


class LeaseTimes(Value):
    """Expected seconds of lending and releasing, before anything has been measured."""

    lease_s: float
    release_s: float


@runtime_checkable
class EstimatesLeaseTimes(Protocol):
    """Ability: estimates how long lending takes. Without it, a plan assumes a time and reports the assumption."""

    def times(self, request: Request) -> LeaseTimes:
        """Expected seconds for a request. Pure."""
        ...
