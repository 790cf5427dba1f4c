"""Verdicts limited by noise floor, cold servers and trends within starts: one rule for every row that has one.

A difference whose interval lies within the noise floor, or within what the trends of its starts explain, is undecided;
so is every verdict on a cold level against a warm one that lies within what was still falling. The rule is the same for
a level against its baseline, for a mean over several treatments (in a balanced design identical systems would differ as
much over all of a level's starts), and for two sides of `compare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from steelyard.analysis.comparisons import side_trends
from steelyard.analysis.comparisons.identical_systems import (
    Floor,
    Floors,
    floor_of_levels,
    noise_words,
    within_noise,
)
from steelyard.analysis.comparisons.side_trends import SideTrends
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.multiplicity import DECIDED, DIFFERENT
from steelyard.analysis.row import PercentOrNone, RatioOrNone, Row
from steelyard.analysis.statistics.trend import Trend
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.value import Value


@dataclass(frozen=True)
class Judgement:
    """A verdict with the noise floor, the warmth and the trends of both levels."""

    known: dict[str, Any]
    """Fields of the row that change: `floor_percent`, `cold`, `trend`, `final`, one of `within_noise`, `within_cold`
    and `within_trend`, and `verdict`."""
    reason: str = ""
    """Why it is undecided after all; empty if the verdict holds."""
    remark: str = ""
    """Cold servers and trends, where they are not the reason."""

    def after(self, head: str, sentence: str) -> str:
        """The row's sentence: its own, or `HEAD: undecided: REASON`; the trends follow."""
        text = f"{head}: undecided: {self.reason}" if self.reason else sentence
        return f"{text}; {self.remark}" if self.remark else text


def judgement(
    ratio: Estimate | None, verdict: str, response: str, floor: Floor | None, sides: SideTrends, *, final: bool
) -> Judgement:  # fmt: skip
    """The noise floor comes first: what lies within it needs no other explanation. Cold servers come before trends,
    which may be theirs. `final`: whether the looks at the study leave its verdicts final."""
    floor_percent = None if floor is None else floor.percent
    known: dict[str, Any] = {"trend": sides.words, "cold": sides.cold, "floor_percent": floor_percent, "final": final}
    remark = "; ".join(filter(None, [sides.cold, sides.words]))
    different = verdict in DIFFERENT
    if floor is not None and ratio is not None and different and within_noise(ratio, floor.percent):
        known |= {"within_noise": True, "verdict": "undecided"}
        return Judgement(known, noise_words(ratio, response, floor), remark)
    if sides.cold_may_explain(ratio):
        known |= {"within_cold": True, "verdict": "undecided"}
        return Judgement(known, f"{sides.cold}, {side_trends.MAY_EXPLAIN}", sides.words)
    if sides.may_explain(ratio, verdict):
        known |= {"within_trend": True, "verdict": "undecided"}
        return Judgement(known, f"{sides.words}, {side_trends.MAY_EXPLAIN}", sides.cold)
    return Judgement(known, remark=remark)


def shown(verdict: str, *, survives_holm: bool | None, final: bool, text: str = "") -> str:
    """The verdict as tables show it, with what it lacks: `slower, not after correction`, `slower, not final`. `text`:
    its words where they are others, such as `equivalent within 5%`."""
    if not final and verdict in DECIDED:
        return f"{text or verdict}, not final"
    return f"{text or verdict}, not after correction" if survives_holm is False else text or verdict


class Judged(Value):
    """Limits of the verdict on two levels, or two sides."""

    LAST: ClassVar[tuple[str, ...]] = (
        "sentence", "floor_percent", "within_noise", "trend", "within_trend", "cold", "within_cold", "final",
    )  # fmt: skip

    floor_percent: PercentOrNone = None
    """Change that comparisons of identical systems, of as many starts and trials, stay below; none if no noise floor
    is known."""
    within_noise: bool = False
    """The interval leaves 1 out but lies within the noise floor: undecided."""
    trend: str = ""
    """Which level still warmed up or slowed down within its starts, and by how much; empty if none did."""
    within_trend: bool = False
    """The interval leaves 1 out, but the trend of a level is as large as the difference: undecided."""
    cold: str = ""
    """Which level was measured cold in all starts, the other warm, and how far it may still fall; else empty."""
    within_cold: bool = False
    """The interval does not go beyond what a cold level may still fall: undecided."""
    final: bool = True
    """Whether the looks at the study leave its verdicts final."""


class MeanOfLevel(Judged, Row):
    """A level against its baseline over several treatments."""

    factor: str
    """Factor whose levels are compared."""
    baseline: Level
    """Level compared with."""
    level: Level
    """Level compared."""
    response: str
    """Response, as named in the store."""
    starts: int
    """Starts of a cluster."""
    ratio: RatioOrNone = None
    """Geometric mean of the treatments at the level over that at the baseline; none if a treatment has no trial."""
    verdict: str
    """Slower, faster, higher, lower, equivalent, undecided or descriptive."""
    sentence: str
    """The ratio in words."""

    def judged(self, frame: TrialFrame, floors: Floors, trends: Sequence[Trend] = ()) -> Self:
        """The row, judged by the noise floor, the warmth and the trends of both levels, each over all its starts."""
        levels = (self.baseline, self.level)
        floor = floor_of_levels(frame, floors, self.response, self.factor, levels)
        sides = side_trends.of_levels(frame, self.response, self.factor, levels, trends)
        judged = judgement(self.ratio, self.verdict, self.response, floor, sides, final=frame.look.final)
        verdict = judged.known.get("verdict", self.verdict)
        sentence = self.sentence.replace(f": {self.verdict}: ", f": {verdict}: ", 1)
        sentence = "; ".join(filter(None, [sentence, judged.reason, judged.remark]))
        return self.model_copy(update=judged.known | {"sentence": sentence})
