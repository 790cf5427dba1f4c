"""Noise floor: how much identical systems differ, and verdicts judged against it.

Identical systems differ between their starts and between the trials of a start. Both components are estimated from mean
squares of logarithms (`inference.variance_components`), so that every comparison has its own floor, by its own numbers
of starts and trials:

    v = s_b^2 (1/a + 1/b) + s_w^2 (sum of 1/m over the starts of a, / a^2, + the same of b)

is the variance of the logarithm of the ratio of two identical systems with a and b starts of m trials each. Levels
that are tried within the same starts have no s_b in their ratio; of levels that are paired by block s_b is what starts
of one block differ, if that is known to LEAST_DEGREES, otherwise the variation between all starts, which is more. v is
a linear combination of the two mean squares, with f degrees of freedom by Satterthwaite (F. E. Satterthwaite,
Biometrics Bulletin 2(6), 1946); so exp(t(f) sqrt(v)) - 1 is the change that 95% of such comparisons stay below: a
prediction interval around no change (G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, section 4.8). With equal
numbers as in the study of identical systems it is exact for normal logarithms of start means; the tests simulate it,
and docs/reference/numbers/validity.md says what is left of it where trials differ by more than 40%. Where a start has
more trials than in that study, and f comes out below LEAST_DEGREES because starts hardly differ more than their trials,
the floor is that of as many trials as there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from steelyard.analysis.comparisons.level_pairs import Shared, pair_of_levels
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates, variance_components
from steelyard.analysis.wording import change_text
from steelyard.format import confidence_text, signed
from steelyard.heavy import pl, special
from steelyard.judging import t_interval
from steelyard.judging.noise_floor import Circumstances, FoundFloor, KeptFloor, Spread, circumstances, unlike
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.study import SAME_FACTOR, SAME_LABELS, Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value

FloorSource = Literal["this study", "control cells", "kept floor", "none"]
"""this study: it compares identical systems and measures the floor; control cells: of this study; kept floor: measured
by a study of identical systems on this machine, in the store; none."""
LEAST_DEGREES = 5
"""Least degrees of freedom of a floor: with fewer, t would make it larger than any change."""


def with_floor() -> tuple[str, ...]:
    """The responses that have a noise floor: all but counts."""
    return tuple(name for name, response in responses.every().items() if not response.whole)


class Floor(Value):
    """The change that a comparison of two identical systems with as many starts and trials stays below."""

    percent: Estimate
    source: FloorSource
    words: str
    """Where it comes from: `study noise-floor of 2026-11-21, 12 starts`."""


def spread_of(rows: pl.DataFrame, response: str) -> Spread | None:
    """Mean squares of the logarithms of trials of identical systems; None without a value, or if one is not above 0.

    `rows`: used trials, columns `block`, `start` and the response.
    """
    rows = rows.filter(pl.col(response).is_not_null())
    values = rows[response].cast(pl.Float64)
    if not rows.height or float(values.min()) <= 0:  # type: ignore[arg-type]
        return None
    names, logs = rows["start"].to_list(), values.log().to_list()
    start, rest = variance_components.mean_squares(logs, names)
    in_block, _ = variance_components.mean_squares(logs, names, rows["block"].to_list())
    return Spread(
        response=response, starts=len(set(names)), trials=rows.height,
        between_mean_square=start.mean_square if start.df else None, between_degrees=start.df,
        in_block_mean_square=in_block.mean_square if in_block.df else None, in_block_degrees=in_block.df,
        within_mean_square=rest.mean_square if rest.df else None, within_degrees=rest.df,
        trials_a_start=start.starts if start.df else float(rows.height),
    )  # fmt: skip


def floor_percent(
    spread: Spread, a: Sequence[int], b: Sequence[int], shared: Shared, confidence: float = 0.95
) -> Estimate | None:
    """The change, in percent, that this share of comparisons of identical systems stays below.

    `a` and `b`: trials of each start of either side; `shared`: what the sides have in common. None if the spread rests
    on fewer than LEAST_DEGREES. Its interval: z sqrt(v) over the chi-squared interval of v; the value has t in place of
    z, so that it holds although v is only estimated.
    """
    variance = _variance(spread, a, b, shared)
    if variance is None:
        return None
    v, degrees = variance
    z, root = float(special.ndtri(0.5 + confidence / 2)), math.sqrt(v)
    what = f"paired by {shared}" if shared else "on their own starts"
    method = f"change that {confidence_text(confidence)} of comparisons of identical systems stay below, {_sizes(a, b)}"
    degrees_text = estimates.degrees_text(degrees)
    method += f", {what}; t with {degrees_text} degrees of freedom (Satterthwaite), chi-squared interval"
    low, high = (_change(z * root * end) for end in estimates.of_deviation(degrees, confidence))
    n = spread.trials if shared == "start" else spread.starts
    value = _change(t_interval.t_quantile(confidence, degrees) * root)
    return Estimate.of(value, (low, high), "%", confidence, n, method)


def _sizes(a: Sequence[int], b: Sequence[int]) -> str:
    sizes = [f"{len(side)} starts of {math.fsum(side) / len(side):.3g} trials" for side in (a, b)]
    return f"{sizes[0]} a level" if sizes[0] == sizes[1] else f"{sizes[0]} against {sizes[1]}"


def _change(log: float) -> float:
    return 100 * math.expm1(min(log, estimates.LARGEST_LOG))


def _variance(spread: Spread, a: Sequence[int], b: Sequence[int], shared: Shared) -> tuple[float, float] | None:
    """(variance of the logarithm of the ratio, its degrees of freedom)."""
    within, between, degrees = spread.within_mean_square, spread.between_mean_square, spread.between_degrees
    if shared == "block" and spread.in_block_degrees >= LEAST_DEGREES:
        between, degrees = spread.in_block_mean_square, spread.in_block_degrees
    inverse = sum(1 / m for m in a) / len(a) ** 2 + sum(1 / m for m in b) / len(b) ** 2
    if shared == "start":
        enough = within is not None and spread.within_degrees >= LEAST_DEGREES
        return (inverse * within, spread.within_degrees) if enough and within is not None else None
    if between is None or degrees < LEAST_DEGREES:
        return None
    times = (1 / len(a) + 1 / len(b)) / spread.trials_a_start
    as_measured = times * between, float(degrees)
    if within is None or math.isclose(inverse, times, rel_tol=1e-9):
        return as_measured
    more_trials = inverse < times
    if between > within:
        parts = (as_measured, ((inverse - times) * within, spread.within_degrees))
        v = sum(part for part, _ in parts)
        variance = v, v**2 / sum(part**2 / degrees for part, degrees in parts)
    else:
        # No variance between starts is seen: the variance within starts is all.
        variance = (0.0, 0.0) if more_trials else (inverse * within, float(spread.within_degrees))
    if variance[1] >= LEAST_DEGREES:
        return variance
    # The variance between starts is a difference of two mean squares with too few degrees of freedom to say how far
    # more trials lower the floor; the floor as measured is too high, never too low.
    return as_measured if more_trials else None


@dataclass(frozen=True)
class Floors:
    """The floors for a study's comparisons. The study's own control cells come first, then the floor in its store; each
    needs LEAST_DEGREES degrees of freedom."""

    own: Mapping[str, Spread] = field(default_factory=dict)
    """Response to the spread of the control's treatment."""
    stored: FoundFloor = field(default_factory=FoundFloor)
    confidence: float = 0.95

    def of(self, response: str, a: Sequence[int], b: Sequence[int], shared: Shared) -> Floor | None:
        """The floor of a comparison whose sides have starts with these numbers of trials; `shared`: what these have in
        common. None if there is none."""
        for spread, source in self.spreads(response):
            percent = floor_percent(spread, a, b, shared, self.confidence)
            if percent is not None:
                return Floor(percent=percent, source=source, words=self.words(source, spread))
        return None

    def spreads(self, response: str) -> list[tuple[Spread, FloorSource]]:
        """Spreads of this response and their sources, by priority."""
        own, kept = self.own.get(response), () if self.stored.floor is None else self.stored.floor.spreads
        sources: list[tuple[Spread, FloorSource]] = [] if own is None else [(own, "control cells")]
        return [*sources, *((one, "kept floor") for one in kept if one.response == response)]

    def words(self, source: FloorSource, spread: Spread) -> str:
        """The source of a floor in words."""
        counts = f"{spread.starts} starts, {spread.trials} trials"
        kept = self.stored.floor
        if source == "kept floor" and kept is not None:
            return f"study {kept.study} of {datetime.fromtimestamp(kept.made_s, UTC):%Y-%m-%d}, {counts}"
        return f"this study's control cells, {counts}"


