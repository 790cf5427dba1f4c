"""State of a study, derived from its store alone. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.events.base import Kept, Unknown
from steelyard.events.kept import (
    ActivityBegan,
    ActivityEnded,
    BlockLost,
    DraftRemoved,
    LaboratoryFailed,
    NoiseFloorSought,
    QuietAwaited,
    QuietReached,
    SessionBegan,
    SessionEnded,
    SessionFailed,
    SessionInterrupted,
    StartBegan,
    StartEnded,
    StartFailed,
    StartReady,
    StoppingJudged,
    TrialSealed,
)
from steelyard.format import count, duration, treatment_label
from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.derived import not_run
from steelyard.judging.looks import look_of
from steelyard.judging.stopping import not_needed
from steelyard.model.trial import TrialRecord
from steelyard.progress.reason_words import short
from steelyard.progress.session_state import IN_PROGRESS, activity_words, session_state
from steelyard.report.tables.validity import reason_text
from steelyard.serve.store_cache import StoreLook
from steelyard.store.journal import Entry
from steelyard.store.looks import looks, number_of

UNREADABLE, BEING_READ, EMPTY = "cannot be read", "being read", "nothing in it yet"

LINES: Final = 200
"""Newest lines of the log and of the attempts without a valid verdict that are shown."""


@dataclass(frozen=True)
class Standing:
    """State of a study."""

    state: str
    why: str = ""
    """A sentence next to the state; empty if the state says it all."""
    planned: int = 0
    done: int = 0
    """Trials of the plan that need no further attempt."""
    valid: int = 0
    """Trials of the plan with a valid attempt."""
    invalid: int = 0
    """Trials of the plan that are done without one."""
    at_most: bool = False
    """Whether a stopping rule may end the study before all planned trials are done."""
    spared: int = 0
    """Trials of the plan beyond the block after which a stopping rule ended the study."""
    look: str = ""
    """Which look at the study this is, or that it is unfinished; empty at the only look of a finished one."""
    rule: str = ""
    """Decision of the stopping rule, as a sentence."""
    voided: int = 0
    """Attempts that the laboratory spoilt, whether or not the trial was repeated."""
    begun_s: float | None = None
    """First sign of the study in the store."""
    last_s: float | None = None
    """Newest sign of it."""


@dataclass(frozen=True)
class Line:
    """One line of a log: when, what, and whether something went wrong."""

    t_s: float
    text: str
    trouble: bool = False


@dataclass(frozen=True)
class Lost:
    """An attempt that is not valid."""

    t_s: float
    trial: str
    attempt: int
    cell: str
    blamed: str
    reasons: str
    then: str
    """Outcome of the trial."""


def standing(look: StoreLook, now_s: float) -> Standing:
    """State of the study of a store at `now_s`, seconds since the epoch."""
    if look.study is None:
        return Standing(UNREADABLE if _there(look) else EMPTY, look.problem)
    limit = look.study.limits.attempts
    by_trial = attempts_by_id(look.records)
    planned = look.plan.trials if look.plan else ()
    done = [by_trial.get(trial.id, []) for trial in planned if settled(by_trial.get(trial.id, ()), limit)]
    valid = sum(any(record.verdict.outcome == "valid" for record in attempts) for attempts in done)
    times = [entry.t_s for entry in look.journal if entry.t_s is not None]
    times += [record.ended_s or record.begun_s for record in look.records]
    beat_s = look.live.t_s if look.live is not None else None
    decision = look.decision
    spared = len(not_needed(look.plan, look.records, decision)) if look.plan and decision else 0
    spared += len(not_run(look.study, look.plan, look.records)) if look.plan else 0
    missing = len(planned) - len(done) - spared
    silent_s = None if beat_s is None else now_s - beat_s
    state, why = session_state(look.journal, planned=len(planned), missing=missing, silent_s=silent_s)
    return Standing(
        state=state,
        why=why,
        planned=len(planned) - spared,
        at_most=decision is not None and decision.go_on,
        spared=spared,
        look=look_of(look.plan, look.records, look.study, number_of(looks(look.journal)), decision).sentence,
        rule=f"The study {decision.sentence}" if decision is not None else "",
        done=len(done),
        valid=valid,
        invalid=len(done) - valid,
        voided=sum(record.verdict.outcome != "valid" and not record.verdict.final for record in look.records),
        begun_s=min((*times, *(record.begun_s for record in look.records)), default=None),
        last_s=max((*times, *([beat_s] if beat_s is not None else [])), default=None),
    )


def _there(look: StoreLook) -> bool:
    """Whether there is a study's file, although it cannot be read."""
    return bool(look.problem) and not look.problem.endswith("yet")


