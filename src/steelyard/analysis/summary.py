"""Summaries of one response per treatment, medians over sizes, box plots and the points beside them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from steelyard.analysis import estimates, spreads
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import (
    UNITS,
    Box,
    Exclusion,
    Point,
    SizeLine,
    SizePoint,
    Summary,
    Treatment,
    label,
)
from steelyard.model.study import Level

WHISKER = 1.5
"""Whiskers end at the last point within so many interquartile ranges of the box (Tukey 1977)."""


def start_means(rows: pl.DataFrame, response: str) -> list[tuple[str, float, int]]:
    """(start, mean of its trials, number of its trials), in order of time."""
    found = rows.group_by("start", maintain_order=True).agg(
        pl.col(response).cast(pl.Float64).mean().alias("mean"), pl.len().alias("n")
    )
    return [(str(start), float(mean), int(n)) for start, mean, n in found.iter_rows()]


def exclusions(frame: TrialFrame, response: str, treatment: Mapping[str, Level] | None = None) -> tuple[Exclusion, ...]:
    """What is left out of estimates of this response, by reason."""
    return tuple(
        Exclusion(reason=reason, trials=trials) for reason, trials in frame.exclusions(response, treatment).items()
    )


def summarise(frame: TrialFrame, response: str, treatment: Treatment, confidence: float = 0.95) -> Summary:
    """Summary of one treatment over its used trials; two levels of interval where there are several starts."""
    unit = UNITS[response]
    rows = frame.values(response, treatment)
    values = [float(value) for value in rows[response]]
    means = [mean for _, mean, _ in start_means(rows, response)]
    left_out = exclusions(frame, response, treatment)
    common = {
        "treatment": treatment,
        "response": response,
        "unit": unit,
        "n": len(values),
        "starts": len(means),
        "excluded": sum(exclusion.trials for exclusion in left_out),
        "exclusions": left_out,
        "system_faults": int(frame.where(treatment)["system_fault"].sum()),
    }
    if not values:
        return Summary(**common, notes=("no valid trial is left",))
    return Summary(
        **common,
        mean=estimates.mean(values, unit, confidence, "trials"),
        mean_z=estimates.mean_z(values, unit, confidence, "trials"),
        mean_of_starts=estimates.mean(means, unit, confidence, "start means") if len(means) > 1 else None,
        sd=spreads.standard_deviation(values, unit, confidence),
        min=spreads.extreme(min(values), len(values), unit, confidence, "least"),
        q1=spreads.quartile(values, 0.25, unit, confidence),
        median=estimates.median(values, unit, confidence),
        q3=spreads.quartile(values, 0.75, unit, confidence),
        max=spreads.extreme(max(values), len(values), unit, confidence, "greatest"),
        range=spreads.extreme(max(values) - min(values), len(values), unit, confidence, "greatest less least"),
        start_means=tuple(means),
        notes=_notes(len(values), len(means)),
    )


def _notes(n: int, starts: int) -> tuple[str, ...]:
    if starts == 1:
        return ("one start: the interval speaks for this start only, not for another cluster started in the same way",)
    if n > starts:
        return (
            f"{n} trials are repeated measures of {starts} starts: the interval over start means is the one that holds "
            "for another start",
        )
    return ()


def summaries(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Summary, ...]:
    """One summary per treatment, in the order of the factors' levels."""
    return tuple(summarise(frame, response, treatment, confidence) for treatment in frame.treatments())


def size_lines(frame: TrialFrame, response: str, factor: str, confidence: float = 0.95) -> tuple[SizeLine, ...]:
    """Medians over a numeric factor, one line per combination of the other factors."""
    return tuple(
        SizeLine(
            factor=factor,
            others=others,
            label=label(others),
            response=response,
            unit=UNITS[response],
            points=tuple(_size_points(frame, response, factor, others, confidence)),
        )
        for others in frame.others(factor)
    )


def _size_points(
    frame: TrialFrame, response: str, factor: str, others: Treatment, confidence: float
) -> Iterator[SizePoint]:
    for level in sorted(float(level) for level in frame.factors[factor]):
        summary = summarise(frame, response, {**others, factor: level}, confidence)
        centre = summary.mean_of_starts or summary.mean
        if summary.median is not None and centre is not None:
            yield SizePoint(level=level, median=summary.median, mean=centre, n=summary.n, starts=summary.starts)


def boxes(frame: TrialFrame, response: str) -> tuple[Box, ...]:
    """Box-plot data of every treatment that has a used trial, all points included."""
    found = []
    for treatment in frame.treatments():
        rows = frame.values(response, treatment)
        values = [float(value) for value in rows[response]]
        if not values:
            continue
        q1, q2, q3 = (estimates.quantile(values, fraction) for fraction in (0.25, 0.5, 0.75))
        inside = [value for value in values if q1 - WHISKER * (q3 - q1) <= value <= q3 + WHISKER * (q3 - q1)]
        found.append(
            Box(
                treatment=treatment,
                response=response,
                unit=UNITS[response],
                n=len(values),
                starts=rows["start"].n_unique(),
                q1=q1,
                median=q2,
                q3=q3,
                whisker_low=min(inside, default=q1),
                whisker_high=max(inside, default=q3),
                mean=sum(values) / len(values),
                sd=estimates.deviation(values) if len(values) > 1 else None,
                values=tuple(values),
            )
        )
    return tuple(found)


def points(frame: TrialFrame, response: str) -> tuple[Point, ...]:
    """Every trial with a value of the response, in order of time, marked as used, warm-up, control or not valid."""
    rows = frame.data.filter(pl.col(response).is_not_null())
    if not rows.height:
        return ()
    first_s = float(frame.data["begun_s"].to_list()[0])
    return tuple(_point(row, response, frame.names, first_s) for row in rows.iter_rows(named=True))


def _point(row: Mapping[str, object], response: str, factors: Sequence[str], first_s: float) -> Point:
    kept = ("trial_id", "attempt", "start", "start_replicate", "block", "order_in_start", "order_of_treatment",
            "position", "used", "warm_up", "control", "outcome", "begun_s")  # fmt: skip
    treatment = {name: row[name] for name in factors if row[name] is not None}
    begun_s = float(str(row["begun_s"]))
    return Point.model_validate(
        dict(
            itertools.chain(
                ((name, row[name]) for name in kept),
                (("treatment", treatment), ("value", row[response]), ("elapsed_h", (begun_s - first_s) / 3600)),
            )
        )
    )
