"""Search for the highest rate that meets a limit: a pure function from the windows so far to the next one, or the end.

1. *Doubling* from the first rate, or equal steps if they are given, until a window misses the limit (halving if the
   first one does).
2. *Bisection* of that bracket, in the logarithm of the rate, until it is narrow. A window that is wrong by chance does
   no lasting harm: the bracket is the division of all windows with the fewest on the wrong side.
3. *Windows around the estimate*, below and above it in turn. With q the share of the limit that a window uses (for a
   percentile: operations beyond the limit over those allowed), ln q rises almost in a straight line with the rate:
   exactly so for M/M/1, where a share exp(-(mu - rate) limit) is beyond. The line is a quasi-likelihood fit with that
   link and a variance in proportion to the mean (McCullagh and Nelder 1989, *Generalized Linear Models*, 9.2), as of
   counts that come in clusters. It crosses 0 at the estimate; Fieller's interval (Fieller 1954, *Some problems in
   interval estimation*, J. R. Stat. Soc. B 16) says how well the windows fix it.

The variance is the larger of two: that of the residuals, and that between the batches of each window. While the second
is large, windows are lengthened. Where the line's slope is not known well enough to bound the rate, the interval is
that of `_pooled_range`, which needs none.

Saturation ends differently: after 2. the throughputs of windows a little beyond it are averaged.

`verify` runs the same function over the stored windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.judging.t_interval import deviation, half_width, t_quantile
from steelyard.model.search import NextWindow, Search, SearchResult, SearchRules, Window

GROWTH = 2.0
NARROW = 1.25
"""Bisection ends when the bracket's upper rate is at most this multiple of its lower one."""
FARTHEST_CROSSING = 1.25
"""A line that crosses 0 farther outside the bracket than by this factor is not used."""
FARTHEST_BEYOND = 1.25
"""Saturation: throughputs are averaged over windows up to this multiple of the bracket's upper rate."""
LEAST_AROUND = 9
"""Least windows around the estimate. With fewer, intervals come out too narrow, because the search stops as soon as its
interval is narrow."""
LEAST_OF_SIDE = 2
"""Least of them on either side of it: one window that stalled shows no edge."""
SPREAD = 0.5
"""Windows are put where ln q lies this far above and below 0."""
NEAREST, FARTHEST = 0.02, 0.3
"""Bounds of the distance between a window and the estimate, as a share of the estimate."""
REACH = 1.5
"""Windows count as nearby up to this multiple of that distance."""
FARTHEST_USED = 3.0
"""Bound of q in the fit: a stalled window counts no more than that. The spread of windows beyond it, and of those that
use less than its inverse, says little of the spread at the limit."""
MOST_FITTED = 2 * FARTHEST_USED
LEAST_FITTED = 0.02
STEPS = 12
CAUTION = 0.5
"""Standard errors by which the slope is taken to be less when windows are placed: a slope that is steep by chance would
draw them together, and then none is left to correct it."""
WANTED_SPREAD = 0.2
"""Windows are lengthened until the standard error of q at the limit is at most this."""
LEAST_OF_LINE = 3
LEAST_OF_PLATEAU = 5
"""Least windows beyond saturation whose throughputs are averaged."""
PRECISE = "the rate is known as precisely as asked"
LONGEST_REST_S = 120.0
MOST_BY_GENERATOR = 3
"""Windows in a row that the generator could not do before the search ends."""
MISSES_AT_LOWEST = 2
"""Windows at the lowest rate that must miss before no rate is said to meet the limits."""


@dataclass(frozen=True)
class _Line:
    """The line of ln q over the rate near the estimate."""

    rate_per_s: float
    """Rate at which it crosses 0."""
    slope: float
    """Change of ln q per operation/s, less `CAUTION`; above 0."""
    nearby: tuple[Window, ...]
    low_per_s: float
    high_per_s: float
    gap: tuple[float, float] | None
    """See `_gap`."""


def decide(rules: SearchRules, windows: Sequence[Window]) -> NextWindow | SearchResult:
    """The next window, or the result. `windows` are those measured so far, in order."""
    decision = _decide(rules, windows)
    if isinstance(decision, SearchResult) or not windows:
        return decision
    return decision.model_copy(update={"rest_s": _rest_s(windows[-1])})


def _rest_s(last: Window) -> float:
    """How long the system is left alone: what the generator gave up in the last window may still be queued there."""
    return min(LONGEST_REST_S, last.errors / last.throughput_per_s if last.throughput_per_s else LONGEST_REST_S)