def lost(look: StoreLook, state: str) -> tuple[Lost, ...]:
    """Attempts that are not valid, the newest first, at most LINES."""
    if look.study is None:
        return ()
    limit = look.study.limits.attempts
    by_trial = attempts_by_id(look.records)
    return tuple(
        Lost(
            t_s=record.ended_s or record.begun_s,
            trial=record.id,
            attempt=record.attempt,
            cell=treatment_label(record.treatment),
            blamed="the system" if record.verdict.system_fault else "the laboratory",
            reasons="; ".join(reason_text(reason) for reason in record.verdict.reasons) or "no reason recorded",
            then=_then(record, by_trial[record.id], limit, state),
        )
        for record in reversed(look.records)
        if record.verdict.outcome != "valid"
    )[:LINES]


def _then(record: TrialRecord, attempts: Sequence[TrialRecord], limit: int, state: str) -> str:
    if record.verdict.final:
        return "kept: it is a result"
    later = [one for one in attempts if one.attempt > record.attempt]
    if later:
        return f"repeated: attempt {later[0].attempt} is {later[0].verdict.outcome}"
    if settled(attempts, limit):
        return f"given up after {count(len(attempts), 'attempt')}"
    return "queued again" if state == IN_PROGRESS else "to be repeated"


def log(look: StoreLook) -> tuple[Line, ...]:
    """Journal and troubles, the newest first, at most LINES."""
    cells = {record.id: treatment_label(record.treatment) for record in look.records}
    lines = [line for entry in look.journal[-LINES:] if (line := _line(entry, cells)) is not None]
    for trouble in look.live.troubles if look.live is not None else ():
        lines.append(Line(trouble.t_s, f"{trouble.message}: {trouble.hint}", trouble=True))
    return tuple(sorted(lines, key=lambda line: line.t_s, reverse=True)[:LINES])


def _line(entry: Entry, cells: Mapping[str, str]) -> Line | None:
    if entry.t_s is None or entry.event is None or not entry.event.name:
        return None
    text, trouble = _in_words(entry.event, cells)
    return Line(entry.t_s, text, trouble=trouble)


def _in_words(  # noqa: PLR0911, PLR0912 - one a kind of event
    event: Kept | Unknown, cells: Mapping[str, str]
) -> tuple[str, bool]:
    """An event in words, and whether something went wrong."""
    match event:
        case SessionBegan():
            return f"began: {event.todo} of {event.total} trials to do", False
        case SessionEnded():
            return f"ended: {event.valid} valid, {event.invalid} invalid, {event.missing} missing", False
        case SessionFailed() | StartFailed() | LaboratoryFailed():
            return f"{event.name.replace('-', ' ')}: {event.message}", True
        case SessionInterrupted():
            return "interrupted", True
        case BlockLost():
            return f"block {event.block} on {event.machine} was lost: {event.why}", True
        case StartBegan():
            return f"block {event.block}: starting a cluster for {count(event.trials, 'trial')}", False
        case StartReady():
            return f"cluster {event.cluster} is ready", False
        case StartEnded():
            return f"cluster of {event.start} released", False
        case QuietAwaited():
            return f"waiting for a quiet machine: {'; '.join(short(reason) for reason in event.reasons)}", True
        case QuietReached():
            return f"the machine is quiet: waited {duration(event.waited_s)}", False
        case ActivityBegan() | ActivityEnded():
            return activity_words(event), isinstance(event, ActivityEnded) and event.outcome == "failed"
        case TrialSealed():
            return _sealed(event, cells), event.outcome != "valid"
        case DraftRemoved():
            return "what a killed process had left of a trial was removed", True
        case NoiseFloorSought(why=why) if why:
            return why, False
        case StoppingJudged(decision=decision):
            going = "continues" if decision.go_on else "ends"
            return f"stopping rule after {decision.blocks} blocks: the study {going} ({decision.why})", False
    return event.name.replace("-", " "), False


def _sealed(event: TrialSealed, cells: Mapping[str, str]) -> str:
    again = f", attempt {event.attempt}" if event.attempt != 1 else ""
    reasons = ", ".join(reason.lower().replace("_", " ") for reason in event.reasons)
    cell = cells.get(event.trial, "no longer there")
    return f"trial {event.trial}{again} ({cell}) {event.outcome}{': ' if reasons else ''}{reasons}"
