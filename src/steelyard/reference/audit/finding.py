"""Findings of an audit, and the number of checks of each kind, so that an absence of findings means something."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from pydantic import Field

from steelyard.model import responses
from steelyard.model.value import Value
from steelyard.reference.printed import Printed
from steelyard.reference.rounding import Interval

Weight = Literal["contradiction", "remark"]

KINDS: Mapping[str, str] = {
    "count": "the count is the one that the design says",
    "order": "minimum, percentiles and maximum rise: min <= median <= p95 <= p99 <= max",
    "mean": "the mean lies between the smallest and the largest that the order statistics allow",
    "range": "range = max - min; interquartile range = third quartile - first",
    "deviation": "the standard deviation is possible for count, range, quartiles and mean",
    "two groups": "the cell does not fall into two groups of values",
    "whole numbers": "mean and standard deviation are possible for whole numbers",
    "standard error": "standard error = standard deviation / sqrt(count)",
    "variation": "coefficient of variation = standard deviation / mean",
    "pooled count": "the overall count is the sum of its cells'",
    "pooled mean": "the overall mean is the weighted mean of its cells'",
    "pooled deviation": "the overall standard deviation is that of its cells pooled",
    "pooled order": "overall min, quartiles and max lie where those of its cells put them",
    "effect size": "Cohen's d follows from means and standard deviations",
    "slope": "the slope follows from the cells' means and counts",
    "intercept": "the intercept follows from the cells; of a 0/1 effect it is the baseline's mean",
    "correlation": "r follows from the cells' counts, means and standard deviations",
    "slope's error": "the standard error follows from the cells, and slope / error = t = r sqrt((n-2)/(1-r^2))",
    "p-value": "p follows from t with n - 2 degrees of freedom",
    "sign": "slope and r have the same sign",
    "no data": "a result is printed where there are data, and only there",
    "ratio": "the ratio follows from the summaries",
    "difference": "the difference follows from the summaries",
    "percentage": "the percentage or change follows from the numbers",
    "throughput": "throughput = operations / time",
    "speed-up": "speed-up = time of the baseline / time",
    "efficiency": "efficiency = speed-up / nodes (threads, cores)",
    "share": "share = part / whole, and a part is not above its whole",
    "product": "the product follows from its factors",
    "bounds": "the number lies within what its definition or the design allows",
    "copied": "no block of rows repeats another's numbers to the last digit",
}
"""Kind of check to the statement that holds if there is no finding."""
UNITS: Final = {"percent": "%", "ms": "ms", "s": "s", "gb": "GB", "kb": "KB", "mb": "MB"}
"""Parts of a name that are a unit, as people write it."""
WORDS: Final = {"ram": "RAM", "cpu": "CPU", "mbit": "Mbit", "std": "standard deviation", "sd": "standard deviation",
                "se": "standard error", "err": "error", "cv": "coefficient of variation", "cohens": "Cohen's",
                "hedges": "Hedges'"}  # fmt: skip
NAMES: Final = {"std_err": "standard error of the slope", "p_value": "p-value", "r_value": "r"}
OF_NAMES: Final = ("metric", "response")
"""Columns whose levels are names of columns themselves."""


class AuditFinding(Value):
    """One number that contradicts the others, or that is misleading."""

    kind: str
    weight: Weight
    """A contradiction is impossible; a remark is possible but misleading."""
    table: str
    """Shipped table or file, and the number of the printed table if the file gives it."""
    line: int
    """Line of the number, or of its cell's first number, in the CSV file."""
    cell: dict[str, str]
    column: str
    printed: str
    should_be: str
    """The range that the other numbers allow, in words, rounding included."""
    low: float | None = None
    high: float | None = None
    """Ends of the range that the other numbers allow; None if unbounded."""
    off_by: float | None = None
    """Distance from the printed interval to the range that the other numbers allow; positive: too large."""
    because: str
    """The numbers behind the range, and the formula."""


DUST = 1e-12


class Place(NamedTuple):
    """Location of a number."""

    table: str
    line: int
    cell: Mapping[str, str]
    lines: Mapping[str, int] = {}
    """Line of each number by its column, where they are on their own lines."""


class Audit(Value):
    """Findings in one or more tables, and counts of checks."""

    name: str
    findings: tuple[AuditFinding, ...]
    made: dict[str, int]
    """Kind to number of checks made."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """Reason why possible checks were not made, to their number."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Role of each column in a file."""
    form: str = ""
    """Layout and separator of a file, as it was read."""


