"""Own results beside published ones: agrees, differs by so much, or is not comparable because of what.

Pure functions over own trial values and estimates; nothing here reads a store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from scipy import stats

from steelyard.format import signed
from steelyard.model.estimate import Estimate
from steelyard.model.value import Value
from steelyard.reference.interval import Interval
from steelyard.reference.printed import Printed
from steelyard.reference.richardson import OVERALL, CellKey, compared, fitted_to, key_of
from steelyard.reference.tables import Row, tables

Verdict = Literal["agrees", "differs", "not comparable", "no number"]

STATISTICS = ("count", "mean", "std", "min", "25%", "50%", "75%", "max", "range")
RATIOS: Mapping[str, tuple[str, str]] = {
    "ratio_max_to_min": ("max", "min"),
    "ratio_min_to_max": ("min", "max"),
    "ratio_of_the_means": ("mean", "mean"),
    "ratio_of_the_medians": ("50%", "50%"),
    "ratio_of_the_stddevs": ("std", "std"),
}
"""Definition in speedup.csv to the baseline's statistic (above) and the treatment's (below)."""


class Conditions(Value):
    """What must be equal for two results to answer the same question; None where it is not known."""

    platform: str | None = None
    """Such as raspberry-pi-2, virtual-machine, network namespaces."""
    version: str | None = None
    """System and version, such as cassandra 3.9."""
    workload: str | None = None
    records: int | None = None
    operations: int | None = None
    threads: int | None = None
    nodes: int | None = None
    values: int | None = None
    """Trials behind the number."""


FEWEST_VALUES = 2
"""One trial has no spread: whether it differs cannot be said."""

RICHARDSON2017 = Conditions(version="cassandra 3.9", records=1_000_000, operations=10_000, threads=1)
"""What all cells of richardson2017 have in common."""


class Beside(Value):
    """One own number beside one published one."""

    table: str
    cell: dict[str, str]
    statistic: str
    unit: str = ""
    """Of the printed number; empty where the table has one for all."""
    printed: str
    published_low: float | None = None
    published_high: float | None = None
    """What the printed digits allow."""
    ours: Estimate | None = None
    verdict: Verdict
    change_percent: float | None = None
    """100 (ours / published - 1); given beside `not comparable` too, to see the scale, not to conclude from."""
    low: float | None = None
    high: float | None = None
    """What our interval and the printed digits together allow of the change; None without an interval of ours."""
    reasons: tuple[str, ...] = ()
    """Why it is not comparable, or what weakens the verdict."""

    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict == "agrees":
            return "agrees: our interval and what the printed digits allow have values in common"
        if self.verdict == "no number":
            return f"no number: {'; '.join(self.reasons)}"
        change = "" if self.change_percent is None else _change(self.change_percent, self.low, self.high)
        if self.verdict == "differs":
            return f"differs by {change or 'a quantity that has no ratio to 0'}"
        return f"not comparable because {'; '.join(self.reasons)}" + (f" (ours is {change})" if change else "")


def _change(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" [{signed(low, digits=3)}, {signed(high, digits=3)}]%"
    return f"{signed(value, digits=3)}%{ends}"


def differences(ours: Conditions, published: Conditions) -> tuple[str, ...]:
    """Why two results do not answer the same question: every condition that is known of both and differs.

    What one side does not say is no reason. Fewer than two own values are one.
    """
    words = {
        "platform": "platform",
        "version": "version",
        "workload": "workload",
        "records": "scale: records",
        "operations": "scale: operations a trial",
        "threads": "client threads",
        "nodes": "nodes",
    }
    reasons = []
    for name, word in words.items():
        here, there = getattr(ours, name), getattr(published, name)
        if here is not None and there is not None and here != there:
            reasons.append(f"{word} {shown(here)}, published {shown(there)}")
    if ours.values is not None and ours.values < FEWEST_VALUES:
        reasons.append(f"n {ours.values}: too few trials of ours to say how sure it is")
    return tuple(reasons)


def shown(value: object) -> str:
    """A condition's level for people: whole numbers with commas."""
    text = str(value)
    return f"{int(text):,}" if text.isdecimal() else text


