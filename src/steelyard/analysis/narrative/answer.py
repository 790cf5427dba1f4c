"""Answer to the study's question in sentences, with intervals and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.analysis.comparisons.level_ratios import level_value
from steelyard.analysis.frame import NO_VALUE_REASON, TOO_FEW_REASON
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.narrative import undecided
from steelyard.analysis.narrative.answer_table import LACKS, AnswerRow, AnswerTable, at
from steelyard.analysis.narrative.around_activities import around_activities
from steelyard.analysis.narrative.policies import policies
from steelyard.analysis.results import Results
from steelyard.analysis.statistics import carried, objective
from steelyard.analysis.statistics.carried import Carried
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.interaction import Interaction
from steelyard.analysis.statistics.law_choice import LawChoice
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.objective import ObjectiveLevel
from steelyard.analysis.statistics.overall import Overall
from steelyard.analysis.statistics.scaling import scaled
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import NODES, factor_label, label, pair_label, part
from steelyard.analysis.wording import capital, mean_of, scale
from steelyard.format import confidence_text, count, interval, listed, number
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model import responses
from steelyard.model.percentiles import needed
from steelyard.model.responses import label_of

MOST_LINES = 4
"""With more lines (workloads) than this, the answer groups them."""
MOST_SENTENCES = 5
FEWEST_SIZES = 5
"""A law over fewer sizes is refused, so the answer does not mention it."""
MOST_LEVELS = 4
MOST_DEPENDENCES = 2
"""With more lines than this, the answer counts in how many a change depends on the size."""


def answer(question: str, results: Results) -> list[str]:
    """Two to five sentences that answer the study's question, of searches first what each treatment carries, then what
    undecided rows bound, and those on its objective and on policies or activities, without the caveats' details. Empty
    question is fine."""
    rates = carried.headline(results.main(Carried))
    sentences = _sentences(question, results, searched=bool(rates))
    open_rows = undecided.in_words(results.answer_table)
    bounds = [open_rows] if open_rows else []
    objectives = objective.answers(results.of(ObjectiveLevel))
    # Of policies the answer is what each paid and lacked; the table has what each activity of theirs cost.
    changed = policies(results) or around_activities(results)
    return [*rates, *sentences[:-1], *bounds, *objectives, *changed, sentences[-1]]


def _sentences(question: str, results: Results, *, searched: bool) -> list[str]:
    factor = results.factor_asked
    if searched and not results.used:
        return ["No search found the rate itself, and bounds enter no average."]
    if searched and factor is None and not results.of(MainEffect):
        return [_closing(results)]
    if not results.used:
        return [_nothing(question, results), "Nothing can be said."]
    if results.of(MainEffect):
        return [*_of_fraction(results), _closing(results)]
    if factor is None:
        measured = [summary for summary in results.main(Summary) if summary.start_means]
        described = [_described(summary, results.confidence) for summary in measured[: MOST_SENTENCES - 1]]
        return [*described, _closing(results)]
    table = results.answer_table
    lines = [] if table is None else [rows for _, rows in table.by_line()]
    if table is not None and len(lines) <= MOST_LINES:
        sentences = [_line(results, table, rows) for rows in lines]
    else:
        sentences = [] if table is None else _grouped(results, table)
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        sentences = [f"No two levels of {factor_label(factor)} have valid trials, so the question is not answered yet."]
    sentences[0] = _place(results) + sentences[0] if _place(results) else capital(sentences[0])
    dependences = _dependences(results)
    sentences = [*sentences[: MOST_SENTENCES - 1 - len(dependences)], *dependences]
    sentences += [one.sentence for one in results.of(LawChoice) if one.n and one.sizes >= FEWEST_SIZES]
    return [*(capital(one) for one in sentences[: MOST_SENTENCES - 1]), _closing(results)]


def _dependences(results: Results) -> list[str]:
    """How the change of the last level depends on the size: from the smallest to the largest."""
    asked, size = results.factor_asked, results.size_factor
    about = [row for row in results.of(Interaction) if row.factor == asked and row.by == size != asked]
    if not about:
        return []
    last = about[-1]
    rows = [row for row in about if (row.level, row.by_level) == (last.level, last.by_level)]
    if len(rows) <= MOST_DEPENDENCES:
        return [f"{row.sentence}." for row in rows]
    ratios, differences = ([getattr(row, name) for row in rows] for name in ("verdict", "verdict_of_differences"))
    from_to = f"from {part(last.by, last.by_baseline)} to {part(last.by, last.by_level)}"
    change = f"{pair_label(last.factor, last.level, last.baseline)}, in {count(len(rows), 'line')}"
    return [f"{from_to}, the change of {change}: ratio {_tally(ratios)}; difference {_tally(differences)}."]


def _tally(verdicts: Sequence[str]) -> str:
    """`lower in 3, undecided in 1`."""
    return ", ".join(f"{verdict} in {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))


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
        each = ", ".join(f"{factor_label(one.factor)} {one.verdict}" for one in rest)
        sentences.append(f"The other factors: {each}.")
    return sentences


def _nothing(question: str, results: Results) -> str:
    label = label_of(results.response)
    lead = f"There is no answer to “{question}” yet" if question else capital(label)
    without = {one.reason: one.trials for one in results.of(Exclusion)}
    valid, q = without.get(TOO_FEW_REASON, 0), responses.of(results.response).percentile
    why = f"without a value of {label}" if question else "without a value"
    if valid and q is not None:
        had = [one.max.value for one in results.of(Summary) if one.response == "operations" and one.max is not None]
        most = f", and no trial had more than {max(had):,.0f}" if had else ""
        why = f"this percentile needs {needed(q):,} operations per trial{most}"
    valid += without.get(NO_VALUE_REASON, 0)
    trials = count(results.trials, "trial")
    if not valid:
        return f"{lead}: none of {trials} is valid."
    return f"{lead}: {valid} of {trials} {'is' if valid == 1 else 'are'} valid, but {why}."


def _place(results: Results) -> str:
    return "On this machine, " if "cpu" in results.shares else ""


def _verb(results: Results) -> str:
    return {"execution_time_ms": "took", "throughput_per_s": "ran at"}.get(results.response, "")


def _line(results: Results, table: AnswerTable, rows: Sequence[AnswerRow]) -> str:
    """One line (workload): its value at each level and the change from the baseline, both sides named."""
    shown = [row for row in rows if row.value is not None]
    gone = "".join(f"; {row.level_text} has {row.why or LACKS[row.verdict]}" for row in rows if row.value is None)
    verb, line, response = _verb(results), rows[0].line, results.response
    if not shown:
        (lacks, *others) = {row.why or LACKS[row.verdict] for row in rows}
        return (
            f"{line or 'the study'} has {'no value' if others else lacks} at any level of {factor_label(table.factor)}."
        )
    who = f"{line} {verb}" if verb and line else _of_response(results, line)
    base, rest = shown[0], shown[1:]
    if not rest:
        return f"{who} {_valued(base)} ({_counts([_own(base)], response)}){gone}."
    if base.verdict != "baseline":
        values, counts = listed([_valued(row) for row in shown]), _counts([_own(row) for row in shown], response)
        return f"{who} {values} ({counts}): no verdict, because {base.why}."
    if len(rest) == 1:
        row = rest[0]
        basis = _basis([(row.n, row.starts), (row.baseline_n, row.baseline_starts)], rest, response)
        against = f"{row.baseline_value_text} {at(row.factor)} {row.baseline_text}"
        return f"{who} {_valued(row)} and {against}: {_compared(row)} ({basis}){_whys(rest)}{gone}."
    left = ""
    if len(shown) > MOST_LEVELS:
        left, rest = f"; the table has the other {len(shown) - 2} levels", rest[-1:]
    each = "; ".join(f"{_valued(row)}, {_compared(row)}" for row in rest)
    basis = _basis([_own(row) for row in (base, *rest)], rest, response)
    return f"{who} {_valued(base)}; against that, {each} ({basis}){_whys(rest)}{left}{gone}."


def _of_response(results: Results, line: str) -> str:
    """`workload A had a 99th percentile of response time of`: the values follow."""
    name = label_of(results.response)
    if not line and results.response == "execution_time_ms":
        return "each trial took"
    if responses.of(results.response).source != "records":
        return f"{name}, {line}:" if line else f"{name}:"
    return f"{line} had a {name} of" if line else f"the {name} was"


def _valued(row: AnswerRow) -> str:
    """A level with its value: `902 ms on 3 nodes`."""
    return f"{row.value_text} {at(row.factor)} {row.level_text}"


def _compared(row: AnswerRow) -> str:
    """The change with its verdict: `2.8 times as long [2.6, 3.1], slower`."""
    return f"{row.change_text}, {row.verdict_text}" if row.change_text else row.verdict_text


def _basis(sizes: Sequence[tuple[int, int]], rows: Sequence[AnswerRow], response: str) -> str:
    """Kind of the values and the brackets: `95% interval; geometric means of 6 trials from 3 starts each`."""
    known = [row.change.confidence for row in rows if row.change is not None and row.change.low is not None]
    intervals = f"{confidence_text(known[0])} {'interval' if len(known) == 1 else 'intervals'}; " if known else ""
    return intervals + _counts(sizes, response)


def _whys(rows: Sequence[AnswerRow]) -> str:
    """Reasons of the verdicts, each once; of several levels those of decided ones."""
    whys = [row.why for row in rows if row.why and (len(rows) == 1 or row.verdict != "undecided")]
    return "".join(f"; {why}" for why in dict.fromkeys(whys))


def _own(row: AnswerRow) -> tuple[int, int]:
    return row.n, row.starts


def _counts(sizes: Sequence[tuple[int, int]], response: str) -> str:
    """`geometric means of 6 trials from 3 starts each`, or each level's own numbers of trials and starts."""
    noun = mean_of(response) if len(sizes) == 1 else f"{mean_of(response)}s"
    trials, starts = ([size[place] for size in sizes] for place in (0, 1))
    each = " each" if len(sizes) > 1 else ""
    of = count(trials[0], "trial") if len(set(trials)) == 1 else f"{listed([str(n) for n in trials])} trials"
    by = count(starts[0], "start") if len(set(starts)) == 1 else f"{listed([str(n) for n in starts])} starts"
    return f"{noun} of {of} from {by}{each if len(set(starts)) == 1 else ''}"


