"""A factor's effect over all levels of the others: geometric means of ratios, and the effects of a fraction.

Both are contrasts of logarithms of treatment means with weights that add up to 0. Starts are the independent units, and
a start serves several treatments, so the contrast is cut into the parts that single starts carry:

    effect = sum over combinations h of hard levels of mean over the starts of h of e,   e = sum over treatments of c y

with variance sum s_h^2 / n_h and Satterthwaite's degrees of freedom (Welch 1947). What a start adds to all of its
trials cancels in factors that vary within it. A geometric mean is the mean that does not depend on what is the baseline
(Fleming and Wallace 1986, Communications of the ACM 29(3)). It holds for these cells (workloads), not for others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from steelyard.analysis import estimates
from steelyard.analysis.compare import (
    FEWEST_STARTS,
    NOTHING_VARIES,
    WORKLOADS,
    baseline_of,
    judge,
    percent,
)
from steelyard.analysis.decide import varies
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.merits import MainEffect, Overall
from steelyard.analysis.results import LABELS, Treatment, label, part
from steelyard.format import signed
from steelyard.judging.fractional_design import Fraction
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level

FEWEST_CELLS = 2
Key = tuple[Level | None, ...]
"""The levels of a treatment, in the order of the frame's factors."""


@dataclass(frozen=True)
class Logs:
    """Logarithms of treatment means in each start."""

    of: Mapping[str, Mapping[Key, float]]
    """Start to treatment to the logarithm of the mean of its trials there."""
    hard: Mapping[str, Key]
    """Start to its hard levels."""

    def mean(self, key: Key) -> float | None:
        """Mean over the starts that have the treatment."""
        found = [cells[key] for cells in self.of.values() if key in cells]
        return math.fsum(found) / len(found) if found else None