def _decide(rules: SearchRules, windows: Sequence[Window]) -> NextWindow | SearchResult:  # noqa: PLR0911 - a way each
    usable = [window for window in windows if not window.generator]
    last = windows[-MOST_BY_GENERATOR:]
    if len(last) == MOST_BY_GENERATOR and all(window.generator for window in last):
        return _ended_by_generator(windows, usable)
    if len(windows) >= rules.most_windows:
        return _at_most_windows(rules, usable, len(windows))
    if windows and windows[-1].generator:
        return _next(rules, windows[-1].rate_per_s)
    if not usable:
        return _next(rules, rules.first_rate_per_s)
    low, high = bracket(usable)
    if low == 0 or high == math.inf:
        return _next_outside_bracket(rules, usable, (low, high), len(windows))
    if high > low * NARROW:
        return _next(rules, math.sqrt(low * high), usable)
    if rules.saturation:
        return _plateau(rules, usable, high, len(windows))
    return _next_within_bracket(rules, usable, (low, high), len(windows))


def _next_outside_bracket(
    rules: SearchRules, usable: Sequence[Window], edges: tuple[float, float], windows: int
) -> NextWindow | SearchResult:
    """The limit lies above or below all rates tried."""
    low, high = edges
    if high == math.inf:
        if low >= rules.highest_rate_per_s:
            return _lower_bound(usable, windows, "the highest rate allowed meets the limits")
        return _next(rules, low * GROWTH if rules.step_per_s is None else low + rules.step_per_s)
    if high > rules.lowest_rate_per_s:
        return _next(rules, high / GROWTH)
    if not _missed_at_lowest(rules, usable):
        return _next(rules, high)
    return _no_rate(rules, usable, windows)


def _missed_at_lowest(rules: SearchRules, usable: Sequence[Window]) -> bool:
    """Whether enough windows at the lowest rate allowed missed a limit."""
    missed = [window for window in usable if window.rate_per_s <= rules.lowest_rate_per_s and not window.met]
    return len(missed) >= MISSES_AT_LOWEST


def _next_within_bracket(
    rules: SearchRules, usable: Sequence[Window], edges: tuple[float, float], windows: int
) -> NextWindow | SearchResult:
    """The limit lies in a narrow bracket."""
    line = _line(rules, usable, *edges)
    if line is None:
        return _next(rules, _next_without_line(usable, math.sqrt(edges[0] * edges[1])), usable)
    precise = (line.high_per_s - line.low_per_s) / 2 <= rules.precision * line.rate_per_s
    above = sum(window.rate_per_s > line.rate_per_s for window in line.nearby)
    sided = LEAST_OF_SIDE <= above <= len(line.nearby) - LEAST_OF_SIDE
    if precise and sided and len(line.nearby) >= LEAST_AROUND:
        return _found(usable, (line.rate_per_s, line.low_per_s, line.high_per_s), windows, PRECISE)
    return _next(rules, _next_near_line(line, rules.precision), usable)


def bracket(windows: Sequence[Window]) -> tuple[float, float]:
    """The neighbouring rates between which the limit lies: those that leave the fewest windows on the wrong side. The
    upper one is infinite while the limit lies above all rates, the lower one 0 while it lies below them."""
    rates = sorted({window.rate_per_s for window in windows})
    counts = {rate: [0, 0] for rate in rates}
    for window in windows:
        counts[window.rate_per_s][window.met] += 1
    edges = [0.0, *rates, math.inf]
    costs = [sum(met for _, met in counts.values())]
    for rate in rates:
        missed, met = counts[rate]
        costs.append(costs[-1] + missed - met)
    fewest = min(costs)
    within = [place for place, cost in enumerate(costs) if cost == fewest and 0 < place < len(rates)]
    if within:
        return edges[within[0]], edges[within[-1] + 1]
    outside = costs.index(fewest)
    return edges[outside], edges[outside + 1]


def _next(rules: SearchRules, rate_per_s: float, usable: Sequence[Window] = ()) -> NextWindow:
    """A window at this rate, as long as its percentiles and the spread of the windows so far ask for."""
    rate_per_s = min(max(rate_per_s, rules.lowest_rate_per_s), rules.highest_rate_per_s)
    near = _near_limit(usable)
    steady_s = _dispersion(near, [window.used for window in near]) / WANTED_SPREAD**2
    enough_s = max(rules.needed_operations / rate_per_s, steady_s)
    window_s = min(max(rules.window_s, math.ceil(enough_s)), max(rules.window_s, rules.longest_window_s))
    return NextWindow(rate_per_s=rate_per_s, window_s=window_s, settle_s=rules.settle_s)


