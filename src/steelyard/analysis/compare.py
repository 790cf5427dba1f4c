"""Levels of a factor against each other: a ratio with an honest interval, and a verdict in words with three values.

Which interval holds with so few starts was simulated (identical systems, start-to-start deviation 3%, trials 2%, three
trials a start; how often they were called different at 95%): a percentile bootstrap over starts 33%, 20% and 12% of
the time with 2, 3 and 5 starts a level; Welch's t over trials 26%, 24% and 22%; Welch's t over logarithms of start
means 2%, 4% and 4%. So the last it is: it needs no resampling, and nowhere exceeds the 5% that it promises by much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from steelyard.analysis import decide, estimates
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import LABELS, UNITS, Comparison, ComparisonVerdict, Treatment, label, part
from steelyard.analysis.summary import exclusions, start_means
from steelyard.format import number, signed
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level

LESS_IS_FASTER = frozenset(
    name for name, unit in UNITS.items() if unit == "ms" and name.startswith(("execution", "response", "service"))
)
MORE_IS_FASTER = frozenset({"throughput_per_s"})
WORKLOADS = frozenset({"workload", "workload.name"})
FEWEST_STARTS = 2
NOTHING_VARIES = "nothing varies between starts"


def baseline_of(levels: Sequence[Level]) -> Level:
    """The level that others are compared with: the smallest number, else the first level of the study."""
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    return min(numbers) if len(numbers) == len(levels) else levels[0]


def welch(log_a: Sequence[float], log_b: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """(mean(b) - mean(a), half width, degrees of freedom): Welch 1947, degrees by `estimates.welch_degrees`."""
    n_a, n_b = len(log_a), len(log_b)
    part_a, part_b = estimates.deviation(log_a) ** 2 / n_a, estimates.deviation(log_b) ** 2 / n_b
    difference = math.fsum(log_b) / n_b - math.fsum(log_a) / n_a
    error = part_a + part_b
    if error == 0:
        return difference, 0.0, float(n_a + n_b - 2)
    degrees = estimates.welch_degrees(part_a, n_a, part_b, n_b)
    return difference, estimates.t_quantile(confidence, degrees) * math.sqrt(error), degrees


def paired(logs: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """(mean, half width, degrees of freedom) of differences of logarithms, one per start."""
    n = len(logs)
    half = estimates.t_quantile(confidence, n - 1) * estimates.deviation(logs) / math.sqrt(n)
    return math.fsum(logs) / n, half, float(n - 1)


def compare(
    frame: TrialFrame, response: str, factor: str, baseline: Level, level: Level, others: Treatment,
    confidence: float = 0.95, margin_percent: float | None = None, block_s: float | None = None,
) -> Comparison | None:  # fmt: skip
    """Level against baseline, other factors fixed; None where either has no used trial or the baseline's mean is 0.

    Hard-to-change factors: Welch's t on logarithms of start means. Other factors, whose levels are tried within the
    same starts: t on differences of logarithms paired by start. Fewer than two starts a level: no interval, no verdict.
    """
    rows_a = frame.values(response, {**others, factor: baseline})
    rows_b = frame.values(response, {**others, factor: level})
    starts_a, starts_b = start_means(rows_a, response), start_means(rows_b, response)
    if not starts_a or not starts_b:
        return None
    by_start_a = {start: mean for start, mean, _ in starts_a}
    by_start_b = {start: mean for start, mean, _ in starts_b}
    ratio = ratio_between(by_start_a, by_start_b, factor not in frame.hard, confidence)
    if ratio is None:
        return None
    change = percent(ratio)
    verdict = judge(response, ratio)
    both = paired_starts(by_start_a, by_start_b, factor not in frame.hard)
    means_a, means_b = units(by_start_a, by_start_b, both)
    more, would = None, ""
    if verdict == "undecided":
        more = decide.more_starts(means_a, means_b, bool(both), margin_percent, confidence)
        would = decide.Forecast(more, block_s).words()
    both_excluded = [exclusions(frame, response, {**others, factor: one}) for one in (baseline, level)]
    return Comparison(
        factor=factor, baseline=baseline, level=level, others=others, response=response, unit=UNITS[response],
        ratio=ratio, change_percent=change, verdict=verdict,
        sentence=sentence(response, factor, baseline, level, others, change, verdict, would),
        p=decide.p_of_change(means_a, means_b, bool(both)),
        more_starts=None if more is None else more.starts,
        more_s=None if more is None or block_s is None else more.starts * block_s,
        n_baseline=rows_a.height, n_level=rows_b.height, starts_baseline=len(starts_a), starts_level=len(starts_b),
        excluded=sum(exclusion.trials for found in both_excluded for exclusion in found),
    )  # fmt: skip


def paired_starts(a: Mapping[str, float], b: Mapping[str, float], same_starts: bool) -> tuple[str, ...]:
    """The starts that served both sides, if the sides may be paired by start and there are enough; else none."""
    both = tuple(start for start in a if start in b) if same_starts else ()
    return both if len(both) >= FEWEST_STARTS else ()


def units(
    a: Mapping[str, float], b: Mapping[str, float], both: Sequence[str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The start means that a comparison rests on: those of the paired starts (`both`), else all of each side."""
    if both:
        return tuple(a[start] for start in both), tuple(b[start] for start in both)
    return tuple(a.values()), tuple(b.values())


