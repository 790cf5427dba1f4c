"""Table of the answer: every level against the baseline, with value, n, change and verdict.

One estimator: a level's value is the geometric mean of its start means, and the change is the quotient of two such
values; of a response that is compared by differences it is their mean, and the change the difference of two of these.
Page, terminal and `--json` show the texts of this table as they are; the sentences of the answer quote them.

How to render it: `caption` above; for each line (`by_line`) its name (`line`, empty if there is only one), then a row
per level: `level_text`, `value_text`, `change_text` (empty for the baseline), `verdict_text`, `n_text`; `why` below or
as a tooltip. A renderer with little room leaves out `n_text` where `same_n` says it for all. The texts have their
units; `value` and `ratio` are the numbers behind them, for charts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field

from steelyard.analysis.comparisons import forecast, side_trends
from steelyard.analysis.comparisons.contrasts import TOO_FEW_WHOLE
from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.comparisons.judgement import shown
from steelyard.analysis.comparisons.level_pairs import NOTHING_VARIES, TOO_FEW, baseline_of
from steelyard.analysis.comparisons.level_ratios import level_value
from steelyard.analysis.frame import TrialFrame, start_means
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.row import Column, Levels, RatioOrNone, Row
from steelyard.analysis.statistics.comparison import Comparison, compare, judged
from steelyard.analysis.statistics.main_effect import MainEffect, fraction_of
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import NODES, Treatment, factor_label, label, part
from steelyard.analysis.wording import capital, change_text, mean_of, quantities, quantity
from steelyard.format import confidence_text, count, number
from steelyard.heavy import pl
from steelyard.judging.design import treatments_of
from steelyard.model.disruption import NONE
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import disruption, label_of, of, unit_of
from steelyard.model.study import Study
from steelyard.model.value import Value

ON_LOGARITHMS: Final = "t on logarithms"
IN_RESPONSE: Final = "in the unit of the main response"
AnswerVerdict = Literal[
    "baseline", "slower", "faster", "higher", "lower", "equivalent", "undecided", "no verdict", "no value",
    "no valid trial",
]  # fmt: skip
"""`slower` and `faster` of times and rates, `higher` and `lower` of percentiles and counts; `equivalent`: within the
study's margin; `undecided`: the interval includes no change, or lies within the noise floor or a trend, or one level
was measured cold and the other warm; `no verdict`: too few starts for an interval, or no baseline; `no value`: its
valid trials have too few operations for this percentile, are searches, or cannot have it, such as a recovery where
nothing was disrupted; `no valid trial`: nothing was measured at this level, though it was planned."""

LACKS: Final = {
    "no value": "too few operations per trial for this percentile",
    "no valid trial": "no valid trial",
}
"""Words for a level without a value."""
OF_SEARCHES: Final = "no value of this response, because its trials are searches"
OF_CONTROLS: Final = "no value of this response: nothing was disrupted here"
NEVER: Final = "no value of this response in any trial"


class AnswerRow(Row):
    """One level of the answer's factor, against the baseline."""

    line: str
    """The other factors: `workload A`; empty if there are none."""
    others: Levels = Field(default_factory=dict)
    factor: str
    """Factor whose levels are compared."""
    level: Level
    """Level of the row."""
    level_text: str
    """The level as people read it: `3 nodes`."""
    baseline: Level
    """Level compared with."""
    baseline_text: str
    """The same as people read it: `1 node`."""
    value: Annotated[float | None, Column(unit=IN_RESPONSE)] = None
    """Geometric mean of the level's start means, or their mean where the response is compared by differences; none
    without a valid trial."""
    value_interval: Annotated[Estimate | None, Column(unit=IN_RESPONSE)] = None
    """The same with its interval over starts."""
    value_text: str = ""
    """The value with its unit: `902 ms`."""
    baseline_value: Annotated[float | None, Column(unit=IN_RESPONSE)] = None
    """The baseline's value in this comparison: with `value` it gives the ratio or difference. It differs from the
    baseline's own row only where some of its starts did not serve this level; then `why` says so."""
    baseline_value_text: str = ""
    """The same with its unit."""
    baseline_n: int = 0
    """Trials of the baseline in this comparison."""
    baseline_starts: int = 0
    """Starts of the baseline in this comparison."""
    n: int = 0
    """Trials that the value rests on."""
    starts: int = 0
    """Starts that the value rests on."""
    n_text: str = ""
    """Both in words: `6 trials from 3 starts`."""
    ratio: RatioOrNone = None
    """Value over the baseline's value, with its interval; none for the baseline."""
    difference: Annotated[Estimate | None, Column(unit=IN_RESPONSE)] = None
    """Value minus the baseline's value, with its interval, of a response that is compared by differences."""
    change_text: str = ""
    """`+18% [3, 35]`, `3.1 times as long [2.2, 4.4]`; empty for the baseline."""
    verdict: AnswerVerdict
    """Baseline, slower, faster, higher, lower, equivalent, undecided, no verdict, no value or no valid trial."""
    verdict_text: str
    """The verdict as it is shown: `slower`, `undecided (within noise)`, `slower, not after correction`."""
    why: str = ""
    """Reason or limit of the verdict, in a clause: too few starts, the noise floor, Holm's correction."""
    survives_holm: bool | None = None
    """Whether a verdict of a difference or equivalence would still hold after Holm's correction; none if it decides
    nothing."""
    to_decide: str = ""
    """Where undecided: the blocks that would decide, and their time: `+14 blocks, 2.8 h` of this study, `24 blocks, 5
    h` of a new one."""
    cheaper: str = ""
    """The same to show that the change lies within 10%, of a study without a margin, if these are fewer."""
    sentence: str = ""
    """The row in words, both sides named: `workload C: 902 ms on 3 nodes, 318 ms on 1 node: 2.8 times as long`."""

    @property
    def change(self) -> Estimate | None:
        """Ratio or difference; None for the baseline, and where nothing could be compared."""
        return self.difference if self.ratio is None else self.ratio


