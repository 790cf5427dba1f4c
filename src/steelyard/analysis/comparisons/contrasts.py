"""Contrasts of treatment means: the effect of a factor over several treatments, and how it depends on another factor.

The weights add up to 0. Starts are the independent units, and a start serves several treatments, so the contrast is
split into one part per start:

    effect = sum over combinations h of hard levels of mean over the starts of h of e,   e = sum over treatments of c y

with variance sum s_h^2 / n_h and Satterthwaite's degrees of freedom (Welch 1947). A start's own effect
cancels in factors that vary within it. `y` is a mean, or its logarithm: then the result is a ratio of geometric means,
which do not depend on the choice of baseline (Fleming and Wallace 1986, Communications of the ACM 29(3)). It holds
for these cells (workloads), not for others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from steelyard.analysis.comparisons.level_ratios import FEWEST_PAIRED, FEWEST_STARTS, NOTHING_VARIES, judge, varies
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.treatments import Treatment
from steelyard.analysis.wording import change_text
from steelyard.heavy import pl, special
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of
from steelyard.model.study import Level

TOO_FEW_WHOLE = "too few whole starts"
"""Why a contrast has no interval: starts that serve all of its treatments are too few."""
Key = tuple[Level | None, ...]
"""The levels of a treatment, in the order of the frame's factors."""


@dataclass(frozen=True)
class Cells:
    """Treatment means in each start, or their logarithms."""

    of: Mapping[str, Mapping[Key, float]]
    """Start to treatment to the mean of its trials there."""
    hard: Mapping[str, Key]
    """Start to its hard levels."""

    def mean(self, key: Key) -> float | None:
        """Mean over the starts that have the treatment."""
        values = [cells[key] for cells in self.of.values() if key in cells]
        return math.fsum(values) / len(values) if values else None

    def logarithms(self) -> Cells:
        """The logarithms of means, which are all above 0."""
        of = {start: {key: math.log(mean) for key, mean in cells.items()} for start, cells in self.of.items()}
        return Cells(of, self.hard)


class Contrast(NamedTuple):
    """A weighted sum of treatment means."""

    value: float
    starts: int
    """Starts that it rests on."""
    half: float | None = None
    """Half of the interval's width; None where `lacks` says why there is none."""
    degrees: float | None = None
    """Degrees of freedom."""
    p: float | None = None
    """Two-sided p that the sum is 0."""
    lacks: str = ""


