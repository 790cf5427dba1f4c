"""Contrasts of treatment means: the effect of a factor over several treatments, and how it depends on another factor.

The weights add up to 0. Starts are the independent units, and a start serves several treatments, so the contrast is
split into one part per start:

    effect = sum over combinations h of hard levels of mean over the starts of h of e,   e = sum over treatments of c y

Where the combinations were all started in each block, the block is taken out, as in comparisons of two levels
(`inference.gaps`): of logarithms with one error of all combinations, of means, whose spread grows with them, from the
contrast of each block. Else, and where a contrast lies within starts, which cancels what a start adds to its trials,
the variance is sum s_h^2 / n_h with Satterthwaite's degrees of freedom. `y` is a mean, or its logarithm: then the
result is a ratio of geometric means, which do not depend on the choice of baseline (Fleming and Wallace 1986,
Communications of the ACM 29(3)). It holds for these cells (workloads), not for others.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from steelyard.analysis.comparisons.level_pairs import NOTHING_VARIES
from steelyard.analysis.comparisons.level_ratios import judge
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates, gaps
from steelyard.analysis.inference.estimates import ROUNDING
from steelyard.analysis.inference.gaps import TINY, Gap
from steelyard.analysis.treatments import Treatment
from steelyard.analysis.wording import change_text
from steelyard.heavy import pl
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import label_of

FEWEST_PAIRED = 2
"""Whole starts of a combination of hard levels, or whole blocks, below which a contrast has no interval."""
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
    at: Mapping[str, tuple[int, int]]
    """Start to its block, and to its place there."""
    alike: bool = False
    """The combinations of hard levels have one spread: the values are logarithms."""

    def mean(self, key: Key) -> float | None:
        """Mean over the starts that have the treatment."""
        values = [cells[key] for cells in self.of.values() if key in cells]
        return math.fsum(values) / len(values) if values else None

    def logarithms(self) -> Cells:
        """The logarithms of means, which are all above 0."""
        of = {start: {key: math.log(mean) for key, mean in cells.items()} for start, cells in self.of.items()}
        return Cells(of, self.hard, self.at, alike=True)


class WeightedSum(NamedTuple):
    """A contrast: a weighted sum of treatment means, or of their logarithms."""

    value: float
    starts: int
    """Starts that it rests on."""
    half: float | None = None
    """Half of the interval's width; None if `lacks` says why there is none."""
    degrees: float | None = None
    """Degrees of freedom."""
    p: float | None = None
    """Two-sided p that the sum is 0."""
    lacks: str = ""

    def as_ratio(self, confidence: float) -> Estimate:
        """exp of a contrast of logarithms: a ratio of geometric means."""
        method = self._method("ratio of geometric means")
        if self.lacks == TOO_FEW_WHOLE:
            method = f"ratio of geometric means; {TOO_FEW_WHOLE}: no interval"
        return estimates.exponential(self.value, self.half, "", confidence, self.starts, method)

    def as_difference(self, unit: str, confidence: float) -> Estimate:
        """A contrast of means as a difference in their unit."""
        return Estimate.around(
            self.value, self.half, unit, confidence, self.starts, self._method("difference of means")
        )

    def _method(self, what: str) -> str:
        if self.lacks:
            return f"{what}; no interval: {self.lacks}"
        return f"{what}, t on contrasts of {self.starts} starts, {self.degrees:.1f} degrees of freedom"


def means(frame: TrialFrame, response: str) -> Cells:
    """Treatment means in each start, of every used trial without control trials."""
    rows = frame.values(response)
    columns = pl.col(response).cast(pl.Float64).mean(), pl.col("block", "place_in_block").first()
    averages = rows.group_by("start", *frame.names, maintain_order=True).agg(*columns)
    of: dict[str, dict[Key, float]] = {}
    hard: dict[str, Key] = {}
    at: dict[str, tuple[int, int]] = {}
    for row in averages.iter_rows(named=True):
        start = str(row["start"])
        of.setdefault(start, {})[tuple(row[name] for name in frame.names)] = row[response]
        hard[start] = tuple(row[name] for name in frame.hard)
        at[start] = row["block"], row["place_in_block"]
    return Cells(of, hard, at)


def logs(frame: TrialFrame, response: str) -> Cells | None:
    """Logarithms of treatment means in each start; None if a value is not above 0."""
    values = frame.values(response)[response].cast(pl.Float64)
    if not len(values) or float(values.min() or 0) <= 0:  # type: ignore[arg-type]
        return None
    return means(frame, response).logarithms()


