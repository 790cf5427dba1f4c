"""Whether the numbers moved: within a trial, over the trials of a start, over the study; and the warm-up cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.course import Course
from steelyard.analysis.statistics.steady import Steady
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.statistics.warm_up import WarmUp
from steelyard.analysis.treatments import label
from steelyard.format import NONE, count, listed, number
from steelyard.report.data.presentation import View
from steelyard.report.tables.analysed import grid
from steelyard.report.tables.generic import Cell, ShownColumn, Table, factor_columns, level_cells, number_cell, plain

UNKNOWN = "none"
STATES = ("steady", "warm-up", "drifting", UNKNOWN)


def warm_ups(this: View) -> Table | None:
    """The fixed cut and the detected one, for each treatment and start."""
    starts = this.results.of(WarmUp)
    if not any(one.detected_cut for one in starts):
        return None
    unit = this.scale.unit
    columns = (
        *factor_columns(this.results),
        ShownColumn("start", numeric=False, about=meaning(Point, "start")),
        ShownColumn("n", "trials", about=meaning(Summary, "n")),
        ShownColumn("fixed cut", "trials", about=meaning(WarmUp, "fixed_cut")),
        ShownColumn("detected cut", "trials", about=meaning(WarmUp, "detected_cut")),
        ShownColumn("found", numeric=False, about=meaning(WarmUp, "verdict")),
        ShownColumn("mean of all", unit, about=meaning(Summary, "mean")),
        ShownColumn("after fixed cut", unit, about=meaning(Summary, "mean")),
        ShownColumn("after detected cut", unit, about=meaning(Summary, "mean")),
    )
    rows = []
    for warm_up in starts:
        means = [
            number_cell(this.scale.of(mean.value)) if mean is not None else plain(NONE)
            for mean in (warm_up.mean_all, warm_up.mean_fixed, warm_up.mean_detected)
        ]
        cut = NONE if warm_up.detected_cut is None else warm_up.detected_cut
        rows.append(
            (
                *level_cells(this.results, warm_up.treatment),
                plain(warm_up.start),
                plain(warm_up.n),
                plain(warm_up.fixed_cut),
                plain(cut),
                plain(warm_up.verdict),
                *means,
            )
        )
    return Table(
        "warm-up-table", "Warm-up of each treatment in each start: fixed count and detection.", columns, tuple(rows)
    )


def warm_up_words(this: View) -> str:
    """Trials that the fixed count drops, and whether MSER-5 would drop any; empty without a trial."""
    starts = this.results.of(WarmUp)
    if not starts:
        return ""
    fixed = sorted({one.fixed_cut for one in starts})
    first = "trial" if fixed[-1] == 1 else f"{listed([str(one) for one in fixed if one], 'or')} trials"
    some = "" if fixed[0] else " of some starts"
    cut = f"drops the first {first} of each treatment in a start{some}" if any(fixed) else "drops no trial"
    short, cuts = (sum(one.detected_cut is None for one in starts), sum(bool(one.detected_cut) for one in starts))
    if short == len(starts):
        return f"Warm-up: the study {cut}; every series is too short for detection (MSER-5) to say where it would cut."
    tested = f"detection (MSER-5) would cut {cuts or 'none'} of {count(len(starts), 'series', 'series')}"
    return f"Warm-up: the study {cut}; {tested}" + (f", {short} of which are too short to say." if short else ".")


def steady(this: View) -> Table | None:
    """Number of used trials with and without a steady state, by treatment."""
    groups: dict[str, list[Steady]] = {}
    for trial in this.results.of(Steady):
        groups.setdefault(label(trial.treatment), []).append(trial)
    if not groups or all(trial.verdict == UNKNOWN for trial in this.results.of(Steady)):
        return None
    states = [state for state in STATES if any(trial.verdict == state for trial in this.results.of(Steady))]
    columns = (
        ShownColumn("treatment", numeric=False, term="factor"),
        ShownColumn("n", "trials", about=meaning(Summary, "n")),
        *(ShownColumn(state, "trials", term="steady state of a trial") for state in states),
        ShownColumn("cut", "s, median", about=meaning(Steady, "detected_cut")),
        ShownColumn("greatest cut", "s", about=meaning(Steady, "detected_cut")),
    )
    rows = []
    for treatment, group in groups.items():
        cuts = [trial.detected_cut for trial in group if trial.detected_cut is not None]
        rows.append(
            (
                Cell(treatment),
                Cell(str(len(group))),
                *(Cell(str(sum(trial.verdict == state for trial in group))) for state in states),
                Cell(number(float(median(cuts)), trim=True) if cuts else NONE),
                Cell(str(max(cuts)) if cuts else NONE),
            )
        )
    reasons = sorted({trial.detail for trial in this.results.of(Steady) if trial.verdict == "none"})
    caption = (
        "Steady state within each used trial, by change points over the seconds of its mean response time: how many "
        "trials were steady from their first second, began at another level, drifted, or showed no steady state."
    )
    if reasons:
        caption += f" None: {reasons[0]}{'' if len(reasons) == 1 else ', and the like'}."
    return Table("steady", caption, columns, tuple(rows), "Steady state within the trials")


def levels(this: View) -> Iterator[Table | str]:
    """Whether the numbers moved, within each trial, over the trials of a start, and over the starts of the study: a
    table each, or why there is none."""
    trials = this.results.of(Steady)
    none = f"Within a trial: none of {count(len(trials), 'used trial')} could be tested for a steady state"
    yield steady(this) or _why_not(none, trials)
    yield grid(this, Trend) or _why_not("Over the trials of a start", this.results.of(Trend))
    yield grid(this, Course) or _why_not("Over the study", this.results.of(Course))


def _why_not(level: str, rows: Sequence[Trend | Course | Steady]) -> str:
    details = [row.detail for row in rows if row.detail]
    return f"{': '.join([level, *details[:1]])}." if rows else ""
