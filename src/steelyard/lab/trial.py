"""One trial: settle - idle - warm-up - MEASURE - drain - collect - seal.

A fault of the system under test is a result and is sealed as such. A fault of the laboratory voids the attempt: it
is sealed too, so that nothing is hidden, and the conductor repeats it.
"""

from __future__ import annotations

import asyncio
import functools
import os
import platform
import resource
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from steelyard import __version__, engine_order
from steelyard.events.base import Watcher
from steelyard.events.shown import PhaseEntered, Ticked, Trouble, Waiting
from steelyard.file_errors import of_the_disk
from steelyard.judging import verdict as verdict_of
from steelyard.judging.background_load import Machines, OwnTime
from steelyard.judging.covariates import covariates_of
from steelyard.judging.dilation import effective_load
from steelyard.judging.disruptions import disruption_measures, read_back_measures
from steelyard.judging.measures import measures_of, readings_of_samples
from steelyard.judging.scaling_measures import scaling_measures
from steelyard.judging.trial_responses import responses
from steelyard.judging.verdict import Evidence, judge, link_program
from steelyard.lab import capacity, clocks, node_logs
from steelyard.lab.bracket import PhaseLog
from steelyard.lab.cluster import Cluster
from steelyard.lab.course import Course
from steelyard.lab.disrupting import DisruptionInProgress, NotHeld, disrupts, reads_back
from steelyard.lab.parts import LabParts
from steelyard.lab.scaling import ScalingInProgress
from steelyard.lab.search import SearchInProgress
from steelyard.model import power
from steelyard.model.capacity import capacity_key
from steelyard.model.derived import Derived
from steelyard.model.errors import ClockError, NodeError, ProbeError, SteelyardError, SystemFault
from steelyard.model.load import MEASURE, READ_AGAIN, READ_BACK, WARM_UP, Load
from steelyard.model.plan import PlannedTrial
from steelyard.model.policy import KEEPING
from steelyard.model.response import NS_PER_S
from steelyard.model.sample import Sample
from steelyard.model.study import Study
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.node import reading_commands
from steelyard.node.machine_facts import machine_id
from steelyard.node.processor import busiest, census, process_time_s
from steelyard.node.tasks import in_a_thread
from steelyard.probe.base import READ_EVERY_S
from steelyard.progress.reason_words import short
from steelyard.site.base import helpers_time_s
from steelyard.store.plain_file import sha256_of
from steelyard.store.write import TrialDraft
from steelyard.study.fields import names_of
from steelyard.wire.order import Order
from steelyard.wire.record import Doing, Done, Hello, Interval, Record, Routed, SampleRecord
from steelyard.workload.base import Workload

DRAIN_TIMEOUT_S = 60.0
COLLECT_TIMEOUT_S = 60.0
ENGINE_GRACE_S = 60.0
"""The engine's own limit lies behind the phase's, so that a slow system is not taken for a broken engine."""


