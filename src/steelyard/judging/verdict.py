"""Verdict on a trial, a pure function of the evidence and the limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.judging.background_load import (
    INTERVAL_S,
    LEAST_READINGS,
    NAMED_CORES,
    BackgroundLoad,
    Machines,
    OwnTime,
    background_load,
    longest_gap_s,
    steal_fraction,
)
from steelyard.judging.disruptions import affected, excused, outside
from steelyard.judging.membership import ALWAYS, Span, in_service, spans
from steelyard.judging.trial_responses import merged, quantile_ms
from steelyard.model import histogram
from steelyard.model.activity import Activity, Disrupted
from steelyard.model.calibration import Calibration
from steelyard.model.load import Load
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.outcome import ANSWERED, Outcome, is_error
from steelyard.model.sample import Sample
from steelyard.model.scaling import Scaling
from steelyard.model.search import SearchResult
from steelyard.model.study import Limits
from steelyard.model.trial import ClockOffset, ClockStep
from steelyard.model.verdict_reasons import GUESTS, Reason, ReasonKind, Verdict
from steelyard.wire.record import Done, Interval

CEILING_UNKNOWN = "the generator's ceiling is unknown"
BACKGROUND_UNKNOWN = "background load is unknown"
CALIBRATE = "`steelyard calibrate`"
NO_CALIBRATION = f"not calibrated, run {CALIBRATE}"
SAID = "; servers said: "
"""Separator between the kinds of errors and the servers' texts, which raw files do not contain."""
HIGH_QUANTILE = 0.9
FAULT = "machine_fault_"
"""Name prefix of metrics whose nonzero readings void a trial."""


@dataclass(frozen=True)
class Evidence:
    """Everything that determines whether a trial counts. Times are in seconds since the epoch."""

    load: Load
    intervals: Sequence[Interval]
    dones: Sequence[Done]
    optimised: bool
    samples: Mapping[str, Sequence[Sample]]
    """Node to its samples."""
    heard: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)
    """Probe and node to the times of its samples."""
    machines: Machines = field(default_factory=Machines)
    own: OwnTime = field(default_factory=OwnTime)
    clocks: Sequence[ClockOffset] = ()
    clock_step: ClockStep | None = None
    """Step of the conductor's clock."""
    moved_frames: MovedFrames | None = None
    """Frames that the link program moved, and their delays."""
    calibration: Calibration | None = None
    """Calibration of the generator that drove this trial."""
    no_calibration: str = NO_CALIBRATION
    """Why there is no calibration."""
    differing: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    """Node to settings that differ: name -> (requested, in force)."""
    still_busy: Mapping[str, float] = field(default_factory=dict)
    search: SearchResult | None = None
    """Outcome of the search, if the load is one."""
    activities: Sequence[Activity] = ()
    """Changes of the cluster's size."""
    scaling: Scaling | None = None
    """What the scaling policy saw and said."""
    disruptions: Sequence[Disrupted] = ()
    """Disruptions of nodes."""
    excused: Mapping[tuple[str, str], Sequence[Span]] = field(default_factory=dict)
    """Probe and node to the times in which nothing was expected of it, as its server was down."""

    @property
    def calm(self) -> Sequence[Interval]:
        """Intervals without those in which errors are the result of a disruption."""
        return outside(self.intervals, affected(self.disruptions, self.load.timeout_ms))


