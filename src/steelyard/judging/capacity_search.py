"""Search for the highest rate that meets a limit: a pure function from the windows so far to the next one, or the end.

1. *Doubling* from the first rate until a window misses the limit (halving if the first one does).
2. *Bisection* of that bracket, in the logarithm of the rate, until it is narrow. A window that is wrong by chance does
   no lasting harm: the bracket is the division of all windows with the fewest on the wrong side.
3. *Windows around the estimate*, below and above it in turn. With q the share of the limit that a window uses (p99 over
   the limit), 1/q falls almost in a straight line as the rate nears the limit: exactly so for M/M/1, where the p99 is
   ln 100 / (mu - rate). A line through the nearby windows crosses 1 at the estimate; Fieller's interval (Fieller 1954,
   *Some problems in interval estimation*, J. R. Stat. Soc. B 16) says how well they fix it. The line is a gamma
   regression: a window's percentile varies in proportion to itself.

Saturation ends differently: after 2. the throughputs of windows a little beyond it are averaged.

`verify` runs the same function over the stored windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.judging.t_interval import deviation, half_width, t_quantile
from steelyard.model.search import NextWindow, SearchResult, SearchRules, Window

GROWTH = 2.0
NARROW = 1.25
"""Bisection ends when the bracket's upper rate is at most this multiple of its lower one."""
FARTHEST_CROSSING = 1.25
"""A line that crosses 1 farther outside the bracket than by this factor is not used."""
FARTHEST_BEYOND = 1.25
"""Saturation: throughputs are averaged over windows up to this multiple of the bracket's upper rate."""
LEAST_AROUND = 9
"""Least windows around the estimate. With fewer, intervals come out too narrow, because the search stops as soon as its
interval is narrow."""
SPREAD = 0.4
"""Windows are put where the line through 1/q lies this far above and below 1."""
NEAREST, FARTHEST = 0.02, 0.15
"""Bounds of the distance between a window and the estimate, as a share of the estimate."""
REACH = 2.0
"""Windows count as nearby up to this multiple of that distance."""
FARTHEST_USED = 3.0
"""Bound of q and of 1/q in the fit: a stalled window counts no more than that."""
MOST_FITTED = 10.0
STEPS = 8
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
    """The line of 1/q over the rate near the estimate."""

    rate_per_s: float
    """Where it crosses 1."""
    slope: float
    """Change of 1/q per operation/s; below 0."""
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
        return _next(rules, low * GROWTH)
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
    if precise and len(line.nearby) >= LEAST_AROUND:
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


def _next(rules: SearchRules, rate_per_s: float, windows=()) -> NextWindow:
    rate_per_s = min(max(rate_per_s, rules.lowest_rate_per_s), rules.highest_rate_per_s)
    enough_s = rules.needed_operations / rate_per_s
    near = [w for w in windows if w.spread is not None and LONG_FROM <= w.used <= LONG_TO]
    enough_s = max(enough_s, dispersion(near) / TARGET**2)
    window_s = min(max(rules.window_s, math.ceil(enough_s)), max(rules.window_s, rules.longest_window_s))
    return NextWindow(rate_per_s=rate_per_s, window_s=window_s, settle_s=rules.settle_s)


def _line(rules: SearchRules, usable: Sequence[Window], low: float, high: float) -> _Line | None:
    """The line through the windows near the limit; None while it does not fall, or crosses 1 far from the bracket."""
    center, reach = math.sqrt(low * high), max(high - low, REACH * NEAREST * low)
    line = None
    for _ in range(4):
        nearby = [window for window in usable if abs(window.rate_per_s - center) <= reach]
        if len(nearby) < LEAST_OF_LINE:
            nearby = sorted(usable, key=lambda window: abs(window.rate_per_s - center))[:LEAST_OF_LINE]
        line = _fit(rules, nearby) or line
        if line is None:
            return None
        center = min(max(line.rate_per_s, low), high)
        reach = REACH * _distance(line, center)
    return line if line is not None and low / FARTHEST_CROSSING <= line.rate_per_s <= high * FARTHEST_CROSSING else None


def _distance(line: _Line, rate_per_s: float) -> float:
    return min(max(SPREAD / -line.slope, NEAREST * rate_per_s), FAR_LOG * rate_per_s)