def floors_of(
    frame: TrialFrame, stored: FoundFloor | None = None, confidence: float = 0.95, study: Study | None = None
) -> Floors:
    """The floors of a study: from its control cells, if any, and the one in its store. A study of identical systems has
    none: it would be judged against itself."""
    if study is not None and study.design.kind == "same":
        return Floors(stored=FoundFloor(why=""), confidence=confidence)
    return Floors(own=_own(frame), stored=stored or FoundFloor(), confidence=confidence)


def settings_unlike(records: Sequence[TrialRecord], floors: Floors) -> tuple[str, ...]:
    """Settings that the kept floor was measured with and no trial of this study has."""
    kept = floors.stored.floor
    if kept is None:
        return ()
    different = {json.dumps(one.settings.root, sort_keys=True): one.settings for one in records}
    return unlike(kept, [circumstances(settings, ()) for settings in different.values()])


def _own(frame: TrialFrame) -> dict[str, Spread]:
    """Spreads of the control's treatment, from its control trials and its ordinary trials, which are identical."""
    rows = frame.data.filter(pl.col("used"))
    controls = rows.filter(pl.col("control"))
    if not controls.height:
        return {}
    same = rows
    if frame.names:
        same = rows.join(controls.select(frame.names).unique(), on=list(frame.names), maintain_order="left")
    every = {response: spread_of(same, response) for response in with_floor()}
    return {response: spread for response, spread in every.items() if spread is not None}