def contrast(
    cells: Cells, weights: Mapping[Key, float], confidence: float, fewest: int = FEWEST_PAIRED
) -> WeightedSum | None:
    """The weighted sum of treatment means. None if a treatment has no start.

    Without an interval where a side of the contrast has fewer than three starts, or a combination of hard levels fewer
    than `fewest` whole ones."""
    groups: dict[Key, dict[str, dict[Key, float]]] = {}
    for start, of_start in cells.of.items():
        mine = {key: value for key, value in of_start.items() if key in weights}
        if mine:
            groups.setdefault(cells.hard[start], {})[start] = mine
    if any(cells.mean(key) is None for key in weights):
        return None
    wanted = [{key for mine in served.values() for key in mine} for served in groups.values()]
    parts = [
        {start: math.fsum(weights[key] * value for key, value in mine.items())
         for start, mine in served.items() if len(mine) == len(keys)}
        for served, keys in zip(groups.values(), wanted, strict=True)
    ]  # fmt: skip
    every = [mine for served in groups.values() for mine in served.values()]
    of_a_side = (sum(any(sign * weights[key] > 0 for key in mine) for mine in every) for sign in (1, -1))
    if min(map(len, parts)) < fewest or min(of_a_side) < FEWEST_STARTS:
        total = math.fsum(weight * (cells.mean(key) or 0.0) for key, weight in weights.items())
        return WeightedSum(total, len(cells.of), lacks=TOO_FEW_WHOLE)
    signs = [math.fsum(weights[key] for key in keys) for keys in wanted]
    gap, starts = _in_blocks(cells, parts, signs), sum(map(len, parts))
    if gap is None:
        gap = gaps.of_samples([tuple(one.values()) for one in parts], [1] * len(parts))
    else:
        starts = len(parts) * gap.samples[0][1]
    error, degrees = gap.error()
    if error <= ROUNDING:
        return WeightedSum(gap.value, starts, lacks=NOTHING_VARIES)
    return WeightedSum(gap.value, starts, gap.half(confidence), degrees, gap.p())


def _in_blocks(cells: Cells, parts: Sequence[Mapping[str, float]], signs: Sequence[float]) -> Gap | None:
    """The contrast in whole blocks; None if a combination adds nothing of its start's own, or too few are whole.

    `parts`: of each combination of hard levels, start to its part; `signs`: the sum of its weights.
    """
    if min(map(abs, signs)) < TINY:
        return None
    by_block: list[dict[int, tuple[float, int]]] = [
        {cells.at[start][0]: (part / sign, cells.at[start][1]) for start, part in of.items()}
        for of, sign in zip(parts, signs, strict=True)
    ]
    whole = [block for block in by_block[0] if all(block in one for one in by_block)]
    if len(whole) < FEWEST_PAIRED or (len(parts) - 1) * (len(whole) - 1) < FEWEST_STARTS - 1:
        return None
    values, places = ([[one[block][at] for block in whole] for one in by_block] for at in (0, 1))
    if cells.alike:
        return gaps.in_blocks(values, signs, places)
    sides = [[max(side * sign, 0.0) for sign in signs] for side in (-1, 1)]
    values, places = (
        [[math.fsum(map(operator.mul, side, block)) for block in zip(*rows, strict=True)] for side in sides]
        for rows in (values, places)
    )
    return gaps.in_blocks(values, [-1, 1], places)


def ratio(logarithms: Cells, weights: Mapping[Key, float], confidence: float) -> Estimate | None:
    """A contrast of logarithms as a ratio of geometric means. None if a treatment has no start."""
    weighed = contrast(logarithms, weights, confidence)
    return None if weighed is None else weighed.as_ratio(confidence)


def key_of(frame: TrialFrame, treatment: Treatment) -> Key:
    """The key of a treatment."""
    return tuple(treatment.get(name) for name in frame.names)


def sentence_of(head: str, response: str, quotient: Estimate) -> str:
    """A ratio as a sentence, in the form of comparisons."""
    change, verdict = f"{label_of(response)} {change_text(quotient, response)}", judge(response, quotient)
    if verdict == "descriptive":
        why = f"{NOTHING_VARIES}, so" if NOTHING_VARIES in quotient.method else "from too few starts for an interval:"
        return f"{head}: {change}, {why} there is no verdict"
    return f"{head}: {verdict}: {change}{' includes no change' if verdict == 'undecided' else ''}"