def lay(
    table: str,
    cell: Mapping[str, str],
    statistic: str,
    printed: Printed,
    ours: Estimate | None,
    reasons: Sequence[str] = (),
) -> Beside:
    """One own estimate beside one printed number. `reasons`: why they are not comparable (`differences`).

    Agrees where our interval (our value, if it has none) and the interval of the printed digits meet. Otherwise the
    change in percent; its interval is [ours.low / published.high - 1, ours.high / published.low - 1] for positive
    numbers, so that the rounding of both sides is in it.
    """
    published = printed.interval
    known = {
        "table": table,
        "cell": dict(cell),
        "statistic": statistic,
        "printed": printed.text,
        "published_low": None if published is None else published.low,
        "published_high": None if published is None else published.high,
        "ours": ours,
    }
    if published is None or printed.value is None or ours is None:
        missing = ("nothing was published",) if published is None else ("we have no number",)
        return Beside.model_validate({**known, "verdict": "no number", "reasons": missing})
    mine = Interval(ours.value, ours.value)
    if ours.low is not None and ours.high is not None:
        mine = Interval(ours.low, ours.high)
    change: dict[str, float] = {}
    if published.low > 0 and ours.value > 0:
        change["change_percent"] = 100 * (ours.value / printed.value - 1)
        if ours.low is not None and ours.high is not None:
            share = mine.over(published)
            change |= {"low": 100 * (share.low - 1), "high": 100 * (share.high - 1)}
    if reasons:
        return Beside.model_validate({**known, **change, "verdict": "not comparable", "reasons": tuple(reasons)})
    verdict = "agrees" if mine.meets(published) else "differs"
    weak = () if ours.low is not None else ("our value has no interval",)
    return Beside.model_validate({**known, **change, "verdict": verdict, "reasons": weak})


def summary(values: Sequence[float]) -> dict[str, float]:
    """The published summary of own trial values: count, mean, std (n - 1), min, quartiles (linear), max, range.

    nan where n does not allow it, as richardson2017's tool printed it.
    """
    array = np.asarray(values, dtype=float)
    if not array.size:
        return {name: 0.0 if name == "count" else math.nan for name in STATISTICS}
    quartiles = np.quantile(array, (0.0, 0.25, 0.5, 0.75, 1.0))
    std = float(np.std(array, ddof=1)) if array.size > 1 else math.nan
    found = (array.size, np.mean(array), std, *quartiles, quartiles[-1] - quartiles[0])
    return {name: float(value) for name, value in zip(STATISTICS, found, strict=True)}


def speedup(baseline: Sequence[float], treatment: Sequence[float]) -> dict[str, float]:
    """The published speedup table of own trial values, baseline over treatment; nan without data or over 0."""
    over, under = summary(baseline), summary(treatment)
    return {name: _ratio(over[top], under[bottom]) for name, (top, bottom) in RATIOS.items()}


def _ratio(over: float, under: float) -> float:
    return over / under if under and math.isfinite(over) and math.isfinite(under) else math.nan


