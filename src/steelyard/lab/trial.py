"""One trial: settle - warm-up - MEASURE - drain - collect - seal.

A fault of the system under test is a result and is sealed as such. A fault of the laboratory voids the attempt: it
is sealed too,
so that nothing is hidden, and the conductor repeats it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard import __version__
from steelyard.lab import order
from steelyard.lab.bracket import PhaseLog
from steelyard.lab.cluster import Cluster
from steelyard.lab.evidence import since, size
from steelyard.lab.instruments import INTERVAL_S as PROBE_INTERVAL_S
from steelyard.lab.parts import Parts
from steelyard.lab.progress import PhaseEntered, Ticked, Waiting, Watcher
from steelyard.lab.responses import responses
from steelyard.lab.verdict import Evidence, judge
from steelyard.model.errors import ProbeError, SteelyardError, SystemFault
from steelyard.model.plan import PlannedTrial
from steelyard.model.sample import Sample
from steelyard.model.study import Load, Study
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.verdict import Reason, ReasonKind, Verdict
from steelyard.store.write import TrialDraft
from steelyard.workload.base import Workload

DRAIN_TIMEOUT_S = 60.0
ENGINE_GRACE_S = 60.0
"""The engine's own limit lies behind the phase's, so that a slow system is not taken for a broken engine."""


@dataclass
class Course:
    """What has come in of a trial under way."""

    intervals: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    dones: list[Mapping[str, Any]] = field(default_factory=list)
    hello: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    still_busy: Mapping[str, float] = field(default_factory=dict)
    data: str = ""

    def measured(self) -> list[Mapping[str, Any]]:
        """Intervals of the measured phase, of all load nodes."""
        return [record for node in self.intervals.values() for record in node if record["phase"] == "measure"]


class TrialRunner:
    """Carries out trials on one start of a cluster."""

    def __init__(self, study: Study, cluster: Cluster, parts: Parts, watcher: Watcher) -> None:
        self.study = study
        self.cluster = cluster
        self.parts = parts
        self.watcher = watcher

    async def run(self, planned: PlannedTrial, attempt: int, draft: TrialDraft) -> TrialRecord:
        """Do one attempt and seal it. Cancellation leaves nothing in the store. Raises StoreError if it cannot be
        sealed."""
        cluster = self.cluster
        cluster.trials_served += 1
        phases = PhaseLog(self.watcher, time.time)
        record = self._intended(planned, attempt)
        course = Course()
        offsets = {path: size(path) for node in cluster.databases for path in cluster.system.logs(node)}
        try:
            draft.intend(record)
            verdict = await self._attempt(planned, phases, course)
            self._collect(draft, course, offsets if cluster.trials_served > 1 else {})
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
            begun_s=time.time(),
            shares=tuple(sorted(cluster.site.shares)),
            limits=self.study.limits,
        )

    async def _attempt(self, planned: PlannedTrial, phases: PhaseLog, course: Course) -> Verdict:
        """Settle, drive and judge; an error while driving becomes a verdict that says who is to blame. An error
        before is
        not this trial's: it is raised, and the start is over."""
        load = Load.model_validate(planned.settings["load"])
        workload = self.parts.workload(planned.settings)
        async with phases.bracket(Phase.SETTLE, self.study.limits.trial_timeout_s, SystemFault):
            course.data = await self.cluster.state.ensure(workload)
            course.still_busy = await self.cluster.state.settle()
        try:
            await self._measure(planned, load, workload, phases, course)
        except SystemFault as fault:
            return _blamed(ReasonKind.SYSTEM_FAULT, fault)
        except (SteelyardError, OSError, LookupError, ValueError) as error:
            self.watcher.tell(Waiting("whether the cluster is still well"))
            well = await self.cluster.healthy()
            return _blamed(ReasonKind.LAB_FAULT if well else ReasonKind.SYSTEM_FAULT, error)
        finally:
            self.cluster.state.used(workload)
        return judge(
            Evidence(
                load=load,
                intervals=course.measured(),
                dones=course.dones,
                optimised=bool(course.hello.get("optimised", False)),
                samples=course.samples,
                differing=self.cluster.differing,
                still_busy=course.still_busy,
            ),
            self.study.limits,
        )

    async def _measure(
        self, planned: PlannedTrial, load: Load, workload: Workload, phases: PhaseLog, course: Course
    ) -> None:
        cluster = self.cluster
        schema = workload.schema()
        endpoint = cluster.system.endpoint(cluster.databases, schema)
        driving = order.measure(load, endpoint, schema, workload, planned.seed)
        limit_s = self.study.limits.trial_timeout_s
        begun_s = time.time()
        cluster.readings.forget_before(begun_s - PROBE_INTERVAL_S)

        def take(node: str, record: Mapping[str, Any]) -> None:
            if self._take(course, node, record) and load.warm_up_s:
                self.watcher.tell(PhaseEntered(Phase.MEASURE, limit_s))
                phases.passed(Phase.WARM_UP, begun_s, record["t_s"])

        async with phases.bracket(Phase.MEASURE, limit_s, SystemFault):
            if load.warm_up_s:
                self.watcher.tell(PhaseEntered(Phase.WARM_UP, load.warm_up_s))
            await cluster.engine.drive(driving, cluster.loaders, take, limit_s + ENGINE_GRACE_S)
        ended_s = time.time()
        async with phases.bracket(Phase.DRAIN, DRAIN_TIMEOUT_S, ProbeError):
            await cluster.readings.reach(ended_s)
            course.samples = cluster.readings.between(begun_s, ended_s)
            self.watcher.tell(Waiting("whether every node still answers"))
            if not await cluster.healthy():
                raise SystemFault("a node no longer answers after the load", system=cluster.system.name)

    def _take(self, course: Course, node: str, record: Mapping[str, Any]) -> bool:
        """Take in a record; returns whether it is the first of the measured phase."""
        kind = record["record"]
        if kind == "hello":
            course.hello = record
        elif kind == "interval":
            first = record["phase"] == "measure" and not course.measured()
            course.intervals.setdefault(node, []).append(record)
            self.watcher.tell(Ticked(node, record))
            return first
        elif kind == "done" and record["phase"] == "measure":
            course.dones.append(record)
        return False

    def _collect(self, draft: TrialDraft, course: Course, offsets: Mapping[Path, int]) -> None:
        for name, facts in self.cluster.facts.items():
            draft.facts(name, facts)
        for node_name, records in course.intervals.items():
            draft.intervals(node_name, records)
        for node_name, samples in course.samples.items():
            draft.samples(node_name, samples)
        for node in self.cluster.databases:
            for path in self.cluster.system.logs(node):
                if content := since(path, offsets.get(path, 0)):
                    draft.log(node.name, path.name, content)
        draft.links(self.cluster.links)

    def _seal(
        self, draft: TrialDraft, record: TrialRecord, phases: PhaseLog, course: Course, verdict: Verdict
    ) -> TrialRecord:
        started = self.cluster.phases.times if self.cluster.trials_served == 1 else []
        return draft.seal(
            record.model_copy(
                update={
                    "ended_s": time.time(),
                    "phases": (*started, *phases.times),
                    "verdict": verdict,
                    "data": course.data,
                    "responses": responses(course.measured(), course.dones),
                    "versions": self._versions(course),
                }
            )
        )

    def _versions(self, course: Course) -> dict[str, str]:
        return {
            "steelyard": __version__,
            "agent": str(course.hello.get("agent", "")),
            self.cluster.system.name: self.cluster.system.version,
            "python": platform.python_version(),
            "kernel": platform.release(),
        }


def _blamed(kind: ReasonKind, error: Exception) -> Verdict:
    if isinstance(error, SteelyardError):
        detail = f"{error.message} ({error.hint})" if error.hint else error.message
    else:
        detail = f"{type(error).__name__}: {error}"
    return Verdict(outcome="invalid", reasons=(Reason(kind=kind, detail=detail),))
