"""Answer to the study's question in sentences, with intervals and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.law_choice import LawChoice
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import NODES, Treatment, label, part
from steelyard.analysis.wording import blocks, quantity
from steelyard.format import count, listed, number, signed
from steelyard.model.responses import label_of
from steelyard.model.study import Level

MOST_LINES = 4
"""With more lines (workloads) than this, the answer groups them."""
MOST_SENTENCES = 5
FEWEST_SIZES = 5
"""A law over fewer sizes is refused, so the answer does not mention it."""
MOST_LEVELS = 4


def main_factor(results: Results) -> str | None:
    """The factor that the question is about: the size, else the first that was compared."""
    if results.size_factor:
        return results.size_factor
    return results.of(Comparison)[0].factor if results.of(Comparison) else None


def answer(question: str, results: Results) -> list[str]:
    """Two to five sentences that answer the study's question, without the caveats' details. Empty question is fine."""
    factor = main_factor(results)
    if not results.used:
        return [_nothing(question, results), "Nothing can be said."]
    if results.of(MainEffect):
        return [*_of_fraction(results), _closing(results)]
    if factor is None:
        described = [_described(summary) for summary in results.main(Summary) if summary.n][: MOST_SENTENCES - 1]
        return [*described, _closing(results)]
    lines = _lines(results, factor)
    if len(lines) <= MOST_LINES:
        sentences = [_line(results, factor, others) for others in lines]
    else:
        sentences = _grouped(results, factor)
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        sentences = [f"No two levels of {factor} have valid trials, so the question is not answered yet."]
    sentences[0] = _place(results) + sentences[0] if _place(results) else _capital(sentences[0])
    sentences += [one.sentence for one in results.of(LawChoice) if one.n and one.sizes >= FEWEST_SIZES]
    return [*(_capital(one) for one in sentences[: MOST_SENTENCES - 1]), _closing(results)]


def _of_fraction(results: Results) -> list[str]:
    """Answer of a fractional design: each factor's main effect, decided ones first, by size."""
    ranked = sorted(
        results.of(MainEffect),
        key=lambda one: (
            one.verdict in ("undecided", "descriptive"),
            -abs(math.log(one.ratio.value)) if one.ratio else 0.0,
        ),
    )
    sentences = [f"{one.sentence}." for one in ranked[: MOST_SENTENCES - 2]]
    rest = ranked[MOST_SENTENCES - 2 :]
    if rest:
        each = ", ".join(f"{one.factor} {one.verdict}" for one in rest)
        sentences.append(f"The other factors: {each}.")
    return sentences


def _nothing(question: str, results: Results) -> str:
    asked = f" to “{question}”" if question else ""
    return f"There is no answer{asked} yet: none of {count(results.trials, 'trial')} is valid."


def _place(results: Results) -> str:
    return "On this machine, " if "cpu" in results.shares else ""


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _lines(results: Results, factor: str) -> list[Treatment]:
    lines: list[Treatment] = []
    for summary in results.main(Summary):
        others = {name: level for name, level in summary.treatment.items() if name != factor}
        if others not in lines:
            lines.append(others)
    return lines


def _at(results: Results, treatment: Mapping[str, Level]) -> Summary | None:
    return next((one for one in results.main(Summary) if one.treatment == treatment), None)


def _verb(results: Results) -> str:
    return {"execution_time_ms": "took", "throughput_per_s": "served"}.get(
        results.response, f"had a {label_of(results.response)} of"
    )


def _levels(results: Results, factor: str) -> list[Level]:
    levels = list(results.factors.get(factor, ()))
    if factor == results.size_factor:
        levels.sort(key=float)
    return [levels[0], *levels[-(MOST_LEVELS - 1) :]] if len(levels) > MOST_LEVELS else levels


def _line(results: Results, factor: str, others: Treatment) -> str:
    """One line (workload): its median at each level, then the last level against the first."""
    cells = [(level, _at(results, {**others, factor: level})) for level in _levels(results, factor)]
    shown = [(level, cell) for level, cell in cells if cell is not None and cell.median is not None]
    gone = [level for level, cell in cells if cell is None or cell.median is None]
    who = label(others) if others else "the whole load"
    missing = "; ".join(f"{part(factor, level)} has no valid trial" for level in gone)
    if not shown:
        return f"{who} has no valid trial at any level of {factor}."
    medians = [
        f"{quantity(cell.median.value, cell.unit)} {_preposition(factor)} {part(factor, level)}"
        for level, cell in shown
        if cell.median is not None
    ]
    text = f"{who} {_verb(results)} {listed(medians)} ({_counts([cell for _, cell in shown])})"
    compared = _comparison(results, factor, others, shown[-1][0]) if len(shown) > 1 else None
    if compared is not None:
        text += f": {_verdict(compared, part(factor, compared.level), len(shown) > 2)}"
        text += f"; {compared.trend}" if compared.trend and not compared.within_trend else ""
    return f"{text}{'; ' + missing if missing else ''}."


