"""Plug-in interface `site`: lends nodes under a lease that expires.

A plug-in module defines `Settings` (a pydantic model) and `create(settings, state_folder) -> Site`. If settings name
files in the study's folder, `FILES` lists them (setting to what the file is); `create` gets their absolute paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from pydantic import Field

from steelyard.format import listed
from steelyard.judging.dilation import effective_limits
from steelyard.leases.lease import Lease
from steelyard.model.facts import Role
from steelyard.model.link import PLAIN, Lateness, LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.node_limits import DISK_RATES, NodeLimits
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.processor import RunningProgram

NO_LIMITS = NodeLimits()
LETTERS: Mapping[Role, str] = {"database": "n", "load": "l"}
"""First letters of node names by role."""


class Refusal(str):
    """Reason for a refusal that names the offending key of the study, with a hint.

    `Site.refuse` may return one instead of plain text; errors from plain text point to the number of nodes.
    """

    __slots__ = ("hint", "key")

    key: str
    """Dotted name of the field, such as `node.memory_mb`. `site.` means the section of the refusing site."""
    hint: str
    """Hint, unless the reason contains one."""

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
    """Hint to show if a refused lease is requested anyway."""
    return (reason.hint if isinstance(reason, Refusal) else "") or "run `steelyard doctor` for details"


@dataclass(frozen=True)
class Request:
    """Nodes and limits that a start requests from a site."""

    study: str
    database_nodes: int
    """0 if another site lends the database nodes or the cluster already exists."""
    load_nodes: int = 1
    """0 if another site lends the load nodes."""
    limits: NodeLimits = NO_LIMITS
    """Limits of each database node, already divided by the dilation; only a `Limiting` site gets any."""
    link: LinkChoice = PLAIN
    """Link between the nodes, with all its numbers; only a `Linking` site gets one other than its existing network."""
    seed: int = 0
    """Seed of what a site draws at random, such as lost frames."""
    dilation: float = 1.0
    """Factor by which time is stretched (`judging.dilation`): link rates are divided by it, delays multiplied."""

    @property
    def places(self) -> tuple[tuple[Role, int], ...]:
        """The nodes by role and number, counted from 1, database nodes first."""
        wanted: tuple[tuple[Role, int], ...] = (("database", self.database_nodes), ("load", self.load_nodes))
        return tuple((role, number) for role, count in wanted for number in range(1, count + 1))


def node_name(role: Role, number: int) -> str:
    """Name of a node in its lease: n1, n2, ... for database nodes, l1, ... for load nodes."""
    return f"{LETTERS[role]}{number}"


def requests_of(study: str, databases: int, settings: TrialSettings, seed: int = 0) -> tuple[Request, ...]:
    """The requests of a start with that many database nodes: to the databases' site and, if it is another, to the load
    nodes' site."""
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
        """Lend nodes. Records the lease before creating anything. Raises SiteError."""
        ...

    async def release(self, lease: Lease) -> None:
        """Remove everything belonging to the lease: processes, networks, limits, folders. Idempotent."""
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
    """Whether all nodes of a site run on the conductor's machine, so that its processor readings cover them."""
    return "cpu" in site.shares


@runtime_checkable
class Joins(Protocol):
    """Ability: isolates its nodes in their own network, unless they must reach something else."""

    def joined(self) -> Site:
        """The site with its nodes in this machine's network, for a start with nodes of another site; itself if its
        settings request separate networks."""
        ...


@runtime_checkable
class Entered(Protocol):
    """Ability: this machine's programs reach its nodes although these have their own network, such as containers on a
    bridge."""

    entered: bool


def own_network(site: Site) -> bool:
    """Whether a site's nodes have a network on the conductor's machine that leads nowhere else."""
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
    """Ability: enforces the requested limits of database nodes. Without it, a study that limits nodes is refused."""

    limits: frozenset[str]
    """The fields of the `node` section that it enforces."""


@runtime_checkable
class Linking(Protocol):
    """Ability: connects its nodes by the requested link. Without it, a study that requests a link is refused."""

    links: frozenset[str]
    """The media that it can emulate: values of `link.medium`."""

    def link_failure(self, lease: Lease) -> str | None:
        """Reason why the link of a lease of this site no longer works as requested, or None."""
        ...