def _line(rules: SearchRules, usable: Sequence[Window], low: float, high: float) -> _Line | None:
    """The line through the windows near the limit; None while it does not fall, or crosses 0 far from the bracket."""
    center, reach = math.sqrt(low * high), max(high - low, REACH * NEAREST * low)
    line = None
    for _ in range(4):
        nearby = [window for window in usable if abs(window.rate_per_s - center) <= reach]
        if len(nearby) < LEAST_OF_LINE:
            farthest = sorted(abs(window.rate_per_s - center) for window in usable)[:LEAST_OF_LINE][-1]
            nearby = [window for window in usable if abs(window.rate_per_s - center) <= farthest]
        line = _fit(rules, nearby) or line
        if line is None:
            return None
        center = min(max(line.rate_per_s, low), high)
        reach = REACH * _distance(line, center)
    return line if line is not None and low / FARTHEST_CROSSING <= line.rate_per_s <= high * FARTHEST_CROSSING else None


def _distance(line: _Line, rate_per_s: float) -> float:
    return min(max(SPREAD / line.slope, NEAREST * rate_per_s), FARTHEST * rate_per_s)


def _near_limit(windows: Sequence[Window]) -> list[Window]:
    """The windows that use about as much as is allowed."""
    return [window for window in windows if 1 / FARTHEST_USED <= window.used <= FARTHEST_USED]


def _dispersion(windows: Sequence[Window], fitted: Sequence[float]) -> float:
    """Variance of q in a window of one second where q is 1, from the spread between batches; it grows with q and falls
    with the window's length. 0 if no window has batches."""
    spreads = zip(windows, fitted, strict=True)
    each = [w.spread**2 * w.seconds / m for w, m in spreads if w.used <= FARTHEST_USED]
    return math.fsum(each) / len(each) if each else 0.0


def _fit(rules: SearchRules, nearby: Sequence[Window]) -> _Line | None:
    """The quasi-likelihood fit ln E(q) = a + b (rate - mean rate), by iterated weighted least squares."""
    n = len(nearby)
    rates = [window.rate_per_s for window in nearby]
    used = [min(window.used, FARTHEST_USED) for window in nearby]
    if n < LEAST_OF_LINE or min(rates) == max(rates):
        return None
    gap = _gap(nearby)
    if gap is not None and not any(1 / FARTHEST_USED < q < FARTHEST_USED for q in used):
        return _Line(math.sqrt(gap[0] * gap[1]), 1 / (gap[1] - gap[0]), tuple(nearby), *gap, gap)
    fitted = [max(q, LEAST_FITTED) for q in used]
    for _ in range(STEPS):
        weights = [window.seconds * m for window, m in zip(nearby, fitted, strict=True)]
        answers = [math.log(m) + (q - m) / m for q, m in zip(used, fitted, strict=True)]
        whole = math.fsum(weights)
        mean_rate = math.fsum(w * x for w, x in zip(weights, rates, strict=True)) / whole
        mean = math.fsum(w * z for w, z in zip(weights, answers, strict=True)) / whole
        squares = math.fsum(w * (x - mean_rate) ** 2 for w, x in zip(weights, rates, strict=True))
        slope = math.fsum(w * (x - mean_rate) * z for w, x, z in zip(weights, rates, answers, strict=True)) / squares
        lines = [mean + slope * (x - mean_rate) for x in rates]
        fitted = [math.exp(min(max(y, math.log(LEAST_FITTED)), math.log(MOST_FITTED))) for y in lines]
    if slope <= 0:
        return None
    offset = -mean / slope
    residual = math.fsum(w.seconds * (q - m) ** 2 / m for w, q, m in zip(nearby, used, fitted, strict=True)) / (n - 2)
    error = math.sqrt(max(residual, _dispersion(nearby, fitted)))
    width = t_quantile(rules.confidence, n - 2) * error / slope
    unsure = width * width / squares
    low, high = 0.0, math.inf
    if unsure < 1:
        half = width * math.sqrt((1 - unsure) / whole + offset * offset / squares) / (1 - unsure)
        low, high = mean_rate + offset / (1 - unsure) - half, mean_rate + offset / (1 - unsure) + half
    if gap is not None:
        low, high = min(low, gap[0]), max(high, gap[1])
    cautious = max(slope - CAUTION * error / math.sqrt(squares), SPREAD / max(rates))
    return _Line(mean_rate + offset, cautious, tuple(nearby), max(low, 0.0), high, gap)


def _gap(nearby: Sequence[Window]) -> tuple[float, float] | None:
    """The rates between which none was tried, if all windows below met the limits and all above missed them: a limit
    that is crossed at once, as of errors, lies anywhere between them."""
    met = max((window.rate_per_s for window in nearby if window.met), default=math.inf)
    missed = min((window.rate_per_s for window in nearby if not window.met), default=0.0)
    return (met, missed) if met < missed else None