def _grouped(results: Results, table: AnswerTable) -> list[str]:
    """Answer for many lines: in how many the last level is slower, faster, undecided; then the largest change, or the
    change over all lines where none is decided."""
    lines = [rows for _, rows in table.by_line()]
    ends = [rows[-1] for rows in lines]
    if all(row.change is None for row in ends):
        return []
    groups: dict[str, list[AnswerRow]] = {}
    for row in ends:
        groups.setdefault(_outcome(row), []).append(row)
    (first, *others) = {pair_label(row.factor, row.level, row.baseline, row.others) for row in ends}
    outcomes = [
        f"{outcome} in {len(rows)} ({'; '.join(row.line for row in rows[:MOST_LINES])}"
        f"{' and more' if len(rows) > MOST_LINES else ''})"
        for outcome, rows in groups.items()
    ]
    sentences = [
        f"{first if not others else 'the last level against the first'}, by {label_of(results.response)}, in "
        f"{count(len(ends), 'line')} of the table: {listed(outcomes)}."
    ]
    decided = [row for row in ends if row.verdict in multiplicity.DIFFERENT and row.change is not None]
    if decided:
        greatest = max(decided, key=_size)
        rows = next(rows for rows in lines if greatest in rows)
        sentences.append("the largest change: " + _line(results, table, rows))
    elif not others:
        asked = (ends[0].factor, ends[0].level, results.response)
        whole = (one for one in results.of(Overall) if (one.factor, one.level, one.response) == asked)
        sentences += [f"{one.sentence}." for one in whole]
    return sentences


