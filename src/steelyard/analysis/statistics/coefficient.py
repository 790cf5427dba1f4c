"""Multiple regression over all factors: numeric ones as predictors, others as indicators (analysis of covariance).

Two levels of a split plot, as in `anova`: coefficients of hard-to-change factors from start means, those of the others
from differences within a start; also all trials as if they were independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from steelyard.analysis.frame import TrialFrame, numeric
from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.least_squares import Coefficients, Dependent, least_squares
from steelyard.analysis.row import IN_UNIT, Column, P, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.heavy import pl, stats
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.study import Level


class Coefficient(Row):
    """One coefficient of a regression over several factors at once, or the reason why there is none."""

    form: Literal["published", "honest"]
    """Honest: each factor against the error of the level that was randomised. Published: over trials, counted as
    independent."""
    stratum: Literal["starts", "within starts", "trials"]
    """Where the error comes from: differences between starts; differences of treatments within starts; trials."""
    term: str
    """Intercept, a numeric factor, or `factor = level`: that level against the first."""
    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""
    n: int
    """Values fitted: start means, means of a treatment in a start, or trials."""
    value: Annotated[Estimate | None, Column(unit=f"{IN_UNIT} per step of the factor, or from level to level")] = None
    """Coefficient: change of the response, all else equal."""
    std_err: Annotated[float | None, Column(unit="in its unit", head="std. error")] = None
    """Standard error of the coefficient."""
    p: P = None
    """p-value of t."""
    error_df: int | None = None
    """Degrees of freedom of the error."""
    r_squared: Annotated[float | None, Column(unit="0 to 1")] = None
    """Share of the sum of squares of the stratum that its factors explain together."""
    note: str = ""
    """Why there is none, or what was taken out."""


INTERCEPT = "intercept"
FEWEST_NUMERIC = 2
"""One numeric factor is covered by the straight lines of `regression`."""

Columns = Mapping[str, Sequence[float]]


def coefficients(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Coefficient, ...]:
    """Coefficients of every factor; empty if fewer than two numeric factors vary."""
    rows = frame.values(response).with_columns(pl.col(response).cast(pl.Float64))
    rows = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in frame.names)) if frame.names else rows
    names = [name for name in frame.names if rows[name].n_unique() > 1]
    numbers = [name for name in numeric(frame) if name in names]
    if len(numbers) < FEWEST_NUMERIC:
        return ()
    hard = [name for name in names if name in frame.hard]
    easy = [name for name in names if name not in frame.hard]
    honest: list[Coefficient] = []
    if hard:
        honest += _between(frame, rows, response, hard, numbers, confidence)
    if easy:
        honest += _within(frame, rows, response, easy, numbers, confidence)
    fitted = _Fitted(response, "published", "trials", confidence, "trials are counted as independent")
    return (*honest, *fitted.fit(_columns(frame, rows, names, numbers), rows[response].to_list()))


def _columns(frame: TrialFrame, rows: pl.DataFrame, names: Sequence[str], numbers: Sequence[str]) -> Columns:
    columns: dict[str, list[float]] = {}
    for name in names:
        levels = rows[name].to_list()
        if name in numbers:
            columns[name] = [float(level) for level in frame.numbered(rows, name)[name]]
        else:
            present: list[Level] = [level for level in frame.factors[name] if level in levels or str(level) in levels]
            for level in present[1:]:
                columns[f"{name} = {level}"] = [float(str(one) == str(level)) for one in levels]
    return columns


def _between(
    frame: TrialFrame, rows: pl.DataFrame, response: str, hard: Sequence[str], numbers: Sequence[str],
    confidence: float,
) -> Iterator[Coefficient]:  # fmt: skip
    """Fit over start means, each the mean over its treatments; refused if no combination was started twice."""
    easy = [name for name in frame.names if name not in hard]
    cells = rows.group_by("start", *hard, *easy, maintain_order=True).agg(pl.col(response).mean())
    starts = cells.group_by("start", *hard, maintain_order=True).agg(pl.col(response).mean())
    fitted = _Fitted(response, "honest", "starts", confidence, "")
    if max(starts.group_by(hard).len()["len"].to_list(), default=0) < 2:
        yield fitted.refused(hard, starts.height, (
            f"each combination of {' and '.join(hard)} was started once, so there is no error term for them"
        ))  # fmt: skip
        return
    yield from fitted.fit(_columns(frame, starts, hard, numbers), starts[response].to_list())


def _within(
    frame: TrialFrame, rows: pl.DataFrame, response: str, easy: Sequence[str], numbers: Sequence[str],
    confidence: float,
) -> Iterator[Coefficient]:  # fmt: skip
    """Fit over the means of each treatment in each start, centred by start."""
    keys = ["start", *easy]
    cells = rows.group_by(keys, maintain_order=True).agg(pl.col(response).mean())
    starts = cells["start"].n_unique()
    columns = _columns(frame, cells, easy, numbers)
    table = pl.DataFrame({"start": cells["start"], **columns, response: cells[response]})
    table = table.with_columns(pl.exclude("start") - pl.exclude("start").mean().over("start"))
    fitted = _Fitted(response, "honest", "within starts", confidence, "each start about its own mean")
    if starts < 2:
        why = "one start: how an effect changes from start to start is not known"
        yield fitted.refused(easy, cells.height, why)
        return
    yield from fitted.fit({name: table[name].to_list() for name in columns}, table[response].to_list(), less=starts)


class _Fitted:
    """Fit of the coefficients of one stratum."""

    def __init__(self, response: str, form: Any, stratum: Any, confidence: float, note: str) -> None:
        self.common = {"form": form, "stratum": stratum, "response": response, "unit": unit_of(response)}
        self.confidence, self.note = confidence, note

    def refused(self, names: Sequence[str], n: int, why: str) -> Coefficient:
        return Coefficient.model_validate({**self.common, "term": ", ".join(names), "n": n, "note": why})

    def fit(self, columns: Columns, y: Sequence[float], less: int = 0) -> Iterator[Coefficient]:
        """One coefficient per column; `less`: number of means removed from y, without which an intercept is fitted."""
        names = list(columns)
        degrees = len(y) - len(names) - (less or 1)
        if degrees < 1:
            why = f"{len(y)} values cannot carry {len(names)} coefficients and an error"
            yield self.refused(names, len(y), why)
            return
        try:
            solution = least_squares(list(columns.values()), y, constant=not less)
        except Dependent as error:
            gone = names[error.column - (0 if less else 1)]
            why = f"{gone} varied together with the factors before it: they cannot be told apart"
            yield self.refused(names, len(y), why)
            return
        # Means removed from y and x before use degrees of freedom too.
        widen = (solution.degrees / degrees) ** 0.5
        for place, name in enumerate(names if less else [INTERCEPT, *names]):
            yield self._coefficient(solution, place, name, degrees, widen)

    def _coefficient(self, solution: Coefficients, place: int, name: str, degrees: int, widen: float) -> Coefficient:
        value, error = solution.values[place], solution.std_errors[place] * widen
        half = estimates.t_quantile(self.confidence, degrees) * error
        unit = str(self.common["unit"])
        estimate = Estimate(
            value=value, low=value - half, high=value + half, confidence=self.confidence, n=solution.n,
            unit=unit if name == INTERCEPT or " = " in name else f"{unit} per step",
            method=f"least squares over all factors of the stratum, t interval with {degrees} degrees of freedom",
        )  # fmt: skip
        p = float(2 * stats.t.sf(abs(value) / error, degrees)) if error > 0 else None
        return Coefficient.model_validate(
            {**self.common, "term": name, "n": solution.n, "value": estimate, "std_err": error, "p": p,
             "error_df": degrees, "r_squared": solution.r_squared, "note": self.note}
        )  # fmt: skip


STATISTIC = Statistic(
    name="coefficient",
    row=Coefficient,
    title="All factors at once: coefficients for {response}",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: coefficients(context.frame, context.response, context.confidence),
    order=60,
)