def command_to_calibrate(notes: Iterable[str]) -> str:
    """The command that the first note on an unknown ceiling names, with its protocol; that of CQL without any."""
    commands = (re.search(r"`steelyard calibrate[^`]*`", note) for note in notes if note.startswith(CEILING_UNKNOWN))
    return next((command[0] for command in commands if command is not None), CALIBRATE)


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Verdict on a trial: unknown if the engine never reported the end of a phase, invalid with any reason against it,
    otherwise valid."""
    if not evidence.dones:
        return Verdict(outcome="unknown", reasons=(Reason(kind=ReasonKind.INCOMPLETE, detail="the phase never ended"),))
    disturbed, unseen = _surroundings(evidence, limits)
    searched = evidence.load.schedule == "search"
    reasons = (
        *(_of_search(evidence) if searched else _pacing(evidence, limits)),
        *(one for one in _generator(evidence, limits) if not (searched and one.kind.about.of_generator)),
        *(one for one in _answers(evidence, limits) if not (searched and one.kind is ReasonKind.ERRORS)),
        *_instruments(evidence, limits),
        *_clocks(evidence, limits),
        *_clock_step(evidence.clock_step, limits),
        *link_program(evidence.moved_frames, limits),
        *disturbed,
        *_hardware(evidence),
        *_cluster(evidence),
        *_activities(evidence),
        *_scaling(evidence.scaling, limits),
    )
    notes = (*unseen, *_reading_commands(evidence.own))
    if evidence.calibration is None:
        notes = (f"{CEILING_UNKNOWN}: {evidence.no_calibration}", *notes)
    return Verdict(outcome="invalid" if reasons else "valid", reasons=reasons, notes=notes)


def _of_search(evidence: Evidence) -> tuple[Reason, ...]:
    """Reasons against a search: it did not find the requested number. It judges generator, rate and errors window by
    window itself: a rate that is not reached, or errors beyond the limit, are its result."""
    result = evidence.search
    if result is None or result.outcome == "found":
        return ()
    if result.outcome == "no-rate":
        return (Reason(kind=ReasonKind.NO_RATE, detail=result.reason),)
    if result.outcome == "not-found":
        return (Reason(kind=ReasonKind.NONE_FOUND, detail=result.reason),)
    if result.rate_per_s is None:
        return (Reason(kind=ReasonKind.LAB_FAULT, detail=f"no rate is known to meet the limits: {result.reason}"),)
    detail = f"at least {result.rate_per_s:,.6g} operations/s: {result.reason}"
    return (Reason(kind=ReasonKind.LOWER_BOUND, detail=detail),)


def of_generator(evidence: Evidence, limits: Limits) -> tuple[Reason, ...]:
    """Limits that the load generator exceeded: late operations, an overloaded thread, or a rate too near its
    ceiling."""
    reasons = (*_pacing(evidence, limits), *_generator(evidence, limits))
    return tuple(reason for reason in reasons if reason.kind.about.of_generator)


def over(
    kind: ReasonKind, measured: float | None, limit: float, unit: str = "", detail: str = ""
) -> tuple[Reason, ...]:
    """The reason if the measured value crosses its limit; none if nothing was measured."""
    if measured is None or not kind.about.speaks.crossed(measured, limit):
        return ()
    return (Reason(kind=kind, measured=measured, threshold=limit, unit=unit, detail=detail),)


def _pacing(evidence: Evidence, limits: Limits) -> list[Reason]:
    """LAG for operations that the generator sent late although it could have sent them in time; RATE for operations
    that were due but never sent because the system accepted no more, so that the load was not the treatment's."""
    if not evidence.load.is_open:
        return []
    late_ms = quantile_ms(merged(evidence.intervals, "pacing"), 0.99)
    sent = sum(interval.sent for interval in evidence.intervals)
    due = sum(done.operations + done.errors + done.unsent for done in evidence.dones)
    reached = sent / due if due else None
    return [
        *over(ReasonKind.LAG, late_ms, limits.lag_p99_ms, "ms"),
        *over(ReasonKind.RATE, reached, limits.offered_rate_fraction, "of the operations that were due"),
    ]


def _generator(evidence: Evidence, limits: Limits) -> list[Reason]:
    busiest = max(done.busiest_thread_fraction for done in evidence.dones)
    bound = over(
        ReasonKind.GENERATOR_BOUND, used_ceiling_fraction(evidence), limits.generator_ceiling_fraction,
        "of its ceiling on this machine", f"its busiest thread took {busiest:.0%} of a core",
    )  # fmt: skip
    busy = over(ReasonKind.GENERATOR_BUSY, busiest, limits.generator_cpu_fraction, "of one core")
    dropped = sum(done.dropped for done in evidence.dones)
    reasons = [*(bound or busy), *over(ReasonKind.DROPPED, dropped, 0, "records")]
    if not evidence.optimised:
        reasons.append(Reason(kind=ReasonKind.DEBUG_ENGINE, detail="build it with `make setup`"))
    return reasons


