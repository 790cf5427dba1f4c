"""State of a running study at this moment: one value, folded from events.

Terminal, live file and browser draw this value and nothing else. It asks no clock: times are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from steelyard.events.base import Event
from steelyard.events.kept import (
    ActivityEnded,
    QuietAwaited,
    QuietReached,
    SessionBegan,
    StartBegan,
    StoppingJudged,
    TrialSealed,
)
from steelyard.events.shown import (
    PhaseEntered,
    RuleBegan,
    Sampled,
    Sized,
    StillBusy,
    Ticked,
    TimeLeft,
    TrialBegan,
    Trouble,
    Waiting,
)
from steelyard.format import clock, duration
from steelyard.judging.stopping import Decision
from steelyard.model.histogram import merge
from steelyard.model.named_level import Level
from steelyard.model.percentiles import quantile_ns
from steelyard.model.plausible import Moment
from steelyard.model.sample import Sample
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value
from steelyard.model.verdict_reasons import Reason
from steelyard.wire.record import Interval

LAST_SECONDS: Final = 180
"""Newest intervals of load that are kept, of all load nodes together and whatever the trial."""
LAST_TROUBLES: Final = 20

CLEANING_UP: Final = "once the cluster is stopped and its nodes are given back"
"""The end of a study after its last trial."""
SHORTLY_S = 120.0
"""An end that is nearer is said in seconds: the clock has whole minutes."""


class _Part(Value):
    """A part of the state. What a later version adds is skipped."""

    model_config = ConfigDict(extra="ignore")


class StartUnderWay(_Part):
    """The start of a cluster whose trials are in progress."""

    start: str
    treatment: dict[str, Level]
    trials: int


class TrialUnderWay(_Part):
    """The attempt that is in progress."""

    id: str
    treatment: dict[str, Level] = Field(default_factory=dict)
    control: bool = False
    attempt: int = 1
    number: int
    """Place among the trials of the plan."""
    begun_s: Moment | None = None


class PhaseUnderWay(_Part):
    """The newest bracket that was entered."""

    name: str
    entered_s: Moment
    timeout_s: float | None = None
    expected_s: float | None = None
    """Expected seconds, where that is known."""


class SizeUnderWay(_Part):
    """Actual and desired size of a cluster under a policy, and the metric that it follows."""

    in_service: int
    desired: int
    reason: str = ""
    """Reason of the last change of the desired size; empty if it did not change."""
    metric: str = ""
    value: float | None = None
    """The newest point of the metric."""
    limit: str = ""
    """Threshold or target of the metric, in words."""


class AwaitedQuiet(_Part):
    """The machine is not quiet, and no trial begins until it is."""

    reasons: tuple[Reason, ...] = ()
    """Reasons in the newest second that was not quiet: what is over its limit, and what is busy."""
    since_s: Moment
    limit_s: float
    """Longest wait, seconds."""


class Left(_Part):
    """Time that is left, as estimated at `said_s`."""

    seconds: float
    low_s: float
    high_s: float
    said_s: Moment
    trials: int | None = None
    """Trials that were left then; None if that was not said."""


class LoadSecond(_Part):
    """One interval of one load node: operations/s and milliseconds."""

    t_s: Moment
    """Its beginning."""
    node: str
    phase: str
    span_s: float
    rate_per_s: float | None = None
    response_ms_p50: float | None = None
    response_ms_p99: float | None = None
    service_ms_p99: float | None = None
    lag_ms_p99: float | None = None
    pacing_ms_p99: float | None = None
    errors: int = 0
    unsent: int = 0
    backlog: int = 0
    cpu_fraction: float | None = None


class NodeReadings(_Part):
    """The newest reading of each metric of one node."""

    t_s: Moment | None = None
    values: dict[str, float] = Field(default_factory=dict)


class TroubleNoted(_Part):
    """Something that went wrong and was dealt with."""

    t_s: Moment
    message: str
    hint: str


class CellSoFar(_Part):
    """The trials of one treatment that this session or an earlier one has sealed."""

    treatment: dict[str, Level]
    invalid: int = 0
    infeasible: str = ""
    """Reason why the system cannot do it, if a trial said so."""


class Live(_Part):
    """A study in progress. Times are seconds since the epoch."""

    t_s: Moment
    """When it was said."""
    begun_s: Moment | None = None
    """When this session began."""
    study: str = ""
    folder: str = ""
    total: int = 0
    """Trials of the plan."""
    todo: int = 0
    """Trials to do when the session began."""
    blocks: int = 0
    at_most: bool = False
    """A stopping rule may end the study before the last of these trials and blocks."""
    response: str = "execution_time_ms"
    """The study's main response."""
    block: int = 0
    number: int = 0
    """Place of the newest trial among those of the plan."""
    start: StartUnderWay | None = None
    trial: TrialUnderWay | None = None
    """None between trials."""
    phase: PhaseUnderWay | None = None
    waiting: str = ""
    """Object of the wait."""
    size: SizeUnderWay | None = None
    """None unless a policy is asked for the size of the cluster."""
    quiet: AwaitedQuiet | None = None
    """None unless the study waits for a quiet machine."""
    left: Left | None = None
    seconds: tuple[LoadSecond, ...] = ()
    """The newest `LAST_SECONDS`, oldest first."""
    seconds_under_way: int = 0
    """Number of them, from the newest, that are of the trial in progress, or came since the last one ended."""
    nodes: dict[str, NodeReadings] = Field(default_factory=dict)
    troubles: tuple[TroubleNoted, ...] = ()
    """The last `LAST_TROUBLES`, oldest first."""
    decision: Decision | None = None
    """Decision of the stopping rule after the last whole block."""
    cells: tuple[CellSoFar, ...] = ()

    @property
    def treatment(self) -> Mapping[str, Level]:
        """Treatment of the trial in progress; between trials that of the start, as far as it is known."""
        if self.trial is not None:
            return self.trial.treatment
        return self.start.treatment if self.start is not None else {}

    @property
    def current_seconds(self) -> tuple[LoadSecond, ...]:
        """Seconds of load of the trial in progress, or since the last one ended."""
        return self.seconds[len(self.seconds) - min(self.seconds_under_way, len(self.seconds)) :]


