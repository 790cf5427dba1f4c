"""Disruptions during a trial: begins each at its time while the load runs, waits until its targets have recovered, and
expects nothing of them meanwhile."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Sequence

from steelyard.disruption.base import Disruption, Stage
from steelyard.engine.base import ReadsBack
from steelyard.events.base import Watcher
from steelyard.events.kept import ActivityBegan, ActivityEnded
from steelyard.events.shown import Waiting
from steelyard.judging.disruptions import targets
from steelyard.judging.membership import Span
from steelyard.lab.cluster import Cluster
from steelyard.lab.probe_processes import Instrument, watched_nodes
from steelyard.model.activity import RECOVERED, SEEN_DOWN, Disrupted, Mark
from steelyard.model.disruption import NONE
from steelyard.model.errors import SteelyardError, SystemFault
from steelyard.model.plan import PlannedTrial
from steelyard.model.study import Study
from steelyard.node.base import Node
from steelyard.node.tasks import alongside, together
from steelyard.probe.base import Probe, ReadsWay
from steelyard.study.fields import names_of
from steelyard.system.base import SeesDown

POLL_S = 0.25


class NotHeld(SteelyardError):
    """The laboratory could not disrupt a node, or not heal it."""


class DisruptionInProgress:
    """The disruptions of one trial."""

    def __init__(self, cluster: Cluster, trial: PlannedTrial, watcher: Watcher, disruption: Disruption | None) -> None:
        """`disruption`: None leaves the nodes alone."""
        self._cluster = cluster
        self._trial = trial
        self._watcher = watcher
        self._disruption = disruption
        self._measured = asyncio.Event()
        self._begun_s = 0.0
        self.activities: list[Disrupted] = []
        """Disruptions so far, in order of time."""
        self.excused: dict[Instrument, list[Span]] = {}
        """When nothing was expected of an instrument that reads a server which was down."""

    def measuring(self, begun_s: float) -> None:
        """The measured phase has begun, at this time."""
        self._begun_s = begun_s
        self._measured.set()

    async def beside(self, driving: Awaitable[None]) -> None:
        """Drive the load and disrupt meanwhile."""
        if self._disruption is None:
            await driving
        else:
            await alongside(driving, self._at_its_times(self._disruption))

    async def _at_its_times(self, disruption: Disruption) -> None:
        await self._measured.wait()
        settings = self._trial.settings
        for place, at_s in enumerate(settings.disruption.begins_s(settings.load.measured_s or 0.0)):
            if self.activities and self.activities[-1].outcome == "failed":
                return  # its nodes may be down still
            await asyncio.sleep(self._begun_s + at_s - time.time())
            # Nodes that joined meanwhile are no targets: so the seed alone says which are.
            members = self._cluster.databases
            first = [f"n{number}" for number in range(1, settings.site.nodes + 1)]
            names = targets(settings.disruption, first, self._trial.seed + place)
            await self._disrupt(disruption, [node for node in members if node.name in names])

    async def _disrupt(self, disruption: Disruption, nodes: Sequence[Node]) -> None:
        settings, members = self._trial.settings, self._cluster.members
        choice = settings.disruption
        names, cause = tuple(node.name for node in nodes), choice.words
        self.activities.append(Disrupted(nodes=names, cause=cause, begun_s=time.time()))
        what = {"trial": self._trial.id, "kind": "disruption", "nodes": names}
        self._watcher.tell(ActivityBegan.model_validate({**what, "cause": cause}))
        self._watcher.tell(Waiting(f"disruption: {cause}"))
        cluster = self._cluster
        stage = Stage(cluster.system, nodes, members.in_service, choice.for_s, self._mark, cluster.site, settings.node)
        try:
            if disruption.takes_down:
                members.expect(down=names)
                await self._unread(nodes)
            await disruption.hold(stage)
            await self._recovered(nodes, choice.recover_s)
            if disruption.takes_down:
                members.expect(down=())
                await self._read_again(nodes)
            self._update(outcome="done")
        except SystemFault as fault:
            self._update(outcome="failed", error=fault.in_a_line)
        except SteelyardError as error:
            # A node that the laboratory could not heal is not the system's fault.
            raise NotHeld(error.message, error.hint) from error
        finally:
            # From here on a dead node is one that should be alive.
            members.expect(down=())
            self._update(ended_s=time.time())
            ended = self.activities[-1]
            self._watcher.tell(ActivityEnded.model_validate({**what, "outcome": ended.outcome, "error": ended.error}))

    async def _recovered(self, nodes: Sequence[Node], limit_s: float) -> None:
        """Wait until healed nodes answer, and every member sees all others. Raises SystemFault if that takes longer."""
        members, ready = self._cluster.databases, set[str]()
        try:
            async with asyncio.timeout(limit_s):
                await together(self._ready(node, ready) for node in members)
        except TimeoutError:
            lost = [node.name for node in members if node.name not in ready]
            what = f"{', '.join(lost)} did not recover within {limit_s:g} s (disruption.recover_s)"
            raise SystemFault(what, node=lost[0] if lost else "", system=self._cluster.system.name) from None
        for node in nodes:
            self._mark(node, RECOVERED)
        await self._seen_down(nodes)

    async def _seen_down(self, nodes: Sequence[Node]) -> None:
        """Mark when the last of the other members took each target for dead, if all did."""
        system, offsets_s = self._cluster.system, self._cluster.readings.offsets_s
        others = [node for node in self._cluster.databases if node not in nodes]
        if not isinstance(system, SeesDown) or not others:
            return
        begun_s = self.activities[-1].begun_s
        for node in nodes:
            ahead_s = [offsets_s.get(viewer.name, 0.0) for viewer in others]
            seen_s = [
                await system.seen_down(viewer, node, begun_s + ahead)
                for viewer, ahead in zip(others, ahead_s, strict=True)
            ]
            times_s = [at_s - ahead for at_s, ahead in zip(seen_s, ahead_s, strict=True) if at_s is not None]
            if len(times_s) == len(others):
                self._add(Mark(name=SEEN_DOWN, t_s=max(times_s), node=node.name, by="log"))

    async def _ready(self, node: Node, ready: set[str]) -> None:
        # Others may join meanwhile.
        while not await self._cluster.system.ready(node, len(self._cluster.databases)):  # noqa: ASYNC110 - a server has no event
            await asyncio.sleep(POLL_S)
        ready.add(node.name)

    async def _unread(self, nodes: Sequence[Node]) -> None:
        """End instruments that read the servers of these nodes, of which nothing is expected until they recover."""
        for node in nodes:
            gone = await self._cluster.readings.processes.end(node.name, functools.partial(_reads, node))
            for instrument in gone:
                self.excused.setdefault(instrument, []).append(Span(time.time()))

    async def _read_again(self, nodes: Sequence[Node]) -> None:
        readings = self._cluster.readings
        for node in nodes:
            watched = await watched_nodes(self._cluster.system, [node])
            await readings.processes.begin([watched], functools.partial(_reads, node))
        for spans in self.excused.values():
            spans[-1] = Span(spans[-1].begun_s, min(spans[-1].ended_s, time.time()))
        readings.gone.difference_update(self.excused)

    def _mark(self, node: Node, name: str, t_s: float | None = None) -> None:
        """Add a mark: now, or at a time of the node's own clock."""
        offset_s = self._cluster.readings.offsets_s.get(node.name, 0.0)
        mark = Mark(name=name, t_s=time.time(), node=node.name)
        if t_s is not None:
            mark = Mark(name=name, t_s=t_s - offset_s, node=node.name, by="log")
        self._add(mark)

    def _add(self, mark: Mark) -> None:
        marks = sorted((*self.activities[-1].marks, mark), key=lambda mark: mark.t_s)
        self._update(marks=tuple(marks))

    def _update(self, **changes: object) -> None:
        self.activities[-1] = self.activities[-1].model_copy(update=changes)


def disrupts(study: Study) -> bool:
    """Whether some of a study's trials are disrupted: the others are their controls, and have the same measures."""
    return not set(names_of(study)["disruption"]) <= {NONE}


def reads_back(study: Study, cluster: Cluster) -> bool:
    """Whether a load on this cluster reads back what it has written."""
    return disrupts(study) and len(cluster.loaders) == 1 and isinstance(cluster.engine, ReadsBack)


def _reads(node: Node, probe: Probe) -> bool:
    """Whether a probe reads the server of a node, rather than the node."""
    return isinstance(probe, ReadsWay) or not node.cgroups
