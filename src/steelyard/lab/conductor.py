"""The conductor: for each start of a cluster that has trials to do, start it, do them, undo it.

`_start` decides whose fault it was; the first error wins, and what went wrong while cleaning up is a note on it.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from steelyard.events.base import Watcher
from steelyard.events.kept import (
    DisksLimited,
    LaboratoryFailed,
    LevelDerived,
    LinksMeasured,
    NodesGauged,
    ProcessorsLimited,
    ServersWarmedUp,
    SessionEnded,
    StartBegan,
    StartEnded,
    StartFailed,
    StartReady,
    StoppingJudged,
    TrialSealed,
)
from steelyard.events.shown import RuleBegan, TrialBegan, Trouble, Waiting
from steelyard.format import number, treatment_label
from steelyard.judging.attempts import attempts_by_id, missing, settled
from steelyard.judging.covariates import covariates_of
from steelyard.judging.derived import derived, not_run
from steelyard.judging.gauge import asked_and_measured
from steelyard.judging.server_warm_up import longer
from steelyard.judging.settings_hash import canonical
from steelyard.judging.stopping import Decision, decide, needed_trials, not_needed, rule_of
from steelyard.lab import noise_floor, provenance, server_warm_up
from steelyard.lab.bracket import PhaseLog
from steelyard.lab.cluster import LINKS_GRACE, Cluster, started
from steelyard.lab.disk_room import DiskRoom
from steelyard.lab.gauging import deviations
from steelyard.lab.lending import Lending
from steelyard.lab.parts import LabParts
from steelyard.lab.quiet import Ours, QuietGate
from steelyard.lab.recorder import Recorder
from steelyard.lab.time_left import Forecast
from steelyard.lab.trial import TrialRunner
from steelyard.model.derived import Derived
from steelyard.model.errors import (
    FileError,
    LastingSiteError,
    NotQuiet,
    SiteError,
    SteelyardError,
    StoreError,
    StudyError,
    SystemFault,
)
from steelyard.model.gauged import Gauged
from steelyard.model.link import PLAIN
from steelyard.model.named_level import Level
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.node.machine_facts import machine_id
from steelyard.node.tasks import in_a_thread
from steelyard.plan.abilities import Abilities
from steelyard.progress.reason_words import short
from steelyard.reading.replay import acting_by_chance
from steelyard.site.base import Site, on_this_machine
from steelyard.store import Store, StoreWriter
from steelyard.store.write import record_sha256
from steelyard.system.base import warms_up

FAILED_STARTS_LIMIT = 2
"""A cluster that failed to start so often is infeasible in this block: a result."""
LEAST_LINKS_S = 30.0
"""Least time limit of measuring the links after the last trial of a start."""
FAILED_LAB_LIMIT = 3
"""This many failures of the laboratory in a row end the study."""
NOT_REPEATED = (FileError, LastingSiteError, StoreError, StudyError)
"""Failures of the laboratory that the next attempt would meet again: the first ends the study."""
COUNTED = "its trials still count; the report names it"
"""Fate of a start that is not as it should be."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a study: trials of the plan by state."""

    planned: int
    valid: int
    invalid: int
    missing: int
    """Still to be done; with a stopping rule that has not stopped the study yet, at most this many."""
    not_needed: int = 0
    """Beyond the block after which a stopping rule ended the study: neither missing nor failed."""
    not_run: int = 0
    """Without a threshold, which too few valid trials gave: neither missing nor failed."""
    why_not_run: tuple[str, ...] = ()
    """The reasons, each once."""


