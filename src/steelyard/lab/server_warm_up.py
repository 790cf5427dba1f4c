"""Server warm-up of one start: all of its workloads at high concurrency, then at the study's own load, again and again
until every node is warm (`judging.server_warm_up`), or until the deadline.

A larger cluster gives each node fewer operations, so after equally many trials its servers are colder: without this
phase the number of nodes is confounded with what their compilers have done (docs/decisions/0011-server-warm-up.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from steelyard import engine_order
from steelyard.engine.base import Selective
from steelyard.events.base import Watcher
from steelyard.events.shown import Ticked, Waiting
from steelyard.format import number
from steelyard.judging.dilation import effective_load
from steelyard.judging.server_warm_up import Round, Service, node_warmth, not_reached, service_of, workload_warmth
from steelyard.judging.settings_hash import canonical
from steelyard.judging.trial_responses import merged
from steelyard.lab.cluster import Cluster
from steelyard.lab.parts import LabParts
from steelyard.model.errors import EngineError, SystemFault
from steelyard.model.load import SERVER_WARM_UP, Load
from steelyard.model.plan import PlannedTrial
from steelyard.model.server_warm_up import BUSY_FACTOR, NodeWarmth, ServerWarmth, ServerWarmUp, WorkloadWarmth
from steelyard.model.study import Study
from steelyard.model.trial import Phase
from steelyard.node.base import Node
from steelyard.node.process_time import processes_time_s
from steelyard.node.tasks import together
from steelyard.system.base import CompilesCode, System
from steelyard.wire.order import Order
from steelyard.wire.record import Done, Interval, Record
from steelyard.workload.base import Workload

LEAST_S = 1
"""Seconds of one workload at one load in a round, at least. All are whole: some engines take no others."""
SLICE_GRACE_S = 60.0
"""Seconds by which a part of a round may take longer than asked."""
UNCHANGED_PERCENT = 0.5
"""A smaller change of a service time is none for people who watch."""


@dataclass(frozen=True)
class Part:
    """One workload of the start, with the load that its trials are measured at."""

    name: str
    workload: Workload
    load: Load


@dataclass
class Progress:
    """Rounds done so far."""

    begun_s: float
    rounds: list[Round] = field(default_factory=list)
    operations: int = 0
    nodes: dict[str, NodeWarmth] = field(default_factory=dict)
    workloads: dict[str, WorkloadWarmth] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


async def warm_up(
    study: Study,
    cluster: Cluster,
    trials: Sequence[PlannedTrial],
    parts: LabParts,
    watcher: Watcher,
    finishing: Callable[[], bool],
) -> ServerWarmth:
    """Warm the servers up for `trials`, and see to it that the first of them finds its data as if nothing had been.
    Once `finishing` is true, no further round is begun. Raises SystemFault if the cluster fails meanwhile, EngineError
    if the engine does."""
    settings = study.server_warm_up
    async with cluster.phases.bracket(
        Phase.SERVER_WARM_UP, settings.longest_s + study.limits.start_timeout_s, SystemFault,
        expected_s=settings.longest_s,
    ):  # fmt: skip
        warming = _Warming(settings, cluster, _parts_of(trials, parts), watcher)
        try:
            refusal = warming.refused()
            if refusal:
                return ServerWarmth(seconds=0.0, rounds=0, operations=0, reached=False, reasons=(refusal,))
            return await warming.run(finishing)
        except EngineError as error:
            if not await cluster.healthy():
                if (death := await cluster.death()) is not None:
                    raise death from error
                message = f"a node stopped answering during the server warm-up: {error.message}"
                raise SystemFault(message, error.hint, system=cluster.system.name) from error
            raise
        finally:
            cluster.state.warmed_up()


def _parts_of(trials: Sequence[PlannedTrial], parts: LabParts) -> tuple[Part, ...]:
    """The different workloads of a start, each with that load of its trials which has the fewest in flight: there an
    operation waits least for others, so that a service time says most about the server."""
    chosen: dict[str, PlannedTrial] = {}
    for trial in trials:
        key = canonical(trial.settings.part("workload"))
        before = chosen.get(key)
        if before is None or trial.settings.load.threads < before.settings.load.threads:
            chosen[key] = trial
    names = [trial.settings.workload.name for trial in chosen.values()]
    return tuple(
        Part(
            name=name if names.count(name) == 1 else f"{name} ({place})",
            workload=parts.workload(trial.settings),
            load=effective_load(trial.settings),
        )
        for place, (name, trial) in enumerate(zip(names, chosen.values(), strict=True), start=1)
    )


async def _server_time_s(system: System, node: Node) -> float:
    return await processes_time_s(node, await system.process_ids(node))


class _Warming:
    """The rounds of one start."""

    def __init__(self, settings: ServerWarmUp, cluster: Cluster, parts: Sequence[Part], watcher: Watcher) -> None:
        self.settings = settings
        self.cluster = cluster
        self.parts = parts
        self.watcher = watcher
        self.progress = Progress(begun_s=time.monotonic())
        self._own_s = math.ceil(settings.steady_s / len(parts))
        self._busy_s = math.ceil(BUSY_FACTOR * settings.steady_s / len(parts))
        self._keys: set[str] = set()

    def refused(self) -> str:
        """Reason why the engine cannot do this; empty if it can."""
        engine = self.cluster.engine
        if not isinstance(engine, Selective):
            return ""
        try:
            for part in self.parts:
                engine.check(self._order(part, self._closed(part)), len(self.cluster.loaders))
                engine.check(self._order(part, engine_order.briefly(part.load, self._own_s)), len(self.cluster.loaders))
        except EngineError as error:
            return f"the engine cannot warm the servers up: {error.message}"
        return ""

    async def run(self, finishing: Callable[[], bool]) -> ServerWarmth:
        """Rounds until every node is warm, or none more would end before the deadline."""
        progress, rest_s = self.progress, 0.0
        while True:
            began_s = self._elapsed_s()
            await self._round()
            self._judge()
            # All of a round but the seconds at high concurrency, which the last one has fewer of.
            rest_s = max(rest_s, self._elapsed_s() - began_s - len(self.parts) * self._busy_s)
            left_s = self.settings.deadline_s - self._elapsed_s() - rest_s
            if not progress.reasons or left_s < len(self.parts) * LEAST_S or finishing():
                break
            self._busy_s = min(self._busy_s, int(left_s / len(self.parts)))
        return ServerWarmth(
            seconds=self._elapsed_s(),
            rounds=len(progress.rounds),
            operations=progress.operations,
            reached=not progress.reasons,
            reasons=progress.reasons,
            nodes=progress.nodes,
            workloads=progress.workloads,
        )

    def _judge(self) -> None:
        progress = self.progress
        progress.nodes = {node.name: node_warmth(progress.rounds, node.name) for node in self.cluster.databases}
        warmths = {part.name: workload_warmth(progress.rounds, part.name, len(self.parts)) for part in self.parts}
        progress.workloads = {name: warmth for name, warmth in warmths.items() if warmth is not None}
        progress.reasons = tuple(not_reached(progress.nodes, warmths, self.settings))

    async def _round(self) -> None:
        for part in self.parts:
            await self._ensure(part)
            await self._drive(part, self._closed(part), "high concurrency")
        await self._put_back()
        compiled_s, cpu_s = await self._compiled_s(), await self._cpu_s()
        services: dict[str, Service] = {}
        operations, driven_s = 0, 0.0
        for part in self.parts:
            await self._ensure(part)
            own = engine_order.briefly(part.load, self._own_s)
            began_s = time.monotonic()
            intervals, answered = await self._drive(part, own, "the study's own load")
            driven_s += time.monotonic() - began_s
            service = service_of(merged(intervals, "service"))
            operations += answered
            if service is not None:
                services[part.name] = service
        cpu_after_s = await self._cpu_s()
        compiled_after_s = await self._compiled_s()
        self.progress.rounds.append(
            Round(
                seconds=driven_s,
                operations=operations,
                services=services,
                compiled_s={name: after_s - compiled_s[name] for name, after_s in compiled_after_s.items()},
                cpu_s={name: after_s - cpu_s[name] for name, after_s in cpu_after_s.items()},
            )
        )

    async def _put_back(self) -> None:
        """Data as before a trial. The first time, that is code which the servers have not run yet: classes are loaded,
        and what was compiled without them is compiled again. No trial should meet that."""
        state = self.cluster.state
        if state.takes_snapshots:
            state.warmed_up()
            await state.ensure(self.parts[0].workload)

    async def _ensure(self, part: Part) -> None:
        """Its tables, with its data in them. What other workloads have written meanwhile stays until the end, as long
        as they work on the same state."""
        state = self.cluster.state
        key = state.key(part.workload)
        several = len({state.key(one.workload) for one in self.parts}) > 1
        if state.current != key and (several or key not in self._keys):
            await state.ensure(part.workload)
        self._keys.add(key)

    async def _drive(self, part: Part, load: Load, how: str) -> tuple[list[Interval], int]:
        """Intervals of one part of a round, and how many operations were answered."""
        intervals: list[Interval] = []
        answered = 0

        def take(node: str, record: Record) -> None:
            nonlocal answered
            if isinstance(record, Interval):
                intervals.append(record)
                self.watcher.tell(Ticked(node, replace(record, phase=SERVER_WARM_UP)))
            elif isinstance(record, Done):
                answered += record.operations

        self.watcher.tell(Waiting("; ".join([f"{part.name}, {how}", *self._so_far()])))
        timeout_s = (load.duration_s or 0.0) + SLICE_GRACE_S
        await self.cluster.drive(self._order(part, load), take, timeout_s)
        if part.workload.writes:
            self.cluster.state.used(part.workload)
        self.progress.operations += answered
        return intervals, answered

    def _closed(self, part: Part) -> Load:
        busy = engine_order.closed_loop(part.load, self.settings.threads, self._busy_s)
        return busy.model_copy(update={"warm_up_s": 0.0})

    def _order(self, part: Part, load: Load) -> Order:
        """Each round draws new operations."""
        schema = part.workload.schema()
        endpoint = self.cluster.endpoint(schema)
        return engine_order.measure(load, endpoint, schema, part.workload, len(self.progress.rounds))

    async def _compiled_s(self) -> Mapping[str, float]:
        system = self.cluster.system
        return await system.compile_times_s(self.cluster.databases) if isinstance(system, CompilesCode) else {}

    async def _cpu_s(self) -> Mapping[str, float]:
        """CPU seconds of the nodes' servers so far."""
        system, nodes = self.cluster.system, self.cluster.databases
        times_s = await together(_server_time_s(system, node) for node in nodes)
        return {node.name: time_s for node, time_s in zip(nodes, times_s, strict=True)}

    def _elapsed_s(self) -> float:
        return time.monotonic() - self.progress.begun_s

    def _so_far(self) -> list[str]:
        """Findings of the last round: `compilers used 108% of a core on n1, 4% on n2`."""
        progress = self.progress
        compilers = [
            (name, warmth.compiler_fraction)
            for name, warmth in progress.nodes.items()
            if warmth.compiler_fraction is not None
        ]
        shares = [
            f"{fraction:.0%}{'' if place else ' of a core'} on {name}"
            for place, (name, fraction) in enumerate(compilers)
        ]
        changes = [
            f"service time of {name} {_change(change)} the round before"
            for name, warmth in progress.workloads.items()
            if (change := warmth.change_percent) is not None
        ]
        return [*([f"compilers used {', '.join(shares)}"] if shares else []), *changes]


def _change(percent: float) -> str:
    """`56% shorter than in`."""
    if abs(percent) < UNCHANGED_PERCENT:
        return "as in"
    return f"{number(abs(percent), digits=2)}% {'shorter' if percent < 0 else 'longer'} than in"