def _fit(rules: SearchRules, nearby: Sequence[Window]) -> _Line | None:
    """The gamma regression of q on the rate with its canonical link, 1/q = a + b (rate - mean rate), by iterated
    weighted least squares (McCullagh and Nelder 1989, *Generalized Linear Models*, 8.4)."""
    if nearby and all(window.spread is not None for window in nearby):
        return _fit_log(rules, nearby)
    n = len(nearby)
    rates = [window.rate_per_s for window in nearby]
    used = [min(max(window.used, 1 / FARTHEST_USED), FARTHEST_USED) for window in nearby]
    if n < LEAST_OF_LINE or min(rates) == max(rates):
        return None
    gap = _gap(nearby)
    if gap is not None and all(q in (1 / FARTHEST_USED, FARTHEST_USED) for q in used):
        return _Line(math.sqrt(gap[0] * gap[1]), -1 / (gap[1] - gap[0]), tuple(nearby), *gap, gap)
    fitted = list(used)
    for _ in range(STEPS):
        weights = [q * q for q in fitted]
        answers = [1 / m - (q - m) / (m * m) for q, m in zip(used, fitted, strict=True)]
        whole = math.fsum(weights)
        mean_rate = math.fsum(w * x for w, x in zip(weights, rates, strict=True)) / whole
        mean = math.fsum(w * z for w, z in zip(weights, answers, strict=True)) / whole
        squares = math.fsum(w * (x - mean_rate) ** 2 for w, x in zip(weights, rates, strict=True))
        cross = math.fsum(w * (x - mean_rate) * z for w, x, z in zip(weights, rates, answers, strict=True))
        slope = cross / squares
        fitted = [1 / max(mean + slope * (x - mean_rate), 1 / MOST_FITTED) for x in rates]
    if slope >= 0:
        return None
    offset = (1 - mean) / slope
    dispersion = math.fsum(((q - m) / m) ** 2 for q, m in zip(used, fitted, strict=True)) / (n - 2)
    width = t_quantile(rules.confidence, n - 2) * math.sqrt(dispersion) / -slope
    unsure = width * width / squares
    low, high = 0.0, math.inf
    if unsure < 1:
        half = width * math.sqrt((1 - unsure) / whole + offset * offset / squares) / (1 - unsure)
        low, high = mean_rate + offset / (1 - unsure) - half, mean_rate + offset / (1 - unsure) + half
    if gap is not None:
        low, high = min(low, gap[0]), max(high, gap[1])
    return _Line(mean_rate + offset, slope, tuple(nearby), max(low, 0.0), high, gap)


CLIP = 5.0
POWER = 1.0
FAR_LOG = 0.3
SURE = 1.0
RES = 0
FARW = 0.3
TARGET = 0.2
LONG_FROM, LONG_TO = 0.33, 3.0


def dispersion(windows, fitted=None):
    """Of batch means: variance of a second's used over used ** POWER."""
    of = [
        w.spread**2 * w.seconds / max(m, 0.05)**POWER for w, m in zip(windows, fitted or [w.used for w in windows])
    ]
    return math.fsum(of) / len(of) if of else 0.0


def _fit_log(rules, nearby):
    n = len(nearby)
    rates = [window.rate_per_s for window in nearby]
    used = [min(window.used, CLIP) for window in nearby]
    if n < LEAST_OF_LINE or min(rates) == max(rates):
        return None
    gap = _gap(nearby)
    if gap is not None and all(q <= 1 / FARTHEST_USED or q >= FARTHEST_USED for q in used):
        return _Line(math.sqrt(gap[0] * gap[1]), -1 / (gap[1] - gap[0]), tuple(nearby), *gap, gap)
    fitted = [max(q, 0.1) for q in used]
    seconds = [w.seconds for w in nearby]
    for _ in range(12):
        weights = [t * m ** (2 - POWER) for t, m in zip(seconds, fitted)]
        answers = [math.log(m) + (q - m) / m for q, m in zip(used, fitted)]
        whole = math.fsum(weights)
        mean_rate = math.fsum(w * x for w, x in zip(weights, rates)) / whole
        mean = math.fsum(w * z for w, z in zip(weights, answers)) / whole
        squares = math.fsum(w * (x - mean_rate) ** 2 for w, x in zip(weights, rates))
        cross = math.fsum(w * (x - mean_rate) * z for w, x, z in zip(weights, rates, answers))
        slope = cross / squares
        fitted = [min(max(math.exp(min(mean + slope * (x - mean_rate), 5)), 0.02), 2 * CLIP) for x in rates]
    if slope <= 0:
        return None
    offset = -mean / slope
    phi = math.fsum(t * (q - m) ** 2 / m**POWER for t, q, m in zip(seconds, used, fitted)) / (n - 2)
    phi = max(phi, dispersion(nearby, fitted))
    width = t_quantile(rules.confidence, n - 2) * math.sqrt(phi) / slope
    unsure = width * width / squares
    low, high = 0.0, math.inf
    if unsure < 1:
        half = width * math.sqrt((1 - unsure) / whole + offset * offset / squares) / (1 - unsure)
        low, high = mean_rate + offset / (1 - unsure) - half, mean_rate + offset / (1 - unsure) + half
    if gap is not None:
        low, high = min(low, gap[0]), max(high, gap[1])
    sure = max(slope - SURE * math.sqrt(phi / squares), 1e-9)
    return _Line(mean_rate + offset, -sure, tuple(nearby), max(low, 0.0), high, gap)


