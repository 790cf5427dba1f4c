"""The tables of the page: results as cells, each column with its unit and its definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.analysis.results import Comparison, Exclusion, Fit, Results, label
from steelyard.format import NONE, interval, moment, number, p_value, with_interval
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.report.basics.definitions import DEFINITIONS
from steelyard.report.data.presentation import View

FORMS: Final = ("start means", "trials, as published")
WARM_UP: Final = "warm-up"
SHOWN_RESPONSES: Final = {
    "execution_time_ms": "execution time",
    "throughput_per_s": "throughput",
    "response_ms_mean": "mean",
    "response_ms_p50": "p50",
    "response_ms_p95": "p95",
    "response_ms_p99": "p99",
    "response_ms_max": "max",
    "service_ms_p99": "service p99",
    "generator_cpu_us_per_operation": "generator CPU",
}
"""Responses of the page's table and their column heads."""
WITH_INTERVAL: Final = ("response_ms_p50", "response_ms_p95", "response_ms_p99")
"""Those that a figure draws with intervals, which the table then has too."""


@dataclass(frozen=True)
class Column:
    """Head of a column. `term` is the key of its definition; `numeric` columns are set to the right."""

    name: str
    unit: str = ""
    term: str = ""
    numeric: bool = True
    about: str = ""
    """The definition itself, where the analysis has it."""

    @property
    def definition(self) -> str:
        """What the numbers of the column are."""
        return self.about or DEFINITIONS.get(self.term or self.name, "")


@dataclass(frozen=True)
class Cell:
    """What is shown, and the raw value by which it sorts and which the download has."""

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
    """What a fold over the table is called; empty: the first sentence of its caption."""

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
    """A letter for each reason, so that a cell can say `1a 2b`."""
    return {one.reason: chr(ord("a") + index % 26) for index, one in enumerate(exclusions)}


def comparisons(this: View) -> Table | None:
    """Each level against its baseline: the change, its interval, the verdict."""
    found = this.results.comparisons
    if not found:
        return None
    floors = any(one.floor_percent is not None for one in found)
    columns = (
        Column("", numeric=False),
        Column("compared", numeric=False, term="comparison"),
        Column("change", "%", term="change"),
        Column("interval", "%", term="interval"),
        Column("n", "trials", term="n"),
        Column("starts", term="starts"),
        *((Column("noise floor", "%", term="noise floor of a comparison"),) if floors else ()),
        Column("p", "Holm", term="p with Holm's correction"),
        Column("more", "starts", term="starts that would decide"),
        Column("verdict", numeric=False, term="verdict of a comparison"),
    )
    rows = []
    for one in found:
        spread = None
        if one.change_percent.low is not None and one.change_percent.high is not None:
            spread = (one.change_percent.high - one.change_percent.low) / 2
        sign = "+" if one.change_percent.value > 0 else ""
        rows.append(
            (
                _plain(label(one.others)),
                _plain(f"{one.factor} {one.baseline} → {one.level}"),
                Cell(sign + number(one.change_percent.value, spread=spread, digits=3), repr(one.change_percent.value)),
                _plain(interval(one.change_percent) or NONE),
                _plain(f"{one.n_baseline} → {one.n_level}"),
                _plain(f"{one.starts_baseline} → {one.starts_level}"),
                *((_floor(one),) if floors else ()),
                Cell(p_value(one.p_holm), "" if one.p_holm is None else repr(one.p_holm)),
                _plain(NONE if one.more_starts is None else one.more_starts),
                _plain(one.verdict, "strong" if one.verdict not in ("undecided", "descriptive") else "quiet"),
            )
        )
    return Table(
        "comparisons", f"Change of {this.results.response_label} between levels, all else equal.", columns, tuple(rows)
    )


def _floor(one: Comparison) -> Cell:
    floor = one.floor_percent
    return Cell(NONE) if floor is None else Cell(number(floor.value, digits=2), repr(floor.value))