def _next_without_line(usable: Sequence[Window], center: float) -> float:
    """The rate of the next window where the ones nearby show no line: as far from the middle as any, on the side with
    fewer. Ever narrower brackets would only follow the noise."""
    near = [window.rate_per_s for window in usable if abs(window.rate_per_s - center) <= REACH * FARTHEST * center]
    below = sum(rate < center * (1 - FARTHEST / 2) for rate in near)
    above = sum(rate > center * (1 + FARTHEST / 2) for rate in near)
    return center * (1 + (FARTHEST if above <= below else -FARTHEST))


def _pooled_range(rules: SearchRules, usable: Sequence[Window], middle: float) -> tuple[float, float]:
    """The range outside which pooled windows contradict the limit, whatever the slope: q rises with the rate, so
    windows from a rate up to the estimate that use clearly less than 1 together show that this rate meets the limits;
    above the estimate likewise. 0, or `GROWTH` times the estimate, where none do. Several pools are tried, so each has
    half of the error that is allowed (Bonferroni)."""
    near = _near_limit(usable)
    mean = math.fsum(window.used for window in near) / max(len(near), 1)
    between = math.fsum(window.seconds * (window.used - mean) ** 2 for window in near) / max(len(near) - 1, 1)
    variance = max(between, _dispersion(near, [window.used for window in near]))
    width = t_quantile((1 + rules.confidence) / 2, max(len(near) - 2, 1)) * math.sqrt(variance)

    def is_clear(one: float, other: float) -> bool:
        pool = [each for each in usable if min(one, other) <= each.rate_per_s <= max(one, other)]
        seconds = math.fsum(each.seconds for each in pool)
        beyond = math.fsum(each.seconds * min(each.used, FARTHEST_USED) for each in pool) / seconds - 1
        return abs(beyond) > width / math.sqrt(seconds) and (beyond < 0) == (one < middle)

    rates = sorted({window.rate_per_s for window in usable})
    below, above = [rate for rate in rates if rate < middle], [rate for rate in rates if rate > middle]
    low = max((one for one in below if any(is_clear(one, end) for end in below if end >= one)), default=0.0)
    farthest = max(rates[-1], GROWTH * middle)
    return low, min((one for one in above if any(is_clear(one, end) for end in above if end <= one)), default=farthest)


def _next_near_line(line: _Line, precision: float) -> float:
    """The rate of the next window: in the gap, if it is wide; else on the side of the estimate that has fewer, at a
    rate that was there before if one lies well."""
    distance = _distance(line, line.rate_per_s)
    below = sum(window.rate_per_s < line.rate_per_s for window in line.nearby)
    side = -1 if 2 * below <= len(line.nearby) else 1
    wanted = line.rate_per_s + side * distance
    if line.gap is not None and line.gap[1] - line.gap[0] > 2 * precision * line.rate_per_s:
        return (line.gap[0] + line.gap[1]) / 2
    there = [window.rate_per_s for window in line.nearby if abs(window.rate_per_s - wanted) <= distance / 3]
    return min(there, key=lambda rate: abs(rate - wanted), default=wanted)


def knee_per_s(windows: Sequence[Window]) -> float | None:
    """The knee: of the rates tried, the one with the largest *power*, rate over mean response time (Kleinrock 1979,
    *Power and deterministic rules of thumb*, ICC). None if that is the lowest or the highest rate tried."""
    powers: dict[float, list[float]] = {}
    for window in windows:
        mean_ms = window.values.get("response_ms_mean")
        if mean_ms:
            powers.setdefault(window.rate_per_s, []).append(window.rate_per_s / mean_ms)
    if len(powers) < LEAST_OF_LINE:
        return None
    best = max(powers, key=lambda rate: math.fsum(powers[rate]) / len(powers[rate]))
    return best if min(powers) < best < max(powers) else None


def _plateau(rules: SearchRules, usable: Sequence[Window], high: float, windows: int) -> NextWindow | SearchResult:
    """Saturation: the mean throughput of windows a little beyond it, with Student's t interval."""
    rates = _throughput(rules, usable, high)
    if rates is None or rates[2] - rates[1] > 2 * rules.precision * rates[0]:
        return _next(rules, high)
    return _found(usable, rates, windows, PRECISE)


