"""Coverage of looks: identical systems, and a gate at its margin, where advice to measure more is followed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.gate import limit_of, verdict_of
from steelyard.analysis.inference import power
from steelyard.judging.looks import later
from steelyard.model.study import Study
from tools.coverage.planted import Numbers
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, Use

LOOKS = "Looks"
STARTS = (3, 5, 10)
MOST_STARTS = 60
SPREAD = 0.02
MARGIN_PERCENT = 2.0
RESPONSE = "execution_time_ms"
SECTIONS = {
    "study": {"name": "looks", "question": "Looks?"}, "system": {"name": "simulated"}, "workload": {"name": "ycsb-c"},
    "load": {"operations": 1000},
}  # fmt: skip

Level = Callable[[int], float]
"""Look, from 1, to the confidence that it has."""
Judge = Callable[[Sequence[float], Sequence[float], float], bool]
"""Whether two samples of start means are judged as should not happen, at a confidence."""
Further = Callable[[Sequence[float], Sequence[float], float], int | None]
"""How many further starts are measured, planned for a confidence; None: nobody goes on."""


def several(look: int) -> float:
    """The confidence of a look at a study with `analysis.looks = "several"`."""
    study = Study.model_validate({**SECTIONS, "analysis": {"looks": "several"}})
    return later(study, look).analysis.confidence


LEVELS = {look: several(look) for look in range(1, MOST_STARTS + 1)}


def every_95(look: int) -> float:
    """95% at every look, as if it were the only one."""
    del look
    return CONFIDENCE


def wrong(a: Sequence[float], b: Sequence[float], starts: int, level: Level, judge: Judge, further: Further) -> bool:
    """Whether a study that begins with so many starts is ever judged wrongly, up to MOST_STARTS."""
    look = 1
    while True:
        if judge(a[:starts], b[:starts], level(look)):
            return True
        more = further(a[:starts], b[:starts], level(look + 1)) if starts < MOST_STARTS else None
        if more is None:
            return False
        starts, look = min(starts + more, MOST_STARTS), look + 1


def different(a: Sequence[float], b: Sequence[float], confidence: float, *, paired: bool) -> bool:
    """Whether the interval of the ratio leaves out 1."""
    ratio = ratio_of(_pair(a, b, paired), confidence)
    return ratio is not None and ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def advised(a: Sequence[float], b: Sequence[float], confidence: float, *, paired: bool) -> int | None:
    """The starts that the report advises."""
    gap = _pair(a, b, paired).gap
    more = None if gap is None else power.more_starts(gap, None, confidence)
    return None if more is None else more.starts


def gated(a: Sequence[float], b: Sequence[float], confidence: float, *, verdict: str) -> bool:
    """Whether a gate with one case gives this verdict."""
    ratio = ratio_of(_pair(a, b, True), confidence)
    return ratio is not None and verdict_of(RESPONSE, ratio, ratio, MARGIN_PERCENT) == verdict


def advised_by_gate(a: Sequence[float], b: Sequence[float], confidence: float) -> int | None:
    """The starts that the gate advises."""
    gap = _pair(a, b, True).gap
    limit = limit_of(RESPONSE, MARGIN_PERCENT)
    return None if gap is None else power.more_starts_beyond(gap, limit, (confidence, confidence))


def one_block(a: Sequence[float], b: Sequence[float], confidence: float) -> int:
    """One more block, whatever is seen."""
    del a, b, confidence
    return 1


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    often = f"identical systems, paired by block; one block at a time up to {MOST_STARTS} starts"
    yield _case(often, min(STARTS), 1.0, partial(different, paired=True), one_block, share=0.05)
    for n in STARTS:
        for words, paired in (("paired by block", True), ("Welch", False)):
            truth = f"identical systems, {words}; advice followed up to {MOST_STARTS} starts"
            yield _case(truth, n, 1.0, partial(different, paired=paired), partial(advised, paired=paired))
        for verdict in ("worse", "not worse"):
            truth = f"gate at its margin called {verdict} (2.5 is promised); advice followed"
            judge = partial(gated, verdict=verdict)
            yield _case(truth, n, 1 + MARGIN_PERCENT / 100, judge, advised_by_gate, promised=(1 + CONFIDENCE) / 2)


def _case(
    truth: str, n: int, ratio: float, judge: Judge, further: Further, share: float = 0.5, promised: float = CONFIDENCE
) -> Case:  # fmt: skip
    draw = _drawn(n, ratio, (LEVELS.__getitem__, every_95), judge, further)
    beside: tuple[tuple[str, Use], ...] = (("each look at 95%", "not used"),)
    return Case(
        LOOKS, '`looks = "several"`', truth, f"{n}", draw, "errs", promised=promised, share=share, beside=beside
    )


def _drawn(n: int, ratio: float, levels: Sequence[Level], judge: Judge, further: Further) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for _ in range(studies):
            a, b = (_sample(rng, centre) for centre in (1.0, ratio))
            yield tuple(not wrong(a, b, n, level, judge, further) for level in levels)

    return draw


def _sample(rng: np.random.Generator, centre: float) -> list[float]:
    values: Numbers = centre * np.exp(rng.normal(scale=math.sqrt(math.log1p(SPREAD**2)), size=MOST_STARTS))
    return [float(value) for value in values]


def _pair(a: Sequence[float], b: Sequence[float], paired: bool) -> LevelPair:
    return LevelPair("start means", "block" if paired else "", tuple(a), tuple(b))