class Conductor:
    """Runs what is missing of a plan."""

    def __init__(
        self,
        study: Study,
        plan: Plan,
        writer: StoreWriter,
        parts: LabParts,
        watcher: Watcher,
        foresight: Forecast,
        gate: QuietGate | None = None,
        command: Sequence[str] | None = None,
        blocks: Collection[int] | None = None,
    ) -> None:
        """`gate`: waits for a quiet machine before trials; None: trials begin whatever else the machine does.
        `command` resumes the study; None: that of this process. `blocks`: the only ones to be measured; None: all."""
        self.study = study
        self.plan = plan
        self.writer = writer
        self.parts = parts
        self.watcher = Recorder(writer, watcher)
        self.foresight = foresight
        self.gate = gate
        self.command = command
        self.blocks = blocks
        self.finishing = False
        self._rule = rule_of(study)
        self._judged = -1
        """Blocks of the newest decision that watchers have."""
        self._records: list[TrialRecord] = []
        self.read_again()
        self._thresholds: dict[tuple[Derived, str], Derived] = {}
        """Thresholds as policies used them, by what trials gave and the policy's settings."""
        self._failed_starts: dict[str, int] = {}
        self._failed_in_a_row = 0
        self._floor_sought = False
        self._lending = Lending()
        self._room = DiskRoom(writer.folder, parts.state_folder, Abilities(parts.plugins))

    def read_again(self) -> None:
        """Read the trials of the store."""
        self._records = list(Store(self.writer.folder).trials())

    def finish(self) -> None:
        """Stop when the trial in flight is sealed."""
        self.finishing = True

    async def run(self) -> Outcome:
        """Do what is missing. Raises SteelyardError when the laboratory cannot continue."""
        todo = self._missing()
        began = provenance.session_began(len(todo), len(self.plan.trials), self.command)
        shown = {
            "study": self.study.study.name,
            "store": str(self.writer.folder),
            "blocks": self.plan.blocks,
            "at_most": self._rule is not None,
            "response": self.study.analysis.response,
        }
        self.watcher.tell(began.model_copy(update=shown))
        self._tell_decision()
        self._seek_floor()
        async with self._lending.session():
            while todo and not self.finishing:
                await self._start([trial for trial in todo if trial.start == todo[0].start])
                self._tell_decision()
                todo = self._missing()
        outcome = self.outcome()
        numbers = {"valid": outcome.valid, "invalid": outcome.invalid, "missing": outcome.missing}
        self.watcher.tell(SessionEnded(**numbers))
        return outcome

    def _missing(self) -> list[PlannedTrial]:
        todo = self.todo()
        self._tell_time_left(todo)
        return todo

    def _tell_time_left(self, todo: Sequence[PlannedTrial]) -> None:
        self.watcher.tell(replace(self.foresight(todo, self._records), trials=len(todo)))

    def todo(self) -> list[PlannedTrial]:
        """Missing trials of its blocks that the stopping rule needs, as far as it can decide now."""
        decision = self.decision()
        plan = self.plan
        if decision is not None:
            plan = plan.model_copy(update={"trials": needed_trials(plan, decision)})
        never = not_run(self.study, self.plan, self._records)
        todo = missing(plan, self._records, self.study.limits.attempts)
        mine = (trial for trial in todo if self.blocks is None or trial.block in self.blocks)
        return [trial for trial in mine if trial.id not in never]

    def decision(self) -> Decision | None:
        """Decision of the study's stopping rule now; None without one."""
        return None if self._rule is None else decide(self.plan, self._records, self._rule)

    def _tell_decision(self) -> None:
        """Report the decision once per whole block. Nothing is read back from the journal."""
        decision = self.decision()
        if decision is None or decision.blocks == self._judged:
            return
        self._judged = decision.blocks
        self.watcher.tell(StoppingJudged(decision=decision) if decision.blocks else RuleBegan(decision))

    def outcome(self) -> Outcome:
        """Progress of the plan."""
        by_id = attempts_by_id(self._records)
        limit = self.study.limits.attempts
        states = [by_id.get(trial.id, []) for trial in self.plan.trials]
        valid = sum(any(r.verdict.outcome == "valid" for r in attempts) for attempts in states)
        done = sum(settled(attempts, limit) for attempts in states)
        decision = self.decision()
        spared = () if decision is None else not_needed(self.plan, self._records, decision)
        never = not_run(self.study, self.plan, self._records)
        left = len(states) - done - len(spared) - len(never)
        return Outcome(
            len(states), valid=valid, invalid=done - valid, missing=left, not_needed=len(spared), not_run=len(never),
            why_not_run=tuple(dict.fromkeys(never.values())),
        )  # fmt: skip

    async def _start(self, trials: list[PlannedTrial]) -> None:
        first = trials[0]
        for planned in trials:
            await self._threshold(planned)
        sites = (self.parts.site(first.settings), self.parts.load_site(first.settings))
        await self._quiet([site for site in sites if site is not None], lambda pid: False)
        if self.finishing:
            return
        phases = PhaseLog(self.watcher, time.time)
        hard, settings = _of_start(first), first.settings
        self.watcher.tell(
            StartBegan(
                start=first.start, block=first.block, trials=len(trials), blocks=self.plan.blocks, treatment=hard,
                nodes=settings.site.nodes, searches=settings.load.schedule == "search",
            )
        )  # fmt: skip
        try:
            on_gauged = functools.partial(self._gauged, first.start)
            starting = started(self.study, trials, self.parts, self.watcher, phases, self._lending, on_gauged)
            async with starting as cluster:
                self.watcher.tell(StartReady(start=first.start, cluster=cluster.start))
                self._tell_other_links(cluster)
                await self._quiet(cluster.sites, cluster.owns)
                if not self.finishing:
                    await self._warm_up(cluster, trials)
                await self._limit(cluster, first)
                await self._trials(cluster, deque(trials))
                await self._links_after(cluster, first)
        except SystemFault as fault:
            self._start_failed(trials, fault, phases)
        except NotQuiet:
            raise
        except SteelyardError as error:
            self._laboratory_failed(first, error)
        finally:
            with contextlib.suppress(OSError):
                self.watcher.tell(StartEnded(start=first.start, phases=tuple(phases.times)))

    async def _threshold(self, planned: PlannedTrial) -> Derived | None:
        """The threshold that trials without a policy give a trial; None if it needs none. When a policy first uses it,
        it is said, and in how many of those trials the policy would have acted at it."""
        settings = planned.settings
        given = derived(self.study.derived, settings, self._records)
        if not isinstance(given, Derived):
            return None
        used = given, canonical(settings.part("policy"))
        if used not in self._thresholds:
            module = self.parts.plugins.find("policy", settings.policy.name)
            acted = await in_a_thread(lambda: acting_by_chance(Store(self.writer.folder), given, settings, module))
            self._thresholds[used] = given.model_copy(update={"acted": acted.fired})
            own, others = planned.treatment, acted.treatment
            both = {factor: level for factor, level in own.items() if others.get(factor) == level}
            self.watcher.tell(
                LevelDerived(start=planned.start, treatment=both, derived=given, fired=acted.fired, share=acted.share)
            )
        return self._thresholds[used]

    async def _quiet(self, sites: Sequence[Site], ours: Ours) -> None:
        """Return when this machine is quiet, if nodes of any of the sites run on it. Raises NotQuiet."""
        if self.gate is not None and any(on_this_machine(site) for site in sites):
            await self.gate.wait(self.study.limits, ours, self.watcher, lambda: self.finishing)

    def _gauged(self, start: str, gauged: Gauged) -> None:
        """Record the limits of a start's nodes as measured, and warn of those that do not hold."""
        self.watcher.tell(NodesGauged(start=start, gauged=gauged))
        for sentence in deviations(gauged):
            self.watcher.tell(Trouble(sentence, COUNTED))

    async def _warm_up(self, cluster: Cluster, trials: Sequence[PlannedTrial]) -> None:
        """The server warm-up of a start, if the study has one."""
        if not warms_up(self.study.server_warm_up, cluster.system):
            return
        warmth = await server_warm_up.warm_up(
            self.study, cluster, trials, self.parts, self.watcher, lambda: self.finishing
        )
        cluster.warmth = warmth
        self.watcher.tell(ServersWarmedUp(start=trials[0].start, cluster=cluster.start, warmth=warmth))
        if not warmth.reached:
            first = trials[0]
            what = f"block {first.block}, {treatment_label(_of_start(first))}"
            left = [
                *warmth.reasons,
                *([f"try {longer(warmth.seconds)}"] if warmth.rounds and not self.finishing else []),
            ]
            self.watcher.tell(Trouble(f"{what}: not warm after {warmth.seconds:.0f} s: {'; '.join(left)}", COUNTED))

    async def _limit(self, cluster: Cluster, first: PlannedTrial) -> None:
        """Put limits in force that begin when the cluster is warm, and record it."""
        limited = await cluster.limit(first.settings.node, self.parts.workload(first.settings), self.watcher)
        if limited.cpus:
            self.watcher.tell(ProcessorsLimited(start=first.start, cluster=cluster.start, cpus=limited.cpus))
        if limited.disk_rates:
            rates = limited.disk_rates
            self.watcher.tell(DisksLimited(start=first.start, cluster=cluster.start, rates=rates))

    def _tell_other_links(self, cluster: Cluster) -> None:
        """Warn of links that are not as asked."""
        measured = covariates_of(cluster.facts, cluster.links)
        for compared in asked_and_measured(cluster.link or PLAIN, measured):
            if compared.differs and compared.asked is not None:
                unit = compared.unit
                numbers = f"{number(compared.measured)} {unit} measured, {number(compared.asked)} {unit} asked"
                message = f"{compared.quantity} of the nodes' links: {numbers}"
                self.watcher.tell(Trouble(message, COUNTED))

    async def _links_after(self, cluster: Cluster, first: PlannedTrial) -> None:
        """Measure the links once more where they are measured in full, after the last trial of a start."""
        if cluster.link is None or not cluster.trials_served or cluster.link_failure is not None:
            return
        async with cluster.phases.bracket(Phase.COLLECT, LEAST_LINKS_S + LINKS_GRACE * cluster.links_s, SiteError):
            self.watcher.tell(Waiting("measuring the links of the nodes once more"))
            links = tuple(dict(link) for link in await cluster.measure_links())
        self.watcher.tell(LinksMeasured(start=first.start, cluster=cluster.start, links=links))

    def _laboratory_failed(self, first: PlannedTrial, error: SteelyardError) -> None:
        """Count a failure of the laboratory. Raises the error when another attempt makes no sense."""
        self._failed_in_a_row += 1
        with contextlib.suppress(OSError):
            self.watcher.tell(LaboratoryFailed(start=first.start, message=error.message, notes=error.notes))
        if self._failed_in_a_row >= FAILED_LAB_LIMIT or isinstance(error, NOT_REPEATED):
            raise error
        self.watcher.tell(Trouble(error.message, "starting the cluster once more"))

    async def _trials(self, cluster: Cluster, queue: deque[PlannedTrial]) -> None:
        """Run the trials of one start in order; a voided one goes to the end of the queue. Ends early if the system, a
        probe or the link fails, if the trial has left another cluster, or if the session is to finish."""
        runner = TrialRunner(self.study, cluster, self.parts, self.watcher)
        limit = self.study.limits.attempts
        while queue:
            await self._quiet(cluster.sites, cluster.owns)
            if self.finishing:
                return
            planned = queue.popleft()
            self._room.require(planned.settings)
            attempts = attempts_by_id(self._records).get(planned.id, [])
            attempt = max((record.attempt for record in attempts), default=0) + 1
            number = len(self.plan.trials) - len(missing(self.plan, self._records, limit)) + 1
            self.watcher.tell(TrialBegan(planned, attempt, number, len(self.plan.trials)))
            threshold = await self._threshold(planned)
            record = await runner.run(planned, attempt, self.writer.draft(planned.id, attempt), threshold)
            if self.gate is not None:
                self.gate.attempted(record.verdict)
            self._sealed(record, number)
            broken = cluster.readings.failure is not None or cluster.link_failure is not None
            if record.verdict.system_fault or broken or cluster.members.changed or record.disruptions:
                return
            if not settled([*attempts, record], limit):
                reasons = "; ".join(short(reason) for reason in record.verdict.reasons)
                self.watcher.tell(Trouble(f"trial {planned.id} voided: {reasons}", "queued again"))
                queue.append(planned)

    def _seek_floor(self) -> None:
        """The noise floor of this machine, once: as soon as a trial says which machine it is."""
        if self._records and not self._floor_sought:
            self._floor_sought = (
                noise_floor.bring(self.study, self.writer, self.watcher, self.parts, self._records) is not None
            )

    def _sealed(self, record: TrialRecord, number: int) -> None:
        self._records.append(record)
        self._room.sealed(record)
        self._failed_in_a_row = self._failed_in_a_row + 1 if record.verdict.lab_fault else 0
        # First what is left, which the line about this trial ends with.
        self._tell_time_left(self.todo())
        total = len(self.plan.trials)
        self.watcher.tell(TrialSealed.of_record(record, record_sha256(record), number, total))
        self._seek_floor()
        if self._failed_in_a_row >= FAILED_LAB_LIMIT:
            detail = record.verdict.reasons[0].detail
            message = f"the laboratory failed {self._failed_in_a_row} times in a row, at last with: {detail}"
            raise SteelyardError(message, "fix it and run the same command again; `steelyard doctor` may know more")

    def _start_failed(self, trials: Sequence[PlannedTrial], fault: SystemFault, phases: PhaseLog) -> None:
        """After FAILED_STARTS_LIMIT failed starts the trials are sealed as infeasible, with the reason."""
        start = trials[0].start
        count = self._failed_starts.get(start, 0) + 1
        self._failed_starts[start] = count
        self.watcher.tell(StartFailed(start=start, message=fault.message, count=count))
        if count < FAILED_STARTS_LIMIT:
            self.watcher.tell(Trouble(fault.message, "starting the cluster once more"))
            return
        self.watcher.tell(Trouble(fault.message, f"infeasible: {len(trials)} trials are sealed with this reason"))
        detail = f"the cluster did not start ({count} of {count}): {fault.message}"
        verdict = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail=detail),))
        left = {trial.id for trial in self._missing()}
        for planned in [trial for trial in trials if trial.id in left]:
            self._seal_infeasible(planned, verdict, phases, fault)

    def _seal_infeasible(self, planned: PlannedTrial, verdict: Verdict, phases: PhaseLog, fault: SystemFault) -> None:
        attempts = attempts_by_id(self._records).get(planned.id, [])
        attempt = max((record.attempt for record in attempts), default=0) + 1
        now_s = time.time()
        draft = self.writer.draft(planned.id, attempt)
        for node, logs in fault.evidence.items():
            for name, content in logs.items():
                draft.log(node, name, content)
        record = TrialRecord(
            **planned.model_dump(exclude={"start"}),
            attempt=attempt,
            study=self.study.study.name,
            planned_start=planned.start,
            start=planned.start,
            order_in_start=1,
            machine_id=machine_id(),
            begun_s=phases.times[0].entered_s if phases.times else now_s,
            ended_s=now_s,
            phases=tuple(phases.times),
            verdict=verdict,
            limits=self.study.limits,
        )
        self._sealed(draft.seal(record), planned.position)


def _of_start(trial: PlannedTrial) -> dict[str, Level]:
    """The levels that all trials of its start have."""
    return {name: level for name, level in trial.treatment.items() if name in trial.hard}
