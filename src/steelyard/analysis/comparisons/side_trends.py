"""Trends within starts, and cold servers, at the two levels of a comparison: how far they may move its ratio.

A trend within a start moves that start's mean by at most the change between its first value and the level on which it
settles. A level is the geometric mean of its start means, so on logarithms a trend in one start of ten moves it by a
tenth of that. Where factors vary within starts, both levels have the same starts and share their trend.

Servers are compared cold against warm where all starts of one level ended their server warm-up cold, and none of the
other: then level and warmth are one factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.multiplicity import DIFFERENT
from steelyard.analysis.statistics.trend import MOVES, Trend, moving
from steelyard.analysis.treatments import Treatment, label, part
from steelyard.analysis.wording import MOST_NAMED
from steelyard.format import count
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level

MAY_EXPLAIN: Final = "which may be all of the difference"


@dataclass(frozen=True)
class SideTrends:
    """The trends at two levels, and whether they differ in warmth."""

    words: str = ""
    """Which level's starts still warmed up or slowed down, and by how much; empty if none did."""
    shift: float = 0.0
    """Change of the logarithm of a level that its trends explain at most, of the two levels the greater; 0 if the
    levels share their starts."""
    cold: str = ""
    """Which level was measured cold, the other warm; empty if none was."""
    fall: float = 0.0
    """Change of the logarithm of the cold level that a further round of server warm-up may make."""

    def may_explain(self, ratio: Estimate | None, verdict: str) -> bool:
        """Whether a difference may be the trend: the end of its interval nearer to 1 lies within the shift."""
        return verdict in DIFFERENT and _from_1(ratio) <= self.shift

    def cold_may_explain(self, ratio: Estimate | None) -> bool:
        """Whether any ratio may be that of a cold level to a warm one, by the same rule."""
        return bool(self.cold) and _from_1(ratio) <= self.fall


def _from_1(ratio: Estimate | None) -> float:
    """Logarithm of the end of an interval nearer to 1, without sign: at most 0 if 1 is in it, nan without interval."""
    if ratio is None or ratio.low is None or ratio.high is None or ratio.low <= 0:
        return math.nan
    return max(math.log(ratio.low), -math.log(ratio.high))


@dataclass(frozen=True)
class _Group:
    """The starts of one combination of hard levels that served a level, and the trends found in them."""

    hard: Treatment
    starts: tuple[str, ...]
    trends: tuple[Trend, ...]

    @property
    def shift(self) -> float:
        """Change of the logarithm of the mean of these starts that their trends explain at most."""
        logs = (min(one.starts, len(self.starts)) * abs(math.log(one.factor)) for one in self.trends if one.factor)
        return math.fsum(logs) / len(self.starts)

    def words(self, where: str) -> list[str]:
        """The trends in words; a trend of single starts names them."""
        if len(self.starts) == 1 or any(one.starts > 1 for one in self.trends):
            return [f"{where} {moving(one)}" for one in self.trends]
        of = f"of {count(len(self.starts), 'start')}"
        rest = len(self.trends) - MOST_NAMED
        named = [f"{where} in {one.start}, 1 {of}, {moving(one)}" for one in self.trends[:MOST_NAMED]]
        return [*named, f"{where} in {rest} more {of}"] if rest > 0 else named


def of_levels(
    frame: TrialFrame, response: str, factor: str, levels: tuple[Level, Level], trends: Sequence[Trend],
    others: Mapping[str, Level] | None = None,
) -> SideTrends:  # fmt: skip
    """The trends in the starts of both levels; `others`: levels of other factors that they are fixed to.

    Over several combinations of hard levels, each counts alike.
    """
    sides = [(part(factor, level), frame, {**(others or {}), factor: level}, trends) for level in levels]
    return of_two(sides, response, shared=factor not in frame.hard, both="both levels")


def of_two(
    sides: Sequence[tuple[str, TrialFrame, Treatment, Sequence[Trend]]], response: str, shared: bool,
    both: str = "both sides",
) -> SideTrends:  # fmt: skip
    """The trends of two sides of one cell: name, frame, treatment and trends of each; `shared`: the same starts, called
    `both`."""
    words: list[str] = []
    shift = 0.0
    for name, frame, treatment, trends in sides:
        groups = _groups(frame, response, treatment, trends)
        for group in groups:
            words += group.words(label(group.hard) if len(groups) > 1 else both if shared else name)
        if groups and not shared:
            shift = max(shift, math.fsum(group.shift for group in groups) / len(groups))
    return SideTrends("; ".join(dict.fromkeys(words)), shift, *("", 0.0) if shared else _cold(sides, response))


def _cold(sides: Sequence[tuple[str, TrialFrame, Treatment, Sequence[Trend]]], response: str) -> tuple[str, float]:
    """The level whose starts all ended their server warm-up cold, if all of the other ended it warm, and its fall."""
    falls = {
        name: [frame.falling.get(start, math.nan) for start in frame.values(response, treatment)["start"].unique()]
        for name, frame, treatment, _ in sides
    }
    cold = next((name for name, of in falls.items() if of and all(fall > 0 for fall in of)), "")
    warm = next((name for name, of in falls.items() if of and all(fall == 0 for fall in of)), "")
    if not cold or not warm:
        return "", 0.0
    fall, starts = max(falls[cold]), f"all {len(falls[cold])} starts" if len(falls[cold]) > 1 else "the start"
    by = f" by {-100 * math.expm1(-fall):.0f}%" if math.isfinite(fall) else ", one round cannot say how much"
    words = f"servers were still cold in {starts} of {cold}, in none of {warm}: another round may shorten times{by}"
    return words, fall


def _groups(frame: TrialFrame, response: str, treatment: Treatment, trends: Sequence[Trend]) -> list[_Group]:
    if not any(one.verdict in MOVES for one in trends):
        return []
    starts: dict[tuple[tuple[str, Level], ...], list[str]] = {}
    rows = frame.values(response, treatment).select("start", *frame.hard).unique(maintain_order=True)
    for start, *levels in rows.iter_rows():
        starts.setdefault(tuple(zip(frame.hard, levels, strict=True)), []).append(str(start))
    return [_Group(dict(hard), tuple(names), _found(trends, dict(hard), names)) for hard, names in starts.items()]


def _found(trends: Sequence[Trend], hard: Treatment, starts: Sequence[str]) -> tuple[Trend, ...]:
    """The trends of these starts: that of all together, otherwise one for each start; of trials before seconds."""
    known = {name: level for name, level in hard.items() if level is not None}
    moved = [one for one in trends if one.verdict in MOVES and one.treatment == known]
    by_start: dict[str, Trend] = {}
    for trend in sorted(moved, key=lambda row: row.series == "seconds"):
        if trend.starts > 1:
            return (trend,)
        if trend.start in starts:
            by_start.setdefault(trend.start, trend)
    return tuple(by_start.values())
