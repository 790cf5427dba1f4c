"""Recomputation of one trial's responses and verdict from its raw intervals, by the functions of `judging`.

The engine's CPU time, the instants of its first and last operation, and the records that it dropped are not in the
intervals. Values that depend on them are checked for consistency, and counted as not recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.heavy import pl
from steelyard.judging import membership
from steelyard.judging.covariates import covariates_of
from steelyard.judging.dilation import effective_load
from steelyard.judging.disruptions import affected, disruption_measures, excused, read_back_measures, targets
from steelyard.judging.measures import Facts, measures_of, metrics_of
from steelyard.judging.scaling_measures import scaling_measures
from steelyard.judging.trial_responses import responses
from steelyard.judging.verdict import SAID, Evidence, judge
from steelyard.model import responses as registered
from steelyard.model.activity import HEALED, IN_SERVICE, LEFT, RECOVERED, Activity, Disrupted
from steelyard.model.histogram import Bucket
from steelyard.model.load import CAPACITY, READ_AGAIN, READ_BACK, Load
from steelyard.model.outcome import Outcome, is_error
from steelyard.model.response import NS_PER_MS, NS_PER_S, Recomputable
from steelyard.model.responses import disruption
from steelyard.model.study import Limits
from steelyard.model.trial import Responses, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Speaks
from steelyard.reading.node_strips import readings_of_table
from steelyard.verify.checklist import Book
from steelyard.verify.search import search
from steelyard.wire.record import NO_SUMMARY, Counts, Done, Interval, nothing_done

RELATIVE = 1e-12
"""Relative error of a quotient computed from milliseconds."""
SUMS = 1e-9
"""Relative error of sums of the same numbers in another order."""
CLOCK_S = 0.01
"""Tolerance between the clocks of intervals and operations, seconds."""
BLAMED = (ReasonKind.LAB_FAULT, ReasonKind.SYSTEM_FAULT)

OF_DISRUPTION = frozenset(one.name for one in disruption.RESPONSES)
OF_ACTIVITIES = frozenset(one.name for one in registered.every().values() if one.source == "activities")
ENGINE_ONLY = "generator_cpu_us_per_operation: the engine's CPU time is not in the intervals"
NOT_REJUDGED = "reasons whose evidence is not kept raw: " + "; ".join(
    kind.value for kind in ReasonKind if not kind.about.in_store and kind not in BLAMED
)
NO_END = "responses of a load that never came to its end"


def measures(
    record: TrialRecord, samples: pl.DataFrame, facts: Facts, links: Sequence[Mapping[str, Any]], where: str, book: Book
) -> None:
    """Check measures and covariates of a trial against its samples, facts and links."""
    sealed = {name: value for name, value in record.measures.items() if name not in OF_ACTIVITIES}
    again = measures_of(record, readings_of_table(samples, metrics_of(sealed)), facts, sealed)
    for name, value in sealed.items():
        book.equal("measure", where, f"measures: {name}", value, again.get(name))
    given = covariates_of(facts, links)
    for name, value in record.covariates.items():
        book.equal("measure", where, f"covariates: {name}", value, given.get(name))


def trial(record: TrialRecord, intervals: pl.DataFrame, where: str, book: Book) -> None:
    """Make every check of one trial's numbers. `intervals`: the store's columns, all load nodes."""
    load = effective_load(record.settings)
    measured = intervals.filter(pl.col("phase").is_in(list(load.measured)))
    ours = record.settings.engine == "agent"
    whole = _ended(record, record.responses)
    if whole:
        _responses(record.responses, measured, where, "responses", ours, book)
    else:
        book.skip(NO_END)
        book.check("relation", record.verdict.outcome != "valid", where, "a valid trial without responses", "valid")
    for name, recorded in record.phase_responses.items():
        if recorded != Responses():
            part = measured.filter(pl.col("phase") == name)
            _responses(recorded, part, where, f"phase_responses {name}", ours, book)
    _verdict(record, load, measured if whole else None, where, book)
    _capacity(record, intervals, where, book)
    _activities(record, where, book)
    _disruptions(record, where, book)
    _scaling(record, intervals, measured, where, book)
    search(record, where, book, lambda window: _seconds(measured.filter(pl.col("phase") == window)))


def _ended(record: TrialRecord, recorded: Responses) -> bool:
    return recorded != Responses() and not any(one.kind in BLAMED for one in record.verdict.reasons)


def _interval(intervals: pl.DataFrame, operations: int = 0) -> Interval:
    """All rows as one interval: counts by operation, outcome and measure. `operations`: the number sent."""
    keys = ["operation", "outcome", "measure", "bucket_low_ns", "bucket_high_ns"]
    summed = intervals.group_by(keys).agg(pl.col("count").sum()).sort(keys)
    tables: dict[tuple[str, str, str], list[Bucket]] = {}
    for operation, outcome, measure, low, high, count in summed.iter_rows():
        tables.setdefault((operation, outcome, measure), []).append((low, high, count))
    counts = tuple(
        Counts(operation=operation, outcome=outcome, measure=measure, buckets=tuple(buckets))
        for (operation, outcome, measure), buckets in tables.items()
    )
    return Interval(
        phase="", t_s=0.0, seconds=0.0, sent=operations, done=operations, errors=0, backlog=0, cpu_fraction=0.0,
        summary=NO_SUMMARY, counts=counts,
    )  # fmt: skip


def _seconds(part: pl.DataFrame) -> list[Interval]:
    """An interval for each second of the rows."""
    return [
        replace(_interval(rows), t_s=t_s, seconds=seconds)
        for (t_s, seconds), rows in part.sort("t_s").group_by("t_s", "seconds", maintain_order=True)
    ]


def _by_outcome(intervals: pl.DataFrame) -> dict[str, int]:
    whole = intervals.filter(pl.col("measure") == "response")
    return {str(outcome): int(n) for outcome, n in whole.group_by("outcome").agg(pl.col("count").sum()).iter_rows()}


def _end(recorded: Responses, outcomes: Mapping[str, int]) -> Done:
    """End of the phase, as far as it follows from the intervals."""
    failed = {kind: count for kind, count in outcomes.items() if is_error(kind)}
    return replace(
        nothing_done(""),
        operations=sum(outcomes.values()) - sum(failed.values()),
        errors=sum(failed.values()),
        errors_by_kind=failed,
        not_found=recorded.not_found,
    )


def _whole_ns(milliseconds: float) -> float:
    """Nanoseconds, rounded if nearly integral: from one load node they are integers; over several, a difference of
    seconds."""
    ns = milliseconds * NS_PER_MS
    return round(ns) if abs(ns - round(ns)) < 0.01 else ns


def _responses(recorded: Responses, part: pl.DataFrame, where: str, what: str, ours: bool, book: Book) -> None:
    outcomes = _by_outcome(part)
    end = _end(recorded, outcomes)
    again = responses([_interval(part)], [end])
    every = [one for one in registered.every().values() if one.source == "records"]
    by_kept = {kept: [one.name for one in every if one.kept is kept] for kept in Recomputable}
    for name in (*by_kept[Recomputable.WHOLE], *(by_kept[Recomputable.OWN_ENGINE] if ours else ())):
        # A record from before a response was introduced does not have it; that is not a difference.
        if recorded.has(name):
            book.equal("response", where, f"{what}: {name}", recorded.of(name), again.of(name))
    if not ours:
        counted = by_kept[Recomputable.OWN_ENGINE]
        book.skip(f"{' and '.join(counted)} of a foreign engine, which counts them for itself", len(counted))
    limit = outcomes.get(Outcome.NOT_FOUND, 0)
    if ours:
        at_most = f"at most {limit}"
        book.check("relation", recorded.not_found <= limit, where, f"{what}: not_found", recorded.not_found, at_most)
    execution_ns = _whole_ns(recorded.execution_time_ms or 0.0)
    quotient = recorded.operations / (execution_ns / NS_PER_S) if execution_ns > 0 else None
    same = recorded.throughput_per_s == quotient or (
        recorded.throughput_per_s is not None
        and quotient is not None
        and math.isclose(recorded.throughput_per_s, quotient, rel_tol=RELATIVE)
    )
    relation = f"{what}: throughput_per_s, operations over execution time"
    book.check("relation", same, where, relation, recorded.throughput_per_s, quotient)
    _span(recorded, part, where, what, book)
    book.skip(ENGINE_ONLY)


def _span(recorded: Responses, part: pl.DataFrame, where: str, what: str, book: Book) -> None:
    """Check the execution time against the intervals: at most their whole span, and what the operations of the first
    had taken before it; at least the time between the end of the first and the beginning of the last."""
    if recorded.execution_time_ms is None or not part.height:
        return
    ends = part.select(
        whole=(pl.col("t_s") + pl.col("seconds")).max() - pl.col("t_s").min(),
        inner=pl.col("t_s").max() - (pl.col("t_s") + pl.col("seconds")).min(),
    ).row(0)
    first = part.filter(pl.col("t_s") == pl.col("t_s").min(), pl.col("measure").is_in(["response", "part"]))
    before_ns = int(first.group_by("measure").agg(pl.col("bucket_high_ns").max())["bucket_high_ns"].sum())
    longest, shortest = ends[0] + before_ns / NS_PER_S + CLOCK_S, ends[1] - CLOCK_S
    seconds = recorded.execution_time_ms / 1000
    book.check(
        "relation", shortest <= seconds <= longest, where, f"{what}: execution_time_ms against the intervals' span",
        recorded.execution_time_ms, f"{max(0.0, 1000 * shortest):.0f} to {1000 * longest:.0f}",
    )  # fmt: skip


def _verdict(record: TrialRecord, load: Load, measured: pl.DataFrame | None, where: str, book: Book) -> None:
    reasons = record.verdict.reasons
    outcome = record.verdict.outcome
    if outcome != "unknown":
        wanted = "invalid" if reasons else "valid"
        book.equal("verdict", where, f"outcome with {len(reasons)} reasons", outcome, wanted)
    for reason in reasons:
        _threshold(reason, record.limits, where, book)
    if measured is None or outcome == "unknown":
        return
    operations, errors = record.responses.operations, record.responses.errors
    end = replace(_end(record.responses, _by_outcome(measured)), operations=operations, errors=errors)
    whole = _interval(measured, operations + errors)
    intervals = [replace(whole, counts=()), *_seconds(measured)] if record.disruptions else [whole]
    again = judge(
        Evidence(
            load=load, intervals=intervals, dones=[end], optimised=True, samples={}, moved_frames=record.moved_frames,
            clock_step=record.clock_step,
            search=None if record.search is None else record.search.result, activities=record.activities,
            scaling=record.scaling, disruptions=record.disruptions,
        ),
        record.limits,
    ).reasons  # fmt: skip
    book.equal("verdict", where, "reasons that the store gives", _reasons_text(reasons), _reasons_text(again))
    book.skip(NOT_REJUDGED)


def _activities(record: TrialRecord, where: str, book: Book) -> None:
    """Check that changes of size lie within their trial, in order of time, and that a complete one is whole."""
    for activity in record.activities:
        _activity(record, activity, (IN_SERVICE if activity.kind == "scale-out" else LEFT,), where, book)
    if record.activities:
        sizes = membership.sizes(record.settings.site.nodes, record.activities)
        least = min((size for _, size in sizes), default=1)
        book.check("relation", least >= 1, where, "nodes in service over time", least, "1 or more")


def _disruptions(record: TrialRecord, where: str, book: Book) -> None:
    """Check that disruptions are of the nodes that the trial's seed draws, and that a complete one is whole."""
    choice = record.settings.disruption
    if not choice.disrupts and not record.disruptions:
        return
    nodes = [f"n{number}" for number in range(1, record.settings.site.nodes + 1)]
    due = len(choice.begins_s(record.settings.load.measured_s or 0.0)) if choice.disrupts else 0
    done = len(record.disruptions) == due or record.verdict.outcome != "valid"
    book.check("relation", done, where, "number of disruptions of a valid trial", len(record.disruptions), due)
    for place, activity in enumerate(record.disruptions):
        _activity(record, activity, (HEALED, RECOVERED), where, book)
        drawn = targets(choice, nodes, record.seed + place)
        book.equal("relation", where, f"targets of disruption {place + 1}", activity.nodes, drawn)