def of_two(
    floors: tuple[Floors, Floors], response: str, a: Sequence[int], b: Sequence[int], shared: Shared
) -> Floor | None:
    """The floor of a comparison of two studies: the greater of the two; None if one of them has none, because it is
    unknown how much its systems differ."""
    candidates = [one.of(response, a, b, shared) for one in floors]
    known = [one for one in candidates if one is not None]
    return max(known, key=lambda one: one.percent.value) if len(known) == len(candidates) else None


def within_noise(ratio: Estimate, floor: Estimate) -> bool:
    """Whether the interval of a ratio leaves 1 out and lies within 1 / (1 + floor) and 1 + floor."""
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return False
    bound = 1 + floor.value / 100
    return 1 / bound <= ratio.low and ratio.high <= bound


def noise_words(ratio: Estimate, response: str, floor: Floor) -> str:
    """`within the noise of this machine: ... lies within -4.1% to +4.3%, ...`, of a ratio with its interval: the bounds
    are symmetric as ratios."""
    share, most = confidence_text(floor.percent.confidence), floor.percent.value
    within = f"{signed(100 * (1 / (1 + most / 100) - 1))}% to {signed(most)}%"
    return (
        f"within the noise of this machine: {change_text(ratio, response)} leaves out no change but "
        f"lies within {within}, in which {share} of comparisons of identical systems lie ({floor.words})"
    )


def floor_of_levels(
    frame: TrialFrame, floors: Floors, response: str, factor: str, levels: tuple[Level, Level],
    others: Mapping[str, Level] | None = None,
) -> Floor | None:  # fmt: skip
    """The floor for the starts and trials of both levels; `others`: levels of other factors that they are fixed to."""
    pair = pair_of_levels(frame, response, factor, *levels, others or {})
    return None if pair is None else floors.of(response, *pair.trials, pair.paired)


def measured(frame: TrialFrame, study: str, holds_for: Circumstances) -> KeptFloor | None:
    """The floor that a study of identical systems leaves for later ones; None with too few degrees of freedom.

    `frame`: trials of a study with `design.kind = "same"`.
    """
    rows = frame.data.filter(pl.col("used"))
    spreads = [one for one in (spread_of(rows, response) for response in with_floor()) if one is not None]
    enough = [one for one in spreads if min(one.between_degrees, one.within_degrees) >= LEAST_DEGREES]
    if not enough:
        return None
    labels = rows.group_by("block").agg(pl.col(SAME_FACTOR).n_unique().alias("labels"))
    ended = rows["ended_s"].max()
    return KeptFloor(
        study=study, made_s=float(ended) if isinstance(ended, float) else 0.0,
        pairs=labels.filter(pl.col("labels") == len(SAME_LABELS)).height, holds_for=holds_for, spreads=tuple(enough),
    )  # fmt: skip