def beginning(now_s: float) -> Live:
    """The state before the first event."""
    return Live(t_s=now_s, begun_s=now_s)


def fold(live: Live, event: Event, now_s: float) -> Live:
    """The state after one more event."""
    return live.model_copy(update={"t_s": now_s, **_changes(live, event, now_s)})


def _changes(live: Live, event: Event, now_s: float) -> dict[str, Any]:  # noqa: PLR0912 - one per kind of event
    changes: dict[str, Any] = {}
    match event:
        case SessionBegan():
            names = ("study", "total", "todo", "blocks", "at_most", "response")
            changes = {**{name: getattr(event, name) for name in names}, "folder": event.store}
        case StoppingJudged() | RuleBegan():
            changes = {"decision": event.decision, "cells": _judged(live.cells, event.decision)}
        case TimeLeft():
            changes = {"left": _left(event, now_s)}
        case StartBegan():
            start = StartUnderWay(start=event.start, treatment=dict(event.treatment), trials=event.trials)
            of_start: dict[str, Any] = {"start": start, "trial": None, "nodes": {}, "size": None}
            changes = {"block": event.block, "blocks": event.blocks, **of_start}
        case TrialBegan():
            changes = _trial_began(event, now_s)
        case PhaseEntered():
            phase = PhaseUnderWay(
                name=str(event.phase), entered_s=now_s, timeout_s=event.timeout_s, expected_s=event.expected_s
            )
            changes = {"phase": phase, "waiting": ""}
        case Waiting():
            changes = {"waiting": event.what}
        case Sized():
            changes = {"size": _size(event)}
        case ActivityEnded():
            changes = {"waiting": ""}
        case QuietAwaited():
            changes = {"quiet": AwaitedQuiet(reasons=event.reasons, since_s=now_s, limit_s=event.wait_s)}
        case StillBusy():
            since_s = now_s - event.waited_s
            changes = {"quiet": AwaitedQuiet(reasons=tuple(event.reasons), since_s=since_s, limit_s=event.limit_s)}
        case QuietReached():
            changes = {"quiet": None, "left": _after(live.left, event.waited_s)}
        case Ticked():
            seconds = (*live.seconds, second_of(event.node, event.record))[-LAST_SECONDS:]
            changes = {"seconds": seconds, "seconds_under_way": live.seconds_under_way + 1}
        case Sampled():
            changes = {"nodes": _sampled(live.nodes, event.samples)}
        case TrialSealed():
            cells = live.cells if event.record is None else with_trial(live.cells, event.record)
            changes = {"trial": None, "seconds_under_way": 0, "cells": cells, "size": None}
        case Trouble():
            trouble = TroubleNoted(t_s=now_s, message=event.message, hint=event.hint)
            changes = {"troubles": (*live.troubles, trouble)[-LAST_TROUBLES:]}
    return changes


def _trial_began(event: TrialBegan, now_s: float) -> dict[str, Any]:
    planned = event.planned
    trial = TrialUnderWay(
        id=planned.id,
        treatment=dict(planned.treatment),
        control=planned.control,
        attempt=event.attempt,
        number=event.number,
        begun_s=now_s,
    )
    return {
        "block": planned.block,
        "trial": trial,
        "number": event.number,
        "total": event.total,
        "seconds_under_way": 0,
    }


def _size(event: Sized) -> SizeUnderWay:
    desired, value = event.desired, _finite(event.value)
    return SizeUnderWay(
        in_service=event.in_service, desired=desired.nodes, reason=desired.reason, metric=event.metric, value=value,
        limit=event.limit,
    )  # fmt: skip


def _after(left: Left | None, waited_s: float) -> Left | None:
    """Time that is left after a wait: as much as before it."""
    return None if left is None else left.model_copy(update={"said_s": left.said_s + waited_s})


def _left(event: TimeLeft, now_s: float) -> Left | None:
    times = (event.seconds, event.low_s, event.high_s)
    if not all(math.isfinite(seconds) for seconds in times):
        return None
    return Left(seconds=event.seconds, low_s=event.low_s, high_s=event.high_s, said_s=now_s, trials=event.trials)