def _activity(record: TrialRecord, activity: Activity, last: Sequence[str], where: str, book: Book) -> None:
    """Check the marks of an activity. `last`: those that every node of a complete one has."""
    what = f"{activity.kind} of {', '.join(activity.nodes)}"
    times_s = [mark.t_s for mark in activity.marks]
    failed = activity.outcome == "failed" and record.verdict.outcome == "valid"
    if not isinstance(activity, Disrupted):
        failed = failed and not excused(activity, affected(record.disruptions, record.settings.load.timeout_ms))
    book.check("relation", not failed, where, f"{what}: verdict of a trial with a failure", record.verdict.outcome)
    named = {mark.node for mark in activity.marks if mark.node}
    book.check("relation", named <= set(activity.nodes), where, f"{what}: nodes of marks", named, activity.nodes)
    within = record.begun_s <= activity.begun_s and times_s == sorted(times_s)
    book.check("relation", within, where, f"{what}: marks in order of time within the trial", times_s, "in order")
    for name in last:
        there = tuple(mark.node for mark in activity.marks if mark.name == name)
        whole = activity.outcome != "done" or set(there) == set(activity.nodes)
        book.check("relation", whole, where, f"{what}: `{name}` of every node", there, activity.nodes)


def _scaling(record: TrialRecord, intervals: pl.DataFrame, measured: pl.DataFrame, where: str, book: Book) -> None:
    """Check the measures that follow from activities and intervals."""
    sealed = {name: value for name, value in record.measures.items() if name in OF_ACTIVITIES}
    again = scaling_measures(record, _seconds(measured)) if sealed else {}
    if OF_DISRUPTION & sealed.keys():
        again |= disruption_measures(record, _seconds(measured))
        phases = [(name, intervals.filter(pl.col("phase") == name)) for name in (READ_BACK, READ_AGAIN)]
        again |= read_back_measures([replace(_interval(part), phase=name) for name, part in phases if len(part)])
    for name, value in sealed.items():
        near = name in again and math.isclose(value, again[name], rel_tol=SUMS, abs_tol=SUMS)
        book.check("measure", near, where, f"measures: {name}", value, again.get(name))