@runtime_checkable
class CountsFrames(Protocol):
    """Ability: counts the frames that its own program moves between the nodes of a lease, and their delay. A trial
    during which the program fell behind is voided."""

    async def moved_frames(self, lease: Lease, begun_s: float, ended_s: float) -> MovedFrames | None:
        """Traffic between two times (seconds since the epoch); None if no program moves frames."""
        ...


@runtime_checkable
class DescribesLinks(Protocol):
    """Ability: names the mechanism of a link before lending."""

    def link_made_by(self, link: LinkChoice) -> str:
        """Mechanism of the link, in a few words. Pure."""
        ...


def link_failure(site: Site, lease: Lease) -> str | None:
    """Reason why the link of a lease no longer works as requested, or None."""
    return site.link_failure(lease) if isinstance(site, Linking) else None


async def moved_frames(site: Site, lease: Lease, begun_s: float, ended_s: float) -> MovedFrames | None:
    """Traffic of a site's link program between the nodes of a lease within a time; None without such a program."""
    return await site.moved_frames(lease, begun_s, ended_s) if isinstance(site, CountsFrames) else None


WRITE_OUT_TIMEOUT_S = 300.0
"""Timeout until data written without disk limits has reached the disks."""


@runtime_checkable
class Throttling(Protocol):
    """Ability: sets and lifts limits of running nodes, so that a cluster can start and warm up without them. Without
    it, a study whose limits begin once the cluster is warm is refused."""

    async def throttle(self, lease: Lease, limits: NodeLimits, *, limited: bool) -> None:
        """Set or lift the limits of a lease's database nodes that begin once they are warm, for running and future
        processes. `limits`: those of the request, some of which the site may not support. Idempotent. Raises
        SiteError."""
        ...


QUOTA = "a quota of CPU time"
"""Name of the enforcement that can grant any part of a processor; others grant whole ones, which dilation cannot
divide."""


@runtime_checkable
class ChargesPrograms(Protocol):
    """Ability: charges every program on a database node to the node, by its control groups. Without it, what is started
    there to use its processor or memory would be taken for another program's."""

    charges_programs: bool


@runtime_checkable
class CutsLinks(Protocol):
    """Ability: database nodes have a network each, in which commands outside their limits may filter packets, so that
    links between them can be cut."""

    def uncuttable(self) -> str:
        """Reason why they cannot; empty if they can, as far as this is known before nodes are lent."""
        ...


@runtime_checkable
class EntersNetworks(Protocol):
    """Ability: programs of this machine, and not those on the nodes, may filter packets in the nodes' networks."""

    def in_network(self, node: Node) -> Node:
        """This machine as a node of the same name, in that one's network. Raises SiteError if it is gone."""
        ...


@runtime_checkable
class DelaysPackets(Protocol):
    """Ability: moves the packets between database nodes itself, and can deliver some of them late for a while."""

    def undelayable(self, link: LinkChoice) -> str:
        """Reason why those of a link cannot be late; empty if they can. Pure."""
        ...

    def delay(self, targets: Sequence[Node], peers: Sequence[Node], lateness: Lateness) -> None:
        """Deliver packets between these nodes late. Ends at its time, or with the lease. Raises SiteError."""
        ...


KernelTexts = list[tuple[Path, str]]
"""Files of the kernel and what is written to them, in order."""


@runtime_checkable
class SlowsDisks(Protocol):
    """Ability: throttles the disks of database nodes by files of this machine's kernel, while they run."""

    def unslowable(self, slow: NodeLimits) -> str:
        """Reason why disks cannot have these rates; empty if they can, as far as this is known before nodes are
        lent."""
        ...

    def slowed(self, node: Node, slow: NodeLimits, limits: NodeLimits) -> tuple[KernelTexts, KernelTexts]:
        """Texts that make the disk of a node that has `limits` keep to the rates of `slow`, too, and those that end
        it. Pure but for which files exist. Raises SiteError if the node has no disk of its own."""
        ...


@runtime_checkable
class OwnClocks(Protocol):
    """Ability: each database node has a clock of its own, which ends with the lease."""

    own_clocks: bool


@runtime_checkable
class DescribesCpuLimits(Protocol):
    """Ability: names its enforcement of `node.cpus`, which differs between sites."""

    def cpus_by(self, limits: NodeLimits) -> str:
        """The enforcement in words, such as `a quota of CPU time`. Pure."""
        ...


