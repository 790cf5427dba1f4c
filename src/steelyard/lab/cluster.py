"""One start of a cluster: lease - deploy - (trials) - wipe - release, as nested brackets."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from steelyard.engine.base import Engine
from steelyard.lab.bracket import PhaseLog
from steelyard.lab.instruments import Readings, watching
from steelyard.lab.parts import Parts
from steelyard.lab.progress import Waiting, Watcher
from steelyard.lab.state import DataState
from steelyard.link.ping import measure_link
from steelyard.model.errors import NodeError, SiteError, SteelyardError, SystemFault
from steelyard.model.plan import PlannedTrial
from steelyard.model.study import Data, Study
from steelyard.model.trial import Phase
from steelyard.node.base import Node
from steelyard.site.base import Lease, Request, Site
from steelyard.system.base import System

LEASE_TIMEOUT_S = 60.0
PREPARE_TIMEOUT_S = 1800.0
STOP_TIMEOUT_S = 60.0
POLL_S = 0.25


@dataclass
class Cluster:
    """A running system on leased nodes, ready for trials."""

    start: str
    """Unique name of this very start."""
    lease: Lease
    site: Site
    system: System
    engine: Engine
    state: DataState
    phases: PhaseLog
    readings: Readings = field(default_factory=Readings)
    facts: dict[str, Mapping[str, str]] = field(default_factory=dict)
    differing: dict[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    links: list[Mapping[str, Any]] = field(default_factory=list)
    trials_served: int = 0

    @property
    def databases(self) -> tuple[Node, ...]:
        """Nodes of the system under test."""
        return self.lease.databases

    @property
    def loaders(self) -> tuple[Node, ...]:
        """Nodes that drive load."""
        return self.lease.loaders

    async def healthy(self) -> bool:
        """Whether every node still answers and sees all members."""
        members = len(self.databases)
        try:
            answers = await asyncio.gather(*(self.system.ready(node, members) for node in self.databases))
        except SteelyardError:
            return False
        return all(answers)


@asynccontextmanager
async def started(
    study: Study, planned: PlannedTrial, parts: Parts, watcher: Watcher, phases: PhaseLog
) -> AsyncIterator[Cluster]:
    """Lend nodes, start the system of `planned` on them, and undo all of it, whatever happens inside."""
    settings = planned.settings
    site, system = parts.site(settings), parts.system(settings)
    limits = study.limits
    async with phases.bracket(Phase.DEPLOY, PREPARE_TIMEOUT_S, SiteError):
        watcher.tell(Waiting(f"{system.name}: programs on this machine"))
        await system.prepare()
    lease = await _lend(study, settings, site, phases)
    databases = lease.databases
    try:
        async with phases.bracket(Phase.DEPLOY, limits.start_timeout_s, SystemFault):
            await _deploy(system, databases, watcher)
        state = DataState(
            system=system,
            engine=parts.engine(settings),
            databases=databases,
            loaders=lease.loaders,
            data=Data.model_validate(settings["data"]),
            watcher=watcher,
            timeout_s=limits.trial_timeout_s,
        )
        cluster = Cluster(
            start=f"{planned.start}-{uuid.uuid4().hex[:6]}",
            lease=lease,
            site=site,
            system=system,
            engine=state.engine,
            state=state,
            phases=phases,
        )
        await _inspect(cluster)
        async with phases.bracket(Phase.POPULATE, limits.trial_timeout_s, SystemFault):
            workload = parts.workload(settings)
            await system.create_schema(databases, workload.schema())
            await state.ensure(workload)
        probes = [parts.probe(name) for name in study.probes]
        async with watching(probes, lease.nodes, system.process_ids, watcher) as cluster.readings:
            yield cluster
    finally:
        await asyncio.shield(_undo(site, system, lease, phases))


async def _lend(study: Study, settings: Mapping[str, Any], site: Site, phases: PhaseLog) -> Lease:
    chosen = settings["site"]
    request = Request(study=study.study.name, database_nodes=chosen["nodes"], load_nodes=chosen["load_nodes"])
    longest_s = study.limits.start_timeout_s + study.limits.trial_timeout_s * study.design.trials
    until = datetime.now(UTC) + timedelta(seconds=longest_s)
    async with phases.bracket(Phase.LEASE, LEASE_TIMEOUT_S, SiteError):
        return await site.lease(request, until)


async def _deploy(system: System, databases: Sequence[Node], watcher: Watcher) -> None:
    await asyncio.gather(*(system.install(node, databases) for node in databases))
    await asyncio.gather(*(system.start(node, databases) for node in databases))
    members = len(databases)
    while True:
        answers = await asyncio.gather(*(system.ready(node, members) for node in databases))
        if all(answers):
            return
        late = [node for node, answer in zip(databases, answers, strict=True) if not answer]
        doing = await system.waiting_for(late[0])
        watcher.tell(Waiting(f"{members - len(late)} of {members} nodes ready; {late[0].name} {doing}"))
        await asyncio.sleep(POLL_S)


async def _inspect(cluster: Cluster) -> None:
    """Facts of nodes and systems, what is in force against what was asked, and the paths between load and databases."""
    for node in cluster.lease.nodes:
        cluster.facts[node.name] = await cluster.site.facts(node)
    for node in cluster.databases:
        cluster.facts[f"system:{node.name}"] = await cluster.system.facts(node)
        differing = await cluster.system.differing(node)
        if differing:
            cluster.differing[node.name] = differing
        for loader in cluster.loaders:
            cluster.links.append(await _link(loader, node))


async def _link(loader: Node, node: Node) -> Mapping[str, Any]:
    """A path as measured; a node on which it cannot be measured says why."""
    ends = {"from": loader.name, "to": node.name}
    try:
        return {**ends, **await measure_link(loader, node)}
    except NodeError as error:
        return {**ends, "problem": error.message}


async def _undo(site: Site, system: System, lease: Lease, phases: PhaseLog) -> None:
    """Wipe and release. The data are golden copies or spent: nodes need no orderly stop. The site's release ends
    what is
    left, so a failing wipe is not the last word."""
    try:
        async with phases.bracket(Phase.WIPE, STOP_TIMEOUT_S, SiteError):
            await asyncio.gather(*(system.kill(node) for node in lease.databases))
            await asyncio.gather(*(system.wipe(node) for node in lease.databases))
    finally:
        async with phases.bracket(Phase.RELEASE, STOP_TIMEOUT_S, SiteError):
            await site.release(lease)