def plateau(search: Search) -> tuple[Window, ...]:
    """Windows over whose throughputs the result of a search for saturation is averaged; empty of other searches, and if
    it is no such mean."""
    usable = [window for window in search.windows if not window.generator]
    if not search.rules.saturation or search.result is None or search.result.outcome != "found":
        return ()
    beyond = _beyond(usable, bracket(usable)[1])
    return tuple(beyond) if len(beyond) >= LEAST_OF_PLATEAU else ()


def _beyond(usable: Sequence[Window], high: float) -> list[Window]:
    """Windows at `high`, or a little beyond it, that missed a limit and had answers."""
    highest = high * FARTHEST_BEYOND
    return [one for one in usable if not one.met and high <= one.rate_per_s <= highest and one.throughput_per_s]


def _throughput(rules: SearchRules, usable: Sequence[Window], high: float) -> tuple[float, float, float] | None:
    beyond = [window.throughput_per_s or 0.0 for window in _beyond(usable, high)]
    n = len(beyond)
    if n < LEAST_OF_PLATEAU:
        return None
    mean = math.fsum(beyond) / n
    half = half_width(deviation(beyond), n, rules.confidence)
    return mean, mean - half, mean + half


def _found(usable: Sequence[Window], rates: tuple[float, float, float], windows: int, reason: str) -> SearchResult:
    rate, low, high = rates
    return SearchResult(
        outcome="found", rate_per_s=rate, low_per_s=min(low, rate), high_per_s=max(high, rate),
        knee_per_s=knee_per_s(usable), windows=windows, reason=reason,
    )  # fmt: skip


def _at_most_windows(rules: SearchRules, usable: Sequence[Window], windows: int) -> SearchResult:
    """The result when no window is left: what is known by then."""
    reason = f"{windows} windows were measured, the most allowed"
    if not usable:
        return _lower_bound(usable, windows, reason)
    low, high = bracket(usable)
    if high == math.inf:
        return _lower_bound(usable, windows, reason)
    if low == 0:
        none = _no_rate(rules, usable, windows)
        return none if _missed_at_lowest(rules, usable) else _not_found(rules, usable, windows, reason)
    narrow = high <= low * NARROW
    if rules.saturation:
        rates = _throughput(rules, usable, high) if narrow else None
        return _found(usable, rates or (math.sqrt(low * high), low, high), windows, reason)
    line = _line(rules, usable, low, high) if narrow else None
    if line is None or line.high_per_s == math.inf:
        middle = math.sqrt(low * high) if line is None else line.rate_per_s
        return _found(usable, (middle, *_pooled_range(rules, usable, middle)), windows, reason)
    return _found(usable, (line.rate_per_s, line.low_per_s, line.high_per_s), windows, reason)


def _ended_by_generator(windows: Sequence[Window], usable: Sequence[Window]) -> SearchResult:
    last = windows[-1]
    return _lower_bound(
        usable, len(windows), f"the load generator could not do {last.rate_per_s:.6g}/s: {last.generator}"
    )


def _lower_bound(usable: Sequence[Window], windows: int, reason: str) -> SearchResult:
    """The highest rate that met the limits, below every rate that missed them."""
    missed = min((window.rate_per_s for window in usable if not window.met), default=math.inf)
    met = [window.rate_per_s for window in usable if window.met and window.rate_per_s < missed]
    return SearchResult(
        outcome="at-least", rate_per_s=max(met, default=None), low_per_s=max(met, default=None),
        knee_per_s=knee_per_s(usable), windows=windows, reason=reason,
    )  # fmt: skip


def _no_rate(rules: SearchRules, usable: Sequence[Window], windows: int) -> SearchResult:
    return SearchResult(
        outcome="no-rate",
        windows=windows,
        reason=f"the lowest rate tried misses {_limits(rules)}: {_lowest(usable)}",
    )


def _not_found(rules: SearchRules, usable: Sequence[Window], windows: int, reason: str) -> SearchResult:
    """The result if the windows ran out before any rate met the limits; rates below those tried may meet them."""
    return SearchResult(
        outcome="not-found", windows=windows,
        reason=f"{reason}, before any rate met the limits ({_limits(rules)}); at the lowest rate tried, "
        f"{_lowest(usable)}; lower rates may meet them: raise load.most_windows or lower load.first_rate_per_s",
    )  # fmt: skip


def _limits(rules: SearchRules) -> str:
    """The limits as a study writes them."""
    return ", ".join(limit.text for limit in rules.limits)


def _lowest(usable: Sequence[Window]) -> str:
    """The lowest rate tried, and what was measured there."""
    lowest = min(usable, key=lambda window: window.rate_per_s)
    values = ", ".join(f"{name} was {value:.4g}" for name, value in lowest.values.items() if value is not None)
    return f"{lowest.rate_per_s:.6g}/s, {values}"
