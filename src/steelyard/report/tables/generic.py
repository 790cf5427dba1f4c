"""Generic tables of the page: results as cells, each column with its unit and definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.analysis.comparisons.level_ratios import centre
from steelyard.analysis.inference.least_squares import Fit
from steelyard.analysis.narrative.answer_table import AnswerRow, verdict_text
from steelyard.analysis.results import Results
from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.regression import Regression
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.statistics.warm_up import WarmUp
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital, change_value, interval_text
from steelyard.format import NONE, count, listed, moment, note_letter, number, p_value, with_interval
from steelyard.judging.trial_responses import response_of
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.trial import TrialRecord
from steelyard.report.basics.definitions import OF_THE_PAGE
from steelyard.report.data.presentation import View

FORMS: Final = ("start means", "trials, as published")
WARM_UP: Final = "warm-up"
WITH_INTERVAL: Final = ("response_ms_p50", "response_ms_p95", "response_ms_p99")
"""Responses that a figure draws with intervals, so that the table shows intervals too."""


@dataclass(frozen=True)
class Column:
    """Head of a column. `term` is the key of its definition; `numeric` columns are set to the right."""

    name: str
    unit: str = ""
    term: str = ""
    numeric: bool = True
    about: str = ""
    """The definition itself, if a row type or a response has one."""

    @property
    def definition(self) -> str:
        """Definition of the column's numbers."""
        return self.about or OF_THE_PAGE.get(self.term or self.name, "")


