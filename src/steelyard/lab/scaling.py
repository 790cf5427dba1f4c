"""Changes of size during a trial: carries out what the policy desires, one node at a time, while the load runs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from steelyard.events.base import Watcher
from steelyard.events.kept import ActivityBegan, ActivityEnded
from steelyard.events.shown import Waiting
from steelyard.lab import clocks
from steelyard.lab.cluster import Cluster
from steelyard.lab.probe_processes import watched_nodes
from steelyard.model.activity import CLEANED, IN_SERVICE, LEFT, LENT, ROUTED, Activity, Mark
from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.model.facts import system_facts_name
from steelyard.model.plan import PlannedTrial
from steelyard.model.policy import Desired
from steelyard.node.base import Node
from steelyard.node.tasks import to_the_end, together
from steelyard.probe.base import Probe, ReadsWay
from steelyard.system.base import Elastic, MarkIt
from steelyard.wire.record import Routed

SAY_EVERY_S = 1.0


class Scaling:
    """The changes of size of one trial, under a policy."""

    def __init__(self, cluster: Cluster, trial: PlannedTrial, schema: Schema, watcher: Watcher) -> None:
        self._cluster = cluster
        self._policy = trial.settings.policy
        self._trial = trial.id
        self._schema = schema
        self._watcher = watcher
        self._measured = asyncio.Event()
        self._begun_s = 0.0
        self._activities: list[Activity] = []
        self._routed: list[Mark] = []

    @property
    def activities(self) -> tuple[Activity, ...]:
        """The activities so far, each with the marks that the load client reported."""
        return tuple(_with(one, self._routed) for one in self._activities)

    def measuring(self, begun_s: float) -> None:
        """The measured phase has begun, at this time."""
        self._begun_s = begun_s
        self._measured.set()

    def routed(self, record: Routed) -> None:
        """The load client has sent its first operation to a node."""
        started = self._cluster.members.started
        contacts = self._cluster.system.endpoint(started, self._schema).contacts
        node = dict(zip(contacts, (node.name for node in started), strict=True)).get(record.contact)
        if node is not None and all(mark.node != node for mark in self._routed):
            self._routed.append(Mark(name=ROUTED, t_s=record.t_s, node=node, by="load"))

    async def beside(self, driving: Awaitable[None]) -> None:
        """Drive the load and carry out the policy meanwhile. What is not complete when the load ends is unfinished."""
        if not self._policy.changes:
            await driving
            return
        following = asyncio.ensure_future(self._follow())

        async def drive() -> None:
            try:
                await driving
            finally:
                following.cancel()

        async def follow() -> None:
            # Cancelled by the end of the load, which is no error.
            with contextlib.suppress(asyncio.CancelledError):
                await following

        try:
            await together([drive(), follow()])
        finally:
            following.cancel()

    async def _follow(self) -> None:
        await self._measured.wait()
        for desired in self._policy.desired():
            await asyncio.sleep(self._begun_s + desired.at_s - time.time())
            change = desired.nodes - len(self._cluster.members.steady)
            if change > 0:
                await self._carry_out("scale-out", change, desired, self._join)
            elif change < 0:
                await self._carry_out("scale-in", -change, desired, self._leave)

    async def _carry_out(self, kind: str, count: int, desired: Desired, one: Callable[[int], Awaitable[None]]) -> None:
        members = self._cluster.members
        nodes = members.spares[:count] if kind == "scale-out" else tuple(reversed(members.steady))[:count]
        names = tuple(node.name for node in nodes)
        begun_s = time.time()
        place = len(self._activities)
        self._activities.append(Activity(kind=kind, nodes=names, cause=desired.reason, begun_s=begun_s))
        self._watcher.tell(ActivityBegan(trial=self._trial, kind=kind, nodes=names, cause=desired.reason))
        try:
            for _ in nodes:
                await one(place)
            if kind == "scale-out":
                await self._elastic.clean_up(members.in_service[: -len(nodes)])
                self._mark(place, CLEANED, "")
            self._update(place, outcome="done")
        except SystemFault as fault:
            self._update(place, outcome="failed", error=fault.in_a_line)
        finally:
            self._update(place, ended_s=time.time())
            ended = self._activities[place]
            self._watcher.tell(
                ActivityEnded(trial=self._trial, kind=kind, nodes=names, outcome=ended.outcome, error=ended.error)
            )

    async def _join(self, place: int) -> None:
        cluster = self._cluster
        before = cluster.members.in_service
        node = cluster.members.begin_join()
        mark = self._marker(place, node)
        mark(LENT, None)
        try:
            cluster.readings.offsets_s = {
                **cluster.readings.offsets_s,
                **{name: reading.offset_s for name, reading in (await clocks.read([node])).items()},
            }
            await self._watch(node, lambda probe: not isinstance(probe, ReadsWay))
            received = await self._saying(node, "joining", self._elastic.join(node, before, mark))
            self._received(place, node, received)
            cluster.members.joined(node)
            await self._watch(node, lambda probe: isinstance(probe, ReadsWay))
            cluster.facts[system_facts_name(node.name)] = await cluster.system.facts(node)
            if differing := await cluster.system.differing(node):
                cluster.differing[node.name] = differing
        except BaseException:
            if node not in cluster.members.in_service:
                await to_the_end(self._abandon(node))
            raise

    async def _abandon(self, node: Node) -> None:
        """End a server that did not come into service, and remove its data; the cluster goes on without it."""
        cluster = self._cluster
        if cluster.readings.processes is not None:
            cluster.readings.processes.let_go(node.name)
        await cluster.system.kill(node)
        await cluster.system.wipe(node)

    async def _leave(self, place: int) -> None:
        cluster = self._cluster
        before = cluster.members.in_service
        node = cluster.members.begin_leave()
        if cluster.readings.processes is not None:
            cluster.readings.processes.let_go(node.name)
        mark = self._marker(place, node)
        sent = await self._saying(node, "leaving", self._elastic.leave(node, before, mark))
        self._received(place, node, sent)
        cluster.members.left(node)
        if all(one.name != LEFT or one.node != node.name for one in self._activities[place].marks):
            mark(LEFT, None)
        if cluster.readings.processes is not None:
            await cluster.readings.processes.end(node.name)

    async def _watch(self, node: Node, wanted: Callable[[Probe], bool]) -> None:
        """Start the wanted probes of a node."""
        cluster = self._cluster
        if cluster.readings.processes is not None:
            watched = await watched_nodes(cluster.system, [node])
            await cluster.readings.processes.begin([watched], wanted)

    async def _saying(self, node: Node, what: str, acting: Awaitable[int | None]) -> int | None:
        """Await a join or leave, and say every second what the node does."""
        begun_s = time.monotonic()
        task = asyncio.ensure_future(acting)
        try:
            while not (await asyncio.wait([task], timeout=SAY_EVERY_S))[0]:
                doing = await self._cluster.system.waiting_for(node)
                self._watcher.tell(Waiting(f"{node.name} {what}: {doing}, {time.monotonic() - begun_s:.0f} s"))
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait([task])

    @property
    def _elastic(self) -> Elastic:
        system = self._cluster.system
        if not isinstance(system, Elastic):
            raise SystemFault(f"system {system.name} cannot change its size while it runs", 'set policy.name = "none"')
        return system

    def _marker(self, place: int, node: Node) -> MarkIt:
        """A function that adds marks of a node, whose times are by its own clock, to an activity."""

        def mark(name: str, t_s: float | None) -> None:
            if t_s is None:
                self._mark(place, name, node.name)
            else:
                offset_s = self._cluster.readings.offsets_s.get(node.name, 0.0)
                self._add(place, Mark(name=name, t_s=t_s - offset_s, node=node.name, by="log"))

        return mark

    def _mark(self, place: int, name: str, node: str) -> None:
        self._add(place, Mark(name=name, t_s=time.time(), node=node))

    def _add(self, place: int, mark: Mark) -> None:
        marks = sorted((*self._activities[place].marks, mark), key=lambda one: one.t_s)
        self._update(place, marks=tuple(marks))

    def _received(self, place: int, node: Node, count: int | None) -> None:
        if count is not None:
            known = self._activities[place].streamed_bytes
            self._update(place, streamed_bytes={**known, node.name: count})

    def _update(self, place: int, **changes: object) -> None:
        self._activities[place] = self._activities[place].model_copy(update=changes)


def _with(activity: Activity, routed: list[Mark]) -> Activity:
    """The activity with the marks of the load client that are of nodes which came into service in it."""
    joined = {mark.node for mark in activity.marks if mark.name == IN_SERVICE}
    marks = sorted((*activity.marks, *(mark for mark in routed if mark.node in joined)), key=lambda one: one.t_s)
    return activity.model_copy(update={"marks": tuple(marks)})