def means(frame: TrialFrame, response: str) -> Cells:
    """Treatment means in each start, of every used trial without control trials."""
    rows = frame.values(response)
    averages = rows.group_by("start", *frame.names, maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    of: dict[str, dict[Key, float]] = {}
    hard: dict[str, Key] = {}
    for row in averages.iter_rows(named=True):
        start = str(row["start"])
        of.setdefault(start, {})[tuple(row[name] for name in frame.names)] = row[response]
        hard[start] = tuple(row[name] for name in frame.hard)
    return Cells(of, hard)


def logs(frame: TrialFrame, response: str) -> Cells | None:
    """Logarithms of treatment means in each start; None if a value is not above 0."""
    values = frame.values(response)[response].cast(pl.Float64)
    if not len(values) or float(values.min() or 0) <= 0:  # type: ignore[arg-type]
        return None
    return means(frame, response).logarithms()


def contrast(
    cells: Cells, weights: Mapping[Key, float], confidence: float, fewest: int = FEWEST_PAIRED
) -> Contrast | None:
    """The weighted sum of treatment means. None where a treatment has no start.

    Without an interval where a side of the contrast has fewer than three starts, or a combination of hard levels fewer
    than `fewest` whole ones."""
    groups: dict[Key, list[dict[Key, float]]] = {}
    for start, of_start in cells.of.items():
        mine = {key: value for key, value in of_start.items() if key in weights}
        if mine:
            groups.setdefault(cells.hard[start], []).append(mine)
    if any(cells.mean(key) is None for key in weights):
        return None
    parts = []
    for served in groups.values():
        wanted = {key for mine in served for key in mine}
        parts.append(
            [math.fsum(weights[key] * mine[key] for key in wanted) for mine in served if len(mine) == len(wanted)]
        )
    if min(map(len, parts)) < fewest or min(_starts(groups, weights)) < FEWEST_STARTS:
        total = math.fsum(weight * (cells.mean(key) or 0.0) for key, weight in weights.items())
        return Contrast(total, len(cells.of), lacks=TOO_FEW_WHOLE)
    starts = sum(map(len, parts))
    centre = math.fsum(math.fsum(each) / len(each) for each in parts)
    if not any(varies(each) for each in parts):
        return Contrast(centre, starts, lacks=NOTHING_VARIES)
    errors = [estimates.deviation(each) ** 2 / len(each) for each in parts]
    error = math.sqrt(math.fsum(errors))
    degrees = _degrees(errors, [len(each) for each in parts])
    p = 2 * float(special.stdtr(degrees, -abs(centre) / error))
    return Contrast(centre, starts, estimates.t_quantile(confidence, degrees) * error, degrees, p)


def ratio(logarithms: Cells, weights: Mapping[Key, float], confidence: float) -> Estimate | None:
    """A contrast of logarithms as a ratio of geometric means. None where a treatment has no start."""
    weighed = contrast(logarithms, weights, confidence)
    return None if weighed is None else ratio_of(weighed, confidence)


def ratio_of(logarithms: Contrast, confidence: float) -> Estimate:
    """exp of a contrast of logarithms: a ratio of geometric means."""
    value, n = math.exp(logarithms.value), logarithms.starts
    if logarithms.half is None or logarithms.degrees is None:
        lacks = f"{logarithms.lacks}: no interval"
        if logarithms.lacks == NOTHING_VARIES:
            lacks = f"no interval: {NOTHING_VARIES}"
        method = f"ratio of geometric means; {lacks}"
        return Estimate(value=value, confidence=confidence, n=n, unit="", method=method)
    low, high = (logarithms.value + sign * logarithms.half for sign in (-1, 1))
    return Estimate(
        value=value, low=math.exp(max(low, -600.0)), high=math.exp(min(high, 600.0)),
        confidence=confidence, n=n, unit="",
        method=f"ratio of geometric means, {_on_contrasts(n, logarithms.degrees)}",
    )  # fmt: skip


def difference_of(sum_of_means: Contrast, unit: str, confidence: float) -> Estimate:
    """A contrast of means as a difference in their unit."""
    value, n = sum_of_means.value, sum_of_means.starts
    if sum_of_means.half is None or sum_of_means.degrees is None:
        method = f"difference of means; no interval: {sum_of_means.lacks}"
        return Estimate(value=value, confidence=confidence, n=n, unit=unit, method=method)
    return Estimate(
        value=value, low=value - sum_of_means.half, high=value + sum_of_means.half, confidence=confidence, n=n,
        unit=unit, method=f"difference of means, {_on_contrasts(n, sum_of_means.degrees)}",
    )  # fmt: skip


def _on_contrasts(starts: int, degrees: float) -> str:
    return f"t on contrasts of {starts} starts, {degrees:.1f} degrees of freedom"


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


def sentence_of(head: str, response: str, quotient: Estimate) -> str:
    """A ratio as a sentence, in the form of comparisons."""
    change, verdict = change_text(quotient, response), judge(response, quotient)
    if quotient.low is None or quotient.high is None:
        why = f"{NOTHING_VARIES}, so" if NOTHING_VARIES in quotient.method else "from too few starts for an interval:"
        return f"{head}: {label_of(response)} {change}, {why} there is no verdict"
    if verdict == "undecided":
        return f"{head}: undecided: {label_of(response)} {change} includes no change"
    return f"{head}: {verdict}: {label_of(response)} {change}"