def regressions(this: View) -> Table | None:
    """Slope, intercept, r, p and standard error: the published form beside the start-level form."""
    found = this.results.regressions
    if not found:
        return None
    unit = this.scale.unit
    columns = (
        Column("", numeric=False),
        Column("fitted to", numeric=False, term="form of a regression"),
        Column("n", term="n of a fit"),
        Column("slope", f"{unit}/{'node' if this.axis == 'nodes' else 'step'}", term="slope"),
        Column("std. error", unit, term="standard error"),
        Column("intercept", unit, term="intercept"),
        Column("r", term="r"),
        Column("p", term="p"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        for form, fit in zip(FORMS, (one.honest, one.published), strict=True):
            if fit is not None:
                name = _plain(label(one.others), "" if form == FORMS[0] else "quiet")
                rows.append((name, _plain(form), *_fit(this, fit)))
            elif form == FORMS[0]:
                rows.append((_plain(label(one.others)), _plain(form), *[_plain(NONE)] * 6))
    caption = (
        f"Linear regression of {this.results.response_label} on {this.positions.name}. "
        f"Brackets: {100 * this.results.confidence:g}% intervals."
    )
    notes = sorted({one.note for one in found if one.note})
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
        Column("n", "trials", term="n"),
        Column("starts", term="starts"),
        Column("left out", term="left out"),
        Column("mean", unit, term="mean"),
        Column("sd", unit, term="sd"),
        Column("min", unit, term="min"),
        Column("25%", unit, term="quartiles"),
        Column("median", unit, term="median"),
        Column("75%", unit, term="quartiles"),
        Column("max", unit, term="max"),
    )
    letters = _letters(this.results.exclusions)
    several = any(one.mean_of_starts is not None for one in this.results.summaries)
    rows = []
    for one in this.results.summaries:
        sd = this.scale.of(one.sd.value if one.sd else None)
        mean = one.mean if not several else one.mean_of_starts or _without_interval(one.mean)
        values, upper = (
            [_estimate(this.scale.estimate(value) if value else None, spread=sd) for value in pair]
            for pair in ((one.min, one.q1), (one.q3, one.max))
        )
        rows.append(
            (
                *_levels(this.results, one.treatment),
                _plain(one.n, "" if one.n else "alert"),
                _plain(one.starts),
                _plain(" ".join(f"{why.trials}{letters[why.reason]}" for why in one.exclusions) or NONE),
                _estimate(this.scale.estimate(mean) if mean else None, spread=sd),
                _estimate(this.scale.estimate(one.sd) if one.sd else None),
                *values,
                _estimate(this.scale.estimate(one.median) if one.median else None, spread=sd),
                *upper,
            )
        )
    level = "trials, its interval for these starts only"
    if several:
        level = "start means, its interval for new starts (none with one start)"
    caption = (
        f"{this.results.response_label.capitalize()} of every treatment. The mean is over {level}; all else is over "
        "used "
        "trials."
    )
    if letters:
        caption += f" Left out: {'; '.join(f'{letter} – {reason}' for reason, letter in letters.items())}."
    return Table("cells", caption, columns, tuple(rows))


def _without_interval(estimate: Estimate | None) -> Estimate | None:
    """The bare number: an interval over trials of one start must not stand beside those over starts."""
    return None if estimate is None else estimate.model_copy(update={"low": None, "high": None})


def responses(this: View) -> Table | None:
    """Medians of every other response, one row a treatment."""
    found = this.results.other_summaries
    present = {one.response for one in found}
    names = [name for name in SHOWN_RESPONSES if name in present]
    if not names:
        return None
    units = {one.response: one.unit for one in found}
    columns = (
        *_factor_columns(this.results),
        *(Column(SHOWN_RESPONSES[name], _short(units[name]), term=name) for name in names),
    )
    by_cell = {(tuple(one.treatment.items()), one.response): one for one in found}
    rows = []
    for summary in this.results.summaries:
        row = list(_levels(this.results, summary.treatment))
        for name in names:
            one = by_cell.get((tuple(summary.treatment.items()), name))
            middle = one.median if one else None
            if middle is not None and name in WITH_INTERVAL:
                row.append(_estimate(middle))
                continue
            value = middle.value if middle else None
            row.append(Cell(number(value, digits=3), "" if value is None else repr(value)))
        rows.append(tuple(row))
    return Table(
        "responses",
        "Medians over used trials, n as in the table of every cell, with their intervals where a figure draws them; "
        "mean to max are of response time. All responses are in the tables to download.",
        columns,
        tuple(rows),
    )


def _short(unit: str) -> str:
    return unit.replace("operations", "op").replace("operation", "op")


def warm_ups(this: View) -> Table | None:
    """The fixed cut beside the detected one, for each treatment and start."""
    found = this.results.warm_ups
    if not found:
        return None
    unit = this.scale.unit
    columns = (
        *_factor_columns(this.results),
        Column("start", numeric=False, term="start"),
        Column("n", "trials", term="n"),
        Column("fixed cut", "trials", term="fixed cut"),
        Column("detected cut", "trials", term="detected cut"),
        Column("found", numeric=False, term="verdict of warm-up"),
        Column("mean of all", unit, term="mean"),
        Column("after fixed cut", unit, term="mean"),
        Column("after detected cut", unit, term="mean"),
    )
    rows = []
    for one in found:
        means = [
            _number(this.scale.of(mean.value)) if mean is not None else _plain(NONE)
            for mean in (one.mean_all, one.mean_fixed, one.mean_detected)
        ]
        cut = NONE if one.detected_cut is None else one.detected_cut
        rows.append(
            (
                *_levels(this.results, one.treatment),
                _plain(one.start),
                _plain(one.n),
                _plain(one.fixed_cut),
                _plain(cut),
                _plain(one.verdict),
                *means,
            )
        )
    return Table(
        "warm-up-table", "Warm-up of each treatment in each start: fixed count and detection.", columns, tuple(rows)
    )


def laws(this: View) -> Table | None:
    """Fitted scalability laws, or why none was fitted."""
    fitted = [one for one in this.results.laws if not one.refusal]
    if not fitted:
        return None
    names = list(dict.fromkeys(name for one in fitted for name in one.parameters))
    columns = (
        Column("", numeric=False),
        Column("law", numeric=False, term="law"),
        Column("sizes"),
        Column("n", "starts", term="n of a fit"),
        *(Column(name, term=name) for name in names),
        Column("AICc", term="AICc"),
        Column("peak", "nodes", term="peak"),
    )
    rows = tuple(
        (
            _plain(label(one.others)),
            _plain(one.law),
            _plain(one.sizes),
            _plain(one.n),
            *(_estimate(one.parameters.get(name)) for name in names),
            _number(one.aicc),
            _estimate(one.peak_nodes),
        )
        for one in fitted
    )
    return Table("laws", "Scalability laws fitted over cluster size.", columns, rows)


def trials(this: View, records: Sequence[TrialRecord]) -> Table:
    """Every attempt: where it stands in the order, what it gave, whether it counts."""
    points = {(point.trial_id, point.attempt): point for point in this.results.points}
    unit = this.scale.unit
    columns = (
        Column("#", term="position"),
        Column("trial", numeric=False, term="trial"),
        Column("attempt", term="attempt"),
        *_factor_columns(this.results),
        Column("block", term="block"),
        Column("start", term="start"),
        Column("order", "in start", term="order in start"),
        Column("began", "UTC", numeric=False, term="began"),
        Column(this.results.response_label, unit, term=this.results.response),
        Column("throughput", "op/s", term="throughput_per_s"),
        Column("p50", "ms", term="response_ms_p50"),
        Column("p99", "ms", term="response_ms_p99"),
        Column("errors", term="errors"),
        Column("counts", numeric=False, term="counts"),
    )
    rows = []
    for place, record in enumerate(records, start=1):
        point = points.get((record.id, record.attempt))
        found = record.responses
        main: float | None = getattr(found, this.results.response)
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
                        found.throughput_per_s,
                        found.response_ms_p50,
                        found.response_ms_p99,
                    )
                ),
                _plain(found.errors),
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
