"""How a study stands, told from its store alone. Pure: the time is an argument."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from steelyard.analysis.treatments import label
from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.stopping import not_needed
from steelyard.model.trial import TrialRecord
from steelyard.report.basics.format import count, duration
from steelyard.report.tables.validity import reason_text
from steelyard.serve.stores import Snapshot

IN_PROGRESS, FINISHED, INTERRUPTED, FAILED = "in progress", "finished", "interrupted", "failed"
UNREADABLE, BEING_READ, EMPTY = "cannot be read", "being read", "nothing in it yet"

SILENT_S: Final = 8.0
"""A study in progress speaks about once a second; after so long its silence is mentioned."""
LOST_S: Final = 60.0
"""After so long it counts as interrupted: its process was killed, or its machine sleeps."""
ENDS: Final = ("run-began", "run-ended", "run-failed", "interrupted")
LINES: Final = 200
"""Newest lines of the log and of the attempts without a valid verdict that are shown."""


@dataclass(frozen=True)
class Standing:
    """Where a study is."""

    state: str
    why: str = ""
    """A sentence beside the state; empty where the state says it all."""
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
    rule: str = ""
    """What the stopping rule says, as a sentence."""
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
    """What became of the trial."""


def standing(snapshot: Snapshot, now_s: float) -> Standing:
    """How the study of a store stands at `now_s`, seconds since the epoch."""
    if snapshot.study is None:
        return Standing(UNREADABLE if _there(snapshot) else EMPTY, snapshot.problem)
    limit = snapshot.study.limits.attempts
    found = attempts_by_id(snapshot.records)
    planned = snapshot.plan.trials if snapshot.plan else ()
    done = [found.get(trial.id, []) for trial in planned if settled(found.get(trial.id, ()), limit)]
    valid = sum(any(record.verdict.outcome == "valid" for record in attempts) for attempts in done)
    times = [t_s for event in snapshot.events if (t_s := number_of(event, "t_s")) is not None]
    times += [record.ended_s or record.begun_s for record in snapshot.records]
    beat_s = number_of(snapshot.live, "t_s")
    decision = snapshot.decision
    spared = not_needed(snapshot.plan, snapshot.records, decision) if snapshot.plan and decision else ()
    state, why = _state(snapshot, len(planned), len(done) + len(spared), now_s)
    return Standing(
        state=state,
        why=why,
        planned=len(planned) - len(spared),
        at_most=decision is not None and decision.go_on,
        spared=len(spared),
        rule=f"The study {decision.sentence}" if decision is not None else "",
        done=len(done),
        valid=valid,
        invalid=len(done) - valid,
        voided=sum(record.verdict.outcome != "valid" and not record.verdict.final for record in snapshot.records),
        begun_s=min((*times, *(record.begun_s for record in snapshot.records)), default=None),
        last_s=max((*times, *([beat_s] if beat_s is not None else [])), default=None),
    )


def _there(snapshot: Snapshot) -> bool:
    """Whether there is a study's file, although it cannot be read."""
    return bool(snapshot.problem) and not snapshot.problem.endswith("yet")


def _state(  # noqa: PLR0911 - one a way to end
    snapshot: Snapshot, planned: int, done: int, now_s: float
) -> tuple[str, str]:
    beat_s = number_of(snapshot.live, "t_s")
    silent_s = None if beat_s is None else now_s - beat_s
    if silent_s is not None and silent_s < LOST_S:
        quiet = f"no sign of life for {duration(silent_s)}" if silent_s >= SILENT_S else ""
        return IN_PROGRESS, quiet
    last: Mapping[str, Any] = next((event for event in reversed(snapshot.events) if event.get("event") in ENDS), {})
    missing = planned - done
    match last.get("event"):
        case "run-failed":
            return FAILED, "; ".join(filter(None, (str(last.get("message", "")), str(last.get("hint", "")))))
        case "run-ended" if last.get("missing") == 0:
            return FINISHED, ""
        case _ if planned and not missing:
            return FINISHED, ""
        case "run-ended":
            return INTERRUPTED, "it was asked to stop after a trial; the same command goes on"
        case "interrupted":
            return INTERRUPTED, "it was stopped; the same command goes on"
        case "run-began":
            return INTERRUPTED, _without_a_word(silent_s)
    return INTERRUPTED, "the journal does not say how it ended"


def _without_a_word(silent_s: float | None) -> str:
    if silent_s is None:
        return "it ended without a word (killed, or a power cut); the same command goes on"
    return (
        f"no sign of life for {duration(silent_s)}: killed, or a power cut (then the same command goes on), or its "
        "machine sleeps"
    )


def number_of(said: Mapping[str, Any] | None, name: str) -> float | None:
    """A number of what was said, or None: the file may be anybody's."""
    value = (said or {}).get(name)
    try:
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
    except OverflowError:
        return None


