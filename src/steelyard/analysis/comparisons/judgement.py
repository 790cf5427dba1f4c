"""What noise floor, cold servers and trends within starts leave of a verdict: one rule for every row that has one.

A difference whose interval lies within the noise floor, or within what the trends of its starts explain, is undecided;
so is every verdict on a cold level against a warm one that lies within what was still falling.
The rule is the same for a level against its baseline, for a mean over several treatments (in a balanced design
identical systems would differ as much over all of a level's starts), and for two sides of `compare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
from steelyard.analysis.statistics.trend import Trend
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level


@dataclass(frozen=True)
class Judgement:
    """A verdict beside the noise floor, the warmth and the trends of both levels."""

    known: dict[str, Any]
    """Fields of the row that change: `floor_percent`, `cold`, `trend`, `final`, one of `within_noise`, `within_cold`
    and `within_trend`, and `verdict`."""
    reason: str = ""
    """Why it is undecided after all; empty if the verdict stands."""
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


class MeanOfLevel(Protocol):
    """A row about a level against its baseline over several treatments."""

    @property
    def factor(self) -> str: ...
    @property
    def baseline(self) -> Level: ...
    @property
    def level(self) -> Level: ...
    @property
    def response(self) -> str: ...
    @property
    def ratio(self) -> Estimate | None: ...
    @property
    def verdict(self) -> str: ...
    @property
    def sentence(self) -> str: ...


def judged_mean(row: MeanOfLevel, frame: TrialFrame, floors: Floors, trends: Sequence[Trend]) -> dict[str, Any]:
    """Fields that change by the noise floor, the warmth and the trends of both levels, each over all of their starts:
    those of `Judgement.known`, and with them `sentence`."""
    levels = (row.baseline, row.level)
    floor = floor_of_levels(frame, floors, row.response, row.factor, levels)
    sides = side_trends.of_levels(frame, row.response, row.factor, levels, trends)
    judged = judgement(row.ratio, row.verdict, row.response, floor, sides, final=frame.look.final)
    verdict = judged.known.get("verdict", row.verdict)
    sentence = row.sentence.replace(f": {row.verdict}: ", f": {verdict}: ", 1)
    return judged.known | {"sentence": "; ".join(filter(None, [sentence, judged.reason, judged.remark]))}
