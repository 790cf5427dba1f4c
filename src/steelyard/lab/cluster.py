"""One start of a cluster: lease - deploy - populate - (trials) - wipe - release, as nested brackets."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from steelyard.engine.base import DrivenByWords, Engine, StampedHere
from steelyard.events.base import Watcher
from steelyard.events.shown import Waiting
from steelyard.format import listed
from steelyard.judging.dilation import effective_limits, effective_link
from steelyard.lab import clocks, limits_from_warm, links
from steelyard.lab.bracket import PhaseLog
from steelyard.lab.data_state import DataState
from steelyard.lab.gauging import gauge_nodes
from steelyard.lab.lending import Lender, Lending, lenders_of
from steelyard.lab.limits_from_warm import LIMIT_TIMEOUT_S, InForce
from steelyard.lab.members import Members
from steelyard.lab.node_death import first_death, while_alive
from steelyard.lab.parts import CalibrationStatus, LabParts, of_all_load_nodes
from steelyard.lab.probe_processes import Readings, watched_nodes, watching
from steelyard.lab.silence import Listening
from steelyard.lab.undo import Undo, undo_after, undo_start, wipe
from steelyard.leases.lease import Lease
from steelyard.leases.records import MARKER
from steelyard.link.linktest import expected_s
from steelyard.model.data_model import Schema
from steelyard.model.errors import EngineError, SiteError, SteelyardError, SystemFault
from steelyard.model.facts import PROTOCOL, system_facts_name
from steelyard.model.gauged import Gauged
from steelyard.model.link import LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.node_limits import LIMIT_SETTLE_S, NodeLimits
from steelyard.model.plan import PlannedTrial
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.study import Study
from steelyard.model.trial import Capacity, Phase
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import gauge
from steelyard.node.base import DILATION, START, Node
from steelyard.node.processor import has_variable
from steelyard.node.tasks import in_a_thread, to_the_end, together
from steelyard.plan.abilities import requests_of
from steelyard.site.base import WRITE_OUT_TIMEOUT_S, Extends, Site, link_failure, moved_frames, node_name, patience_of
from steelyard.study.links import measures_links
from steelyard.system.base import Endpoint, Existing, Provides, ProvidesClients, System, warms_up
from steelyard.wire.order import Order
from steelyard.wire.record import Record
from steelyard.wire.word import PhaseWord
from steelyard.workload.base import Workload

PREPARE_TIMEOUT_S = 1800.0
HEALTH_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 3.0
POLL_S = 0.25
LINKS_GRACE = 4.0
"""Measuring the links may take this many times as long as expected."""

Nodes = tuple[Lease, Members]
"""Nodes that a site has lent, and those of the system under test among them."""


@dataclass
class Cluster:
    """A running system on leased nodes, ready for trials."""

    start: str
    """Unique name of this very start."""
    lease: Lease
    members: Members
    """Nodes of the system under test: those of the lease, or the members of a cluster that exists."""
    site: Site
    """Site of the databases; of the load nodes too, if `load_site` is None."""
    system: System
    engine: Engine
    state: DataState
    phases: PhaseLog
    load_site: Site | None = None
    readings: Readings = field(default_factory=Readings)
    facts: dict[str, Mapping[str, str]] = field(default_factory=dict)
    differing: dict[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    links: list[Mapping[str, Any]] = field(default_factory=list)
    """Paths between the nodes as measured before the first trial."""
    link: LinkChoice | None = None
    """The link between the nodes, where all paths are measured in full; None: only round trips are."""
    known: CalibrationStatus = field(default_factory=CalibrationStatus)
    """Calibration of the generator, or why there is none."""
    warmth: ServerWarmth | None = None
    """Outcome of the server warm-up; None without one."""
    trials_served: int = 0
    capacities: dict[str, Capacity] = field(default_factory=dict)
    """Measured capacities by `capacity_key`."""

    @property
    def databases(self) -> tuple[Node, ...]:
        """Nodes in service now."""
        return self.members.in_service

    @property
    def reachable(self) -> tuple[Node, ...]:
        """Nodes on which commands can be run."""
        return tuple(node for node in (*self.members.all, *self.loaders) if node.commands)

    def endpoint(self, schema: Schema) -> Endpoint:
        """Where loads go. In emptied tables, updates leave records of single fields: nothing is compared."""
        endpoint = self.system.endpoint(self.databases, schema)
        return replace(endpoint, compared=endpoint.compared and self.state.data.state != "truncate")

    async def read_facts(self) -> None:
        """Facts of the nodes as the site says them now. Raises SiteError."""
        nodes = self.reachable
        every = await together(self.site_of(node).facts(node) for node in nodes)
        self.facts |= {node.name: facts for node, facts in zip(nodes, every, strict=True)}

    async def limit(self, asked: NodeLimits, workload: Workload, watcher: Watcher) -> InForce:
        """Put limits in force that begin when the cluster is warm, after the data of the first trial (`workload`) are
        back; returns them by node, nothing if there are none or they are in force already. Raises SiteError."""
        limits = effective_limits(asked)
        if not limits.limited_when_warm:
            return InForce()
        written_s = WRITE_OUT_TIMEOUT_S if limits.disks_from_warm else 0.0
        limit_s = LIMIT_TIMEOUT_S + written_s + self.state.timeout_s + self.state.data.settle_timeout_s
        async with self.phases.bracket(Phase.LIMIT, limit_s, SiteError):
            if self.state.takes_snapshots:
                await self.state.ensure(workload)
            await self.state.settle()
            watcher.tell(Waiting("limits of the nodes, in force from now on"))
            await limits_from_warm.enforce(self.site, self.lease, limits)
            await asyncio.sleep(LIMIT_SETTLE_S)
            await self.read_facts()
            limited = limits_from_warm.in_force(self.lease.databases, self.facts, limits)
        self.facts |= {node.name: {**self.facts[node.name], **limited.since} for node in self.lease.databases}
        return limited

    @property
    def loaders(self) -> tuple[Node, ...]:
        """Nodes that drive load."""
        return self.lease.loaders

    @property
    def sites(self) -> tuple[Site, ...]:
        """The site of the databases, then that of the load nodes, if it is another."""
        return (self.site,) if self.load_site is None else (self.site, self.load_site)

    @property
    def shares(self) -> frozenset[str]:
        """Resources that all nodes share."""
        return frozenset.intersection(*(site.shares for site in self.sites))

    def site_of(self, node: Node) -> Site:
        """The site that lends a node."""
        return self.load_site if self.load_site is not None and node.role == "load" else self.site

    def owns(self, pid: int) -> bool:
        """Whether a process of this machine belongs to this start: its nodes, its load, its probes, and what its lease
        runs for them, such as a link or virtual machines."""
        start = self.loaders[0].environment.get(START, "")
        of_start = pid in self.readings.process_ids or has_variable(pid, START, start)
        return of_start or has_variable(pid, MARKER, self.lease.id)

    async def measure_links(self) -> list[Mapping[str, Any]]:
        """The paths between the nodes as they are now; takes `links_s`."""
        if self.link is None:
            return await links.round_trips(self.loaders, self.databases)
        return await links.in_full(self.loaders, self.databases, self.link)

    @property
    def links_s(self) -> float:
        """Expected seconds of measuring all paths in full; 0 if only round trips are measured."""
        return 0.0 if self.link is None else expected_s(self.link, len(self.loaders), len(self.databases))

    async def launched(self, name: str, mark: Callable[[str], None]) -> Node:
        """A node of this name that its site gets now, part of the lease from now on. Raises SiteError."""
        assert isinstance(self.site, Extends)
        (lent,) = await self.site.extend(self.lease, [name], lambda node, step: mark(step))
        start = {key: text for key, text in self.loaders[0].environment.items() if key in (START, DILATION)}
        node = replace(lent, environment={**lent.environment, **start})
        self.lease = replace(self.lease, nodes=(*self.lease.nodes, node))
        self.facts[name] = await self.site.facts(node)
        return node

    @property
    def link_failure(self) -> str | None:
        """Reason why the link between the nodes no longer works as asked, or None."""
        return link_failure(self.site, self.lease)

    async def moved_frames(self, begun_s: float, ended_s: float) -> MovedFrames | None:
        """Frames that a link program moved between the nodes in a time; None without one."""
        return await moved_frames(self.site, self.lease, begun_s, ended_s)

    async def drive(self, order: Order, on_record: Callable[[str, Record], None], timeout_s: float) -> None:
        """Have the engine run an order for as long as all nodes live. Raises SystemFault within seconds of the
        first node that dies, EngineError if the generator fails or falls silent, ProbeError if a probe does."""
        listening = Listening(self.engine, order, self.loaders)
        taken = listening.to(self._on_our_clock(on_record))
        driving = self.engine.drive(order, self.loaders, taken, timeout_s)
        await self._while_alive(driving, (listening.check, self.readings.check))

    async def drive_by_words(
        self,
        order: Order,
        on_record: Callable[[str, Record], None],
        phases: AsyncIterator[PhaseWord],
        timeout_s: float,
    ) -> None:
        """Have the engine run phases as they are decided; as `drive`. Raises EngineError if it cannot."""
        engine = self.engine
        if not isinstance(engine, DrivenByWords):
            raise EngineError("this engine accepts no phases while it runs", 'set load.engine = "agent"')
        listening = Listening(self.engine, order, self.loaders)
        taken = listening.to(self._on_our_clock(on_record))
        driving = engine.drive_by_words(order, self.loaders, taken, phases, timeout_s)
        await self._while_alive(driving, (listening.check, self.readings.check))

    async def _while_alive(self, driving: Coroutine[Any, Any, None], checks: Sequence[Callable[[], None]]) -> None:
        members = self.members
        await while_alive(driving, self.system, lambda: members.alive, checks, lambda: members.expectations)

    async def read_clocks(self) -> dict[str, clocks.Reading]:
        """Clocks of the nodes that have one of their own; times from them are corrected by this reading from now on.
        Raises ClockError, and ProbeError where probes began again, as a clock was set."""
        readings = await clocks.read(self.reachable)
        await self.readings.correct_by({node: reading.offset_s for node, reading in readings.items()})
        return readings

    def _on_our_clock(self, on_record: Callable[[str, Record], None]) -> Callable[[str, Record], None]:
        if isinstance(self.engine, StampedHere):
            return on_record
        return clocks.on_our_clock(on_record, self.readings.offsets_s)

    async def death(self) -> SystemFault | None:
        """The fault of the first dead node; None if there is none, or if the system does not notice."""
        return await first_death(self.system, self.members.alive)

    async def healthy(self) -> bool:
        """Whether every node answers and sees all members, or does within HEALTH_TIMEOUT_S. With a join or a leave that
        was not completed: whether the members live."""
        if self.members.unsettled:
            return await self.death() is None
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_S):
                while not await _all_ready(self.system, self.databases):  # noqa: ASYNC110 - a server has no event
                    await asyncio.sleep(POLL_S)
        except (SteelyardError, TimeoutError):
            return False
        return True

    async def not_ready(self) -> str:
        """Names of the nodes that do not answer now, or do not see all members."""
        members = len(self.databases)

        async def ready(node: Node) -> bool:
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    return await self.system.ready(node, members)
            except (SteelyardError, TimeoutError):
                return False

        answers = await together(ready(node) for node in self.databases)
        silent = [node.name for node, answer in zip(self.databases, answers, strict=True) if not answer]
        return listed(silent) or "a node"


@asynccontextmanager
async def started(
    study: Study,
    trials: Sequence[PlannedTrial],
    parts: LabParts,
    watcher: Watcher,
    phases: PhaseLog,
    lending: Lending | None = None,
    on_gauged: Callable[[Gauged], None] = lambda gauged: None,
) -> AsyncIterator[Cluster]:
    """Lend nodes, start the system that `trials` share on them, and undo all of it, whatever happens inside; a lease
    that can be handed on stays with `lending` after a start without an error. The first error wins; what goes wrong
    while cleaning up is added to it as a note. `on_gauged` gets the nodes' limits as measured, if any were asked for,
    before the start and after its last trial."""
    lending = lending or Lending()
    settings = trials[0].settings
    system = parts.system(settings)
    sites = tuple(site for site in (parts.site(settings), parts.load_site(settings)) if site is not None)
    await _prepare(system, watcher, phases)
    seed = seed_of(start_identity(study.design.seed, trials))
    promised = _promised(settings) if isinstance(sites[0], Extends) else ()
    at_once = settings.most_nodes - len(promised)
    lenders = lenders_of(sites, requests_of(study.study.name, settings, system, seed, at_once), settings)
    lease = await _lend(study, trials, lenders, lending, phases)
    give_back = functools.partial(lending.give_back, lenders, lease)
    members = Members(lease.databases[: settings.site.nodes], lease.databases[settings.site.nodes :] or promised)
    undo = Undo(patience_of(*sites).release_s, system, members, phases, lambda keep: give_back(keep=keep))
    try:
        limits = effective_limits(settings.node)
        if isinstance(system, Existing):
            members = undo.members = Members(system.members(lease.databases, lease.loaders))
            limits = limits if members.in_service == lease.databases else NodeLimits()
        nodes = (lease, members)

        async def gauge_at(moment: Literal["before", "after"], phase: Phase) -> None:
            if gauge.wanted(limits):
                watcher.tell(Waiting("limits of the nodes"))
                async with phases.bracket(phase, gauge.timeout_s(limits) * len(lease.databases), SiteError):
                    on_gauged(await gauge_nodes(lease.databases, limits, moment))

        await gauge_at("before", Phase.DEPLOY)
        await limits_from_warm.lift(sites[0], lease, effective_limits(settings.node))
        undo.gauge = lambda: gauge_at("after", Phase.WIPE)
        cluster = await _bring_up(study, trials[0], (parts, sites, system), nodes, watcher, phases)
        probes = [parts.probe(name, study.probe.get(name, {})) for name in study.probes]
        watched = await watched_nodes(system, (*cluster.databases, *cluster.loaders)) if probes else ()
        # Alike in all trials of a study, so that a control is watched as a cluster that grows.
        alone = settings.ends_start
        offsets_s = {node: reading.offset_s for node, reading in (await clocks.read(cluster.reachable)).items()}
        first_reading_s = patience_of(*sites).first_reading_s
        async with watching(probes, watched, watcher, offsets_s, first_reading_s, alone=alone) as cluster.readings:
            yield cluster
    except BaseException as first:
        broken = link_failure(sites[0], lease) if isinstance(first, SystemFault) else None
        try:
            await to_the_end(undo_after(first, undo))
        except Exception as second:
            first.add_note(f"while cleaning up: {second}")
        if broken is not None:
            raise SiteError(broken, "run `steelyard doctor` to see what this machine can do") from first
        raise
    await to_the_end(undo_start(undo, keep=True))


def _promised(settings: TrialSettings) -> tuple[Node, ...]:
    """Spares that are not lent yet: their site gets them when they are used."""
    names = [node_name("database", number) for number in range(settings.site.nodes + 1, settings.most_nodes + 1)]
    return tuple(Node(name, "database", "", (), Path(name), commands=False) for name in names)


async def _prepare(system: System, watcher: Watcher, phases: PhaseLog) -> None:
    """Prepare the programs on this machine. A missing one is not a fault of the system under test."""
    try:
        async with phases.bracket(Phase.DEPLOY, PREPARE_TIMEOUT_S, SiteError):
            watcher.tell(Waiting(f"{system.name}: programs on this machine"))
            await system.prepare()
    except SystemFault as fault:
        raise SiteError(fault.message, fault.hint) from fault


async def _lend(
    study: Study,
    trials: Sequence[PlannedTrial],
    lenders: Sequence[Lender],
    lending: Lending,
    phases: PhaseLog,
) -> Lease:
    limits = study.limits
    one_s = limits.trial_timeout_s + study.data.settle_timeout_s + limits.quiet_wait_s
    longest_s = (
        3 * limits.start_timeout_s + study.server_warm_up.longest_s + one_s * (1 + len(trials) * limits.attempts)
    )
    until = datetime.now(UTC) + timedelta(seconds=longest_s)
    async with phases.bracket(Phase.LEASE, patience_of(*(lender.site for lender in lenders)).lease_s, SiteError):
        lease = await lending.lend(lenders, until)
    return _with_identity(lease, start_identity(study.design.seed, trials), trials[0].settings.node.dilation)


def start_identity(seed: int, trials: Sequence[PlannedTrial]) -> str:
    """Text that is unique to a start within its study: block, levels, and how many trials it still has to do, so
    that a start of the rest after an interrupt is one of its own. Settings are not in it: a default of the next version
    must not draw again."""
    first = trials[0]
    levels = ",".join(f"{factor}={first.treatment[factor]}" for factor in sorted(first.hard))
    return f"{seed}/{first.block}/{levels}/{len(trials)}"


def seed_of(identity: str) -> int:
    """A seed that follows from a start's identity, of 31 bits."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big") >> 1