class AnswerTable(Value):
    """Every level of the main factor against its baseline, or every pair of levels, for each line."""

    response: str
    response_label: str
    unit: str
    """Unit of every `value`; the texts may show another (seconds for milliseconds)."""
    factor: str
    confidence: float
    caption: str
    """`Execution time by nodes: geometric means of start means, 95% intervals (t on logarithms, paired by block, 2
    degrees of freedom)`."""
    same_n: str = ""
    """`6 trials from 3 starts each`, if that is so in every row with a valid trial; else empty."""
    every_pair: bool = False
    """Whether the rows compare every pair; then no row is a baseline."""
    rows: tuple[AnswerRow, ...] = ()

    def by_line(self) -> Iterator[tuple[str, tuple[AnswerRow, ...]]]:
        """Each line with its rows, in order."""
        for line, rows in itertools.groupby(self.rows, key=lambda row: row.line):
            yield line, tuple(rows)


def factor_asked(
    study: Study, size: str | None, compared: Sequence[Comparison], factors: Mapping[str, Sequence[Level]]
) -> str | None:
    """The factor that the question is about: the one that the study names (`analysis.compared`), otherwise the size,
    the first that was compared, or the only one."""
    if study.analysis.compared:
        return study.analysis.compared
    if size or compared:
        return size or compared[0].factor
    varied = [name for name, levels in factors.items() if len(levels) > 1]
    return varied[0] if len(varied) == 1 else None


def answer_table(
    frame: TrialFrame, study: Study, factor: str, comparisons: Sequence[Comparison] = (), floors: Floors | None = None,
    trends: Sequence[Trend] = (), *, every_pair: bool = False,
) -> AnswerTable:  # fmt: skip
    """The table of the answer for one factor.

    `comparisons`: those of the statistic `comparison`, which are judged against the noise floor and trends, and
    corrected after Holm. `every_pair`: each pair of levels instead, each judged alone by `floors` and `trends`.
    """
    response, confidence = study.analysis.response, study.analysis.confidence
    rows: list[AnswerRow] = []
    every, is_planned = levels_of(frame, factor), planned(frame, study)
    for others in frame.others(factor):
        levels = [level for level in every if is_planned({**others, factor: level})]
        if every_pair:
            rows += _pairs(frame, study, factor, others, levels, floors or Floors(), trends)
        elif levels_of(frame, factor)[0] in levels:
            rows += _against_baseline(frame, study, factor, others, levels, comparisons)
        else:
            rows += tuple(_without_baseline(frame, study, factor, others, levels, comparisons, rows))
    return AnswerTable(
        response=response, response_label=label_of(response), unit=unit_of(response), factor=factor,
        confidence=confidence, every_pair=every_pair, rows=_in_one_unit(rows, response), same_n=_same_n(rows),
        caption=_caption(rows, response, factor, confidence),
    )  # fmt: skip


