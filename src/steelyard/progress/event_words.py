"""Words of a study in progress: its phase, and the line that a log has of an event. Pure: times are arguments."""

from __future__ import annotations

import math
from typing import Final

from steelyard.events.base import Event
from steelyard.events.kept import (
    ActivityBegan,
    ActivityEnded,
    LevelDerived,
    QuietAwaited,
    QuietReached,
    SessionBegan,
    StartBegan,
    StoppingJudged,
    TrialSealed,
)
from steelyard.events.shown import PhaseEntered, RuleBegan, TrialBegan, Trouble
from steelyard.format import count, duration, number, treatment_label
from steelyard.judging.dilation import modelled
from steelyard.judging.stopping import Decision
from steelyard.model.trial import Phase, TrialRecord
from steelyard.progress.reason_words import groups, narrowing_words, waiting_words
from steelyard.progress.session_state import journal_words
from steelyard.progress.state import Live

LATE: Final = 2.0
"""A phase that takes longer than this multiple of its expected time shows its time limit."""
LIMIT_SHOWN_S: Final = 5.0
"""Seconds of a phase before which no limit is shown."""
MOST_INTERVALS: Final = 6
"""Treatments whose intervals one line shows, the widest first."""
MS_PER_S: Final = 1000.0


def phase_text(live: Live, now_s: float) -> str:
    """Phase with its time, then what goes on in it, and the size of a cluster under a policy."""
    text, size = ": ".join(filter(None, phase_parts(live, now_s))), size_parts(live)
    return f"{text}; nodes {': '.join(filter(None, size))}" if size[0] else text


def phase_parts(live: Live, now_s: float) -> tuple[str, str]:
    """The two parts of `phase_text`."""
    if live.quiet is not None:
        waits, _, reasons = waiting_words(live.quiet.reasons, now_s - live.quiet.since_s, live.quiet.limit_s).partition(
            ": "
        )
        return waits, reasons
    if live.phase is None:
        return "", ""
    seconds = now_s - live.phase.entered_s
    limit_s, expected_s = live.phase.timeout_s, live.phase.expected_s
    in_time = expected_s is not None and seconds <= LATE * expected_s
    of = f" of {duration(expected_s)}" if expected_s is not None and in_time else ""
    limited = limit_s is not None and seconds > LIMIT_SHOWN_S and not in_time
    limit = f" (timeout {duration(limit_s)})" if limit_s is not None and limited else ""
    return f"{live.phase.name} {duration(math.floor(max(0.0, seconds)))}{of}{limit}", live.waiting


def size_parts(live: Live) -> tuple[str, str]:
    """Actual and desired size of a cluster under a policy, and why: `3 of 5 desired`, reason and metric. Empty
    without a policy."""
    size = live.size
    if size is None:
        return "", ""
    now = ""
    if size.value is not None:
        now = f"now {size.metric} {number(size.value, digits=3)}{f', {size.limit}' if size.limit else ''}"
    return f"{size.in_service} of {size.desired} desired", "; ".join(filter(None, (size.reason, now)))


def decision_line(decision: Decision) -> str:
    """A decision of the stopping rule as one line: the rule before the first block, then the widest intervals."""
    if not decision.blocks:
        rule = decision.rule
        hours = f", {rule.hours:g} h at most" if rule.hours else ""
        return f"until {decision.target}: from {rule.least_starts} to {decision.cap} starts{hours}"
    known = [(cell, cell.half_width_percent) for cell in decision.wide or decision.cells]
    widest = [cell for cell, half in sorted(known, key=lambda one: -(float("inf") if one[1] is None else one[1]))]
    texts = [
        f"{treatment_label(cell.treatment)} {narrowing_words(cell)} (n {cell.n})" for cell in widest[:MOST_INTERVALS]
    ]
    more = f", and {len(widest) - MOST_INTERVALS} more" if len(widest) > MOST_INTERVALS else ""
    return f"block {decision.blocks} is whole: {'; '.join(texts)}{more}. The study {decision.sentence}"


def event_line(live: Live, event: Event) -> str | None:  # noqa: PLR0911 - one a kind of event
    """The line of an event; None if it has none."""
    match event:
        case SessionBegan():
            of = "of at most" if event.at_most else "of"
            return f"{event.study}: {event.todo} {of} {count(event.total, 'trial')} to do, in {event.store}"
        case StoppingJudged() | RuleBegan():
            return decision_line(event.decision)
        case StartBegan():
            what = treatment_label(event.treatment or {"nodes": event.nodes})
            trials = count(event.trials, "search", "searches") if event.searches else count(event.trials, "trial")
            return f"block {event.block}{of_words(live)}{event.blocks}: starting {what} for {trials}"
        case TrialBegan():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            what = treatment_label(event.planned.treatment or {"nodes": event.planned.settings.site.nodes})
            return f"trial {event.number}{of_words(live)}{event.total}: {what}{again}"
        case PhaseEntered(phase=Phase.SERVER_WARM_UP, expected_s=float(deadline_s)):
            return f"  {event.phase}, at most {duration(deadline_s)}"
        case PhaseEntered(phase=Phase.DEPLOY | Phase.POPULATE | Phase.MEASURE):
            return f"  {event.phase}"
        case QuietAwaited():
            return f"  {waiting_words(event.reasons, 0.0, event.wait_s)}"
        case QuietReached():
            return f"  the machine is quiet: waited {duration(event.waited_s)}"
        case ActivityBegan() | ActivityEnded() | LevelDerived():
            return f"  {journal_words(event)}"
        case TrialSealed(record=TrialRecord() as record):
            return _sealed(record)
        case Trouble():
            return f"  ! {event.message}: {event.hint}"
        case _:
            return None


def _sealed(sealed: TrialRecord) -> str:
    record, k = modelled(sealed), sealed.settings.node.dilation
    responses, outcome = record.responses, record.verdict.outcome
    reasons = "".join(f"; {group.sentence}" for group in groups(record.verdict.reasons))
    if responses.execution_time_ms is None:
        return f"  {outcome}{reasons}"
    dilated = "" if k == 1 else f" (dilation {k:g})"
    capacity_per_s = responses.of("capacity_per_s")
    if record.search is not None and capacity_per_s is not None:
        windows = count(len(record.search.windows), "window")
        return f"  {outcome}: capacity {number(capacity_per_s, digits=3)} op/s after {windows}{dilated}{reasons}"
    if record.search is not None:
        return f"  {outcome} after {count(len(record.search.windows), 'window')}{dilated}{reasons}"
    rate = number(responses.throughput_per_s, digits=3)
    line = f"  {outcome}: {number(responses.execution_time_ms / MS_PER_S, trim=False)} s, {rate} op/s"
    if responses.response_ms_p99 is not None:
        line += f", p99 {ms(responses.response_ms_p99)}"
    return line + dilated + reasons


def of_words(live: Live) -> str:
    """Between a place in the plan and its number of trials."""
    return " of at most " if live.at_most else "/"


def ms(value: float | None) -> str:
    """A time with its unit."""
    return f"{number(value, digits=3, trim=False)} ms"