def _with_identity(lease: Lease, start: str, dilation: float) -> Lease:
    """The lease, with the start's identity, and its dilation if there is one, in the environment of each node."""
    named = {START: start} | ({} if dilation == 1 else {DILATION: repr(dilation)})
    nodes = tuple(replace(node, environment={**node.environment, **named}) for node in lease.nodes)
    return replace(lease, nodes=nodes)


async def _bring_up(
    study: Study,
    first: PlannedTrial,
    parts_of_start: tuple[LabParts, tuple[Site, ...], System],
    nodes: Nodes,
    watcher: Watcher,
    phases: PhaseLog,
) -> Cluster:
    """Start, fill and inspect. Without server warm-up a cluster that had to be filled is started again on the snapshot,
    so that every start of a study begins alike: restored, its programs not yet warm."""
    parts, sites, system = parts_of_start
    (lease, members), limits = nodes, study.limits
    databases = members.in_service
    workload = parts.workload(first.settings)
    state = DataState(
        system=system,
        engine=parts.engine(first.settings),
        databases=databases,
        loaders=lease.loaders,
        data=first.settings.data,
        watcher=watcher,
        timeout_s=limits.trial_timeout_s,
    )
    await _deploy(system, databases, lease.loaders, watcher, phases, limits.start_timeout_s)
    async with phases.bracket(Phase.POPULATE, limits.trial_timeout_s, SystemFault):
        kept = await _fill(state, workload)
    if kept and not warms_up(study.server_warm_up, system):
        async with phases.bracket(Phase.WIPE, patience_of(*sites).release_s, SiteError):
            await wipe(system, databases)
        await _deploy(system, databases, lease.loaders, watcher, phases, limits.start_timeout_s)
        async with phases.bracket(Phase.POPULATE, limits.trial_timeout_s, SystemFault):
            state.emptied()
            await _fill(state, workload)
    cluster = Cluster(
        start=f"{first.start}-{uuid.uuid4().hex[:6]}",
        lease=lease,
        members=members,
        site=sites[0],
        load_site=sites[1] if len(sites) > 1 else None,
        system=system,
        engine=state.engine,
        state=state,
        phases=phases,
        link=effective_link(first.settings.link, first.settings.node.dilation) if measures_links(study) else None,
    )
    inspect_s = patience_of(*sites).inspect_s + LINKS_GRACE * cluster.links_s
    async with phases.bracket(Phase.DEPLOY, inspect_s, SiteError):
        watcher.tell(Waiting("facts of the nodes" if cluster.link is None else "facts of the nodes, and their links"))
        await _inspect(cluster)
    cluster.known = await in_a_thread(functools.partial(_known, cluster, parts, first.settings.engine))
    return cluster


