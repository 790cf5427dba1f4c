"""Verdict on two levels whose starts still warmed up: undecided where the trend may be all of the difference.

A trend within starts moves the mean of a level by at most the change between its first value and the level on which it
settles. Where factors vary within starts, both levels have the same starts and share their trend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.analysis.inference.multiplicity import DIFFERENT
from steelyard.analysis.row import ComparedLevels
from steelyard.analysis.statistics.trend import Trend, moving, of_treatment
from steelyard.analysis.treatments import label, part
from steelyard.model.estimate import Estimate


def changed(
    row: ComparedLevels, ratio: Estimate, verdict: str, sentence: str, trends: Sequence[Trend], hard: Sequence[str]
) -> Mapping[str, Any]:
    """Fields of a comparison that change by trends of its sides: `trend` in words, which its sentence ends with.

    Where a trend is as large as the difference: `within_trend`, and the verdict is undecided. Empty without a trend.
    """
    sides = {level: of_treatment(trends, {**row.others, row.factor: level}) for level in (row.baseline, row.level)}
    moved = {level: trend for level, trend in sides.items() if trend is not None}
    if not moved:
        return {}
    if row.factor in hard:
        words = "; ".join(f"{part(row.factor, level)} {moving(trend)}" for level, trend in moved.items())
    else:
        words = f"both levels {moving(next(iter(moved.values())))}"
    if verdict not in DIFFERENT or row.factor not in hard or not _may_explain(ratio, list(moved.values())):
        return {"trend": words, "sentence": f"{sentence}; {words}"}
    about = f"{part(row.factor, row.level)} against {part(row.factor, row.baseline)}"
    head = f"{label(row.others)}, {about}" if row.others else about
    return {
        "trend": words, "within_trend": True, "verdict": "undecided", "survives_holm": None,
        "sentence": f"{head}: undecided: {words}, which may be all of the difference",
    }  # fmt: skip


def _may_explain(ratio: Estimate, trends: Sequence[Trend]) -> bool:
    """Whether the end of the ratio's interval that is nearer to 1 lies within the factor of a trend."""
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return False
    nearer = min(abs(math.log(ratio.low)), abs(math.log(ratio.high)))
    return nearer <= max(abs(math.log(trend.factor)) for trend in trends if trend.factor)