class Ledger:
    """Collects checks and findings; every check function writes to it. Pure."""

    def __init__(self) -> None:
        self.findings: list[AuditFinding] = []
        self.made: dict[str, int] = {}
        self.left_out: dict[str, int] = {}
        self.used: set[str] = set()
        """Columns of which a number took part in a check."""

    def skip(self, why: str) -> None:
        """Count a check that could not be made."""
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def holds(self, kind: str, *columns: str) -> None:
        """Count a check that found nothing, of the numbers in these columns."""
        self.made[kind] = self.made.get(kind, 0) + 1
        self.used.update(columns)

    def weigh(
        self,
        kind: str,
        place: Place,
        column: str,
        printed: Printed,
        should: Interval,
        because: str,
        *,
        values: float = 0.0,
        by: Iterable[str] = (),
    ) -> bool:
        """Check whether the printed number meets its range; add a finding if not. Returns whether it does.

        A number that was not printed (blank, nan) is not checked and counts as met. `values`: the largest of the
        summarised values, if the number comes from their differences: anything below 1e-12 of it is rounding error.
        `by`: the columns that the range comes from."""
        if printed.interval is None:
            return True
        self.holds(kind, column, *by)
        near = Interval(should.low - DUST * values, should.high + DUST * values)
        if should.empty or printed.interval.meets(near):
            return True
        self.add(kind, "contradiction", place, column, printed, should, because)
        return False

    def add(
        self,
        kind: str,
        weight: Weight,
        place: Place,
        column: str,
        printed: Printed,
        should: Interval | str,
        because: str,
    ) -> None:
        """Add a finding; `should` is text if it is not an interval. Does not count the check."""
        ends = should if isinstance(should, Interval) else None
        off = None if ends is None or printed.interval is None else ends.gap(printed.interval)
        self.findings.append(
            AuditFinding(
                kind=kind,
                weight=weight,
                table=place.table,
                line=place.lines.get(column, place.line),
                cell=dict(place.cell),
                column=column,
                printed=printed.text,
                should_be=should if isinstance(should, str) else words(should),
                low=_finite(ends and ends.low),
                high=_finite(ends and ends.high),
                off_by=_finite(off),
                because=because,
            )
        )

    def audit(self, name: str) -> Audit:
        """All findings so far, contradictions first, in the order of the kinds."""
        order = list(KINDS)
        ranked = sorted(
            self.findings, key=lambda one: (one.weight != "contradiction", one.table, order.index(one.kind))
        )
        counts = {kind: self.made[kind] for kind in KINDS if kind in self.made}
        return Audit(name=name, findings=tuple(ranked), made=counts, left_out=self.left_out)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def figure(value: float) -> str:
    """A number with as many digits as an audit needs: four, without an exponent below 10 million."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.4g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e7 else text


def words(allowed: Interval) -> str:
    """An interval in words."""
    if allowed.low == allowed.high:
        return figure(allowed.low)
    if not math.isfinite(allowed.high):
        return f"at least {figure(allowed.low)}"
    if not math.isfinite(allowed.low):
        return f"at most {figure(allowed.high)}"
    low, high = figure(allowed.low), figure(allowed.high)
    return low if low == high else f"{low} to {high}"


def column_label(name: str) -> str:
    """The label of a column of a shipped table or a file; what has no underscore is shown as it is printed there."""
    if name in NAMES or "_" not in name:
        return NAMES.get(name, name)
    if name in responses.every():
        response = responses.of(name)
        return f"{response.label} ({response.unit})" if response.unit else response.label
    parts = name.split("_")
    # `requests_per_s`: the unit is part of the words.
    units = [] if "per" in parts else [part for part in parts if part.lower() in UNITS]
    words = " ".join(WORDS.get(part, part) for part in parts if part not in units)
    return f"{words} ({UNITS[units[-1].lower()]})" if units and words else words or name


def cell_words(cell: Mapping[str, str]) -> str:
    """The cell of a number: `nodes before 5, RAM (GB) 1`; levels that the table leaves blank are left out."""
    return ", ".join(
        f"{column_label(name)} {column_label(level) if name in OF_NAMES else level}"
        for name, level in cell.items()
        if level
    )