def _size(row: AnswerRow) -> float:
    """How large the change of a row is, among rows of its table."""
    if row.ratio is not None:
        return abs(math.log(row.ratio.value))
    return 0.0 if row.difference is None else abs(row.difference.value)


def _outcome(row: AnswerRow) -> str:
    """The verdict of a row; where there is none, what is missing."""
    if row.verdict != "no verdict":
        return row.verdict_text if row.verdict in multiplicity.DECIDED else row.verdict
    return "no verdict (no interval)" if row.change is not None else f"no verdict ({row.baseline_text} is missing)"


def _described(summary: Summary, confidence: float) -> str:
    """One treatment's value, where there is nothing to compare: `workload A: execution time 290 ms [210, 401] (95%
    interval; geometric mean of 8 trials from 8 starts)`."""
    value = level_value(summary.start_means, summary.response, confidence)
    factor, unit = scale([value.value], summary.unit)
    shown = f"{number(value.value * factor, digits=3, trim=False)} {unit} {interval(scaled(value, factor))}".strip()
    counts = f"{mean_of(summary.response)} of {count(summary.n, 'trial')} from {count(summary.starts, 'start')}"
    known = "" if value.low is None else f"{confidence_text(confidence)} interval; "
    return capital(f"{label(summary.treatment)}: {label_of(summary.response)} {shown} ({known}{counts}).")


def _closing(results: Results) -> str:
    """The last sentence: the caveat that matters most, or what the intervals rest on."""
    faults = sum(summary.system_faults for summary in results.main(Summary))
    failed = f"; in {count(faults, 'trial')} the system under test failed, which is a result too" if faults else ""
    if results.size_factor in NODES and "cpu" in results.shares:
        if results.own_limits:
            return f"The nodes share one processor, and each adds at most the time of its own limit{failed}."
        about = "this says nothing about scaling out on separate machines"
        if results.factor_asked != results.size_factor and results.of(Interaction):
            asked = factor_label(results.factor_asked or "")
            about = f"a larger cluster may be slower here with any {asked}: that alone moves ratios towards 1"
        return f"The nodes share one processor, so {about}{failed}."
    if all(summary.starts < 2 for summary in results.main(Summary)):
        return f"Each treatment was started once, so another start of the same cluster may well differ{failed}."
    if not _any_interval(results):
        few = all(summary.starts < FEWEST_STARTS for summary in results.main(Summary))
        why = f": it needs {FEWEST_STARTS} starts of each level, however many trials there are" if few else ""
        return f"There is no interval{why}{failed}."
    paired = {one.change.n for one in results.of(Comparison) if "paired by block" in one.change.method}
    blocks = f" in {count(paired.pop(), 'block')}" if len(paired) == 1 else ""
    starts = f"{count(results.starts, 'start')} of a cluster{blocks}"
    return f"The intervals rest on {starts}, not on the number of trials{failed}."


def _any_interval(results: Results) -> bool:
    """Whether the answer has any interval over starts, of a value or of a change."""
    values = [value for row in results.main(Summary) if (value := row.value) is not None]
    changes = [row.change for row in results.of(Comparison)]
    return bool(results.of(MainEffect)) or any(estimate.low is not None for estimate in (*values, *changes))
