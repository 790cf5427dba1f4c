"""One trial: settle - warm-up - MEASURE - drain - collect - seal.

A fault of the system under test is a result and is sealed as such. A fault of the laboratory voids the attempt: it
is sealed too,
so that nothing is hidden, and the conductor repeats it.
"""

from __future__ import annotations

import asyncio
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
from steelyard.lab.instruments import INTERVAL_S as PROBE_INTERVAL_S
from steelyard.lab.parts import Parts
from steelyard.lab.progress import PhaseEntered, Ticked, Waiting, Watcher
from steelyard.lab.responses import responses
from steelyard.lab.verdict import Evidence, judge
from steelyard.model.errors import EngineError, ProbeError, SteelyardError, StoreError, SystemFault
from steelyard.model.plan import PlannedTrial
from steelyard.model.sample import Sample
from steelyard.model.study import Load, Study
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.verdict import Reason, ReasonKind, Verdict
from steelyard.store.write import TrialDraft
from steelyard.system.base import Settles
from steelyard.workload.base import Workload

COLLECT_TIMEOUT_S = 60.0
SEAL_TIMEOUT_S = 60.0
SETTLE_POLL_S = 0.5
LOG_TAIL_BYTES = 2 << 20


@dataclass
class Course:
    """What has come in of a trial under way."""

    intervals: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    dones: list[Mapping[str, Any]] = field(default_factory=list)
    hello: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    still_busy: Mapping[str, float] = field(default_factory=dict)
    notes: list[Mapping[str, Any]] = field(default_factory=list)

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
        offsets = {path: _size(path) for node in cluster.databases for path in cluster.system.logs(node)}
        try:
            draft.intend(record)
            verdict = await self._attempt(planned, phases, course)
            async with phases.bracket(Phase.COLLECT, COLLECT_TIMEOUT_S, StoreError):
                self._collect(draft, course, offsets)
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
        )

    async def _attempt(self, planned: PlannedTrial, phases: PhaseLog, course: Course) -> Verdict:
        """Settle, drive and judge; any SteelyardError becomes a verdict that says who is to blame."""
        load = Load.model_validate(planned.settings["load"])
        workload = self.parts.workload(planned.settings)
        try:
            async with phases.bracket(Phase.SETTLE, self.study.limits.trial_timeout_s, SystemFault):
                state = await self.cluster.state.ensure(workload)
                course.notes.append({"event": "data", "state": state})
                await self._settle(course)
            await self._measure(planned, load, workload, phases, course)
        except SystemFault as fault:
            return _blamed(ReasonKind.SYSTEM_FAULT, fault)
        except SteelyardError as error:
            self.watcher.tell(Waiting("whether the cluster is still well"))
            if await self.cluster.healthy():
                return _blamed(ReasonKind.LAB_FAULT, error)
            return _blamed(ReasonKind.SYSTEM_FAULT, error)
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

    async def _settle(self, course: Course) -> None:
        """Wait until compactions, hints and streams are done; after the limit the trial goes on and is marked."""
        system = self.cluster.system
        if not isinstance(system, Settles):
            return
        deadline = time.monotonic() + self.study.data.settle_timeout_s
        while True:
            busy = await system.busy(self.cluster.databases)
            outstanding = {what: amount for what, amount in busy.items() if amount > 0}
            if not outstanding:
                return
            if time.monotonic() > deadline:
                course.still_busy = outstanding
                return
            text = ", ".join(f"{amount:g} {what}" for what, amount in outstanding.items())
            self.watcher.tell(Waiting(f"quiet: {text}"))
            await asyncio.sleep(SETTLE_POLL_S)

    async def _measure(
        self, planned: PlannedTrial, load: Load, workload: Workload, phases: PhaseLog, course: Course
    ) -> None:
        cluster = self.cluster
        schema = workload.schema()
        endpoint = cluster.system.endpoint(cluster.databases, schema)
        driving = order.measure(load, endpoint, schema, workload, planned.seed)
        limit_s = self.study.limits.trial_timeout_s

        def take(node: str, record: Mapping[str, Any]) -> None:
            self._take(course, node, record)

        begun_s = time.time()
        cluster.readings.forget_before(begun_s - PROBE_INTERVAL_S)
        async with phases.bracket(Phase.MEASURE, limit_s, EngineError):
            if load.warm_up_s:
                self.watcher.tell(PhaseEntered(Phase.WARM_UP, load.warm_up_s))
            await cluster.engine.drive(driving, cluster.loaders, take, limit_s)
        ended_s = time.time()
        async with phases.bracket(Phase.DRAIN, COLLECT_TIMEOUT_S, ProbeError):
            await cluster.readings.reach(ended_s)
        course.samples = cluster.readings.between(begun_s, ended_s)

    def _take(self, course: Course, node: str, record: Mapping[str, Any]) -> None:
        kind = record["record"]
        if kind == "hello":
            course.hello = record
        elif kind == "interval":
            course.intervals.setdefault(node, []).append(record)
            self.watcher.tell(Ticked(node, record))
        elif kind == "done" and record["phase"] == "measure":
            course.dones.append(record)

    def _collect(self, draft: TrialDraft, course: Course, offsets: Mapping[Path, int]) -> None:
        for name, facts in self.cluster.facts.items():
            draft.facts(name, facts)
        for node_name, records in course.intervals.items():
            draft.intervals(node_name, records)
        for node_name, samples in course.samples.items():
            draft.samples(node_name, samples)
        for node in self.cluster.databases:
            for path in self.cluster.system.logs(node):
                draft.log(node.name, path.name, _since(path, offsets.get(path, 0)))
        draft.links(self.cluster.links)
        draft.events(course.notes)

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


def _blamed(kind: ReasonKind, error: SteelyardError) -> Verdict:
    detail = error.message if not error.hint else f"{error.message} ({error.hint})"
    return Verdict(outcome="invalid", reasons=(Reason(kind=kind, detail=detail),))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _since(path: Path, offset: int) -> bytes:
    """What was appended to a log since `offset`, at most its last LOG_TAIL_BYTES."""
    try:
        with path.open("rb") as handle:
            handle.seek(max(offset, _size(path) - LOG_TAIL_BYTES))
            return handle.read()
    except FileNotFoundError:
        return b""