def planned(frame: TrialFrame, study: Study) -> Callable[[Treatment], bool]:
    """Whether a treatment is part of the design, or was measured anyway.

    One-at-a-time, listed and fractional designs leave out combinations of levels; the others have all.
    """
    fraction = fraction_of(frame, study)
    if study.design.kind in ("full-factorial", "same") or (study.design.kind == "fractional" and fraction is None):
        return lambda treatment: True
    known = {_key(frame, one) for one in (*treatments_of(study, fraction), *frame.treatments)}
    return lambda treatment: _key(frame, treatment) in known


def _key(frame: TrialFrame, treatment: Treatment) -> tuple[Level | None, ...]:
    """The levels of a treatment as the frame's columns hold them."""
    levels = ((frame.data.schema[name], treatment.get(name)) for name in frame.names)
    return tuple(str(level) if dtype == pl.String and level is not None else level for dtype, level in levels)


def _caption(rows: Sequence[AnswerRow], response: str, factor: str, confidence: float) -> str:
    about = f"{capital(label_of(response))} by {factor_label(factor, rows[0].others if rows else ())}"
    about += f": {mean_of(response)}s of start means"
    methods = {row.change.method for row in rows if row.change is not None and row.change.low is not None}
    if not methods:
        return about
    several = ON_LOGARITHMS if of(response).compared == "ratio" else "t of differences"
    how = methods.pop().partition(", ")[2] if len(methods) == 1 else several
    how = (
        how.replace(" on start means", "").replace(" of start means paired", ", paired").replace(" of start means", "")
    )
    return f"{about}, {confidence_text(confidence)} intervals ({how})"


def levels_of(frame: TrialFrame, factor: str) -> list[Level]:
    """The levels of a factor, the baseline first."""
    levels = list(frame.factors.get(factor, ()))
    if not levels:
        return []
    base = baseline_of(levels)
    if all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels):
        return sorted(levels, key=float)
    return [base, *(level for level in levels if level != base)]


def _against_baseline(
    frame: TrialFrame, study: Study, factor: str, others: Treatment, levels: Sequence[Level],
    comparisons: Sequence[Comparison],
) -> Iterator[AnswerRow]:  # fmt: skip
    base = levels_of(frame, factor)[0]
    own: float | None = None
    for level in levels:
        row = _level(frame, study, factor, others, base, level)
        if level == base:
            own = row.value
            yield row
            continue
        compared = next((one for one in comparisons if (one.factor, one.others, one.level, one.baseline)
                         == (factor, others, level, base)), None)  # fmt: skip
        yield row if compared is None else _compared(row, compared, own)


def _without_baseline(
    frame: TrialFrame, study: Study, factor: str, others: Treatment, levels: Sequence[Level],
    comparisons: Sequence[Comparison], shown: Sequence[AnswerRow],
) -> Iterator[AnswerRow]:  # fmt: skip
    """A line whose baseline is not part of the design: by the first other factor that a level is compared in, with all
    levels there that are not `shown` (`writes, 3 nodes`: none, one, both confirmed); a level without any as it is."""
    for level in levels:
        treatment = {**others, factor: level}
        sides = ((one, {**one.others, one.factor: side}) for one in comparisons for side in (one.level, one.baseline))
        of = next((one for one, side in sides if side == treatment), None)
        if of is None:
            row = _level(frame, study, factor, others, levels_of(frame, factor)[0], level)
            why = f"{row.baseline_text} is not part of the design here" if row.verdict == "no verdict" else row.why
            yield row.model_copy(update={"why": why})
        elif not any((row.factor, row.others) == (of.factor, of.others) for row in shown):
            compared = {one.level for one in comparisons if (one.factor, one.others) == (of.factor, of.others)}
            there = [level for level in levels_of(frame, of.factor) if level in compared or level == of.baseline]
            yield from _against_baseline(frame, study, of.factor, of.others, there, comparisons)


def _pairs(
    frame: TrialFrame, study: Study, factor: str, others: Treatment, levels: Sequence[Level], floors: Floors,
    trends: Sequence[Trend],
) -> Iterator[AnswerRow]:  # fmt: skip
    response, margin = study.analysis.response, study.analysis.equivalence_margin_percent
    pace_s = forecast.block_s(frame)
    for base, level in itertools.combinations(levels, 2):
        compared = compare(frame, response, factor, base, level, others, study.analysis.confidence, margin, pace_s)
        row = _level(frame, study, factor, others, base, level)
        if compared is None:
            yield row
            continue
        yield _compared(row, judged([compared], frame, floors, trends)[0], compared.mean_baseline.value)


