"""Gate: whether side b is worse than side a by more than a margin, over all cells and responses at once.

The comparison is that of the report and of `compare` (`comparisons.two_sided`): start means, ratios with intervals, the
noise floor, trends. The gate only asks where the interval lies relative to the margin:

* worse: the interval lies entirely beyond the margin. One such case is enough for a red gate, so with k cases the
  interval is one of k simultaneous ones (Bonferroni: confidence 1 - (1 - c) / k), and noise floor and trends, which
  can explain a difference away, are heard first. Where nothing differs the gate as a whole is red in at most 1 - c.
* not worse: the interval lies entirely within the margin on its bad side. A green gate needs this of every case, which
  is an intersection-union test (R. L. Berger, Technometrics 24(4), 1982): each case is tested at c, uncorrected.
* undecided: anything else.

With one case both intervals are the one that `compare` prints. The margin is symmetric as a ratio, as everywhere: 2%
more time and 1 / 1.02 of the throughput are the same loss.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from steelyard.analysis.comparisons.forecast import Forecast
from steelyard.analysis.comparisons.level_pairs import pair_of
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.comparisons.two_sided import Contrast, Side, limits_percent, look_of_both, pace_s
from steelyard.analysis.inference import estimates, power
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import change_text, signed_percent
from steelyard.format import number
from steelyard.model.estimate import Estimate
from steelyard.model.responses import better_of, label_of, unit_of
from steelyard.model.value import Value

GateVerdict = Literal["not worse", "worse", "undecided"]


class GateCase(Value):
    """Side b against side a in one cell, by one response."""

    cell: Treatment
    """The levels that both sides have in common, of the factors that vary."""
    response: str
    unit: str
    verdict: GateVerdict
    sentence: str
    why: str = ""
    """Reason why there is no verdict, or, without an interval, why side b is worse."""
    mean_a: Estimate | None = None
    """Geometric mean of the start means of side a; None if it has no value."""
    mean_b: Estimate | None = None
    change_percent: Estimate | None = None
    """The change with the interval of `compare`: must lie within the margin for `not worse`."""
    simultaneous_percent: Estimate | None = None
    """The change with its simultaneous interval over all cases: must lie beyond the margin for `worse`."""
    limit_percent: float
    """The change beyond which side b is worse: the margin, with the sign of this response."""
    floor_percent: Estimate | None = None
    """Noise floor: change that 95% (the confidence) of comparisons of identical systems stay below; None if unknown."""
    floor_source: str = ""
    blocks: int | None = None
    """If undecided: further blocks that would decide with a chance of 80%, if change and spread stay."""
    blocks_s: float | None = None
    """Duration of these at the pace of the stores, seconds."""
    advice: str = ""
    """The same in words, and whether it requires a new study: `14 more blocks (about 2 h 50 min)`."""
    starts_a: int = 0
    starts_b: int = 0
    n_a: int = 0
    n_b: int = 0

    @property
    def name(self) -> str:
        """`3 nodes, workload ycsb-c`."""
        return label(self.cell)


class Gate(Value):
    """The verdict over all cases, with everything that it rests on."""

    verdict: GateVerdict
    study: str
    a: str
    """The baseline."""
    b: str
    """The side that is judged."""
    margin_percent: float
    confidence: float
    cases: tuple[GateCase, ...]
    warnings: tuple[str, ...] = ()
    """Differences between the sides apart from what is compared."""
    noise_floor: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    """Which look at the studies this is, where they may continue: `look 2, at 98.75%`."""
    remarks: tuple[str, ...] = ()
    """Cells of one side only, trials that failed."""
    limits: tuple[str, ...] = ()
    """What limits the answer, most important first: the caveats of both studies, as their pages have them."""

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        total, alike = len(self.cases), sum(case.verdict == self.verdict for case in self.cases)
        where = f" in {alike} of {total} comparisons" if total > 1 else ""
        question = f"worse than {self.a} by more than {number(self.margin_percent, digits=2, trim=True)}%"
        if self.verdict == "worse":
            return f"{self.b} is {question}{where}"
        if self.verdict == "undecided":
            return f"undecided{where}: these trials do not show whether {self.b} is {question}"
        return f"{self.b} is not {question}" + (f" in any of {total} comparisons" if total > 1 else "")


def overall(verdicts: Collection[GateVerdict]) -> GateVerdict:
    """Worse if any case is, not worse if all are; undecided without any."""
    if "worse" in verdicts:
        return "worse"
    return "undecided" if "undecided" in verdicts or not verdicts else "not worse"


def limit_of(response: str, margin_percent: float) -> float:
    """The ratio b / a beyond which side b is worse."""
    beyond = 1 + margin_percent / 100
    return beyond if better_of(response) == "less" else 1 / beyond


def verdict_of(response: str, plain: Estimate, simultaneous: Estimate, margin_percent: float) -> GateVerdict:
    """The verdict on a ratio b / a by its two intervals; undecided without them."""
    if plain.low is None or plain.high is None or simultaneous.low is None or simultaneous.high is None:
        return "undecided"
    limit = limit_of(response, margin_percent)
    if better_of(response) == "less":
        return "worse" if simultaneous.low > limit else "not worse" if plain.high <= limit else "undecided"
    return "worse" if simultaneous.high < limit else "not worse" if plain.low >= limit else "undecided"


def family_confidence(confidence: float, family: int) -> float:
    """Confidence of each of `family` intervals that hold together with `confidence` (Bonferroni)."""
    return 1 - (1 - confidence) / max(family, 1)


def case_of(a: Side, b: Side, contrast: Contrast, margin_percent: float, family: int) -> GateCase:
    """The case of a contrast, which is one of `family` cases of the gate."""
    response, plain = contrast.response, contrast.ratio
    pair = pair_of((a.frame, contrast.a), (b.frame, contrast.b), response)
    wide = None if pair is None else ratio_of(pair, family_confidence(plain.confidence, family))
    if pair is None or wide is None:  # the contrast has a ratio of the same means
        raise ValueError("the mean of side a is 0")
    verdict = verdict_of(response, plain, wide, margin_percent)
    why, more, look = "", None, look_of_both(a, b)
    would = Forecast(None, pace_s(a, b), max(contrast.starts_a, contrast.starts_b), look)
    if plain.low is None:
        why = contrast.why
    elif contrast.within_cold or (verdict == "worse" and (contrast.within_noise or contrast.within_trend)):
        verdict, why = "undecided", contrast.why
    elif verdict == "undecided" and pair.gap is not None:
        single = look.planning_confidence(plain.confidence)
        simultaneous = family_confidence(single, family)
        of_sides = (single, simultaneous) if better_of(response) == "less" else (simultaneous, single)
        more = power.more_starts_beyond(pair.gap, limit_of(response, margin_percent), of_sides)
        decides = would.never() if more is None else would.would(more)
        why = f"{_reaches(plain, wide, response, margin_percent)}; {decides}"
    text = change_text(wide if verdict == "worse" else plain, response)
    return GateCase(
        cell=contrast.cell, response=response, unit=contrast.unit, verdict=verdict, why=why,
        sentence=_sentence(label(contrast.cell), response, verdict, text, margin_percent, why),
        mean_a=contrast.mean_a, mean_b=contrast.mean_b, change_percent=contrast.change_percent,
        simultaneous_percent=estimates.percent(wide), limit_percent=100 * (limit_of(response, margin_percent) - 1),
        floor_percent=contrast.floor_percent, floor_source=contrast.floor_source, blocks=more,
        blocks_s=None if more is None else would.seconds(more),
        advice="" if more is None else would.blocks(more),
        starts_a=contrast.starts_a, starts_b=contrast.starts_b, n_a=contrast.n_a, n_b=contrast.n_b,
    )  # fmt: skip


def case_without_values(
    cell: Treatment, response: str, verdict: GateVerdict, why: str, margin_percent: float
) -> GateCase:
    """A case in which a side has no value of the response."""
    return GateCase(
        cell=cell, response=response, unit=unit_of(response), verdict=verdict, why=why,
        sentence=f"{label(cell)}: {verdict}: {label_of(response)}: {why}",
        limit_percent=100 * (limit_of(response, margin_percent) - 1),
    )  # fmt: skip


def margin_words(response: str, margin_percent: float) -> str:
    """The margin with the sign of a response: `+2%`, `-2.0%`."""
    low, high = limits_percent(margin_percent)
    limit = high if better_of(response) == "less" else low
    return f"{signed_percent(limit, 0 if limit == round(limit) else 1)}%"


def _reaches(plain: Estimate, wide: Estimate, response: str, margin_percent: float) -> str:
    """Why neither verdict can be given."""
    limit = margin_words(response, margin_percent)
    low, high = plain.low or 0.0, plain.high or 0.0
    if low <= limit_of(response, margin_percent) <= high:
        return f"{change_text(plain, response)} reaches from within the margin of {limit} beyond it"
    return f"{change_text(wide, response)}, as one of several comparisons, reaches back across {limit}"


def _sentence(head: str, response: str, verdict: GateVerdict, change: str, margin_percent: float, why: str) -> str:
    limit = margin_words(response, margin_percent)
    if verdict == "undecided":
        return f"{head}: undecided: {label_of(response)} {why}"
    where = "entirely beyond" if verdict == "worse" else "not beyond"
    return f"{head}: {verdict}: {label_of(response)} {change}, {where} {limit}"
