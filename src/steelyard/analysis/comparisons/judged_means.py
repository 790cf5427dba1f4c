"""Verdict on a level over several treatments (a mean of ratios, a main effect): noise floor and trends within starts.

As of a single comparison: a difference whose interval lies within the noise floor, or within what the trends of its
starts explain, is undecided. In a balanced design identical systems would differ as much over all of a level's starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from steelyard.analysis.comparisons import side_trends
from steelyard.analysis.comparisons.identical_systems import Floors, floor_of_levels, noise_words, within_noise
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.statistics.trend import Trend
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level


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


def changed(row: MeanOfLevel, frame: TrialFrame, floors: Floors, trends: Sequence[Trend]) -> dict[str, Any]:
    """Fields that change by the noise floor and by the trends of both levels, each over all of their starts.

    `floor_percent`, `within_noise`, `trend`, `within_trend`, and with them `verdict` and `sentence`.
    """
    levels = (row.baseline, row.level)
    floor = floor_of_levels(frame, floors, row.response, row.factor, levels)
    sides = side_trends.of_levels(frame, row.response, row.factor, levels, trends)
    known: dict[str, Any] = {"trend": sides.words, "floor_percent": None if floor is None else floor.percent}
    notes = [sides.words] if sides.words else []
    different = row.verdict in multiplicity.DIFFERENT
    if floor is not None and row.ratio is not None and different and within_noise(row.ratio, floor.percent):
        known |= {"within_noise": True, "verdict": "undecided"}
        notes = [noise_words(row.ratio, row.response, floor).removeprefix("undecided: "), *notes]
    elif sides.may_explain(row.ratio, row.verdict):
        known |= {"within_trend": True, "verdict": "undecided"}
        notes = [f"{sides.words}, {side_trends.MAY_EXPLAIN}"]
    verdict = known.get("verdict", row.verdict)
    sentence = row.sentence.replace(f": {row.verdict}: ", f": {verdict}: ", 1)
    return known | {"sentence": "; ".join([sentence, *notes])}
