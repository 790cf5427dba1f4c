"""The verdict on a trial: a pure function of the evidence and the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from steelyard.lab.responses import merged, quantile_ms
from steelyard.model.sample import Sample
from steelyard.model.study import Limits, Load
from steelyard.model.verdict import Reason, ReasonKind, Verdict

STEAL_METRIC = "machine_cpu_steal_fraction"


@dataclass(frozen=True)
class Evidence:
    """Everything that decides whether a trial counts. Times in seconds since the epoch."""

    load: Load
    intervals: Sequence[Mapping[str, Any]]
    dones: Sequence[Mapping[str, Any]]
    optimised: bool
    samples: Mapping[str, Sequence[Sample]]
    """Node to its samples."""
    differing: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    """Node to settings that differ: name -> (asked, in force)."""
    still_busy: Mapping[str, float] = field(default_factory=dict)


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """valid when no reason speaks against it; unknown when the engine never said that it was done."""
    if not evidence.dones:
        return Verdict(outcome="unknown", reasons=(Reason(kind=ReasonKind.INCOMPLETE, detail="no end of the phase"),))
    reasons = (
        *_pacing(evidence, limits),
        *_generator(evidence, limits),
        *_answers(evidence, limits),
        *_instruments(evidence, limits),
        *_cluster(evidence),
    )
    return Verdict(outcome="invalid" if reasons else "valid", reasons=reasons)


def _pacing(evidence: Evidence, limits: Limits) -> list[Reason]:
    """LAG: what the generator did late although it could have sent. RATE: operations that were due and never sent,
    because the system had no place for them: the load was not what the treatment says."""
    if evidence.load.schedule == "closed":
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
    if busiest > limits.generator_cpu_fraction:
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
    asked = evidence.load.operations
    if asked is not None and evidence.load.duration_s is None and everything < asked:
        reasons.append(Reason(kind=ReasonKind.INCOMPLETE, measured=everything, threshold=asked, unit="operations"))
    return reasons


def _instruments(evidence: Evidence, limits: Limits) -> list[Reason]:
    reasons = []
    begun = min(done["first_sent_s"] for done in evidence.dones)
    ended = max(done["last_done_s"] for done in evidence.dones)
    for node, samples in sorted(evidence.samples.items()):
        gap = _longest_gap_s(sorted({sample.t_s for sample in samples}), begun, ended)
        if gap > limits.probe_gap_s:
            reasons.append(
                Reason(
                    kind=ReasonKind.PROBE_GAP, measured=gap, threshold=limits.probe_gap_s, unit="s", detail=f"on {node}"
                )
            )
    worst = max((_steal(samples, begun, ended) for samples in evidence.samples.values()), default=0.0)
    if worst > limits.steal_fraction:
        threshold = limits.steal_fraction
        reasons.append(Reason(kind=ReasonKind.STEAL, measured=worst, threshold=threshold, unit="of all CPU time"))
    return reasons


def _steal(samples: Sequence[Sample], begun_s: float, ended_s: float) -> float:
    """Mean steal on one node while it was measured; readings of a second end up to a second after it."""
    values = [s.value for s in samples if s.metric == STEAL_METRIC and begun_s <= s.t_s <= ended_s + 1]
    return sum(values) / len(values) if values else 0.0


def _longest_gap_s(times_s: Sequence[float], begun_s: float, ended_s: float) -> float:
    """The longest stretch of the measured phase without a sample."""
    inside = [begun_s, *(t for t in times_s if begun_s < t < ended_s), ended_s]
    return max(later - earlier for earlier, later in pairwise(inside))


def _cluster(evidence: Evidence) -> list[Reason]:
    reasons = []
    for node, settings in sorted(evidence.differing.items()):
        for name, (asked, found) in sorted(settings.items()):
            reasons.append(Reason(kind=ReasonKind.SETTINGS, detail=f"{node}: {name} is {found}, asked for {asked}"))
    for what, amount in sorted(evidence.still_busy.items()):
        if amount > 0:
            reasons.append(Reason(kind=ReasonKind.STILL_BUSY, measured=amount, threshold=0, unit=what))
    return reasons