def used_ceiling_fraction(evidence: Evidence) -> float | None:
    """Fraction of its calibrated ceiling that a generator reached. It is the 90th percentile over intervals, so that a
    changing rate is judged where it is high, and a burst after a stall does not count. None without a calibration or
    operations."""
    if evidence.calibration is None:
        return None
    in_flight = max(1, evidence.load.threads // len(evidence.dones))
    fractions = []
    for interval in evidence.intervals:
        if interval.seconds <= 0:
            continue
        rates: dict[str, float] = {}
        for counts in interval.counts:
            if counts.measure == "response":
                count = histogram.total(counts.buckets)
                rates[counts.operation] = rates.get(counts.operation, 0.0) + count / interval.seconds
        used = evidence.calibration.used_fraction(rates, in_flight, keep_alive=evidence.load.keep_alive)
        if rates and used is not None:
            fractions.append(used)
    return sorted(fractions)[int(HIGH_QUANTILE * (len(fractions) - 1))] if fractions else None


def _answers(evidence: Evidence, limits: Limits) -> list[Reason]:
    kinds, operations = _outcomes(evidence)
    errors = sum(kinds.values())
    everything = operations + errors
    missing = sum(done.not_found for done in evidence.dones)
    if evidence.disruptions:
        missing = min(missing, _count(evidence.calm, (Outcome.NOT_FOUND,)))
    # A disruption excuses no wrong answer.
    wrong = _count(evidence.intervals, (Outcome.INVALID,)) if evidence.disruptions else kinds.get(Outcome.INVALID, 0)
    asked = evidence.load.operations if evidence.load.duration_s is None else None
    of_all = "of operations"
    reasons = [
        *over(ReasonKind.ERRORS, _share(errors, everything), limits.error_fraction, of_all, _errors(evidence, kinds)),
        *over(
            ReasonKind.NOT_FOUND, _share(missing, operations), limits.not_found_fraction, of_all,
            f"{missing} reads of keys that must exist returned no row",
        ),
        *over(
            ReasonKind.NOT_FOUND, _share(wrong, everything), limits.not_found_fraction, of_all,
            f"{wrong} answers held other values than were written",
        ),
    ]  # fmt: skip
    if asked is None:
        return reasons
    # Operations that were never sent count under RATE.
    ended = sum(done.operations + done.errors + done.unsent for done in evidence.dones)
    return [*reasons, *over(ReasonKind.INCOMPLETE, ended, asked, "operations")]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _outcomes(evidence: Evidence) -> tuple[dict[str, int], int]:
    """Errors by kind, and the number of operations without error: of a trial that was disrupted, of the seconds without
    a disruption."""
    if not evidence.disruptions:
        kinds: dict[str, int] = {}
        for done in evidence.dones:
            for kind, count in done.errors_by_kind.items():
                kinds[kind] = kinds.get(kind, 0) + count
        return kinds, sum(done.operations for done in evidence.dones)
    calm = evidence.calm
    seen = {counts.outcome for interval in calm for counts in interval.counts}
    failed = {outcome: _count(calm, (outcome,)) for outcome in sorted(seen) if is_error(outcome)}
    return {outcome: number for outcome, number in failed.items() if number}, _count(calm, ANSWERED)


def _count(intervals: Sequence[Interval], outcomes: Sequence[str]) -> int:
    return histogram.total(merged(intervals, "response", outcomes))


def _errors(evidence: Evidence, kinds: Mapping[str, int]) -> str:
    """Errors by kind, with the servers' messages."""
    detail = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    messages = {text for done in evidence.dones for texts in done.error_texts.values() for text in texts}
    return detail + (SAID + "; ".join(sorted(messages)) if messages else "")


def _instruments(evidence: Evidence, limits: Limits) -> list[Reason]:
    """PROBE_GAP for each probe on each node, so that a running probe does not hide a silent one. A node that joined or
    left is judged over the time in which it served."""
    reasons: list[Reason] = []
    begun_s, ended_s = _span(evidence)
    served = in_service(evidence.activities)
    for (probe, node), times_s in sorted(evidence.heard.items()):
        span = served.get(node, ALWAYS).within(Span(begun_s, ended_s))
        if node in served and served[node].begun_s > -math.inf and times_s:
            # Instruments that read the server of a joiner begin when it serves.
            span = span.within(Span(min(times_s), ended_s))
        gap_s = max(longest_gap_s(times_s, *part) for part in _without(span, evidence.excused.get((probe, node), ())))
        reasons += over(ReasonKind.PROBE_GAP, gap_s, limits.probe_gap_s, "s", f"{probe} on {node}")
    return reasons


def _without(span: Span, gaps: Sequence[Span]) -> list[Span]:
    """The parts of a span before, between and after gaps, which are in order of time."""
    ends = [span.begun_s, *(gap.ended_s for gap in gaps)]
    begins = [*(gap.begun_s for gap in gaps), span.ended_s]
    return [Span(begun_s, ended_s).within(span) for begun_s, ended_s in zip(ends, begins, strict=True)]


def _clocks(evidence: Evidence, limits: Limits) -> list[Reason]:
    """CLOCK for each node whose corrected times may still be wrong by more than the limit."""
    reasons: list[Reason] = []
    for clock in evidence.clocks:
        moved = f"by {clock.before_s:.3f} s before the trial and by {clock.after_s:.3f} s after it"
        detail = f"the clock of {clock.node} was ahead of the conductor's {moved}"
        reasons += over(ReasonKind.CLOCK, clock.worst_s, limits.clock_s, "s", detail)
    return reasons


def _clock_step(step: ClockStep | None, limits: Limits) -> tuple[Reason, ...]:
    """CLOCK_STEP if the conductor's clock was set during the trial, so that its times do not share one clock."""
    if step is None:
        return ()
    way = "forward" if step.moved_s > 0 else "back"
    detail = f"it was set {way} by {abs(step.moved_s):.3f} s within {step.seconds:.1f} s"
    return over(ReasonKind.CLOCK_STEP, step.step_s, limits.clock_step_s, "s", detail)


def link_program(moved: MovedFrames | None, limits: Limits) -> list[Reason]:
    """LINK_LATE, LINK_STALLED and LINK_UNREAD if the link program fell behind the link that it emulates."""
    if moved is None:
        return []
    latest = f"the latest of {moved.delivered:,} frames came {_digits(moved.late_ms_max)} ms after its time"
    still = f"the program stood still for {_digits(moved.stalled_s)} s of {_digits(moved.seconds)} s"
    dropped = f"the kernel dropped {moved.unread:,} frames that the program had not read"
    return [
        *over(ReasonKind.LINK_LATE, moved.late_ms_mean, limits.link_late_ms, "ms", latest),
        *over(ReasonKind.LINK_STALLED, moved.stalled_fraction, limits.link_stalled_fraction, "of the time", still),
        *over(ReasonKind.LINK_UNREAD, moved.unread_fraction, limits.link_unread_fraction, "of all frames", dropped),
    ]


def _digits(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _span(evidence: Evidence) -> tuple[float, float]:
    begun_s = min(done.first_sent_s for done in evidence.dones)
    return begun_s, max(done.last_done_s for done in evidence.dones)


def _surroundings(evidence: Evidence, limits: Limits) -> tuple[list[Reason], tuple[str, ...]]:
    """Disturbances during the trial, and a note if they are unknown."""
    begun_s, ended_s = _span(evidence)
    steals = {node: steal_fraction(samples, begun_s, ended_s) for node, samples in evidence.samples.items()}
    machines = background_load(
        evidence.samples, evidence.machines, evidence.own, begun_s, ended_s, spans(evidence.activities)
    )
    reasons = disturbances(machines or (), steals, limits)
    if machines is None and evidence.samples:
        short = ended_s - begun_s < (LEAST_READINGS + 1) * INTERVAL_S
        why = f"fewer than {LEAST_READINGS} whole seconds" if short else "CPU time was not measured on a node"
        return reasons, (f"{BACKGROUND_UNKNOWN}: {why}",)
    return reasons, ()


def _hardware(evidence: Evidence) -> list[Reason]:
    """HARDWARE for each fault of each node: a board that its firmware throttles is not the hardware of the study."""
    begun_s, ended_s = _span(evidence)
    reasons: list[Reason] = []
    for node, samples in sorted(evidence.samples.items()):
        readings: dict[str, list[bool]] = {}
        for sample in samples:
            if sample.metric.startswith(FAULT) and begun_s <= sample.t_s <= ended_s:
                readings.setdefault(sample.metric.removeprefix(FAULT), []).append(sample.value != 0)
        for name, faulty in sorted(readings.items()):
            detail = f"{name.replace('_', ' ')} on {node}, in {sum(faulty)} of {len(faulty)} readings"
            reasons += over(ReasonKind.HARDWARE, sum(faulty), 0, "readings", detail)
    return reasons


def disturbances(machines: Sequence[BackgroundLoad], steals: Mapping[str, float], limits: Limits) -> list[Reason]:
    """STEAL: time used by other guests of the hardware (`steals`: node to fraction, the highest counts) or by other
    programs on a machine. The same rule decides whether the machine is quiet before a trial."""
    readings = []
    if steals:
        worst = max(sorted(steals), key=lambda node: steals[node])
        detail = f"{GUESTS} of the hardware, seen on {worst}"
        readings.append((steals[worst], limits.steal_fraction, detail))
    for machine in machines:
        readings.append((machine.fraction, limits.background_cpu_fraction, machine.text))
    return [
        reason
        for measured, limit, detail in readings
        for reason in over(ReasonKind.STEAL, measured, limit, "of all CPU time", detail)
    ]


def _reading_commands(own: OwnTime) -> tuple[str, ...]:
    """A note on the laboratory's own `status`, `report` and `serve` during the trial, which are not background load."""
    if own.reading_cores < NAMED_CORES:
        return ()
    return (f"reading commands of Steelyard kept {own.reading_cores:.2f} cores busy, at idle priority",)


def _activities(evidence: Evidence) -> list[Reason]:
    """SYSTEM_FAULT for each change of size that failed without a disruption: a result, but not one of the treatment's
    size; and for each disruption from which nodes did not recover. One that the end of the load left unfinished is
    none."""
    spans = affected(evidence.disruptions, evidence.load.timeout_ms)
    changes = [one for one in evidence.activities if not excused(one, spans)]
    return [
        Reason(kind=ReasonKind.SYSTEM_FAULT, detail=f"{activity.kind} of {', '.join(activity.nodes)}: {activity.error}")
        for activity in (*changes, *evidence.disruptions)
        if activity.outcome == "failed"
    ]


def _scaling(scaling: Scaling | None, limits: Limits) -> list[Reason]:
    """A policy that was asked too late, or before every node had spoken; a size for which too few nodes were lent."""
    if scaling is None:
        return []
    blind = scaling.late / scaling.asked if scaling.asked else 0.0
    reasons = list(over(ReasonKind.POLICY_LATE, blind, limits.policy_late_fraction))
    if scaling.lacking:
        reasons.append(Reason(kind=ReasonKind.LAB_FAULT, detail=f"{scaling.lacking}; see policy.joins"))
    return reasons


def _cluster(evidence: Evidence) -> list[Reason]:
    reasons = []
    for node, settings in sorted(evidence.differing.items()):
        for name, (asked, in_force) in sorted(settings.items()):
            detail = f"{node}: {name} is {in_force}, not the requested {asked}"
            reasons.append(Reason(kind=ReasonKind.SETTINGS, detail=detail))
    for what, amount in sorted(evidence.still_busy.items()):
        reasons += over(ReasonKind.STILL_BUSY, amount, 0, what)
    return reasons