def logs(frame: TrialFrame, response: str) -> Logs | None:
    """Of every used trial without control; None where a value is not above 0, so that there is no logarithm."""
    rows = frame.values(response)
    if not rows.height or float(rows[response].cast(pl.Float64).min() or 0) <= 0:  # type: ignore[arg-type]
        return None
    means = rows.group_by("start", *frame.names, maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    of: dict[str, dict[Key, float]] = {}
    hard: dict[str, Key] = {}
    for row in means.iter_rows(named=True):
        start = str(row["start"])
        of.setdefault(start, {})[tuple(row[name] for name in frame.names)] = math.log(row[response])
        hard[start] = tuple(row[name] for name in frame.hard)
    return Logs(of, hard)


def contrast(found: Logs, weights: Mapping[Key, float], confidence: float) -> Estimate | None:
    """exp of the weighted sum of logarithms; without an interval where a combination of hard levels has fewer than two
    whole starts. None where a treatment has no start."""
    groups: dict[Key, list[dict[Key, float]]] = {}
    for start, cells in found.of.items():
        mine = {key: value for key, value in cells.items() if key in weights}
        if mine:
            groups.setdefault(found.hard[start], []).append(mine)
    if any(found.mean(key) is None for key in weights):
        return None
    parts = []
    for served in groups.values():
        wanted = {key for mine in served for key in mine}
        parts.append(
            [math.fsum(weights[key] * mine[key] for key in wanted) for mine in served if len(mine) == len(wanted)]
        )
    starts = sum(map(len, parts))
    if min(map(len, parts)) < FEWEST_STARTS:
        total = math.fsum(weight * (found.mean(key) or 0.0) for key, weight in weights.items())
        method = "ratio of geometric means; fewer than two whole starts of a combination: no interval"
        return Estimate(value=math.exp(total), confidence=confidence, n=len(found.of), unit="", method=method)
    centre = math.fsum(math.fsum(one) / len(one) for one in parts)
    errors = [estimates.deviation(one) ** 2 / len(one) for one in parts]
    error = math.fsum(errors)
    if not any(varies(one) for one in parts):
        method = f"ratio of geometric means; no interval: {NOTHING_VARIES}"
        return Estimate(value=math.exp(centre), confidence=confidence, n=starts, unit="", method=method)
    degrees = _degrees(errors, [len(one) for one in parts])
    half = estimates.t_quantile(confidence, degrees) * math.sqrt(error)
    return Estimate(
        value=math.exp(centre), low=math.exp(max(centre - half, -600.0)), high=math.exp(min(centre + half, 600.0)),
        confidence=confidence, n=starts, unit="",
        method=f"ratio of geometric means, t on contrasts of {starts} starts, {degrees:.1f} degrees of freedom",
    )  # fmt: skip


def _degrees(errors: Sequence[float], sizes: Sequence[int]) -> float:
    """Satterthwaite's, but for unequal numbers not above those of equal spreads; see `estimates.welch_degrees`."""
    found = math.fsum(errors) ** 2 / math.fsum(one**2 / (n - 1) for one, n in zip(errors, sizes, strict=True))
    if len(set(sizes)) == 1:
        return found
    alike = math.fsum(1 / n for n in sizes) ** 2 / math.fsum(1 / (n**2 * (n - 1)) for n in sizes)
    return min(found, alike)


def _key(frame: TrialFrame, treatment: Treatment) -> Key:
    return tuple(treatment.get(name) for name in frame.names)


def overall(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Overall, ...]:
    """Every level of every factor but the workload against its baseline, over the combinations that have both.

    None for a factor without two such combinations, where the ratio of the one is the whole answer.
    """
    found = logs(frame, response)
    if found is None:
        return ()
    rows = []
    for factor in (name for name in frame.names if name not in WORKLOADS):
        levels = frame.factors[factor]
        for level in levels:
            if level != baseline_of(levels):
                one = _overall(frame, found, (factor, baseline_of(levels), level), response, confidence)
                rows += [one] if one is not None else []
    return tuple(rows)


def _overall(
    frame: TrialFrame, found: Logs, of: tuple[str, Level, Level], response: str, confidence: float
) -> Overall | None:
    factor, baseline, level = of
    every = list(frame.others(factor))
    pairs = {label(one): (_key(frame, {**one, factor: baseline}), _key(frame, {**one, factor: level})) for one in every}
    gaps: dict[str, float] = {}
    weights: dict[Key, float] = {}
    for name, (base, high) in pairs.items():
        below, above = found.mean(base), found.mean(high)
        if below is not None and above is not None:
            gaps[name] = above - below
    for name in gaps:
        base, high = pairs[name]
        weights |= {base: -1 / len(gaps), high: 1 / len(gaps)}
    ratio = contrast(found, weights, confidence) if len(gaps) >= FEWEST_CELLS else None
    if ratio is None:
        return None
    least, greatest = min(gaps, key=lambda one: gaps[one]), max(gaps, key=lambda one: gaps[one])
    low, high_ = (f"{signed(100 * math.expm1(gaps[one]))}% ({one})" for one in (least, greatest))
    head = f"{part(factor, level)} against {part(factor, baseline)}, over {len(gaps)} combinations of the other factors"
    return Overall(
        factor=factor, baseline=baseline, level=level, response=response, cells=len(gaps),
        left_out=len(every) - len(gaps), starts=_starts(found, weights), ratio=ratio,
        least=math.exp(gaps[least]), least_at=least, greatest=math.exp(gaps[greatest]), greatest_at=greatest,
        verdict=judge(response, ratio), sentence=f"{said(head, response, ratio)}; from {low} to {high_}",
    )  # fmt: skip


def _starts(found: Logs, weights: Iterable[Key]) -> int:
    keys = set(weights)
    return sum(bool(keys & cells.keys()) for cells in found.of.values())


def said(head: str, response: str, ratio: Estimate) -> str:
    """A ratio in words, as comparisons say it."""
    change, verdict = percent(ratio), judge(response, ratio)
    if change.low is None or change.high is None:
        why = f"{NOTHING_VARIES}, so" if NOTHING_VARIES in ratio.method else "from too few starts for an interval:"
        return f"{head}: {LABELS[response]} {signed(change.value)}%, {why} there is no verdict"
    ends = f"[{signed(change.low)}, {signed(change.high)}]%"
    if verdict == "undecided":
        return f"{head}: undecided: {LABELS[response]} {signed(change.value)}%, {ends} includes 0"
    return f"{head}: {verdict}: {LABELS[response]} {signed(change.value)}%, {ends}"


def main_effects(
    frame: TrialFrame, response: str, fraction: Fraction | None, confidence: float = 0.95
) -> tuple[MainEffect, ...]:
    """Every factor of a fraction: its treatments at the second level against those at the first.

    In a fraction hardly two treatments differ in one factor only; over all of them every other factor is balanced, but
    for the aliases. Where a treatment has no used trial the balance is gone, and no effect is given.
    """
    found = logs(frame, response) if fraction is not None else None
    if fraction is None or found is None:
        return ()
    keys = [_key(frame, treatment) for treatment in _treatments(frame, fraction)]
    gone = sum(found.mean(key) is None for key in keys)
    return tuple(
        _effect(frame, found, fraction, (factor, response), keys, gone, confidence) for factor in fraction.factors
    )


def _treatments(frame: TrialFrame, fraction: Fraction) -> list[Treatment]:
    """All that the design has."""
    rest = [name for name in frame.names if name not in fraction.factors]
    return [
        {
            **dict(zip(rest, levels, strict=True)),
            **{name: frame.factors[name][sign > 0] for name, sign in signs.items()},
        }
        for levels in itertools.product(*(frame.factors[name] for name in rest))
        for signs in fraction.combinations()
    ]


def _effect(
    frame: TrialFrame, found: Logs, fraction: Fraction, of: tuple[str, str], keys: Sequence[Key], gone: int,
    confidence: float,
) -> MainEffect:  # fmt: skip
    factor, response = of
    baseline, level = frame.factors[factor]
    place = frame.names.index(factor)
    weights = {key: (2 if key[place] == level else -2) / len(keys) for key in keys}
    ratio = None if gone else contrast(found, weights, confidence)
    aliases = " or ".join(fraction.told(one) for one in fraction.aliases({factor}))
    head = f"{part(factor, level)} against {part(factor, baseline)}, over {len(keys)} treatments of the fraction"
    if ratio is None:
        sentence = f"{head}: nothing can be told: {gone} of them have no used trial, so the others are not balanced"
    else:
        doubt = f"; or it is {aliases}, which this fraction cannot tell from it" if aliases else ""
        sentence = said(head, response, ratio) + doubt
    return MainEffect(
        factor=factor, baseline=baseline, level=level, response=response, n=len(keys) - gone, starts=len(found.of),
        ratio=ratio, verdict=judge(response, ratio) if ratio is not None else "descriptive", aliases=aliases,
        sentence=sentence,
    )  # fmt: skip