def _known(cluster: Cluster, parts: LabParts, engine: str) -> CalibrationStatus:
    """Calibration of the generators: it holds only if it does on every load node."""
    protocol = cluster.system.protocol
    by_node = {node.name: parts.calibration(engine, protocol, cluster.facts[node.name]) for node in cluster.loaders}
    return of_all_load_nodes(by_node)


async def _fill(state: DataState, workload: Workload) -> bool:
    """Schema and data. Returns whether data were filled and a snapshot taken just now."""
    return await state.ensure(workload) == "filled" and state.takes_snapshots


async def _all_ready(system: System, databases: Sequence[Node]) -> bool:
    return all(await together(system.ready(node, len(databases)) for node in databases))


async def _deploy(
    system: System,
    databases: Sequence[Node],
    loaders: Sequence[Node],
    watcher: Watcher,
    phases: PhaseLog,
    timeout_s: float,
) -> None:
    members = len(databases)
    async with phases.bracket(Phase.DEPLOY, timeout_s, SystemFault):
        if isinstance(system, Provides):
            watcher.tell(Waiting(f"{system.name}: programs on the nodes"))
            await system.provide(databases)
        if isinstance(system, ProvidesClients):
            await system.provide_clients(loaders, databases)
        await together(system.install(node, databases) for node in databases)
        await together(system.start(node, databases) for node in databases)
        while True:
            answers = await together(system.ready(node, members) for node in databases)
            if all(answers):
                return
            late = [node for node, answer in zip(databases, answers, strict=True) if not answer]
            doing = await system.waiting_for(late[0])
            watcher.tell(Waiting(f"{members - len(late)} of {members} nodes ready; {late[0].name} {doing}"))
            await asyncio.sleep(POLL_S)


async def _inspect(cluster: Cluster) -> None:
    """Facts of nodes and systems, settings that differ from those requested, paths between load and databases."""
    await cluster.read_facts()
    for node in cluster.databases:
        facts = await cluster.system.facts(node)
        cluster.facts[system_facts_name(node.name)] = {**facts, PROTOCOL: cluster.system.protocol}
        differing = await cluster.system.differing(node)
        if differing:
            cluster.differing[node.name] = differing
    cluster.links.extend(await cluster.measure_links())