def second_of(node: str, interval: Interval) -> LoadSecond:
    """One interval of a load node as its engine said it. `lag_ms_p99` is that of the interval's own buckets."""
    lag_ns = quantile_ns(merge(counts.buckets for counts in interval.counts if counts.measure == "lag"), 0.99)
    summary = interval.summary
    return LoadSecond(
        t_s=interval.t_s,
        node=node,
        phase=interval.phase,
        span_s=interval.seconds,
        rate_per_s=_finite(summary.rate_per_s),
        response_ms_p50=_finite(summary.response_ms_p50),
        response_ms_p99=_finite(summary.response_ms_p99),
        service_ms_p99=_finite(summary.service_ms_p99),
        lag_ms_p99=None if lag_ns is None else lag_ns / 1e6,
        pacing_ms_p99=_finite(summary.pacing_ms_p99),
        errors=interval.errors,
        unsent=interval.unsent,
        backlog=interval.backlog,
        cpu_fraction=_finite(interval.cpu_fraction),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _sampled(nodes: Mapping[str, NodeReadings], samples: Sequence[Sample]) -> dict[str, NodeReadings]:
    after = dict(nodes)
    for sample in samples:
        if math.isfinite(sample.value):
            before = after.get(sample.node, NodeReadings())
            after[sample.node] = NodeReadings(t_s=sample.t_s, values={**before.values, sample.metric: sample.value})
    return after


def with_trial(cells: Sequence[CellSoFar], record: TrialRecord) -> tuple[CellSoFar, ...]:
    """The cells with one more sealed trial."""
    cell = next((cell for cell in cells if cell.treatment == record.treatment), None)
    before = cell or CellSoFar(treatment=record.treatment)
    after = before
    if record.verdict.system_fault:
        after = before.model_copy(update={"infeasible": record.verdict.reasons[0].detail})
    elif record.verdict.outcome != "valid":
        after = before.model_copy(update={"invalid": before.invalid + 1})
    if cell is None:
        return (*cells, after)
    return tuple(after if each is cell else each for each in cells)


def _judged(cells: Sequence[CellSoFar], decision: Decision) -> tuple[CellSoFar, ...]:
    """The cells, and those that an earlier session has trials of."""
    known = [cell.treatment for cell in cells]
    judged = [cell.treatment for cell in decision.cells if cell.n and cell.treatment not in known]
    return (*cells, *(CellSoFar(treatment=treatment) for treatment in judged))


def throughput(seconds: Sequence[LoadSecond]) -> dict[int, float]:
    """Operations/s of all load nodes together, by second. The nodes' seconds begin at different instants: of each the
    mean in a second counts, or where it has none that of the second before."""
    nodes: dict[str, dict[int, list[float]]] = {}
    for second in seconds:
        if second.rate_per_s is not None:
            nodes.setdefault(second.node, {}).setdefault(round(second.t_s), []).append(second.rate_per_s)
    together: dict[int, float] = {}
    for t in sorted({t for rates in nodes.values() for t in rates}):
        parts = [rates.get(t) or rates.get(t - 1) or [] for rates in nodes.values()]
        together[t] = sum(sum(part) / len(part) for part in parts if part)
    return together


Time = Literal["response_ms_p50", "response_ms_p99", "service_ms_p99", "lag_ms_p99", "pacing_ms_p99"]


def slowest(seconds: Sequence[LoadSecond], time: Time) -> dict[int, float]:
    """The largest such time of all load nodes, by second: percentiles of several nodes cannot be averaged."""
    greatest: dict[int, float] = {}
    for second in seconds:
        value: float | None = getattr(second, time)
        if value is not None:
            at = round(second.t_s)
            greatest[at] = max(value, greatest.get(at, value))
    return greatest


def newest_of_nodes(seconds: Sequence[LoadSecond]) -> dict[str, LoadSecond]:
    """The newest second of each load node."""
    return {second.node: second for second in seconds}


def expected_finish(live: Live, now_s: float) -> str:
    """When the study will be done: `about 05:40 (05:20 to 06:15)`, shortly before it `within 40 s`; after the last
    trial, what is still done. Empty if nothing is known. Never a time that has passed: the wait for a quiet machine is
    no progress."""
    left = live.left
    if left is not None and left.trials == 0 and live.trial is None and live.start is not None:
        return CLEANING_UP
    if left is None or left.seconds <= 0:
        return ""
    waited_s = now_s - live.quiet.since_s if live.quiet is not None else 0.0
    ends_s = [left.said_s + waited_s + seconds for seconds in (left.seconds, left.low_s, left.high_s)]
    if ends_s[-1] <= now_s:
        return "overdue: it takes longer than expected"
    if ends_s[-1] - now_s <= SHORTLY_S:
        return f"within {duration(math.ceil(ends_s[-1] - now_s))}"
    about, low, high = (clock(max(end_s, now_s), now_s) for end_s in ends_s)
    return f"about {about} ({low} to {high})"
