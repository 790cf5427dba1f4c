"""The verdict on a trial: a pure function of the evidence and the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.judging.background_load import Machines, OwnTime, background_load, longest_gap_s, steal_fraction
from steelyard.judging.responses import merged, quantile_ms
from steelyard.model import histogram
from steelyard.model.calibration import Calibration
from steelyard.model.sample import Sample
from steelyard.model.study import Limits, Load
from steelyard.model.verdict import Reason, ReasonKind, Verdict

NO_CALIBRATION = "there is no calibration: `steelyard calibrate`"
SAID = "; servers said: "
"""Between the kinds of errors and their texts, which are not kept raw."""
INVALID = "invalid"
"""Kind of the error that an answer holds another value than was written."""
HIGH_QUANTILE = 0.9


@dataclass(frozen=True)
class Evidence:
    """Everything that decides whether a trial counts. Times in seconds since the epoch."""

    load: Load
    intervals: Sequence[Mapping[str, Any]]
    dones: Sequence[Mapping[str, Any]]
    optimised: bool
    samples: Mapping[str, Sequence[Sample]]
    """Node to its samples."""
    heard: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)
    """Probe and node to the times of its samples."""
    machines: Machines = field(default_factory=Machines)
    own: OwnTime = field(default_factory=OwnTime)
    calibration: Calibration | None = None
    """Of the generator that drove this trial."""
    no_calibration: str = NO_CALIBRATION
    """Why there is none, if there is none."""
    differing: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    """Node to settings that differ: name -> (asked, in force)."""
    still_busy: Mapping[str, float] = field(default_factory=dict)


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """valid when no reason speaks against it; unknown when the engine never said that it was done."""
    if not evidence.dones:
        return Verdict(outcome="unknown", reasons=(Reason(kind=ReasonKind.INCOMPLETE, detail="no end of the phase"),))
    disturbed, unseen = _surroundings(evidence, limits)
    reasons = (
        *_pacing(evidence, limits),
        *_generator(evidence, limits),
        *_answers(evidence, limits),
        *_instruments(evidence, limits),
        *disturbed,
        *_cluster(evidence),
    )
    notes = unseen
    if evidence.calibration is None:
        notes = (f"the generator's ceiling is unknown: {evidence.no_calibration}", *notes)
    return Verdict(outcome="invalid" if reasons else "valid", reasons=reasons, notes=notes)


def _pacing(evidence: Evidence, limits: Limits) -> list[Reason]:
    """LAG: what the generator did late although it could have sent. RATE: operations that were due and never sent,
    because the system had no place for them: the load was not what the treatment says."""
    if not evidence.load.is_open:
        return []
    reasons = []
    late_ms = quantile_ms(merged(evidence.intervals, "pacing"), 0.99)
    if late_ms is not None and late_ms > limits.lag_p99_ms:
        reasons.append(Reason(kind=ReasonKind.LAG, measured=late_ms, threshold=limits.lag_p99_ms, unit="ms"))
    sent = sum(interval["sent"] for interval in evidence.intervals)
    due = sum(done["operations"] + done["errors"] for done in evidence.dones)
    if due and sent / due < limits.offered_rate_fraction:
        measured, unit = sent / due, "of the operations that were due"
        threshold = limits.offered_rate_fraction
        reasons.append(Reason(kind=ReasonKind.RATE, measured=measured, threshold=threshold, unit=unit))
    return reasons


def _generator(evidence: Evidence, limits: Limits) -> list[Reason]:
    reasons = []
    busiest = max(done["busiest_thread_fraction"] for done in evidence.dones)
    used = used_ceiling_fraction(evidence)
    if used is not None and used >= limits.generator_ceiling_fraction:
        threshold = limits.generator_ceiling_fraction
        detail = f"its busiest thread took {busiest:.0%} of a core"
        reasons.append(
            Reason(
                kind=ReasonKind.GENERATOR_BOUND,
                measured=used,
                threshold=threshold,
                unit="of its ceiling on this machine",
                detail=detail,
            )
        )
    elif busiest > limits.generator_cpu_fraction:
        reasons.append(
            Reason(
                kind=ReasonKind.GENERATOR_BUSY,
                measured=busiest,
                threshold=limits.generator_cpu_fraction,
                unit="of one core",
            )
        )
    dropped = sum(done["dropped"] for done in evidence.dones)
    if dropped:
        reasons.append(Reason(kind=ReasonKind.DROPPED, measured=dropped, threshold=0, unit="records"))
    if not evidence.optimised:
        reasons.append(Reason(kind=ReasonKind.DEBUG_ENGINE, detail="build it with `make setup`"))
    return reasons


def used_ceiling_fraction(evidence: Evidence) -> float | None:
    """Share of its calibrated ceiling that a generator reached, by the operations of each interval: the value that one
    interval in ten exceeds, so that a rate that changes is judged where it is high, and a burst after a stall is not.
    None without a calibration, or without operations."""
    if evidence.calibration is None:
        return None
    in_flight = max(1, evidence.load.threads // len(evidence.dones))
    found = []
    for interval in evidence.intervals:
        if interval.get("seconds", 0.0) <= 0:
            continue
        rates: dict[str, float] = {}
        for one in interval["counts"]:
            if one["measure"] == "response":
                count = histogram.total(one["buckets"])
                rates[one["operation"]] = rates.get(one["operation"], 0.0) + count / interval["seconds"]
        used = evidence.calibration.used_fraction(rates, in_flight)
        if rates and used is not None:
            found.append(used)
    return sorted(found)[int(HIGH_QUANTILE * (len(found) - 1))] if found else None


def _answers(evidence: Evidence, limits: Limits) -> list[Reason]:
    reasons = []
    operations = sum(done["operations"] for done in evidence.dones)
    errors = sum(done["errors"] for done in evidence.dones)
    everything = operations + errors
    if everything and errors / everything > limits.error_fraction:
        kinds: dict[str, int] = {}
        for done in evidence.dones:
            for kind, count in done["errors_by_kind"].items():
                kinds[kind] = kinds.get(kind, 0) + count
        detail = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        said = {text for done in evidence.dones for texts in done.get("error_texts", {}).values() for text in texts}
        detail += SAID + "; ".join(sorted(said)) if said else ""
        reasons.append(
            Reason(
                kind=ReasonKind.ERRORS,
                measured=errors / everything,
                threshold=limits.error_fraction,
                unit="of operations",
                detail=detail,
            )
        )
    missing = sum(done["not_found"] for done in evidence.dones)
    if operations and missing / operations > limits.not_found_fraction:
        reasons.append(
            Reason(
                kind=ReasonKind.NOT_FOUND,
                measured=missing / operations,
                threshold=limits.not_found_fraction,
                unit="of operations",
                detail=f"{missing} reads of keys that must exist returned no row",
            )
        )
    wrong = sum(done["errors_by_kind"].get(INVALID, 0) for done in evidence.dones)
    if wrong / max(1, everything) > limits.not_found_fraction:
        reasons.append(
            Reason(
                kind=ReasonKind.NOT_FOUND,
                measured=wrong / everything,
                threshold=limits.not_found_fraction,
                unit="of operations",
                detail=f"{wrong} answers held other values than were written",
            )
        )
    asked = evidence.load.operations
    if asked is not None and evidence.load.duration_s is None and everything < asked:
        reasons.append(Reason(kind=ReasonKind.INCOMPLETE, measured=everything, threshold=asked, unit="operations"))
    return reasons


def _instruments(evidence: Evidence, limits: Limits) -> list[Reason]:
    """PROBE_GAP, of each probe on each node: one that goes on must not hide another that was silent."""
    reasons = []
    begun_s, ended_s = _span(evidence)
    for (probe, node), times_s in sorted(evidence.heard.items()):
        gap_s = longest_gap_s(times_s, begun_s, ended_s)
        if gap_s > limits.probe_gap_s:
            detail = f"{probe} on {node}"
            threshold = limits.probe_gap_s
            reasons.append(
                Reason(kind=ReasonKind.PROBE_GAP, measured=gap_s, threshold=threshold, unit="s", detail=detail)
            )
    return reasons


def _span(evidence: Evidence) -> tuple[float, float]:
    begun_s = min(done["first_sent_s"] for done in evidence.dones)
    return begun_s, max(done["last_done_s"] for done in evidence.dones)


def _surroundings(evidence: Evidence, limits: Limits) -> tuple[list[Reason], tuple[str, ...]]:
    """STEAL, by guests of the same hardware or by other programs of the same machine; and what could not be seen."""
    begun_s, ended_s = _span(evidence)
    found = []
    steals = {node: steal_fraction(samples, begun_s, ended_s) for node, samples in evidence.samples.items()}
    if steals:
        worst = max(sorted(steals), key=lambda node: steals[node])
        detail = f"other guests of the hardware, seen on {worst}"
        found.append((steals[worst], limits.steal_fraction, detail))
    machines = background_load(evidence.samples, evidence.machines, evidence.own, begun_s, ended_s)
    for machine in machines or ():
        found.append((machine.fraction, limits.background_cpu_fraction, machine.text))
    reasons = [
        Reason(kind=ReasonKind.STEAL, measured=measured, threshold=limit, unit="of all CPU time", detail=detail)
        for measured, limit, detail in found
        if measured > limit
    ]
    if machines is None and evidence.samples:
        return reasons, ("background load is unknown: too short a trial, or a node whose own time nobody reads",)
    return reasons, ()


def _cluster(evidence: Evidence) -> list[Reason]:
    reasons = []
    for node, settings in sorted(evidence.differing.items()):
        for name, (asked, found) in sorted(settings.items()):
            reasons.append(Reason(kind=ReasonKind.SETTINGS, detail=f"{node}: {name} is {found}, asked for {asked}"))
    for what, amount in sorted(evidence.still_busy.items()):
        if amount > 0:
            reasons.append(Reason(kind=ReasonKind.STILL_BUSY, measured=amount, threshold=0, unit=what))
    return reasons
