"""Changes of size during a trial: asks its policy which size it desires while the load runs, and brings the cluster to
it, one node at a time."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from steelyard.events.base import Watcher
from steelyard.events.kept import ActivityBegan, ActivityEnded
from steelyard.events.shown import Sized, Waiting
from steelyard.judging.activity_phases import arrival, phase_in_progress
from steelyard.lab import clocks
from steelyard.lab.cluster import Cluster
from steelyard.lab.metric_seen import MetricSeen
from steelyard.lab.probe_processes import watched_nodes
from steelyard.model.activity import CLEANED, IN_SERVICE, LEFT, LENT, ROUTED, Activity, Mark
from steelyard.model.data_model import Schema
from steelyard.model.errors import SteelyardError, SystemFault
from steelyard.model.facts import system_facts_name
from steelyard.model.plan import PlannedTrial
from steelyard.model.policy import MOST_NODES
from steelyard.model.scaling import LATEST_S, Desired, Scaling, Supply
from steelyard.node.base import Node
from steelyard.node.tasks import alongside, to_the_end, together
from steelyard.policy.base import History, Policy, ask_times, bounded, bounds, limit_words
from steelyard.probe.base import Probe, ReadsWay
from steelyard.system.base import Elastic, Footprint
from steelyard.wire.record import Interval, Routed

SAY_EVERY_S = 1.0
LOOK_EVERY_S = 0.5

Kind = Literal["scale-out", "scale-in"]


class ScalingInProgress:
    """The changes of size of one trial, under a policy."""

    def __init__(
        self, cluster: Cluster, trial: PlannedTrial, schema: Schema, watcher: Watcher, policy: Policy | None,
        intervals: Mapping[str, Sequence[Interval]], threshold: float | None = None,
    ) -> None:  # fmt: skip
        """`policy`: None keeps the size; `intervals`: of the load nodes, as they come in; `threshold`: that which other
        trials gave the policy."""
        self._cluster = cluster
        self._policy = policy
        self._bounds = bounds(trial.settings.policy, trial.settings.site.nodes)
        self._seen = None if policy is None else MetricSeen(policy, cluster, intervals, trial.settings.load.measured)
        self._limit = limit_words(trial.settings.policy.settings, threshold)
        self._trial = trial.id
        self._schema = schema
        self._watcher = watcher
        self._measured = asyncio.Event()
        self._begun_s = 0.0
        self._supply: list[Supply] = []
        self._desired = [Desired(0.0, trial.settings.site.nodes, "")]
        self._copies = cluster.system.copies(MOST_NODES) if isinstance(cluster.system, Footprint) else 1
        self._asked = self._late = 0
        self._lacking = ""
        self._wanted = asyncio.Event()
        self.activities: list[Activity] = []
        """Changes of size so far, in order of time."""

    def measuring(self, begun_s: float) -> None:
        """The measured phase has begun, at this time."""
        self._begun_s = begun_s
        self._measured.set()

    def routed(self, record: Routed) -> None:
        """The load client has sent its first operation to a node that joined."""
        started = self._cluster.members.started
        contacts = self._cluster.system.endpoint(started, self._schema).contacts
        node = dict(zip(contacts, (node.name for node in started), strict=True)).get(record.contact)
        for place, activity in enumerate(self.activities):
            if activity.kind == "scale-out" and node in activity.nodes:
                mark = Mark(name=ROUTED, t_s=record.t_s, node=node or "", by="load")
                self.activities[place] = _with_mark(activity, mark)

    async def beside(self, driving: Awaitable[None]) -> None:
        """Drive the load and follow the policy meanwhile. What is not complete when the load ends is unfinished."""
        if self._policy is None:
            await driving
            return
        await alongside(driving, self._follow())

    @property
    def sealed(self) -> Scaling | None:
        """Points and answers of the policy; None without one."""
        if self._seen is None or not self._begun_s:
            return None
        return Scaling(
            begun_s=self._begun_s, copies=self._copies, points=tuple(self._seen.points), supply=tuple(self._supply),
            desired=tuple(self._desired), asked=self._asked, late=self._late, lacking=self._lacking,
        )  # fmt: skip

    async def _follow(self) -> None:
        await self._measured.wait()
        self._show_size()
        await together([self._ask(), self._bring_about()])

    async def _ask(self) -> None:
        """Ask the policy at its times, each once the periods before it are closed."""
        policy, seen = self._policy, self._seen
        assert policy is not None
        assert seen is not None
        for t_s in ask_times(policy):
            await asyncio.sleep(self._begun_s + t_s - time.time())
            whole = await seen.until(t_s, self._begun_s, self.activities)
            supply = self._supplied(t_s)
            if not self._supply or supply[1:] != self._supply[-1][1:]:
                self._supply.append(supply)
            self._asked += 1
            self._late += not whole or time.time() > self._begun_s + t_s + LATEST_S
            history = History(policy.period_s, seen.points, self._supply, self._desired)
            desired = bounded(_answer(policy, history, t_s), self._bounds, self._copies)
            last = self._desired[-1]
            if (desired.nodes, desired.prepared) != (last.nodes, last.prepared):
                self._desired.append(desired)
            if desired.nodes != last.nodes:
                self._wanted.set()
            self._show_size()

    def _show_size(self) -> None:
        """Show the actual and the desired size, and the metric."""
        points = self._seen.points if self._seen is not None else ()
        value = points[-1].value if points else None
        size, metric = len(self._cluster.members.in_service), "" if self._policy is None else self._policy.metric
        self._watcher.tell(Sized(size, self._desired[-1], metric, value, self._limit))

    def _supplied(self, t_s: float) -> Supply:
        """The nodes that can be counted on now, as the policy that is asked at `t_s` is shown them."""
        last = self.activities[-1] if self.activities else None
        pending = [] if last is None or last.ended_s is not None or last.kind == "scale-in" else last.nodes
        arriving = sum(arrival(last, node) is None for node in pending) if last is not None else 0
        ended_s = None if last is None or last.ended_s is None else last.ended_s - self._begun_s
        return Supply(t_s, len(self._cluster.members.staying), arriving, ended_s=ended_s)

    async def _bring_about(self) -> None:
        """Bring the cluster to the size that was desired last; after a failure, once another size is desired."""
        members = self._cluster.members
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            desired = self._desired[-1]
            change = desired.nodes - len(members.staying)
            if change > 0:
                failed = any(activity.outcome == "failed" for activity in self.activities)
                if len(members.spares) < change and not failed:
                    self._lacking = f"{desired.nodes} nodes were desired and {len(members.all)} lent: {desired.reason}"
                if spares := members.spares[:change]:
                    await self._change("scale-out", spares, desired)
            elif change < 0:
                await self._change("scale-in", members.staying[: change - 1 : -1], desired)

    async def _change(self, kind: Kind, nodes: Sequence[Node], desired: Desired) -> None:
        """Have the nodes join or leave, one after the other."""
        names = tuple(node.name for node in nodes)
        self.activities.append(Activity(kind=kind, nodes=names, cause=desired.reason, begun_s=time.time()))
        self._watcher.tell(ActivityBegan(trial=self._trial, kind=kind, nodes=names, cause=desired.reason))
        try:
            for node in nodes:
                await (self._join(node) if kind == "scale-out" else self._leave(node))
            # The last to join has only what it owns.
            earlier = [node for node in self._cluster.members.staying if node.name != nodes[-1].name]
            if kind == "scale-out" and await self._elastic.clean_up(earlier):
                self._mark(nodes[-1], CLEANED)
            self._update(outcome="done")
        except SystemFault as fault:
            self._update(outcome="failed", error=fault.in_a_line)
        finally:
            self._update(ended_s=time.time())
            ended = self.activities[-1]
            self._watcher.tell(
                ActivityEnded(trial=self._trial, kind=kind, nodes=names, outcome=ended.outcome, error=ended.error)
            )

    async def _join(self, node: Node) -> None:
        cluster, readings = self._cluster, self._cluster.readings
        if not node.commands:
            node = await cluster.launched(node.name, functools.partial(self._mark, node))
        before = cluster.members.in_service
        cluster.members.begin_join(node)
        cluster.facts[system_facts_name(node.name)] = {}
        self._mark(node, LENT)
        try:
            offsets_s = {name: reading.offset_s for name, reading in (await clocks.read([node])).items()}
            readings.offsets_s = {**readings.offsets_s, **offsets_s}
            received = await self._join_watched(node, before)
            self._arrived(node, IN_SERVICE, received)
            cluster.members.joined(node)
            self._show_size()
            # At once, as the next node waits for it.
            await together([self._look_at(node), self._watch(node, lambda probe: isinstance(probe, ReadsWay))])
        except BaseException as error:
            readings.expect_no_more(node.name)
            if isinstance(error, SystemFault):
                self._update(outcome="failed", error=error.in_a_line)
            if node not in cluster.members.in_service:
                # Its logs are collected with those of the others; its data are removed at the end of the start.
                await to_the_end(cluster.system.kill(node))
            raise

    async def _look_at(self, node: Node) -> None:
        """Note the facts of a node that has joined, and its settings that are not those asked for."""
        cluster = self._cluster

        async def facts() -> None:
            cluster.facts[system_facts_name(node.name)] = await cluster.system.facts(node)

        async def differing() -> None:
            if settings := await cluster.system.differing(node):
                cluster.differing[node.name] = settings

        await together([facts(), differing()])

    async def _leave(self, node: Node) -> None:
        cluster, readings = self._cluster, self._cluster.readings
        before = cluster.members.in_service
        cluster.members.begin_leave(node)
        readings.expect_no_more(node.name)
        leaving = self._elastic.leave(node, before, functools.partial(self._mark, node))
        self._arrived(node, LEFT, await self._saying(node, "leaving", leaving, asyncio.Event()))
        cluster.members.left(node)
        self._show_size()
        await readings.processes.end(node.name)

    async def _join_watched(self, node: Node, before: Sequence[Node]) -> int | None:
        """A join with the probes that need no way into the server: from before its start on, as its processor time is
        the node's from the first moment; where that is read by process, once there are any."""
        over = asyncio.Event()

        async def watch() -> None:
            while not (node.cgroups or over.is_set() or await self._cluster.system.process_ids(node)):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), LOOK_EVERY_S)
            await self._watch(node, lambda probe: not isinstance(probe, ReadsWay))

        async def join() -> int | None:
            joining = self._elastic.join(node, before, functools.partial(self._mark, node))
            return await self._saying(node, "joining", joining, over)

        if node.cgroups:
            await watch()
            return await join()
        received, _ = await together([join(), watch()])
        return received

    async def _watch(self, node: Node, wanted: Callable[[Probe], bool]) -> None:
        """Start the wanted probes of a node."""
        watched = await watched_nodes(self._cluster.system, [node])
        await self._cluster.readings.processes.begin([watched], wanted)

    async def _saying(self, node: Node, what: str, acting: Awaitable[int | None], over: asyncio.Event) -> int | None:
        """Await a join or leave, and say every second in which phase the node is; `over` is set at the end."""
        begun_s = time.monotonic()
        task = asyncio.ensure_future(acting)

        async def ended() -> None:
            await asyncio.wait([task])

        try:
            while not (await asyncio.wait([task], timeout=SAY_EVERY_S))[0]:
                phase = phase_in_progress(self.activities[-1], node.name)
                self._watcher.tell(Waiting(f"{node.name} {what} for {time.monotonic() - begun_s:.0f} s: {phase}"))
            return task.result()
        finally:
            over.set()
            task.cancel()
            await to_the_end(ended())

    @property
    def _elastic(self) -> Elastic:
        system = self._cluster.system
        if not isinstance(system, Elastic):
            raise SystemFault(f"system {system.name} cannot change its size while it runs", 'set policy.name = "none"')
        return system

    def _mark(self, node: Node, name: str, t_s: float | None = None) -> None:
        """Add a mark of a node to the activity in progress: now, or at a time of the node's own clock."""
        if t_s is None:
            mark = Mark(name=name, t_s=time.time(), node=node.name)
        else:
            offset_s = self._cluster.readings.offsets_s.get(node.name, 0.0)
            mark = Mark(name=name, t_s=t_s - offset_s, node=node.name, by="log")
        self.activities[-1] = _with_mark(self.activities[-1], mark)

    def _arrived(self, node: Node, name: str, count: int | None) -> None:
        """A node has joined or left, with the bytes that it streamed; marked here if the system did not."""
        if arrival(self.activities[-1], node.name) is None:
            self._mark(node, name)
        if count is not None:
            self._update(streamed_bytes={**self.activities[-1].streamed_bytes, node.name: count})

    def _update(self, **changes: object) -> None:
        self.activities[-1] = self.activities[-1].model_copy(update=changes)


def _answer(policy: Policy, history: History, t_s: float) -> Desired:
    """The answer of a policy, which may be anyone's code. Raises SteelyardError if it has none."""
    hint = "`steelyard replay` asks it again with stored trials"
    try:
        answer = policy.desired(history, t_s)
    except Exception as error:
        what = f"policy {policy.name} fails at {t_s:g} s: {type(error).__name__}: {error}"
        raise SteelyardError(what, hint) from error
    if not isinstance(answer, Desired) or not isinstance(answer.nodes, int) or not isinstance(answer.prepared, int):
        raise SteelyardError(f"policy {policy.name} says at {t_s:g} s: {answer!r}, which is no Desired of nodes", hint)
    return answer


def _with_mark(activity: Activity, mark: Mark) -> Activity:
    marks = sorted((*activity.marks, mark), key=lambda mark: mark.t_s)
    return activity.model_copy(update={"marks": tuple(marks)})
