"""Trend within starts: whether the used trials of each start, or the seconds within them, still warm up or slow down.

Every start is tested, and the starts of one combination of hard levels together; Holm's correction is over all tests of
the study, so that in at most 5% of studies without a trend any of them raises an alarm (`inference.warming`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from steelyard.analysis.comparisons import start_series
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import multiplicity, warming
from steelyard.analysis.inference.steadiness import STEADY_FACTOR
from steelyard.analysis.row import NO_UNIT, Column, Number, P, TreatmentRow
from steelyard.analysis.statistic import Context, Seconds, Section, Statistic
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import MOST_NAMED
from steelyard.format import count, number, signed
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.response import Direction
from steelyard.model.responses import label_of
from steelyard.model.trial import cell_key

Key = tuple[tuple[str, Level], ...]
"""The hard levels of a start."""
Kind = Literal["trials", "seconds"]
Verdict = Literal["warming", "slowing", "rising", "falling", "steady", "too few"]
MOVES: Mapping[str, str] = {
    "warming": "still warming", "slowing": "slowing down", "rising": "still rising", "falling": "still falling",
}  # fmt: skip


class Trend(TreatmentRow):
    """Whether trials of a start, or of all starts of the same hard levels together, still warmed up or slowed down."""

    start: str
    """Start of a cluster, or how many starts were tested together."""
    series: Kind
    """Used trials, each less its treatment's level in the start; or the seconds within them, each less its trial's."""
    response: str
    """Response of the series, as named in the store."""
    n: int
    """Values of the series: trials, or seconds (means of several from 240 in a start on)."""
    starts: int
    """Starts of a cluster."""
    change_percent: Annotated[Estimate | None, Column(unit="% per trial")] = None
    """Mean change per trial over the whole series, by a line through logarithms."""
    factor: Number = None
    """Level on which the fitted curve settles, over its first value."""
    settles: Annotated[float | None, Column(unit="trials")] = None
    """Trials after which most of that curve is over; none if it runs through the whole series."""
    least_factor: Number = None
    """Factor of a warm-up over the first third of the series that would be found with a chance of 80%."""
    p: P = None
    """p that the series has no trend: the smallest p of its curves, times their number."""
    p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)] = None
    """p that there is no trend, with Holm's correction over the family."""
    family: int = 0
    """Tests of the study."""
    verdict: Verdict
    """Warming (it gets faster), slowing, or rising and falling where neither is better: p (Holm) is below 5%. Steady:
    no trend is shown, though a warm-up by a factor of 1.2 would be. Too few: neither, all such starts in one row."""
    detail: str
    """The verdict in words."""


@dataclass(frozen=True)
class _Test:
    starts: tuple[str, ...]
    hard: Treatment
    series: Kind
    response: str
    fit: warming.Fit


def trends(
    frame: TrialFrame, response: str, confidence: float = 0.95, seconds: Sequence[Seconds] = ()
) -> tuple[Trend, ...]:
    """A row per series with a trend or shown to be steady, one for all other starts; see `Trend`."""
    groups = _groups(frame, response)
    tests = [*_tests(start_series.of_trials(frame, response), groups, "trials", response)]
    by_second = start_series.of_seconds(frame, response, seconds)
    tests += _tests(by_second, groups, "seconds", start_series.seconds_of(response))
    adjusted = multiplicity.holm([test.fit.p for test in tests])
    rows = [_row(test, p or 0.0, len(tests), confidence) for test, p in zip(tests, adjusted, strict=True)]
    shown = [(test, row) for test, row in zip(tests, rows, strict=True) if row.verdict != "too few"]
    known = {start for test, _ in shown for start in test.starts}
    unknown = [start for starts in groups.values() for start in starts if start not in known]
    rest = [_too_few(frame, response, unknown, known, len(tests))] if unknown else []
    return (*(row for _, row in shown), *rest)


def _groups(frame: TrialFrame, response: str) -> dict[Key, list[str]]:
    """Hard levels to their starts with a used trial, in order of time."""
    groups: dict[Key, list[str]] = {}
    for row in frame.values(response).select("start", *frame.hard).unique(maintain_order=True).iter_rows():
        levels = tuple((name, level) for name, level in zip(frame.hard, row[1:], strict=True) if level is not None)
        groups.setdefault(levels, []).append(str(row[0]))
    return groups


def _tests(
    series: Mapping[str, warming.Series], groups: Mapping[Key, Sequence[str]], kind: Kind, response: str
) -> Iterator[_Test]:
    for levels, starts in groups.items():
        present = [start for start in starts if start in series]
        for names in [*((start,) for start in present), *([tuple(present)] if len(present) > 1 else [])]:
            tested = warming.pooled([series[name] for name in names])
            r = warming.CORRELATION if kind == "trials" else warming.correlation(tested)
            fit = warming.fit(tested, r) if r <= warming.HIGHEST else None
            if fit is not None:
                yield _Test(names, dict(levels), kind, response, fit)


def _row(test: _Test, p_holm: float, family: int, confidence: float) -> Trend:
    fit = test.fit
    detected = p_holm < warming.ALPHA
    change, least = fit.change_percent(detected, confidence), fit.least_factor(family)
    verdict: Verdict = _direction(test) if detected else "steady" if least <= STEADY_FACTOR else "too few"
    settles = fit.curve.settles if fit.curve.kind != "line" else None
    row = Trend(
        treatment=test.hard, start=test.starts[0] if len(test.starts) == 1 else count(len(test.starts), "start"),
        series=test.series, response=test.response, n=fit.n, starts=len(test.starts), change_percent=change,
        factor=math.exp(min(fit.change, 600.0)) if detected else None, settles=settles if detected else None,
        least_factor=least, p=fit.p, p_holm=p_holm, family=family, verdict=verdict, detail="",
    )  # fmt: skip
    steady = f"steady: a warm-up by a factor of {number(least, digits=3)} would have been found"
    return row.model_copy(update={"detail": moving(row) if detected else steady})