def lost(snapshot: Snapshot, state: str) -> tuple[Lost, ...]:
    """Attempts that are not valid, the newest first, at most LINES."""
    if snapshot.study is None:
        return ()
    limit = snapshot.study.limits.attempts
    found = attempts_by_id(snapshot.records)
    return tuple(
        Lost(
            t_s=record.ended_s or record.begun_s,
            trial=record.id,
            attempt=record.attempt,
            cell=label(record.treatment),
            blamed="the system" if record.verdict.system_fault else "the laboratory",
            reasons="; ".join(reason_text(reason) for reason in record.verdict.reasons) or "no reason recorded",
            then=_then(record, found[record.id], limit, state),
        )
        for record in reversed(snapshot.records)
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


def log(snapshot: Snapshot) -> tuple[Line, ...]:
    """Journal and troubles, the newest first, at most LINES."""
    cells = {record.id: label(record.treatment) for record in snapshot.records}
    lines = [line for event in snapshot.events[-LINES:] if (line := _line(event, cells)) is not None]
    for trouble in listed_in(snapshot.live, "troubles"):
        text = f"{trouble.get('message', '')}: {trouble.get('remedy', '')}"
        lines.append(Line(number_of(trouble, "t_s") or 0.0, text, trouble=True))
    return tuple(sorted(lines, key=lambda line: line.t_s, reverse=True)[:LINES])


def listed_in(said: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """A list of tables of what was said; empty if there is none."""
    return [one for one in listed_of((said or {}).get(name)) if isinstance(one, Mapping)]


def listed_of(value: Any) -> list[Any]:
    """The value, if it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def _line(  # noqa: PLR0911, PLR0912 - one a kind of event
    event: Mapping[str, Any], cells: Mapping[str, str]
) -> Line | None:
    t_s = number_of(event, "t_s")
    if t_s is None:
        return None
    match event.get("event"):
        case "run-began":
            return Line(t_s, f"began: {event.get('todo')} of {event.get('total')} trials to do")
        case "run-ended":
            numbers = ", ".join(f"{event.get(name)} {name}" for name in ("valid", "invalid", "missing"))
            return Line(t_s, f"ended: {numbers}")
        case "start-began":
            return Line(t_s, f"block {event.get('block')}: starting a cluster for {event.get('trials')} trials")
        case "start-ready":
            return Line(t_s, f"cluster {event.get('cluster')} is ready")
        case "start-ended":
            return Line(t_s, f"cluster of {event.get('start')} given back")
        case "trial-sealed":
            return _sealed(t_s, event, cells)
        case "start-failed" | "laboratory-failed" | "run-failed" as kind:
            return Line(t_s, f"{str(kind).replace('-', ' ')}: {event.get('message')}", trouble=True)
        case "draft-removed":
            return Line(t_s, "what a killed process had left of a trial was removed", trouble=True)
        case "interrupted":
            return Line(t_s, "interrupted", trouble=True)
        case "noise-floor" if event.get("why"):
            return Line(t_s, str(event["why"]))
        case "judged":
            blocks, going = event.get("blocks"), "goes on" if event.get("go_on") else "ends"
            return Line(t_s, f"stopping rule after {blocks} blocks: the study {going} ({event.get('why')})")
        case str(other):
            return Line(t_s, other.replace("-", " "))
    return None


def _sealed(t_s: float, event: Mapping[str, Any], cells: Mapping[str, str]) -> Line:
    trial, outcome = str(event.get("trial")), str(event.get("outcome"))
    reasons = [str(one).lower().replace("_", " ") for one in listed_of(event.get("reasons"))]
    again = f", attempt {event.get('attempt')}" if event.get("attempt") != 1 else ""
    why = f": {', '.join(reasons)}" if reasons else ""
    return Line(t_s, f"trial {trial}{again} ({cells.get(trial, 'no longer there')}) {outcome}{why}", outcome != "valid")


def clock(t_s: float | None, now_s: float) -> str:
    """A time of day of this machine: `14:03:21`, with the date where it is not today's."""
    if t_s is None:
        return "–"
    when, now = _local(t_s), _local(now_s)
    if when is None or now is None:
        return "–"
    return f"{when:%H:%M:%S}" if when.date() == now.date() else f"{when:%Y-%m-%d %H:%M}"


def end_by_the_clock(live: Mapping[str, Any] | None, now_s: float) -> str:
    """`about 05:40 (05:20 to 06:15)`; empty if nothing is known."""
    left = (live or {}).get("left")
    if not isinstance(left, Mapping):
        return ""
    said_s, seconds, low_s, high_s = (number_of(left, name) for name in ("said_s", "seconds", "low_s", "high_s"))
    if said_s is None or seconds is None or seconds <= 0:
        return ""
    if said_s + (high_s or seconds) < now_s:
        return f"later than {_minutes(said_s + (high_s or seconds), now_s)}, the latest that was thought"
    return (
        f"about {_minutes(said_s + seconds, now_s)} "
        f"({_minutes(said_s + (low_s or seconds), now_s)} to {_minutes(said_s + (high_s or seconds), now_s)})"
    )


def _minutes(t_s: float, now_s: float) -> str:
    when, now = _local(t_s), _local(now_s)
    if when is None or now is None:
        return "–"
    return f"{when:%H:%M}" if when.date() == now.date() else f"{when:%a %d %b %H:%M}"


def _local(t_s: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(t_s)
    except (OverflowError, OSError, ValueError):
        # No time of any study: the file is not what a study wrote.
        return None
