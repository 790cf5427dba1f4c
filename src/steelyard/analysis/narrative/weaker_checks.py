"""Checks of trials that were switched off, had a looser limit than by default, or could not be made, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.wording import capital
from steelyard.format import count, listed, number, percent
from steelyard.judging.verdict import BACKGROUND_UNKNOWN, CEILING_UNKNOWN
from steelyard.model.study import Limits, Study
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import ReasonKind

SUBJECTS: Final = {
    "background_cpu_fraction": "other programs",
    "steal_fraction": "other guests of the hardware",
    "policy_late_fraction": "a late scaling policy",
    "error_fraction": "failed operations",
    "not_found_fraction": "wrong or missing answers",
    "lag_p99_ms": "the generator's own delay",
    "offered_rate_fraction": "the offered rate",
    "generator_cpu_fraction": "the generator's busiest thread",
    "generator_ceiling_fraction": "the generator's ceiling",
    "probe_gap_s": "gaps between samples",
    "clock_s": "clocks of nodes",
    "clock_step_s": "steps of the clock",
    "link_late_ms": "lateness of the link program",
    "link_stalled_fraction": "pauses of the link program",
    "link_unread_fraction": "frames that the link program did not read",
}
"""Limit to what it is a limit on, the one that most often spoils a trial first."""
LOOSER_BELOW: Final = frozenset(kind.about.limit for kind in ReasonKind if kind.about.speaks.crossed(0.0, 1.0))
"""Limits of which a lower value is looser."""


def weakened(study: Study) -> list[str]:
    """A sentence on the checks that the study switched off or loosened; empty if there is none."""
    usual, limits = Limits(), study.limits
    searched = {"error_fraction"} if study.load.schedule == "search" else set()
    loose = [name for name in SUBJECTS if name not in searched and _looser(name, getattr(limits, name))]
    off = [f"{SUBJECTS[name]} (`limits.{name} = 1`)" for name in loose if _is_off(name, getattr(limits, name))]
    raised = [
        f"{SUBJECTS[name]} ({_with_unit(name, getattr(limits, name))}, by default "
        f"{_with_unit(name, getattr(usual, name))}: `limits.{name}`)"
        for name in loose
        if not _is_off(name, getattr(limits, name))
    ]
    parts = [f"the check on {listed(off)} was switched off"] if off else []
    parts += [f"the limit on {listed(raised)} was loosened"] if raised else []
    return [f"{capital('; '.join(parts))}: trials may count that the default limits leave out."] if parts else []


def not_made(records: Sequence[TrialRecord]) -> list[str]:
    """A sentence on the check of other programs, if it was asked for and could not be made for some of the trials that
    count."""
    used = [record for record in records if record.verdict.outcome == "valid" and not record.control]
    unknown = [
        note
        for record in used
        for note in record.verdict.notes
        if note.startswith(BACKGROUND_UNKNOWN) and record.limits.background_cpu_fraction < 1
    ]
    if not unknown:
        return []
    why = "; ".join(dict.fromkeys(note.partition(": ")[2] for note in unknown))
    trials = f"{len(unknown):,} of {count(len(used), 'trial')}"
    return [f"The check on other programs could not be made for {trials}: {why}."]


def no_ceiling(records: Sequence[TrialRecord]) -> list[str]:
    """A sentence if trials count that were not checked against the generator's ceiling."""
    notes = [
        note
        for record in records
        for note in record.verdict.notes
        if record.verdict.outcome == "valid" and note.startswith(CEILING_UNKNOWN)
    ]
    if not notes:
        return []
    why = "; ".join(dict.fromkeys(note.partition(": ")[2] for note in notes))
    return [f"The load was not checked against the generator's ceiling, only the load of its threads: {why}."]


def _looser(name: str, value: float) -> bool:
    usual: float = getattr(Limits(), name)
    return value < usual if name in LOOSER_BELOW else value > usual


def _with_unit(name: str, value: float) -> str:
    return percent(value) if name.endswith("_fraction") else f"{number(value, trim=True)} {name.rpartition('_')[2]}"


def _is_off(name: str, value: float) -> bool:
    """Whether no trial can cross the limit: no share of a whole is above 1."""
    whole = name.endswith("_fraction") and name not in LOOSER_BELOW and not name.startswith("generator_ceiling")
    return whole and value >= 1