@dataclass(frozen=True)
class Cell:
    """The shown text, and the raw value for sorting and downloads."""

    text: str
    raw: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page. `name` is its anchor and the name of its download."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    """Title of the fold over the table; empty: the first sentence of its caption."""

    def without_empty_columns(self) -> Table:
        """The table without columns that have no value in any row."""
        filled = [
            place
            for place in range(len(self.columns))
            if not self.rows or any(row[place].text not in ("", NONE) for row in self.rows)
        ]
        columns = tuple(self.columns[place] for place in filled)
        return replace(self, columns=columns, rows=tuple(tuple(row[place] for place in filled) for row in self.rows))

    @property
    def called(self) -> str:
        """The title, or the first part of the caption."""
        return self.title or self.caption.partition(";")[0].partition(". ")[0].rstrip(".")


def _plain(text: object, tone: str = "") -> Cell:
    return Cell(str(text), tone=tone)


def _number(value: float | None, *, spread: float | None = None) -> Cell:
    text = number(value, spread=spread)
    raw = "" if value is None else repr(float(value))
    return Cell(text, raw if raw != text else "")


def _estimate(estimate: Estimate | None, *, spread: float | None = None) -> Cell:
    """An estimate; `spread` sets the digits of one that has no interval."""
    if estimate is None:
        return _plain(NONE)
    text = with_interval(estimate) if estimate.low is not None else number(estimate.value, spread=spread)
    return Cell(text, repr(estimate.value))


def _levels(results: Results, treatment: Mapping[str, Level]) -> list[Cell]:
    return [_plain(treatment.get(name, NONE)) for name in results.factors]


def _factor_columns(results: Results) -> list[Column]:
    return [
        Column(name, term="factor", numeric=all(isinstance(level, int | float) for level in levels))
        for name, levels in results.factors.items()
    ]


def _letters(exclusions: Sequence[Exclusion]) -> dict[str, str]:
    """One letter per reason, for cells such as `1a 2b`."""
    return {exclusion.reason: note_letter(place) for place, exclusion in enumerate(exclusions)}


def comparisons(this: View) -> Table | None:
    """Each level against its baseline: change, interval, verdict."""
    compared = this.results.of(Comparison)
    if not compared:
        return None
    floors = any(comparison.floor_percent is not None for comparison in compared)
    columns = (
        Column("", numeric=False),
        Column("compared", numeric=False, term="comparison"),
        Column("change", about=meaning(Comparison, "change_percent")),
        Column("interval", term="interval"),
        Column("n", "trials", about=meaning(Summary, "n")),
        Column("starts", about=meaning(Summary, "starts")),
        *((Column("noise floor", "%", about=meaning(Comparison, "floor_percent")),) if floors else ()),
        Column("p", "Holm", about=meaning(Comparison, "p_holm")),
        Column("more", "starts", about=meaning(Comparison, "more_starts")),
        Column("verdict", numeric=False, term="verdict of a level"),
    )
    rows = []
    for comparison in compared:
        rows.append(
            (
                _plain(label(comparison.others)),
                _plain(f"{comparison.factor} {comparison.baseline} → {comparison.level}"),
                Cell(change_value(comparison.ratio, comparison.response), repr(comparison.change_percent.value)),
                _plain(interval_text(comparison.ratio) or NONE),
                _plain(f"{comparison.n_baseline} → {comparison.n_level}"),
                _plain(f"{comparison.starts_baseline} → {comparison.starts_level}"),
                *((_floor(comparison),) if floors else ()),
                Cell(p_value(comparison.p_holm), "" if comparison.p_holm is None else repr(comparison.p_holm)),
                _plain(NONE if comparison.more_starts is None else comparison.more_starts),
                _plain(
                    verdict_text(comparison),
                    "strong" if comparison.verdict not in ("undecided", "descriptive") else "quiet",
                ),
            )
        )
    return Table(
        "comparisons", f"Change of {this.results.response_label} between levels, all else equal.", columns, tuple(rows)
    )


def _floor(comparison: Comparison) -> Cell:
    floor = comparison.floor_percent
    return Cell(NONE) if floor is None else Cell(number(floor.value, digits=2), repr(floor.value))


def regressions(this: View) -> Table | None:
    """Slope, intercept, r, p and standard error: the published form beside the start-level form."""
    fitted = this.results.of(Regression)
    if not fitted:
        return None
    unit = this.scale.unit
    columns = (
        Column("", numeric=False),
        Column("fitted to", numeric=False, term="form of a regression"),
        Column("n", about=meaning(Fit, "n")),
        Column("slope", f"{unit}/{'node' if this.axis == 'nodes' else 'step'}", about=meaning(Fit, "slope")),
        Column("std. error", unit, about=meaning(Fit, "std_err")),
        Column("intercept", unit, about=meaning(Fit, "intercept")),
        Column("r", about=meaning(Fit, "r")),
        Column("p", about=meaning(Fit, "p")),
    )
    rows: list[tuple[Cell, ...]] = []
    for regression in fitted:
        for form, fit in zip(FORMS, (regression.honest, regression.published), strict=True):
            if fit is not None:
                name = _plain(label(regression.others), "" if form == FORMS[0] else "quiet")
                rows.append((name, _plain(form), *_fit(this, fit)))
            elif form == FORMS[0]:
                rows.append((_plain(label(regression.others)), _plain(form), *[_plain(NONE)] * 6))
    caption = (
        f"Linear regression of {this.results.response_label} on {this.positions.name}. "
        f"Brackets: {100 * this.results.confidence:g}% intervals."
    )
    notes = sorted({regression.note for regression in fitted if regression.note})
    return Table("regression-table", " ".join([caption, *notes]), columns, tuple(rows))


def _fit(this: View, fit: Fit) -> tuple[Cell, ...]:
    error = this.scale.of(fit.std_err)
    return (
        _plain(fit.n),
        _estimate(this.scale.estimate(fit.slope)),
        Cell(number(error, digits=3), repr(error)),
        _estimate(this.scale.estimate(fit.intercept)),
        Cell(number(fit.r, spread=0.01), "" if fit.r is None else repr(fit.r)),
        Cell(p_value(fit.p), "" if fit.p is None else repr(fit.p)),
    )


def cells(this: View) -> Table:
    """Every cell of the study with its n, its exclusions and its summary."""
    unit = this.scale.unit
    columns = (
        *_factor_columns(this.results),
        Column("n", "trials", about=meaning(Summary, "n")),
        Column("starts", about=meaning(Summary, "starts")),
        Column("left out", term="left out"),
        Column("geometric mean", unit, about=meaning(AnswerRow, "value")),
        Column("sd", unit, about=meaning(Summary, "sd")),
        Column("min", unit, about=meaning(Summary, "min")),
        Column("25%", unit, about=meaning(Summary, "q1")),
        Column("median", unit, about=meaning(Summary, "median")),
        Column("75%", unit, about=meaning(Summary, "q3")),
        Column("max", unit, about=meaning(Summary, "max")),
    )
    letters = _letters(this.results.of(Exclusion))
    rows = []
    for summary in this.results.main(Summary):
        sd = this.scale.of(summary.sd.value if summary.sd else None)
        starts = summary.start_means
        mean = centre(starts, summary.unit, this.results.confidence) if starts else None
        values, upper = (
            [_estimate(this.scale.estimate(value) if value else None, spread=sd) for value in pair]
            for pair in ((summary.min, summary.q1), (summary.q3, summary.max))
        )
        rows.append(
            (
                *_levels(this.results, summary.treatment),
                _plain(summary.n, "" if summary.n else "alert"),
                _plain(summary.starts),
                _plain(" ".join(f"{why.trials}{letters[why.reason]}" for why in summary.exclusions) or NONE),
                _estimate(this.scale.estimate(mean) if mean else None, spread=sd),
                _estimate(this.scale.estimate(summary.sd) if summary.sd else None, spread=sd),
                *values,
                _estimate(this.scale.estimate(summary.median) if summary.median else None, spread=sd),
                *upper,
            )
        )
    caption = (
        f"{capital(this.results.response_label)} of every treatment. The geometric mean is over start means, as "
        "the answer quotes it; it has an interval from three starts on. All else is over used trials."
    )
    if letters:
        caption += f" Left out: {'; '.join(f'{letter} – {reason}' for reason, letter in letters.items())}."
    return Table("cells", caption, columns, tuple(rows))


def response_medians(this: View) -> Table | None:
    """Medians of every other response, one row per treatment; None without other responses."""
    summaries = this.results.others(Summary)
    present = {one.response for one in summaries}
    shown = [one for one in responses.every().values() if one.on_page and one.name in present]
    names = [one.name for one in shown]
    if not names:
        return None
    units = {one.response: one.unit for one in summaries}
    columns = (
        *_factor_columns(this.results),
        *(Column(one.called, _short(units[one.name]), about=one.definition) for one in shown),
    )
    by_cell = {(tuple(one.treatment.items()), one.response): one for one in summaries}
    rows = []
    for summary in this.results.main(Summary):
        row = list(_levels(this.results, summary.treatment))
        for name in names:
            medians = by_cell.get((tuple(summary.treatment.items()), name))
            middle = medians.median_of_starts if medians else None
            if middle is not None and name in WITH_INTERVAL:
                row.append(_estimate(middle))
                continue
            value = middle.value if middle else None
            row.append(Cell(number(value, digits=3), "" if value is None else repr(value)))
        rows.append(tuple(row))
    return Table(
        "responses",
        "Medians of start medians of each trial's own value, so p99 is not that of all operations together, which the "
        "percentile curves have. Intervals, from six starts on, where a figure draws them; "
        "mean to max are of response time. All responses are in the tables to download.",
        columns,
        tuple(rows),
    )


def _short(unit: str) -> str:
    return unit.replace("operations", "op").replace("operation", "op")


def warm_ups(this: View) -> Table | None:
    """The fixed cut beside the detected one, for each treatment and start."""
    starts = this.results.of(WarmUp)
    if not any(one.detected_cut for one in starts):
        return None
    unit = this.scale.unit
    columns = (
        *_factor_columns(this.results),
        Column("start", numeric=False, about=meaning(Point, "start")),
        Column("n", "trials", about=meaning(Summary, "n")),
        Column("fixed cut", "trials", about=meaning(WarmUp, "fixed_cut")),
        Column("detected cut", "trials", about=meaning(WarmUp, "detected_cut")),
        Column("found", numeric=False, about=meaning(WarmUp, "verdict")),
        Column("mean of all", unit, about=meaning(Summary, "mean")),
        Column("after fixed cut", unit, about=meaning(Summary, "mean")),
        Column("after detected cut", unit, about=meaning(Summary, "mean")),
    )
    rows = []
    for warm_up in starts:
        means = [
            _number(this.scale.of(mean.value)) if mean is not None else _plain(NONE)
            for mean in (warm_up.mean_all, warm_up.mean_fixed, warm_up.mean_detected)
        ]
        cut = NONE if warm_up.detected_cut is None else warm_up.detected_cut
        rows.append(
            (
                *_levels(this.results, warm_up.treatment),
                _plain(warm_up.start),
                _plain(warm_up.n),
                _plain(warm_up.fixed_cut),
                _plain(cut),
                _plain(warm_up.verdict),
                *means,
            )
        )
    return Table(
        "warm-up-table", "Warm-up of each treatment in each start: fixed count and detection.", columns, tuple(rows)
    )


def warm_up_words(this: View) -> str:
    """Why there is no table of warm-ups; empty where there is one, or nothing to detect in."""
    starts = this.results.of(WarmUp)
    if not starts or any(one.detected_cut for one in starts):
        return ""
    fixed = sorted({one.fixed_cut for one in starts})
    first = "trial" if fixed == [1] else f"{listed([str(one) for one in fixed], 'or')} trials"
    cut = f"the study drops the first {first} of each treatment in a start"
    short = sum(one.detected_cut is None for one in starts)
    if short == len(starts):
        return f"Over trials: {cut}; every series is too short for detection (MSER-5) to say where it would cut."
    tested = f"detection (MSER-5) would cut none of {count(len(starts), 'series', 'series')}"
    return f"Over trials: {cut}; {tested}" + (f", {short} of which are too short to say." if short else ".")


def laws(this: View) -> Table | None:
    """Fitted scalability laws; None if none is fitted."""
    fitted = [law for law in this.results.of(LawFit) if not law.refusal]
    if not fitted:
        return None
    names = list(dict.fromkeys(name for law in fitted for name in law.parameters))
    columns = (
        Column("", numeric=False),
        Column("law", numeric=False, about=meaning(LawFit, "law")),
        Column("sizes", about=meaning(LawFit, "sizes")),
        Column("n", "starts", about=meaning(Fit, "n")),
        *(Column(name.removesuffix("_nodes"), about=meaning(LawFit, name)) for name in names),
        Column("AICc", about=meaning(LawFit, "aicc")),
        Column("peak", "nodes", about=meaning(LawFit, "peak_nodes")),
    )
    rows = tuple(
        (
            _plain(label(law.others)),
            _plain(law.law),
            _plain(law.sizes),
            _plain(law.n),
            *(_estimate(law.parameters.get(name)) for name in names),
            _number(law.aicc),
            _estimate(law.peak_nodes),
        )
        for law in fitted
    )
    return Table("laws", "Scalability laws fitted over cluster size.", columns, rows)


def trials(this: View, records: Sequence[TrialRecord]) -> Table:
    """Every attempt: its place in the order, its responses, and whether it counts."""
    points = {(point.trial_id, point.attempt): point for point in this.results.of(Point)}
    unit = this.scale.unit
    columns = (
        Column("#", about=meaning(Point, "position")),
        Column("trial", numeric=False, about=meaning(Point, "trial_id")),
        Column("attempt", about=meaning(Point, "attempt")),
        *_factor_columns(this.results),
        Column("block", about=meaning(Point, "block")),
        Column("start", about=meaning(Point, "start")),
        Column("order", "in start", about=meaning(Point, "order_in_start")),
        Column("began", "UTC", numeric=False, term="began"),
        Column(this.results.response_label, unit, about=responses.of(this.results.response).definition),
        Column("throughput", "op/s", about=responses.of("throughput_per_s").definition),
        Column("p50", "ms", about=responses.of("response_ms_p50").definition),
        Column("p99", "ms", about=responses.of("response_ms_p99").definition),
        Column("errors", about=responses.of("errors").definition),
        Column("counts", numeric=False, term="counts"),
    )
    rows = []
    for place, record in enumerate(records, start=1):
        point = points.get(record.key)
        values = record.responses
        main = values.of(this.results.response)
        rows.append(
            (
                _plain(place),
                _plain(record.id),
                _plain(record.attempt),
                *_levels(this.results, record.treatment),
                _plain(record.block),
                _plain(record.start_replicate),
                _plain(record.order_in_start),
                Cell(moment(record.begun_s)[5:19]),
                # Without the raw numbers, which the downloads have: there are many rows.
                *(
                    _plain(number(value))
                    for value in (
                        this.scale.of(main),
                        values.throughput_per_s,
                        response_of(record, "response_ms_p50"),
                        response_of(record, "response_ms_p99"),
                    )
                ),
                _plain(values.errors),
                _state(record, point),
            )
        )
    return Table("trials", f"Every attempt in order of time, n = {len(records)}.", columns, tuple(rows))


def _state(record: TrialRecord, point: Any) -> Cell:
    if record.verdict.outcome != "valid":
        return Cell(record.verdict.outcome, tone="alert")
    if record.control:
        return Cell("control", tone="quiet")
    if point is not None and point.warm_up:
        return Cell(WARM_UP, tone="quiet")
    return Cell("used")