class TrialRunner:
    """Runs trials on one start of a cluster."""

    def __init__(self, study: Study, cluster: Cluster, parts: LabParts, watcher: Watcher) -> None:
        self.study = study
        self.cluster = cluster
        self.parts = parts
        self.watcher = watcher

    async def run(
        self, planned: PlannedTrial, attempt: int, draft: TrialDraft, threshold: Derived | None = None
    ) -> TrialRecord:
        """Do one attempt and seal it; `threshold`: that of its policy, if other trials gave it. Cancellation leaves
        nothing in the store. Raises StoreError if it cannot be sealed."""
        cluster = self.cluster
        cluster.trials_served += 1
        phases = PhaseLog(self.watcher, time.time)
        record = self._intended(planned, attempt)
        course = Course(threshold=threshold)
        offsets: dict[str, dict[Path, int]] = {}
        try:
            draft.intend(record)
            if cluster.trials_served > 1:
                offsets = await node_logs.sizes(cluster.system, cluster.databases)
            verdict = await self._attempt(planned, phases, course)
            await self._collect(draft, course, phases, offsets)
            return self._seal(draft, record, phases, course, verdict)
        except BaseException:
            draft.discard()
            raise

    def _intended(self, planned: PlannedTrial, attempt: int) -> TrialRecord:
        cluster = self.cluster
        return TrialRecord(
            **planned.model_dump(exclude={"start"}),
            attempt=attempt,
            study=self.study.study.name,
            planned_start=planned.start,
            start=cluster.start,
            order_in_start=cluster.trials_served,
            machine_id=machine_id(),
            begun_s=time.time(),
            shares=tuple(sorted(cluster.shares)),
            limits=self.study.limits,
            server_warm_up=cluster.warmth,
        )

    async def _attempt(self, planned: PlannedTrial, phases: PhaseLog, course: Course) -> Verdict:
        """Settle, drive and judge; an error while driving becomes a verdict that says who is to blame. An error before
        is not this trial's: it is raised, and the start is over."""
        load = effective_load(planned.settings)
        workload = self.parts.workload(planned.settings)
        course.phases = load.measured
        if load.wants_capacity:
            failed = await self._blamed_if_failed(self._capacity(planned, load, workload, phases, course), workload)
            if failed is not None:
                return failed
        await self._settle(workload, phases, course)
        await self._idle(phases, course)
        failed = await self._blamed_if_failed(self._measure(planned, load, workload, phases, course), workload)
        if failed is not None:
            return await self._blamed_on_the_link(failed, course)
        cluster = self.cluster
        return judge(
            Evidence(
                load=load,
                intervals=course.measured(),
                dones=tuple(course.dones.values()),
                optimised=course.hello is not None and course.hello.optimised,
                samples=course.samples(),
                heard={who: [one.t_s for one in found] for who, found in course.probed.items()},
                machines=self._machines(),
                own=course.own,
                clocks=course.clocks,
                clock_step=course.clock_step,
                moved_frames=course.moved_frames,
                calibration=cluster.known.calibration,
                no_calibration=cluster.known.why,
                differing=self.cluster.differing,
                still_busy=course.still_busy,
                search=course.searched,
                activities=course.activities,
                scaling=course.scaled,
                disruptions=course.disruptions,
                excused={} if course.disrupting is None else course.disrupting.excused,
            ),
            self.study.limits,
        )

    async def _settle(self, workload: Workload, phases: PhaseLog, course: Course) -> None:
        async with phases.bracket(Phase.SETTLE, self.study.limits.trial_timeout_s, SystemFault):
            course.data = await self.cluster.state.ensure(workload)
            course.still_busy = await self.cluster.state.settle()

    async def _idle(self, phases: PhaseLog, course: Course) -> None:
        """Leave the cluster idle for as long as the study asks, and keep the readings of its power."""
        seconds, readings = self.study.measure_idle_s, self.cluster.readings
        if not seconds:
            return
        begun_s = time.time()
        async with phases.bracket(Phase.IDLE, seconds + DRAIN_TIMEOUT_S, ProbeError, expected_s=seconds):
            await asyncio.sleep(seconds)
        await readings.reach(time.time())
        for who, samples in readings.between(begun_s, time.time()).items():
            course.idle[who] = [one for one in samples if one.metric.endswith(power.ENDING)]

    async def _blamed_if_failed(self, driving: Awaitable[None], workload: Workload) -> Verdict | None:
        """Drive on the tables; an error becomes a verdict that says who is to blame."""
        try:
            await driving
        except SystemFault as fault:
            return self._link_fault() or _blamed(ReasonKind.SYSTEM_FAULT, fault)
        except ClockError as error:
            return _blamed(ReasonKind.CLOCK, error)
        except NotHeld as error:
            return _blamed(ReasonKind.LAB_FAULT, error)
        except (SteelyardError, OSError, LookupError, ValueError) as error:
            if of_the_disk(error):
                raise
            if broken := self._link_fault():
                return broken
            self.watcher.tell(Waiting("waiting for the cluster to answer: is it still well?"))
            verdict = await self._blamed_by_the_cluster(error)
            # Asked again: the interfaces of a link program are gone before its end can be seen.
            return self._link_fault() or verdict
        finally:
            self.cluster.state.used(workload)
        return self._link_fault()

    def _link_fault(self) -> Verdict | None:
        """The verdict on a trial whose nodes were no longer joined by the link that was asked for; None if they are."""
        failure = self.cluster.link_failure
        reason = Reason(kind=ReasonKind.LAB_FAULT, detail=failure or "")
        return Verdict(outcome="invalid", reasons=(reason,)) if failure else None

    async def _blamed_on_the_link(self, failed: Verdict, course: Course) -> Verdict:
        """The verdict on a failed trial, or that on its link program, if that runs, fell behind, and no node has died:
        nodes that do not reach each other may be well."""
        if course.load_begun_s is None or self.cluster.link_failure:
            return failed
        if course.moved_frames is None:
            course.moved_frames = await self.cluster.moved_frames(course.load_begun_s, time.time())
        behind = link_program(course.moved_frames, self.study.limits)
        try:
            if not behind or await self.cluster.death() is not None:
                return failed
        except NodeError:
            pass
        then = [Reason(kind=ReasonKind.LAB_FAULT, detail=reason.detail) for reason in failed.reasons]
        return Verdict(outcome="invalid", reasons=(*behind, *then))

    async def _blamed_by_the_cluster(self, error: Exception) -> Verdict:
        """The verdict on an error while driving: the laboratory's fault if the cluster is well, or if a node of it
        cannot be reached, so that it is not known."""
        try:
            if await self.cluster.healthy():
                return _blamed(ReasonKind.LAB_FAULT, error)
            return _blamed(ReasonKind.SYSTEM_FAULT, await self.cluster.death() or error)
        except NodeError as unreachable:
            return _blamed(ReasonKind.LAB_FAULT, unreachable)

    async def _capacity(
        self, planned: PlannedTrial, load: Load, workload: Workload, phases: PhaseLog, course: Course
    ) -> None:
        """Capacity of the cluster, measured once for all trials of the start that need the same number: before the
        first of them, on the data state that it starts from."""
        cluster, key = self.cluster, capacity_key(planned.settings)
        if key not in cluster.capacities:
            await self._settle(workload, phases, course)
            schema = workload.schema()
            endpoint = cluster.endpoint(schema)
            driving = engine_order.capacity(load, endpoint, schema, workload, planned.seed)
            intervals: list[Interval] = []
            dones: list[Done] = []

            def take(node: str, record: Record) -> None:
                if isinstance(record, Done) and record.phase == MEASURE:
                    dones.append(record)
                elif isinstance(record, Interval):
                    if record.phase == MEASURE:
                        intervals.append(record)
                    course.intervals.setdefault(node, []).append(capacity.renamed(record))
                    self.watcher.tell(Ticked(node, record))

            limit_s, measured_s = self.study.limits.trial_timeout_s, time.time()
            async with phases.bracket(Phase.CAPACITY, limit_s, SystemFault):
                self.watcher.tell(Waiting(f"capacity: {load.capacity_threads} in flight for {load.capacity_s:g} s"))
                await cluster.drive(driving, take, limit_s + ENGINE_GRACE_S)
            limits = self.study.limits
            measured = capacity.capacity_of(load, intervals, dones, planned.id, measured_s, limits)
            cluster.capacities[key] = measured
        course.capacity = cluster.capacities[key]

    async def _measure(
        self, planned: PlannedTrial, load: Load, workload: Workload, phases: PhaseLog, course: Course
    ) -> None:
        cluster = self.cluster
        schema = workload.schema()
        endpoint = cluster.endpoint(schema)
        can_per_s = None if course.capacity is None else course.capacity.rate_per_s
        course.offered = engine_order.resolved(load, can_per_s)
        driving = engine_order.measure(
            course.offered, endpoint, schema, workload, planned.seed, self.parts.plugins,
            discover=planned.settings.policy.changes, read_back=reads_back(self.study, cluster),
        )  # fmt: skip
        threshold = None if course.threshold is None else course.threshold.value
        policy = self.parts.policy(planned.settings, threshold) if planned.settings.policy.changes else None
        scaling = course.scaling = ScalingInProgress(
            cluster, planned, schema, self.watcher, policy, course.intervals, threshold
        )
        disruption = self.parts.disruption(planned.settings) if planned.settings.disruption.disrupts else None
        disrupting = course.disrupting = DisruptionInProgress(cluster, planned, self.watcher, disruption)
        for name in [one.trace for one in load.offered if one.trace is not None]:
            path = self.parts.plugins.file(name, "trace", "load.trace")
            course.traces[name] = await in_a_thread(functools.partial(sha256_of, path))
        limit_s = self.study.limits.trial_timeout_s
        clocks_before = await cluster.read_clocks()
        begun = clocks.now(self.parts.wall_clock)
        begun_s = course.load_begun_s = begun.wall_s
        cluster.readings.forget_before(begun_s - READ_EVERY_S)

        def take(node: str, record: Record) -> None:
            first = self._take(course, node, record)
            if first is not None:
                scaling.measuring(first.t_s)
                disrupting.measuring(first.t_s)
                if load.warm_up_s:
                    self.watcher.tell(PhaseEntered(Phase.MEASURE, limit_s, load.duration_s))
                    phases.passed(Phase.WARM_UP, begun_s, first.t_s)

        async with phases.bracket(Phase.MEASURE, limit_s, SystemFault, expected_s=load.duration_s):
            if load.warm_up_s:
                self.watcher.tell(PhaseEntered(Phase.WARM_UP, load.warm_up_s, load.warm_up_s))
            own_s, before = self._own_time_s(), census()
            read_s = reading_commands.times_s(self.parts.state_folder, before)
            helped_s = helpers_time_s(cluster.sites, before)
            if load.schedule == "search":
                await self._search(course, load, driving, take)
            else:
                await disrupting.beside(scaling.beside(cluster.drive(driving, take, limit_s + ENGINE_GRACE_S)))
        ended = clocks.now(self.parts.wall_clock)
        ended_s, course.clock_step = ended.wall_s, begun.until(ended)
        phases.times += course.read_back_phase(ended_s)
        after = census()
        readers = reading_commands.process_ids(self.parts.state_folder, after)
        course.own = OwnTime(
            elapsed_s=course.clock_step.seconds,
            conductor_s=self._own_time_s() - own_s,
            load_s={node: done.cpu_ns / NS_PER_S for node, done in course.dones.items()},
            reading_s=reading_commands.taken_s(read_s, reading_commands.times_s(self.parts.state_folder, after)),
            others=busiest(before, after, course.clock_step.seconds, lambda pid: pid in readers or self._ours(pid)),
            helpers_s={"": helpers_time_s(cluster.sites, after) - helped_s},
        )
        async with phases.bracket(Phase.DRAIN, DRAIN_TIMEOUT_S, ProbeError):
            await cluster.readings.reach(ended_s)
            course.probed = cluster.readings.between(begun_s, ended_s)
            course.moved_frames = await cluster.moved_frames(begun_s, ended_s)
            course.clocks = clocks.offsets(clocks_before, await cluster.read_clocks())
            self.watcher.tell(Waiting("waiting for every node to answer once more"))
            if not await cluster.healthy():
                raise await cluster.death() or SystemFault(
                    f"{await cluster.not_ready()} did not answer after the load", system=cluster.system.name
                )

    async def _search(self, course: Course, load: Load, driving: Order, take: Callable[[str, Record], None]) -> None:
        """Drive the windows of a search; their names are the trial's measured phases afterwards."""
        limits = self.study.limits

        def of_generator(intervals: Sequence[Interval], dones: Sequence[Done]) -> str:
            evidence = Evidence(
                load=load, intervals=intervals, dones=dones, optimised=True, samples={},
                calibration=self.cluster.known.calibration,
            )  # fmt: skip
            return "; ".join(short(reason) for reason in verdict_of.of_generator(evidence, limits))

        searching = SearchInProgress(
            load, len(self.cluster.loaders), of_generator, lambda text: self.watcher.tell(Waiting(text))
        )
        course.search = searching

        def heard(node: str, record: Record) -> None:
            take(node, record)
            searching.take(record)

        limit_s = limits.trial_timeout_s + ENGINE_GRACE_S
        try:
            await self.cluster.drive_by_words(driving, heard, searching.phases(), limit_s)
        finally:
            course.phases = tuple(window.name for window in searching.windows)

    def _take(self, course: Course, node: str, record: Record) -> Interval | None:
        """Take in a record; gives it back if it is the first interval of the measured phase."""
        match record:
            case Hello():
                course.hello = record
            case Interval():
                first = record.phase in course.phases and not course.measuring
                course.intervals.setdefault(node, []).append(record)
                self.watcher.tell(Ticked(node, record))
                return record if first else None
            case Routed():
                if course.scaling is not None:
                    course.scaling.routed(record)
            case Doing():
                self.watcher.tell(Waiting(record.what))
            case SampleRecord():
                course.of_engine += [Sample(record.t_s, node, *one) for one in record.values.items()]
            case Done(phase=phase) if phase == WARM_UP:
                self._say_if_too_few(record, course.offered)
            case Done(phase=phase) if phase in course.phases:
                course.ends.append((node, record))
            case Done(phase=phase) if phase in (READ_BACK, READ_AGAIN):
                course.read_back.append((node, record))
        return None

    def _say_if_too_few(self, warm_up: Done, load: Load | None) -> None:
        """Warn if too few are in flight, by Little's law and the warm-up's service time on one load node."""
        carries_per_s, peak_per_s = warm_up.carries_per_s, load and load.offered[0].peak_per_s()
        if load is None or not carries_per_s or not peak_per_s:
            return
        carries_per_s *= len(self.cluster.loaders)
        if carries_per_s < peak_per_s:
            threads = load.threads_of(load.offered[0])
            message = (
                f"{threads:,} in flight carry about {carries_per_s:,.0f} op/s at the warm-up's service time; "
                f"{peak_per_s:,.0f} op/s are offered"
            )
            self.watcher.tell(Trouble(message, "the trial continues: what finds no place is sent late"))

    def _own_time_s(self) -> float:
        """Processor seconds of this process and of its probes so far."""
        mine = resource.getrusage(resource.RUSAGE_SELF)
        probes_s = sum(process_time_s(pid) for pid in self.cluster.readings.process_ids)
        return mine.ru_utime + mine.ru_stime + probes_s + self.cluster.readings.spent_s

    def _ours(self, pid: int) -> bool:
        """Whether a process of this machine belongs to this start, or is the conductor."""
        return pid == os.getpid() or self.cluster.owns(pid)

    def _machines(self) -> Machines:
        """Spread of the nodes over machines, by the kernels that they name."""
        facts = self.cluster.facts
        cores = {node.name: facts.get(node.name, {}).get("cores", "") for node in self.cluster.reachable}
        known = {name: int(text) for name, text in cores.items() if text.isdigit()}
        kernels = {node.name: node.kernel for node in (*self.cluster.members.started, *self.cluster.loaders)}
        return Machines(cores=known, kernels=kernels)

    async def _collect(
        self, draft: TrialDraft, course: Course, phases: PhaseLog, offsets: Mapping[str, Mapping[Path, int]]
    ) -> None:
        """Write down what was seen. Logs are read off the event loop, within COLLECT_TIMEOUT_S: raises NodeError."""
        cluster = self.cluster
        async with phases.bracket(Phase.COLLECT, COLLECT_TIMEOUT_S, NodeError):
            started = cluster.members.started
            by_node = await node_logs.sizes(cluster.system, started)
            logs = [
                (node.name, path.name, await node_logs.since(node, path, offsets.get(node.name, {}).get(path, 0)))
                for node in started
                for path in by_node[node.name]
            ]
            logs += course.wrong_rows()
            unused = {node.name for node in cluster.members.spares}
            for name, facts in self.cluster.facts.items():
                if name not in unused:
                    draft.facts(name, facts)
            for node_name, records in course.intervals.items():
                draft.intervals(node_name, records)
            for node_name, samples in course.samples(idle=True).items():
                draft.samples(node_name, samples)
            for node_name, log_name, content in logs:
                if content:
                    draft.log(node_name, log_name, content)
            draft.links(self.cluster.links)

    def _seal(
        self, draft: TrialDraft, record: TrialRecord, phases: PhaseLog, course: Course, verdict: Verdict
    ) -> TrialRecord:
        started = self.cluster.phases.times if self.cluster.trials_served == 1 else []
        sealed = record.model_copy(
            update={
                "ended_s": time.time(),
                "phases": (*started, *phases.times),
                "verdict": verdict,
                "data": course.data,
                "responses": responses(course.measured(), tuple(course.dones.values()), course.capacity_per_s),
                "phase_responses": course.by_phase(),
                "covariates": covariates_of(self.cluster.facts, self.cluster.links),
                "clocks": course.clocks,
                "clock_step": course.clock_step,
                "moved_frames": course.moved_frames,
                "capacity": course.capacity,
                "activities": course.activities,
                "disruptions": course.disruptions,
                "derived": course.threshold,
                "scaling": course.scaled,
                "search": None if course.search is None else course.search.search,
                "offered_rate_per_s": course.offered and engine_order.offered_rate_per_s(course.offered),
                "versions": self._versions(course),
            }
        )
        measures = measures_of(sealed, readings_of_samples(course.samples(idle=True)), self.cluster.facts)
        if not set(names_of(self.study)["policy"]) <= set(KEEPING):
            measures |= scaling_measures(sealed, course.measured())
        if disrupts(self.study):
            measures |= disruption_measures(sealed, course.measured()) | read_back_measures(course.reading_back())
        return draft.seal(sealed.model_copy(update={"measures": measures}))

    def _versions(self, course: Course) -> dict[str, str]:
        return {
            "steelyard": __version__,
            "agent": "" if course.hello is None else course.hello.agent,
            self.cluster.system.name: self.cluster.system.version,
            "python": platform.python_version(),
            "kernel": platform.release(),
            **{f"trace {name}": digest for name, digest in course.traces.items()},
        }


def _blamed(kind: ReasonKind, error: Exception) -> Verdict:
    if isinstance(error, SteelyardError):
        detail = f"{error.message} ({error.hint})" if error.hint else error.message
    else:
        detail = f"{type(error).__name__}: {error}"
    return Verdict(outcome="invalid", reasons=(Reason(kind=kind, detail=detail),))