def regression(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    """The published regression of own trial values: slope, intercept, r_value, p_value, std_err (scipy's linregress).

    Over trials, counted as independent, as published. nan for fewer than three values or one x.
    """
    names = ("slope", "intercept", "r_value", "p_value", "std_err")
    if len(x) < 3 or len(set(x)) < 2:
        return dict.fromkeys(names, math.nan)
    fit = stats.linregress(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    found = (fit.slope, fit.intercept, fit.rvalue, fit.pvalue, fit.stderr)
    return {name: float(value) for name, value in zip(names, found, strict=True)}


def effect(baseline: Sequence[float], treatment: Sequence[float]) -> dict[str, float]:
    """The published regression over a 0/1 effect: intercept = mean of the baseline, slope = difference of the means."""
    x = [0.0] * len(baseline) + [1.0] * len(treatment)
    if not baseline or not treatment:
        return regression((), ())
    return regression(x, (*baseline, *treatment))


def richardson2017(
    trials: Mapping[CellKey, Sequence[float]],
    ours: Conditions,
    estimates: Mapping[tuple[CellKey, str], Estimate] | None = None,
) -> tuple[Beside, ...]:
    """Every published number of which we have the cells, in the order of the files, with ours computed alike.

    `trials`: execution times in ms of the kept trials of each own cell, with the published words for what it is about;
    an overall cell is pooled from them. `ours`: conditions that hold for all of them; what a cell says itself
    (platform, workload, nodes) may be left out. `estimates`: own intervals by cell and statistic (mean, 50%); numbers
    without one are laid beside as they are.
    """
    known = {**_pooled(trials), **trials}
    found: list[Beside] = []
    for row in tables()["trial_time_summary"].wide():
        key = key_of(row.key)
        if key in known:
            values = summary(known[key])
            found += [
                _laid("trial_time_summary", row, name, row.numbers[name], value, (key,), known, ours, estimates)
                for name, value in values.items()
            ]
    for row in tables()["regression"].rows:
        points = fitted_to(row.key)
        keys = tuple(key for _, key in points)
        if all(key in known for key in keys):
            x, y = zip(*((x, value) for x, key in points for value in known[key]), strict=True)
            fit = regression(x, y)
            found += [
                _laid("regression", row, name, row.numbers[name], value, keys, known, ours)
                for name, value in fit.items()
            ]
    for row in tables()["speedup"].wide():
        keys = compared(row.key["ratio"], row.key["workload"], row.key["cluster_size"])
        if all(key in known for key in keys):
            ratios = speedup(known[keys[0]], known[keys[1]])
            found += [
                _laid("speedup", row, name, row.numbers[name], value, keys, known, ours)
                for name, value in ratios.items()
            ]
    return tuple(found)


def _pooled(trials: Mapping[CellKey, Sequence[float]]) -> dict[CellKey, list[float]]:
    """All sizes of a platform together, as the rows `overall` have them."""
    found: dict[CellKey, list[float]] = {}
    for key, values in trials.items():
        found.setdefault(key._replace(cluster_size=OVERALL), []).extend(values)
    return found


def _laid(
    table: str,
    row: Row,
    statistic: str,
    printed: Printed,
    value: float,
    keys: Sequence[CellKey],
    known: Mapping[CellKey, Sequence[float]],
    ours: Conditions,
    estimates: Mapping[tuple[CellKey, str], Estimate] | None = None,
) -> Beside:
    counts = [len(known[key]) for key in keys]
    n = sum(counts) if table == "regression" else min(counts)
    estimate = (estimates or {}).get((keys[0], statistic)) if len(keys) == 1 else None
    if estimate is None and math.isfinite(value):
        unit = "trials" if statistic == "count" else "ms" if table == "trial_time_summary" else ""
        estimate = Estimate(value=value, n=n, unit=unit, method="computed as published, without an interval")
    published = RICHARDSON2017.model_copy(
        update={
            "platform": keys[0].platform if len({key.platform for key in keys}) == 1 else None,
            "workload": keys[0].workload,
            "nodes": int(keys[0].cluster_size) if len(keys) == 1 and keys[0].cluster_size != OVERALL else None,
        }
    )
    reasons = differences(ours.model_copy(update={"values": min(counts)}), published)
    return lay(table, row.key, statistic, printed, estimate, (*reasons, *_other_sizes(keys, known)))


def _other_sizes(keys: Sequence[CellKey], known: Mapping[CellKey, Sequence[float]]) -> tuple[str, ...]:
    """An overall cell is the same question only if it pools the same sizes."""
    reasons = []
    for key in keys:
        if key.cluster_size != OVERALL:
            continue
        ours, theirs = (
            sorted({one.cluster_size for one in cells if one._replace(cluster_size=OVERALL) == key} - {OVERALL})
            for cells in (known, [key_of(row.key) for row in tables()["trial_time_summary"].wide()])
        )
        if ours != theirs:
            reasons.append(f"scale: ours pools sizes {', '.join(ours)}, published {', '.join(theirs)}")
    return tuple(dict.fromkeys(reasons))