def _gap(nearby: Sequence[Window]) -> tuple[float, float] | None:
    """The rates between which none was tried, if all windows below met the limits and all above missed them: a limit
    that is crossed at once, as of errors, lies anywhere between them."""
    met = max((window.rate_per_s for window in nearby if window.met), default=math.inf)
    missed = min((window.rate_per_s for window in nearby if not window.met), default=0.0)
    return (met, missed) if met < missed else None


def _next_without_line(usable: Sequence[Window], center: float) -> float:
    """The rate of the next window where the ones nearby show no line: as far from the middle as any, on the side with
    fewer. Ever narrower brackets would only follow the noise."""
    near = [window.rate_per_s for window in usable if abs(window.rate_per_s - center) <= REACH * FARW * center]
    below = sum(rate < center * (1 - FARW / 2) for rate in near)
    above = sum(rate > center * (1 + FARW / 2) for rate in near)
    return center * (1 + (FARW if above <= below else -FARW))


def _contradicted_range(rules, usable, middle):
    seconds = [w for w in usable if 1/3 <= w.used <= 3]
    phi = dispersion(seconds)
    n = len(seconds)
    if n > 3:
        mean = math.fsum(w.used for w in seconds) / n
        phi = max(phi, math.fsum(w.seconds * (w.used - mean) ** 2 for w in seconds) / (n - 1) / mean if RES else 0)
    t = t_quantile(rules.confidence, max(n - 2, 1))

    def clear(rate):
        a, b = min(rate, middle), max(rate, middle)
        inside = [w for w in usable if a <= w.rate_per_s <= b]
        time = math.fsum(w.seconds for w in inside)
        mean = math.fsum(w.seconds * min(w.used, CLIP) for w in inside) / time
        return abs(mean - 1) > t * math.sqrt(phi / time) and (mean < 1) == (rate < middle)

    rates = sorted({w.rate_per_s for w in usable})
    low = max((r for r in rates if r < middle and clear(r)), default=0.0)
    high = min((r for r in rates if r > middle and clear(r)), default=max(rates[-1], 2*middle))
    return low, high


def _next_near_line(line: _Line, precision: float) -> float:
    """The rate of the next window: in the gap, if it is wide; else on the side of the estimate that has fewer, at a
    rate that was there before if one lies well."""
    distance = _distance(line, line.rate_per_s)
    below = sum(window.rate_per_s < line.rate_per_s for window in line.nearby)
    side = -1 if 2 * below <= len(line.nearby) else 1
    wanted = line.rate_per_s + side * distance
    if line.gap is not None and line.gap[1] - line.gap[0] > 2 * precision * line.rate_per_s:
        return (line.gap[0] + line.gap[1]) / 2
    there = [window.rate_per_s for window in line.nearby if abs(window.rate_per_s - wanted) <= distance / 2]
    return min(there, key=lambda rate: abs(rate - wanted), default=wanted)


def knee_per_s(windows: Sequence[Window]) -> float | None:
    """The knee: of the rates tried, the one with the greatest *power*, rate over mean response time (Kleinrock 1979,
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


def _throughput(rules: SearchRules, usable: Sequence[Window], high: float) -> tuple[float, float, float] | None:
    beyond = [
        window.throughput_per_s
        for window in usable
        if not window.met and high <= window.rate_per_s <= high * FARTHEST_BEYOND and window.throughput_per_s
    ]
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
        contradicted = _contradicted_range(rules, usable, middle)
        return _found(usable, (middle, *contradicted), windows, reason)
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
        reason=f"no rate meets the limits ({_limits(rules)}); at the lowest rate tried, {_lowest(usable)}",
    )


def _not_found(rules: SearchRules, usable: Sequence[Window], windows: int, reason: str) -> SearchResult:
    """The windows ran out before a rate was found that meets the limits: rates below those tried may."""
    return SearchResult(
        outcome="not-found", windows=windows,
        reason=f"{reason}, before a rate was found that meets the limits ({_limits(rules)}); at the lowest rate tried, "
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