@runtime_checkable
class HasLeaseNotes(Protocol):
    """Ability: gives the user notes before it lends, such as an image still to be pulled."""

    def notes(self, request: Request) -> Sequence[str]:
        """One sentence per note; `run` is the command that lends. Read-only, takes seconds at most."""
        ...


@runtime_checkable
class SelectsMachines(Protocol):
    """Ability: knows before lending which machines a request gets, so that two requests of a start never share one."""

    def machines(self, request: Request) -> Mapping[str, str]:
        """Address of each machine, the same in every study and file, to its display name. Pure, except for reading the
        files that settings name."""
        ...


def both_need(sites: Sequence[Site], requests: Sequence[Request]) -> str:
    """Names of machines that both the databases and the load nodes of a start would get; empty if none."""
    picked = [
        site.machines(request) if isinstance(site, SelectsMachines) else {}
        for site, request in zip(sites, requests, strict=True)
    ]
    twice = [name for way, name in picked[0].items() if any(way in machines for machines in picked[1:])]
    return listed(twice)


NO_AMOUNTS = frozenset({"cpus_from", "disk_rates_from", "dilation", "profile"})
"""Fields of the `node` section that a site need not enforce: they name the others, or set when and how far these
apply."""


def unenforced(site: Site, request: Request) -> str | None:
    """Reason why a site cannot enforce the limits of a request or make its link; None if it can."""
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
    """Seconds after which the laboratory stops waiting for a site's nodes."""

    lease_s: float = Field(default=60.0, gt=0)
    """Until the nodes are lent."""
    release_s: float = Field(default=60.0, gt=0)
    """Until data are wiped, and again until the nodes are released."""
    inspect_s: float = Field(default=120.0, gt=0)
    """Timeout until all nodes have reported their facts."""
    first_reading_s: float = Field(default=10.0, gt=0)
    """Until every probe has given its first reading."""


PATIENCE = Patience()


@runtime_checkable
class Patient(Protocol):
    """Ability: needs longer waits than PATIENCE, such as machines that are far away or must boot."""

    patience: Patience


def patience_of(*sites: Site) -> Patience:
    """The combined waits of sites that lend one after the other and are inspected together."""
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
        """Prepare everything on this machine. Slow only the first time. Raises SiteError."""
        ...


@runtime_checkable
class Rents(Protocol):
    """Ability: lends nodes that cost money for as long as they live. Without the user's yes, none is lent."""

    @property
    def most_hours(self) -> float:
        """Hours after which the nodes of a lease end, whatever happens."""
        ...


@runtime_checkable
class UsesHelpers(Protocol):
    """Ability: uses programs on this machine in addition to its nodes, such as a container daemon. Their processor time
    belongs to no node and is not background load."""

    def helper_times_s(self, programs: Mapping[tuple[int, int], RunningProgram]) -> Mapping[str, float]:
        """Processor seconds of such programs so far, by name, from a census of processes. Pure."""
        ...


def helpers_time_s(sites: Iterable[Site], programs: Mapping[tuple[int, int], RunningProgram]) -> float:
    """Processor seconds so far of the programs that sites use in addition to their nodes; 0 without any. Pure."""
    by_name = {site.name: site for site in sites if isinstance(site, UsesHelpers)}
    return sum(sum(site.helper_times_s(programs).values()) for site in by_name.values())


@runtime_checkable
class Reuses(Protocol):
    """Ability: hands a lease on from one start of a cluster to the next, so that nothing is created again."""

    async def recycle(self, lease: Lease, request: Request, until: datetime) -> Lease | None:
        """The same machines for another request until another time, with empty folders and nothing running; None if
        the lease cannot fulfil it. The record is rewritten before anything else. Raises SiteError."""
        ...


MarkNode = Callable[[str, str], None]
"""Takes the name of a node, and that of the step that it has reached now: `launched`, `running`, `reached`."""


@runtime_checkable
class Extends(Protocol):
    """Ability: gets further machines for a lease while a trial runs, so that a scale-out includes the time to get them.
    Other sites lend the largest size from the beginning."""

    async def extend(self, lease: Lease, names: Sequence[str], mark: MarkNode) -> Sequence[Node]:
        """New database nodes of these names. The record is rewritten before anything is created. Raises SiteError."""
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