def _level(frame: TrialFrame, study: Study, factor: str, others: Treatment, base: Level, level: Level) -> AnswerRow:
    """A level alone: its value over all of its starts."""
    response = study.analysis.response
    starts = start_means(frame.values(response, {**others, factor: level}), response)
    is_base = level == base
    value = level_value([mean for _, mean, _ in starts], response, study.analysis.confidence) if starts else None
    n = sum(trials for _, _, trials in starts)
    missing = _missing(frame, {**others, factor: level})
    verdict: AnswerVerdict = missing if value is None else "baseline" if is_base else "no verdict"
    gone = _lacks(frame, study, {**others, factor: level})
    lacks, of_base = "too few starts for a comparison", dict[str, Any]()
    if bases := start_means(frame.values(response, {**others, factor: base}), response):
        middle = level_value([mean for _, mean, _ in bases], response, study.analysis.confidence)
        if verdict == "no verdict":
            of_base = {
                "baseline_value": middle.value, "baseline_n": sum(trials for _, _, trials in bases),
                "baseline_starts": len(bases),
            }  # fmt: skip
    else:
        gone_base = _lacks(frame, study, {**others, factor: base})
        lacks = f"{part(factor, base, others)} has {gone_base}, so there is no baseline"
    line = label(others, [factor]) if others else ""
    side = part(factor, level, others)
    return AnswerRow(
        line=line, others=others, factor=factor, level=level, level_text=side, baseline=base,
        baseline_text=part(factor, base, others), value=None if value is None else value.value, value_interval=value,
        n=n, starts=len(starts), n_text=_counts(n, len(starts)), verdict=verdict, verdict_text=verdict,
        why=lacks if verdict == "no verdict" else gone if verdict == "no value" else "",
        sentence=f"{f'{line}, ' if line else ''}{side}: {gone}" if value is None else "", **of_base,
    )  # fmt: skip


def _lacks(frame: TrialFrame, study: Study, treatment: Treatment) -> str:
    """Words for the reason why a level has no value."""
    missing, schedule = _missing(frame, treatment), study.fields_of(treatment).get("load.schedule", study.load.schedule)
    if missing == "no value" and schedule == "search":
        return OF_SEARCHES
    if not frame.lacks(study.analysis.response, treatment):
        return LACKS[missing]
    is_control = study.fields_of(treatment).get("disruption", study.disruption.name) == NONE
    return OF_CONTROLS if is_control and of(study.analysis.response) in disruption.RESPONSES else NEVER


def _missing(frame: TrialFrame, treatment: Treatment) -> Literal["no value", "no valid trial"]:
    """Reason why a level has no value."""
    return "no value" if frame.where(treatment, used=True).height else "no valid trial"


def _compared(row: AnswerRow, compared: Comparison, own_baseline: float | None) -> AnswerRow:
    """The row with the numbers of its comparison: those over the starts that the comparison rests on."""
    response, unit = compared.response, compared.unit
    base = compared.mean_baseline.value
    why = _why(compared)
    if own_baseline is not None and abs(base - own_baseline) > 1e-9 * abs(own_baseline):
        shared = f"over the {count(compared.starts_level, 'start')} that are compared in pairs: {quantity(base, unit)} "
        why = "; ".join(filter(None, [why, f"{shared}{at(row.factor)} {row.baseline_text}"]))
    change = compared.change_text
    shown = verdict_text(compared)
    side = at(row.factor)
    values = quantities([compared.mean_level.value, base], unit, of(response).resolution)
    return row.model_copy(
        update={
            "value": compared.mean_level.value, "value_interval": compared.mean_level, "baseline_value": base,
            "baseline_n": compared.n_baseline, "baseline_starts": compared.starts_baseline,
            "n": compared.n_level, "starts": compared.starts_level,
            "n_text": _counts(compared.n_level, compared.starts_level),
            "ratio": compared.ratio, "difference": compared.difference, "change_text": change,
            "verdict": _verdict(compared), "verdict_text": shown,
            "why": why, "survives_holm": compared.survives_holm,
            **({} if compared.within_cold or compared.within_trend or compared.within_noise else
               {"to_decide": compared.to_decide, "cheaper": compared.cheaper}),
            "sentence": f"{f'{row.line}: ' if row.line else ''}{values[0]} {side} {row.level_text}, "
            f"{values[1]} {side} {row.baseline_text}: {change}, {shown}",
        }
    )  # fmt: skip


def at(factor: str) -> str:
    """The preposition before a level: on 3 nodes, with 8 threads."""
    return "on" if factor in NODES else "with"


