"""Measures of a trial whose cluster may change its size, from its activities and the operations of each second. Pure:
the laboratory seals them, and verification computes them again.

Noise must not add up. A sum of the positive differences of seconds grows with every second, also where nothing
happens: in 150 simulated seconds of Poisson arrivals at up to 86% of what a cluster carries it counts 3,550 lost
operations where none is lost. So lost operations and excess response time are the greatest rise of the cumulated
difference (the statistic of a cusum chart: E. Page, Continuous Inspection Schemes, Biometrika 41, 1954). Of operations
that are due this is 15 there, the queue itself, and 24,330 with a standard deviation of 334 where 24,346 were planted.
What was due follows from response times: from the rates that were asked for, Poisson arrivals alone would make 820.

Time to stability is a settling time as in control engineering, with a band of 2% of the greatest excess. Its least
width comes from the residuals of the last third about a line, so that a response time which still rises or falls
there has no level. Bias and standard deviation in seconds, in 1,000 simulated trials of 150 s each: 38.7 s planted
after an excess of 6 s, -1.1 and 0.85 (those of the queue itself); 20 s planted of twice the response time, with noise
of 10% (autocorrelation 0.5) +0.5 and 3.4, of 30% -1.1 and 7.5; nothing planted, +0.8 and 4.2, +2.0 and 7.0. Overload to
the end has none in 100%. `tests/unit/judging/test_scaling_measures.py` simulates all of these.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from steelyard.judging.activity_phases import arrived_s
from steelyard.judging.activity_windows import CALM_S
from steelyard.model.outcome import ANSWERED
from steelyard.model.response import NS_PER_MS, NS_PER_S
from steelyard.model.trial import TrialRecord

if TYPE_CHECKING:
    from steelyard.wire.record import Interval

STABLE_S: Final = 20
"""Seconds on end within the band after which a response time is stable."""
SHARE: Final = 0.02
"""Half the width of the band, as a share of the greatest excess."""
DEVIATIONS: Final = 4.0
"""Half the least width of the band, in standard deviations of the last third."""
LEAST_S: Final = 10
"""Least seconds of the last third."""
LONGEST_S, LONGEST_INTERVAL_S = 1e6, 10.0
"""Longest measured phase, and longest interval, that have measures of seconds: a store may come from anywhere."""


class Seconds(NamedTuple):
    """Operations in each second of the measured phases, over all load nodes. Those of an interval are spread evenly
    over it, so how they were divided into intervals makes no difference."""

    due: Sequence[float]
    """Operations that became due, also those that failed; of a closed loop, that were sent."""
    answered: Sequence[float]
    """Operations answered without error."""
    response_ms_mean: Sequence[float]
    """Of those answered; infinite where none was."""
    failed: Sequence[float]
    """Operations that became due and failed."""
    errors: Sequence[float]
    """Operations that failed, by the second in which they did."""


def scaling_measures(record: TrialRecord, intervals: Iterable[Interval]) -> dict[str, float]:
    """Every measure that a trial has, by name, from its record and the intervals of its measured phases. What did not
    happen (no scale-out, a join that was not completed, a response time that was never stable) has no measure."""
    counted = [interval for interval in intervals if interval.counts]
    first_s = min((interval.t_s for interval in counted), default=0.0)
    zero_s = first_s if record.scaling is None else record.scaling.begun_s
    if record.search is not None or not has_seconds(counted, zero_s):
        return {}
    seconds = by_second(counted, zero_s)
    outs = [activity for activity in record.activities if activity.kind == "scale-out"]
    arrived = [arrived_s(activity) for activity in outs]
    values: dict[str, float | None] = {}
    if outs:
        values["scale_out_decision_s"] = outs[0].begun_s - zero_s
        took_s = [last_s - out.begun_s for out, last_s in zip(outs, arrived, strict=True) if last_s is not None]
        values["scale_out_s"] = math.fsum(took_s) / len(took_s) if len(took_s) == len(outs) else None
    begun_s = record.activities[0].begun_s - zero_s if record.activities else math.inf
    settled_s = None
    if arrived and arrived[-1] is not None:
        later = [one.begun_s - zero_s for one in record.activities if one.begun_s >= arrived[-1]]
        until = math.floor(min([len(seconds.answered), *later]))
        last_s = arrived[-1] - zero_s
        stable_s = time_to_stability_s(seconds.response_ms_mean[:until], begun_s, last_s)
        values["time_to_stability_s"] = stable_s
        settled_s = None if stable_s is None else last_s + stable_s
    values["lost_operations"] = lost(record, seconds, begun_s, settled_s)
    values["excess_response_ms_s"] = excess(seconds.response_ms_mean, begun_s, settled_s)
    return {name: value for name, value in values.items() if value is not None}


def has_seconds(counted: Sequence[Interval], zero_s: float) -> bool:
    """Whether there are intervals since `zero_s`, and measures of seconds can be taken of them."""
    last_s = max((interval.t_s for interval in counted), default=math.inf)
    longest_s = max((interval.seconds for interval in counted), default=math.inf)
    return longest_s <= LONGEST_INTERVAL_S and last_s - zero_s <= LONGEST_S


def by_second(intervals: Sequence[Interval], zero_s: float) -> Seconds:
    """The seconds since `zero_s` until the end of the last interval. When an operation was due follows from its
    response time."""
    length = math.ceil(max(interval.t_s + interval.seconds for interval in intervals) - zero_s)
    due, answered, answer_ms, failed, errors = ([0.0] * max(1, length) for _ in range(5))
    for interval in intervals:
        begun_s, ended_s = interval.t_s - zero_s, interval.t_s + interval.seconds - zero_s
        count = twice_ns = 0
        for counts in interval.counts:
            if counts.measure != "response":
                continue
            for low, high, n in counts.buckets:
                response_s = (low + high) / 2 / NS_PER_S
                spread(due, begun_s - response_s, ended_s - response_s, n)
                if counts.outcome in ANSWERED:
                    count, twice_ns = count + n, twice_ns + (low + high) * n
                else:
                    spread(failed, begun_s - response_s, ended_s - response_s, n)
                    spread(errors, begun_s, ended_s, n)
        spread(answered, begun_s, ended_s, count)
        spread(answer_ms, begun_s, ended_s, twice_ns / 2 / NS_PER_MS)
    means = [total / n if n > 0 else math.inf for total, n in zip(answer_ms, answered, strict=True)]
    return Seconds(due, answered, means, failed, errors)


def spread(series: list[float], from_s: float, to_s: float, amount: float) -> None:
    """Add an amount to the seconds of a time, evenly; what lies outside of the series, to its nearest second."""
    for second in range(math.floor(from_s), max(math.ceil(to_s), math.floor(from_s) + 1)):
        within_s = min(to_s, second + 1) - max(from_s, second)
        share = within_s / (to_s - from_s) if to_s > from_s else 1.0
        series[min(max(second, 0), len(series) - 1)] += amount * share


def greatest_rise(differences: Iterable[float]) -> float:
    """The greatest rise of the cumulated differences from any time to any later one; 0 if they only fall."""
    rise = greatest = 0.0
    for difference in differences:
        rise = max(0.0, rise + difference)
        greatest = max(greatest, rise)
    return greatest


def time_to_stability_s(response_ms: Sequence[float], begun_s: float, arrived_s: float) -> float | None:
    """Seconds from the arrival of the last node to the first of STABLE_S on end in which the response time lies in a
    band around its level; 0 if it did not leave it; None if it was not stable before the last third of what remains.

    The level is the median of that third, with which it so shares no second of its beginning. Half the band is SHARE of
    the greatest excess over the level since `begun_s`, and DEVIATIONS standard deviations of the third at least.
    """
    first, until = max(0, math.floor(arrived_s)), len(response_ms)
    last_third = until - (until - first) // 3
    third = response_ms[last_third:]
    if len(third) < LEAST_S or not all(map(math.isfinite, third)):
        return None
    level, times = statistics.median(third), range(len(third))
    line = statistics.linear_regression(times, third)
    squares = math.fsum((ms - line.intercept - line.slope * t_s) ** 2 for t_s, ms in zip(times, third, strict=True))
    known = [ms for ms in response_ms[max(0, math.floor(begun_s)) :] if math.isfinite(ms)]
    band = max(SHARE * (max(known) - level), DEVIATIONS * math.sqrt(squares / (len(third) - 2)))
    begun = first
    for second in range(first, until):
        if not abs(response_ms[second] - level) <= band:
            begun = second + 1
        elif second + 1 - begun >= STABLE_S:
            return max(0.0, begun - arrived_s) if begun < last_third else None
    return None


def lost(record: TrialRecord, seconds: Seconds, begun_s: float, settled_s: float | None) -> float | None:
    """Operations by which answers fell behind what was due, at most; of a closed loop, behind the mean throughput
    before the first activity, until the response time was stable."""
    load = record.settings.stated_load
    loops = {phase.is_open for phase in load.offered} if load is not None else set()
    if loops == {True}:
        behind = greatest_rise(due - n for due, n in zip(seconds.due, seconds.answered, strict=True))
        return behind + record.responses.unsent
    if loops != {False} or settled_s is None or begun_s < CALM_S:
        return None
    before = seconds.answered[: math.floor(begun_s)]
    usual = math.fsum(before) / len(before)
    return greatest_rise(usual - n for n in seconds.answered[math.floor(begun_s) : math.ceil(settled_s)])


def excess(response_ms: Sequence[float], begun_s: float, settled_s: float | None) -> float | None:
    """Area of the response time over its median before the first activity, from then on until it was stable. A second
    without an answer counts as the one before it."""
    before = [ms for ms in response_ms[: math.floor(min(begun_s, len(response_ms)))] if math.isfinite(ms)]
    if settled_s is None or len(before) < CALM_S:
        return None
    usual, last, excess = statistics.median(before), before[-1], []
    for ms in response_ms[math.floor(begun_s) : math.ceil(settled_s)]:
        last = ms if math.isfinite(ms) else last
        excess.append(last - usual)
    return greatest_rise(excess)