def _reasons_text(reasons: Sequence[Reason]) -> str:
    chosen = [one for one in reasons if one.kind.about.in_store]
    return "; ".join(f"{one.kind} {one.measured!r} ({one.detail.partition(SAID)[0]})" for one in chosen) or "none"


def _threshold(reason: Reason, limits: Limits, where: str, book: Book) -> None:
    about = reason.kind.about
    if about.limit:
        wanted = getattr(limits, about.limit)
        book.equal("verdict", where, f"threshold of {reason.kind.name}", reason.threshold, wanted)
    if reason.measured is None or reason.threshold is None:
        return
    # A value equal to its threshold is consistent.
    at = reason.measured == reason.threshold and about.speaks is not Speaks.BELOW
    crossed = at or about.speaks.crossed(reason.measured, reason.threshold)
    book.check(
        "verdict", crossed, where, f"{reason.kind.name} crosses its threshold", reason.measured, reason.threshold
    )


def measured_here(record: TrialRecord) -> bool:
    """Whether this attempt measured its capacity itself: a start measures capacity once, also for later attempts."""
    capacity = record.capacity
    return capacity is not None and capacity.trial == record.id and record.begun_s <= capacity.measured_s


def _capacity(record: TrialRecord, intervals: pl.DataFrame, where: str, book: Book) -> None:
    """Check a capacity that this trial measured itself against the counts in its intervals."""
    capacity = record.capacity
    if capacity is None or not measured_here(record):
        return
    outcomes = _by_outcome(intervals.filter(pl.col("phase") == CAPACITY))
    answered = sum(count for kind, count in outcomes.items() if not is_error(kind))
    book.equal("capacity", where, "capacity: operations", capacity.operations, answered)
    rate = capacity.operations / capacity.seconds if capacity.seconds > 0 else 0.0
    near = math.isclose(capacity.rate_per_s, rate, rel_tol=1e-9)
    book.check("capacity", near, where, "capacity: rate_per_s, operations over seconds", capacity.rate_per_s, rate)