def ratio_between(
    a: Mapping[str, float], b: Mapping[str, float], same_starts: bool, confidence: float
) -> Estimate | None:
    """Ratio b / a from the mean of each start, with its interval; None where the mean of a is 0.

    `same_starts`: equal names of starts are the same cluster, and the sides were tried within it. Paired t on
    logarithms where two starts or more served both, else Welch's t; no interval below two starts a side, or where a
    mean is not positive.
    """
    positive = min(*a.values(), *b.values()) > 0
    both = paired_starts(a, b, same_starts)
    if positive and both:
        gaps = [math.log(b[start] / a[start]) for start in both]
        return _ratio(
            paired(gaps, confidence) if decide.varies(gaps) else (math.fsum(gaps) / len(gaps), 0.0, len(gaps) - 1.0),
            len(both), confidence, "ratio of geometric means, t on logarithms of start means paired by start",
        )  # fmt: skip
    if positive and min(len(a), len(b)) >= FEWEST_STARTS and not both:
        logs_a, logs_b = ([math.log(mean) for mean in by.values()] for by in (a, b))
        gap = math.fsum(logs_b) / len(logs_b) - math.fsum(logs_a) / len(logs_a)
        return _ratio(
            welch(logs_a, logs_b, confidence) if decide.varies(logs_a, logs_b) else (gap, 0.0, 0.0),
            len(a) + len(b), confidence,
            "ratio of geometric means, Welch's t on logarithms of start means",
        )  # fmt: skip
    base = math.fsum(a.values()) / len(a)
    if base == 0:
        return None
    value = math.fsum(b.values()) / len(b) / base
    method = "ratio of means of start means; fewer than two starts a level: no interval"
    n = len(both) or len(a) + len(b)
    return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)


def _ratio(found: tuple[float, float, float], n: int, confidence: float, method: str) -> Estimate:
    centre, half, degrees = found
    if half == 0:  # Percentiles come in steps of a histogram: few equal values are no proof that nothing varies.
        why = f"{method}; no interval: {NOTHING_VARIES}"
        return Estimate(value=math.exp(centre), confidence=confidence, n=n, unit="", method=why)
    shown = f"{degrees:.0f}" if degrees == round(degrees) else f"{degrees:.1f}"
    return Estimate(
        value=math.exp(centre),
        low=math.exp(max(centre - half, -600.0)),
        high=math.exp(min(centre + half, 600.0)),
        confidence=confidence,
        n=n,
        unit="",
        method=f"{method}, {shown} degrees of freedom",
    )


def percent(ratio: Estimate) -> Estimate:
    """A ratio as the change that it is, in per cent of the baseline."""
    return ratio.model_copy(
        update={
            "value": 100 * (ratio.value - 1),
            "low": None if ratio.low is None else 100 * (ratio.low - 1),
            "high": None if ratio.high is None else 100 * (ratio.high - 1),
            "unit": "%",
        }
    )


def judge(response: str, ratio: Estimate) -> ComparisonVerdict:
    """Slower or faster (higher or lower, where neither is better) only if the interval leaves 1 out."""
    if ratio.low is None or ratio.high is None:
        return "descriptive"
    if ratio.low <= 1 <= ratio.high:
        return "undecided"
    more = ratio.low > 1
    if response in LESS_IS_FASTER:
        return "slower" if more else "faster"
    if response in MORE_IS_FASTER:
        return "faster" if more else "slower"
    return "higher" if more else "lower"


def head(factor: str, baseline: Level, level: Level, others: Treatment) -> str:
    """What is compared: `workload A, 3 nodes against 1 node`."""
    about = f"{part(factor, level)} against {part(factor, baseline)}"
    return f"{label(others)}, {about}" if others else about


def sentence(
    response: str, factor: str, baseline: Level, level: Level, others: Treatment, change: Estimate,
    verdict: ComparisonVerdict, would: str = "",
) -> str:  # fmt: skip
    """The comparison in words; per cent are of the baseline's value. `would`: what would decide, where it is not."""
    about = head(factor, baseline, level, others)
    low, high = change.low, change.high
    if low is None or high is None:
        return (
            f"{about}: {LABELS[response]} {signed(change.value)}% in these trials; "
            f"{NOTHING_VARIES if NOTHING_VARIES in change.method else 'fewer than two starts a level'}, so there is "
            "neither interval nor verdict"
        )
    if verdict == "undecided":
        return f"{about}: undecided: [{signed(low)}, {signed(high)}]% includes 0" + (f"; {would}" if would else "")
    ends = sorted((abs(low), abs(high)))
    return f"{about}: {verdict} by [{number(ends[0], digits=2)}, {number(ends[1], digits=2)}]%"


def comparisons(
    frame: TrialFrame, response: str, confidence: float = 0.95, margin_percent: float | None = None
) -> tuple[Comparison, ...]:
    """Every level of every factor against its baseline, for each combination of the other factors.

    Workloads are compared only if nothing else is a factor: they are different questions, not answers to one. The
    family of Holm's correction is all of them.
    """
    factors = [name for name in frame.names if name not in WORKLOADS] or list(frame.names)
    found = []
    pace_s = decide.block_s(frame)
    for factor in factors:
        levels = frame.factors[factor]
        base = baseline_of(levels) if levels else ""
        for others in frame.others(factor):
            for level in levels:
                if level == base:
                    continue
                one = compare(frame, response, factor, base, level, others, confidence, margin_percent, pace_s)
                if one is not None:
                    found.append(one)
    adjusted = decide.holm([one.p for one in found])
    family = sum(one.p is not None for one in found)
    return tuple(_adjusted(one, p, family) for one, p in zip(found, adjusted, strict=True))


def _adjusted(one: Comparison, p_holm: float | None, family: int) -> Comparison:
    """With what Holm's correction says of it; the verdict stays the interval's."""
    holds = decide.survives(one.verdict, p_holm, one.ratio.confidence)
    said = one.sentence + (f"; {decide.lost(family, one.p, p_holm)}" if holds is False else "")
    return one.model_copy(update={"p_holm": p_holm, "family": family, "survives_holm": holds, "sentence": said})