def _preposition(factor: str) -> str:
    return "on" if factor in NODES else "with"


def _counts(cells: Sequence[Summary]) -> str:
    """`medians of 6 trials from 2 starts each`, or each cell's own numbers."""
    numbers = {(cell.n, cell.starts) for cell in cells}
    noun = "median" if len(cells) == 1 else "medians"
    if len(numbers) == 1:
        each = " each" if len(cells) > 1 else ""
        return f"{noun} of {count(cells[0].n, 'trial')} from {count(cells[0].starts, 'start')}{each}"
    trials = listed([str(cell.n) for cell in cells])
    starts = listed([str(cell.starts) for cell in cells])
    same = {cell.starts for cell in cells}
    from_starts = f"{count(cells[0].starts, 'start')} each" if len(same) == 1 else f"{starts} starts"
    return f"{noun} of {trials} trials from {from_starts}"


def _comparison(results: Results, factor: str, others: Treatment, level: Level) -> Comparison | None:
    return next(
        (one for one in results.of(Comparison) if (one.factor, one.others, one.level) == (factor, others, level)), None
    )


def _verdict(row: Comparison, level: str, name_level: bool) -> str:
    change, low, high = row.change_percent.value, row.change_percent.low, row.change_percent.high
    who = f"{level} {'are' if level.endswith('s') else 'is'} " if name_level else ""
    confidence = f"{row.change_percent.confidence:.0%}"
    if low is None or high is None:
        return f"{signed(change)}% in the mean, from too few starts to give an interval or a verdict"
    if row.within_trend:
        return f"undecided: {row.trend}, which may be all of the difference"
    if row.within_noise and row.floor_percent is not None:
        ends = f"{signed(low)}% to {signed(high)}%"
        return (
            f"undecided, within the noise of this machine: the {confidence} interval of the change, {ends}, lies "
            f"within the {number(row.floor_percent.value, digits=2)}% that identical systems stay below "
            f"({row.floor_source})"
        )
    if row.verdict == "undecided":
        would = f"; about {blocks(row.more_starts, row.more_s)} would decide" if row.more_starts else ""
        ends = f"{signed(low)}% to {signed(high)}%"
        return f"undecided, the {confidence} interval of the change, {ends}, includes 0{would}"
    sizes = sorted((abs(low), abs(high)))
    interval = f"{confidence} interval {number(sizes[0], digits=2)}% to {number(sizes[1], digits=2)}%"
    return f"in the mean {who}{number(abs(change), digits=2)}% {row.verdict} ({interval})"


def _grouped(results: Results, factor: str) -> list[str]:
    """Answer for many lines: how many are slower, faster, undecided between the ends; then the greatest change."""
    last = _levels(results, factor)[-1]
    ends = [one for one in results.of(Comparison) if one.factor == factor and one.level == last]
    if not ends:
        return []
    groups: dict[str, list[Comparison]] = {}
    for comparison in ends:
        groups.setdefault(comparison.verdict, []).append(comparison)
    step = f"{part(factor, last)} against {part(factor, ends[0].baseline)}"
    verb = {"descriptive": "without a verdict (fewer than two starts a level)"}
    verdicts = [
        f"{verb.get(verdict, verdict)} in {len(found)} ({'; '.join(label(one.others) for one in found[:MOST_LINES])}"
        f"{' and more' if len(found) > MOST_LINES else ''})"
        for verdict, found in groups.items()
    ]
    sentences = [f"of {len(ends)} comparisons of {step}, {label_of(results.response)} is {listed(verdicts)}."]
    decided = [one for one in ends if one.verdict not in {"undecided", "descriptive"}]
    if decided:
        greatest = max(decided, key=lambda one: abs(one.change_percent.value))
        sentences.append("the greatest change: " + _line(results, factor, greatest.others))
    return sentences


def _described(summary: Summary) -> str:
    if summary.median is None:
        return ""
    value = quantity(summary.median.value, summary.unit)
    counts = f"median of {count(summary.n, 'trial')} from {count(summary.starts, 'start')}"
    return _capital(f"{label(summary.treatment)}: {label_of(summary.response)} {value} ({counts}).")


def _closing(results: Results) -> str:
    """The last sentence: the caveat that matters most, or what the intervals rest on."""
    faults = sum(summary.system_faults for summary in results.main(Summary))
    failed = f"; in {count(faults, 'trial')} the system under test failed, which is a result too" if faults else ""
    if results.size_factor in NODES and "cpu" in results.shares:
        return f"The nodes share one processor, so this says nothing about scaling out on separate machines{failed}."
    if all(summary.starts < 2 for summary in results.main(Summary)):
        return f"Each treatment was started once, so another start of the same cluster may well differ{failed}."
    return f"The intervals rest on {count(results.starts, 'start')} of a cluster, not on the number of trials{failed}."
