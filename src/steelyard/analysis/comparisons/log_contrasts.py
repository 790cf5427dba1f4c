"""Contrasts of logarithms of treatment means: the effect of a factor over several treatments.

The weights add up to 0. Starts are the independent units, and a start serves several treatments, so the contrast is
split into one part per start:

    effect = sum over combinations h of hard levels of mean over the starts of h of e,   e = sum over treatments of c y

with variance sum s_h^2 / n_h and Satterthwaite's degrees of freedom (Welch 1947). A start's own effect
cancels in factors that vary within it. The geometric mean is the mean that does not depend on the choice of baseline
(Fleming and Wallace 1986, Communications of the ACM 29(3)). It holds for these cells (workloads), not for others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.analysis.comparisons.level_ratios import FEWEST_PAIRED, FEWEST_STARTS, NOTHING_VARIES, judge, varies
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.treatments import Treatment
from steelyard.analysis.wording import change_text
from steelyard.heavy import pl
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of
from steelyard.model.study import Level

TOO_FEW_WHOLE = "too few whole starts"
"""Why a contrast has no interval: starts that serve all of its treatments are too few."""
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
        values = [cells[key] for cells in self.of.values() if key in cells]
        return math.fsum(values) / len(values) if values else None


def logs(frame: TrialFrame, response: str) -> Logs | None:
    """Logarithms of every used trial without control trials; None if a value is not above 0."""
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


def contrast(logarithms: Logs, weights: Mapping[Key, float], confidence: float) -> Estimate | None:
    """exp of the weighted sum of logarithms. None where a treatment has no start.

    Without an interval where a side of the contrast has fewer than three starts, or a combination of hard levels fewer
    than two whole ones."""
    groups: dict[Key, list[dict[Key, float]]] = {}
    for start, cells in logarithms.of.items():
        mine = {key: value for key, value in cells.items() if key in weights}
        if mine:
            groups.setdefault(logarithms.hard[start], []).append(mine)
    if any(logarithms.mean(key) is None for key in weights):
        return None
    parts = []
    for served in groups.values():
        wanted = {key for mine in served for key in mine}
        parts.append(
            [math.fsum(weights[key] * mine[key] for key in wanted) for mine in served if len(mine) == len(wanted)]
        )
    starts = sum(map(len, parts))
    if min(map(len, parts)) < FEWEST_PAIRED or min(_starts(groups, weights)) < FEWEST_STARTS:
        total = math.fsum(weight * (logarithms.mean(key) or 0.0) for key, weight in weights.items())
        method = f"ratio of geometric means; {TOO_FEW_WHOLE}: no interval"
        return Estimate(value=math.exp(total), confidence=confidence, n=len(logarithms.of), unit="", method=method)
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


def _starts(groups: Mapping[Key, Sequence[Mapping[Key, float]]], weights: Mapping[Key, float]) -> tuple[int, int]:
    """Starts that serve the treatments of positive and of negative weight."""
    served = [mine for group in groups.values() for mine in group]
    above, below = (sum(any(sign * weights[key] > 0 for key in mine) for mine in served) for sign in (1, -1))
    return above, below


def _degrees(errors: Sequence[float], sizes: Sequence[int]) -> float:
    """Satterthwaite's degrees of freedom, at most those of equal spreads; see `estimates.welch_degrees`."""
    degrees = math.fsum(errors) ** 2 / math.fsum(one**2 / (n - 1) for one, n in zip(errors, sizes, strict=True))
    if len(set(sizes)) == 1:
        return degrees
    alike = math.fsum(1 / n for n in sizes) ** 2 / math.fsum(1 / (n**2 * (n - 1)) for n in sizes)
    return min(degrees, alike)


def key_of(frame: TrialFrame, treatment: Treatment) -> Key:
    """The key of a treatment."""
    return tuple(treatment.get(name) for name in frame.names)


def sentence_of(head: str, response: str, ratio: Estimate) -> str:
    """A ratio as a sentence, in the form of comparisons."""
    change, verdict = change_text(ratio, response), judge(response, ratio)
    if ratio.low is None or ratio.high is None:
        why = f"{NOTHING_VARIES}, so" if NOTHING_VARIES in ratio.method else "from too few starts for an interval:"
        return f"{head}: {label_of(response)} {change}, {why} there is no verdict"
    if verdict == "undecided":
        return f"{head}: undecided: {label_of(response)} {change} includes no change"
    return f"{head}: {verdict}: {label_of(response)} {change}"