def of_main_effects(effects: Sequence[MainEffect], study: Study) -> AnswerTable:
    """The table of a fractional design: one row per factor, without values, because a level has many treatments."""
    response, confidence = study.analysis.response, study.analysis.confidence
    rows = [
        AnswerRow(
            line=effect.factor, factor=effect.factor, level=effect.level, baseline=effect.baseline,
            level_text=part(effect.factor, effect.level), baseline_text=part(effect.factor, effect.baseline),
            n=effect.n, starts=effect.starts, ratio=effect.ratio,
            n_text=f"{count(effect.n, 'treatment')} from {count(effect.starts, 'start')}",
            change_text="" if effect.ratio is None else change_text(effect.ratio, response),
            verdict=_verdict(effect), verdict_text=verdict_text(effect), sentence=effect.sentence,
            why="; ".join(filter(None, [_why(effect), f"or it is {effect.aliases}" if effect.aliases else ""])),
        )
        for effect in effects
    ]  # fmt: skip
    return AnswerTable(
        response=response, response_label=label_of(response), unit=unit_of(response), factor="factor",
        confidence=confidence, rows=tuple(rows), same_n=_same_n(rows),
        caption=f"{capital(label_of(response))}: effect of each factor, over all treatments of the fraction, with "
        f"{confidence_text(confidence)} intervals over starts",
    )  # fmt: skip


def verdict_text(judged: Comparison | MainEffect) -> str:
    """The verdict as every table shows it: `slower`, `no verdict`, `undecided (within noise)`; what it lacks to be
    relied on is in it: `slower, not after correction`, `slower, not final`."""
    doubts = {"within noise": judged.within_noise, "cold": judged.within_cold, "within trend": judged.within_trend}
    doubt = next((words for words, known in doubts.items() if known), "")
    if doubt:
        return f"undecided ({doubt})"
    survives = judged.survives_holm if isinstance(judged, Comparison) else None
    return shown(_verdict(judged), survives_holm=survives, final=judged.final)


def _verdict(judged: Comparison | MainEffect) -> AnswerVerdict:
    return "no verdict" if judged.verdict == "descriptive" else cast(AnswerVerdict, judged.verdict)


def _why(judged: Comparison | MainEffect) -> str:
    """Warmth and trends of both sides and what else explains or limits a verdict; one that may explain it says all."""
    if judged.within_cold or judged.within_trend:
        return f"{judged.cold if judged.within_cold else judged.trend}, {side_trends.MAY_EXPLAIN}"
    return "; ".join(filter(None, [judged.cold, judged.trend, reason(judged)]))


def reason(judged: Comparison | MainEffect) -> str:
    """Reason or limit of a verdict, in a clause; empty if the interval says all."""
    if judged.verdict == "descriptive":
        change = judged.change if isinstance(judged, Comparison) else judged.ratio
        method = "" if change is None else change.method
        known = (why for why in (NOTHING_VARIES, TOO_FEW, TOO_FEW_WHOLE) if why in method)
        missing = "a treatment has no valid trial" if change is None else "a value is not above 0"
        return f"no interval: {next(known, missing)}"
    if judged.within_noise and judged.floor_percent is not None:
        share, bound = confidence_text(judged.floor_percent.confidence), number(judged.floor_percent.value, digits=2)
        return f"within the {bound}% that {share} of comparisons of identical systems stay below"
    return _reason_of_pair(judged) if isinstance(judged, Comparison) else ""


def _reason_of_pair(compared: Comparison) -> str:
    text = ""
    if compared.survives_holm is False:
        text = multiplicity.lost(compared.family, *multiplicity.tests_of_verdict(compared))
    elif compared.verdict == "equivalent" and compared.margin_percent is not None:
        text = f"within the study's margin of {number(compared.margin_percent, digits=2)}%"
    return text


def _in_one_unit(rows: Sequence[AnswerRow], response: str) -> tuple[AnswerRow, ...]:
    """Rows with the texts of their values, all in one unit."""
    values = [value for row in rows for value in (row.value, row.baseline_value) if value is not None]
    texts = iter(quantities(values, unit_of(response), of(response).resolution))
    done = []
    for row in rows:
        value = next(texts) if row.value is not None else ""
        base = next(texts) if row.baseline_value is not None else ""
        done.append(row.model_copy(update={"value_text": value, "baseline_value_text": base}))
    return tuple(done)


def _counts(trials: int, starts: int) -> str:
    return f"{count(trials, 'trial')} from {count(starts, 'start')}"


def _same_n(rows: Sequence[AnswerRow]) -> str:
    counts = {(row.n, row.starts) for row in rows if row.n}
    text = next((row.n_text for row in rows if row.n), "")
    return f"{text} each" if len(counts) == 1 else ""