def _direction(test: _Test) -> Verdict:
    """The word for a trend that was found, by its response."""
    direction, up = responses.of(test.response).direction, test.fit.change > 0
    if direction is Direction.NEITHER:
        return "rising" if up else "falling"
    return "warming" if up is (direction is Direction.MORE_IS_FASTER) else "slowing"


def _too_few(frame: TrialFrame, response: str, unknown: Sequence[str], known: set[str], family: int) -> Trend:
    """The one row for all starts of which neither a trend nor steadiness can be shown."""
    rows = frame.values(response)
    every = len(unknown) + len(known)
    whose = "no start has" if not known else f"{len(unknown)} of {count(every, 'start')} {_have(len(unknown))}"
    return Trend(
        treatment={}, start=unknown[0] if len(unknown) == 1 else count(len(unknown), "start"), series="trials",
        response=response, n=rows.filter(rows["start"].is_in(list(unknown))).height, starts=len(unknown), family=family,
        verdict="too few", detail=f"{whose} enough trials to show whether it was still warming up",
    )  # fmt: skip


def _have(starts: int) -> str:
    return "does not have" if starts == 1 else "do not have"


def change_text(change: Estimate) -> str:
    """`+9.0% per trial [6, 12]`."""
    ends = (number(end, digits=2, trim=True) for end in (change.low, change.high))
    return f"{signed(change.value)}% per trial [{', '.join(ends)}]"


def moving(row: Trend) -> str:
    """A trend that was found, in words: `still warming: +9.0% per trial [6, 12]`."""
    change = row.change_percent
    if change is None or change.low is None or change.high is None or change.low <= 0 <= change.high:
        text = f"{MOVES[row.verdict]}: by a factor of {number(row.factor, digits=3)} in all"
    else:
        text = f"{MOVES[row.verdict]}: {change_text(change)}"
    if row.series == "seconds":
        return f"{text}, by the seconds within its trials"
    most = row.settles is not None and row.settles <= row.n / row.starts / 2
    return f"{text}, most of it in the first {_trials(row.settles)}" if most and row.settles is not None else text


def _trials(settles: float) -> str:
    return "trial" if settles <= 1 else f"{number(settles, digits=2, trim=True)} trials"


def found(rows: Sequence[Trend]) -> list[Trend]:
    """The trends to name: per hard levels one, of all starts before single ones, of trials before seconds."""
    named: dict[tuple[object, ...], Trend] = {}
    moved = [row for row in rows if row.verdict in MOVES]
    for row in sorted(moved, key=lambda one: (-one.starts, one.series == "seconds")):
        named.setdefault(cell_key(row.treatment), row)
    return list(named.values())


def first_rank(rows: Sequence[Trend]) -> list[str]:
    """The caveat that comes first: which starts still warmed up or slowed down, by how much; empty if none did."""
    named = found(rows)
    if not named:
        return []
    shown = named[:MOST_NAMED]
    labels = list(dict.fromkeys(label_of(row.response) for row in shown))
    own = len(labels) > 1
    clauses = [f"{f'{label_of(row.response)} of ' if own else ''}{_who(row)}: {moving(row)}" for row in shown]
    rest = f"; and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    head = "Not steady" if own else f"Not steady ({labels[0]})"
    return [f"{head}: {'; '.join(clauses)}{rest}. {_advice({row.verdict for row in named})}"]


def _advice(verdicts: set[Verdict]) -> str:
    """Effect of the trends of these verdicts on the means, and the cure; more warm-up helps only where it is one."""
    changes = "the level changes within starts, so that the mean depends on how many trials a start has."
    if "warming" not in verdicts:
        return f"T{changes[1:]}"
    mixed = verdicts != {"warming"}
    which, others = ("Trials that still warm up", f" Elsewhere {changes}") if mixed else ("Such trials", "")
    return (
        f"{which} do not measure a warm cluster: warm the servers for longer, or leave out more trials "
        f"(analysis.warm_up_trials).{others}"
    )


def _who(row: Trend) -> str:
    values = f"{row.n:,} {'values' if row.series == 'seconds' else 'trials'} of {count(row.starts, 'start')}"
    where = row.start if row.starts == 1 else ""
    return (
        f"{', '.join(filter(None, (label(row.treatment) if row.treatment else '', where))) or 'all starts'} ({values})"
    )


def too_few(rows: Sequence[Trend], response: str = "") -> list[str]:
    """Sentence on the starts of which neither a trend nor steadiness can be shown; empty if there is none."""
    return [f"{row.detail[:1].upper()}{row.detail[1:]}." for row in rows if row.verdict == "too few"]


def _of_context(context: Context) -> tuple[Trend, ...]:
    return trends(context.frame, context.response, context.confidence, context.seconds_of_constant_size)


STATISTIC = Statistic(
    name="trend",
    row=Trend,
    title="Trend of {response} within starts",
    section=Section.VALIDITY,
    compute=_of_context,
    sentences=too_few,
    order=25,
    sentence_order=75,
)
