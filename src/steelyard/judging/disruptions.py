"""Disruptions of a trial: their targets, the time in which errors are their result, and measures of it. Pure: the
laboratory judges and seals with these functions, and verification calls them again."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from steelyard.judging.activity_windows import CALM_S
from steelyard.judging.membership import Span
from steelyard.judging.scaling_measures import LONGEST_S, Seconds, by_second, excess, has_seconds, lost, spread
from steelyard.model.activity import BEGAN, HEALED, RECOVERED, SEEN_DOWN, Activity, Disrupted
from steelyard.model.disruption import SETS, DisruptionChoice
from steelyard.model.load import READ_AGAIN, READ_BACK
from steelyard.model.outcome import Outcome
from steelyard.model.trial import TrialRecord

if TYPE_CHECKING:
    from steelyard.wire.record import Interval

ANSWERED_SHARE: Final = 0.999
"""Least share of the operations due in an available second that are answered."""
GOOD_S: Final = 5
"""Good seconds on end after which a cluster has recovered."""
SLOWER: Final = 2.0
"""A good second has a mean response time up to this multiple of the median before, or up to the highest before."""
LEAST_SLOWER_MS: Final = 1.0
"""A second is good, too, if its mean response time is at most this above the median before: where answers take less
than a millisecond, other programs alone make them several times slower."""
NOTICED: Final = 0.5
"""Share of the throughput before below which clients notice a disruption."""
MS_PER_S: Final = 1000.0
WRONG: Final = (Outcome.NOT_FOUND, Outcome.INVALID)
"""Outcomes of reading a value that is not what was acknowledged."""
AMBIGUOUS: Final = (Outcome.TIMEOUT, Outcome.READ_TIMEOUT, Outcome.WRITE_TIMEOUT)


def targets(choice: DisruptionChoice, nodes: Sequence[str], seed: int) -> tuple[str, ...]:
    """The nodes that a disruption is of, in the order of `nodes`; drawn with the seed unless they are named."""
    if choice.on not in SETS:
        named = choice.on.split(",")
        return tuple(node for node in nodes if node in named)
    majority = len(nodes) // 2 + 1
    amount = {"one": 1, "minority": len(nodes) - majority, "majority": majority, "all": len(nodes)}[choice.on]
    drawn = random.Random(seed).sample(list(nodes), amount)
    return tuple(node for node in nodes if node in drawn)


def marked_s(activity: Disrupted, name: str) -> float | None:
    """When the last target reached a mark; None if one did not."""
    times = {mark.node: mark.t_s for mark in activity.marks if mark.name == name}
    return max(times.values()) if times and times.keys() == set(activity.nodes) else None


def _began_s(activity: Disrupted) -> float:
    """When the first target was disrupted; before that, the laboratory prepared it."""
    return min((mark.t_s for mark in activity.marks if mark.name == BEGAN), default=activity.begun_s)


def affected(disruptions: Sequence[Disrupted], timeout_ms: float) -> list[Span]:
    """The times in which errors are the result of a disruption: from its beginning until its targets have recovered,
    and operations that were in flight then have timed out."""
    spans = []
    for activity in disruptions:
        recovered_s = marked_s(activity, RECOVERED)
        ended_s = math.inf if recovered_s is None else recovered_s + timeout_ms / MS_PER_S
        spans.append(Span(activity.begun_s, ended_s))
    return spans


def excused(activity: Activity, spans: Sequence[Span]) -> bool:
    """Whether a change of size was in progress within any of the spans: that it failed is then their result."""
    ended_s = math.inf if activity.ended_s is None else activity.ended_s
    return any(activity.begun_s < span.ended_s and ended_s > span.begun_s for span in spans)


def outside(intervals: Iterable[Interval], spans: Sequence[Span]) -> list[Interval]:
    """Intervals that have no part in any of the spans."""
    return [
        one
        for one in intervals
        if not any(one.t_s < span.ended_s and one.t_s + one.seconds > span.begun_s for span in spans)
    ]


def disruption_measures(record: TrialRecord, intervals: Iterable[Interval]) -> dict[str, float]:
    """Every measure that a trial has, by name, from its record and the intervals of its measured phases. Of several
    disruptions, times are means; what did not happen in one of them has no measure."""
    counted, load = [interval for interval in intervals if interval.counts], record.settings.stated_load
    zero_s = min((interval.t_s for interval in counted), default=0.0)
    if load is None or load.measured_s is None or not has_seconds(counted, zero_s):
        return {}
    seconds = by_second(counted, zero_s)
    length = int(min(load.measured_s, LONGEST_S))
    wanted = _with_unsent(seconds, record.responses.unsent, length)
    available = [_available(wanted, second) for second in range(length)]
    values: dict[str, float | None] = {"ambiguous_operations": float(_number(counted, AMBIGUOUS))}
    if available:
        values["availability_percent"] = 100 * sum(available) / length
    begins = [_began_s(activity) - zero_s for activity in record.disruptions]
    first_s = min(begins, default=math.inf)
    good = _good(seconds, available, first_s)
    names = ("detection_s", "seen_down_s", "recovery_s", "outage_s", "degraded_s", "relapse_s")
    times: dict[str, list[float | None]] = {name: [] for name in names}
    settled_s: float | None = None
    for activity, begun_s, until_s in zip(record.disruptions, begins, [*begins[1:], math.inf], strict=False):
        until = min(length, math.floor(min(until_s, length)))
        healed_s = marked_s(activity, HEALED)
        recovery_s = None if healed_s is None else _recovery_s(good[:until], healed_s - zero_s)
        settled_s = None if healed_s is None or recovery_s is None else healed_s - zero_s + recovery_s
        times["detection_s"].append(_detection_s(seconds, available[:until], begun_s, first_s))
        seen_s = marked_s(activity, SEEN_DOWN)
        times["seen_down_s"].append(None if seen_s is None else max(0.0, seen_s - zero_s - begun_s))
        times["recovery_s"].append(recovery_s)
        for name, series in (("outage_s", available), ("degraded_s", good)):
            times[name].append(None if healed_s is None else _back_s(series[:until], begun_s, healed_s - zero_s))
        later = [] if settled_s is None else good[math.ceil(settled_s) : until]
        times["relapse_s"].append(None if settled_s is None else float(later.count(False)))
    for name, each in times.items():
        known = [one for one in each if one is not None]
        values[name] = math.fsum(known) / len(known) if known and len(known) == len(each) else None
    values["lost_operations"] = lost(record, seconds, first_s, settled_s)
    values["excess_response_ms_s"] = excess(seconds.response_ms_mean, first_s, settled_s)
    return {name: value for name, value in values.items() if value is not None}


def _with_unsent(seconds: Seconds, unsent: int, length: int) -> Seconds:
    """The same with operations that were due and never sent as failed. Operations are sent in order, so these were due
    last: at the mean rate before the end of the load."""
    if not unsent:
        return seconds
    begun_s = length - length * unsent / (math.fsum(seconds.due) + unsent)
    due, failed = list(seconds.due), list(seconds.failed)
    for series in (due, failed):
        spread(series, begun_s, length, unsent)
    return seconds._replace(due=due, failed=failed)


def _available(seconds: Seconds, second: int) -> bool:
    """Whether what was due in a second was answered, and anything was answered in it."""
    if second >= len(seconds.due):
        return False  # no operation ends any more
    return seconds.failed[second] <= (1 - ANSWERED_SHARE) * seconds.due[second] and seconds.answered[second] > 0


def _before(values: Sequence[float], first_s: float) -> list[float]:
    """Values of the seconds before the first disruption; none if they are too few to say what is usual."""
    known = [value for value in values[: math.floor(min(first_s, len(values)))] if math.isfinite(value)]
    return known if len(known) >= CALM_S else []


def _good(seconds: Seconds, available: Sequence[bool], first_s: float) -> list[bool]:
    """For each second whether it was available, with a response time as before; nothing without a before."""
    before = _before(seconds.response_ms_mean, first_s)
    if not before:
        return []
    usual_ms = statistics.median(before)
    most_ms = max(SLOWER * usual_ms, usual_ms + LEAST_SLOWER_MS, *before)
    return [there and seconds.response_ms_mean[second] <= most_ms for second, there in enumerate(available)]


def _detection_s(seconds: Seconds, available: Sequence[bool], begun_s: float, first_s: float) -> float | None:
    """Seconds from the beginning to the first second with an error, or with too few answers: 0 in its own second."""
    before = _before(seconds.answered, first_s)
    if not before:
        return None
    least = NOTICED * math.fsum(before) / len(before)
    for second in range(max(0, math.floor(begun_s)), len(available)):
        ended = second >= len(seconds.errors)
        if ended or seconds.errors[second] > 0 or seconds.answered[second] < least:
            return max(0.0, second - begun_s)
    return None


def _recovery_s(good: Sequence[bool], healed_s: float) -> float | None:
    """Seconds from the end of a disruption to the first of GOOD_S good seconds on end."""
    back = _settled(good, max(0, math.floor(healed_s)))
    return None if back is None else max(0.0, back - healed_s)


def _back_s(good: Sequence[bool], begun_s: float, healed_s: float) -> float | None:
    """Seconds from the beginning of a disruption to the first of GOOD_S good seconds on end after the last bad one
    before its end; 0 if none was bad."""
    first = max(0, math.floor(begun_s))
    within = range(first, max(first + 1, math.floor(healed_s)))
    if within.stop > len(good):
        return None
    bad = [second for second in within if not good[second]]
    back = _settled(good, bad[-1] + 1) if bad else first
    return None if back is None else max(0.0, back - begun_s)


def _settled(good: Sequence[bool], first: int) -> int | None:
    """The first of GOOD_S good seconds on end, from `first` on."""
    places = range(first, len(good) - GOOD_S + 1)
    return next((second for second in places if all(good[second : second + GOOD_S])), None)


def read_back_measures(intervals: Sequence[Interval]) -> dict[str, float]:
    """Values read back after a load, and those that are not what was acknowledged: at first, and when those were read
    again. Nothing if none was read; no last number if those were not."""
    first = [one for one in intervals if one.phase == READ_BACK]
    again = [one for one in intervals if one.phase == READ_AGAIN]
    if not first:
        return {}
    every, stale = _number(first, tuple(Outcome)), _number(first, WRONG)
    lost = {} if stale and not again else {"lost_writes": float(_number(again, WRONG))}
    return {"values_read_back": float(every), "stale_values": float(stale), **lost}


def _number(intervals: Iterable[Interval], outcomes: Collection[Outcome]) -> int:
    return sum(
        n
        for interval in intervals
        for counts in interval.counts
        if counts.measure == "response" and counts.outcome in outcomes
        for _, _, n in counts.buckets
    )
