"""Multiple regression over all factors: numeric ones as predictors, others as indicators (analysis of covariance).

Two levels of a split plot, as in `anova`: coefficients of hard-to-change factors from start means, about those of their
block where blocks are whole, those of the others from differences within a start; also all trials as if they were
independent. Tests are on logarithms, where a step of a factor multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from steelyard.analysis.frame import TrialFrame, numeric
from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.least_squares import Coefficients, Dependent, least_squares
from steelyard.analysis.row import IN_UNIT, Column, MeasuredRow, P
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.anova import LOGARITHMS, Scale, Stratum, blocked, mean_on, scales_of
from steelyard.heavy import pl, special
from steelyard.judging import t_interval
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import unit_of


class Coefficient(MeasuredRow):
    """One coefficient of a regression over several factors at once, or the reason why there is none."""

    form: Literal["published", "honest"]
    """Honest: each factor against the error of the level that was randomised. Published: over trials, counted as
    independent."""
    scale: Scale
    """Values fitted: logarithms of the means of a start, where all values are above 0, or values as measured. Where
    there are logarithms, p is theirs."""
    stratum: Stratum
    """Where the error comes from: differences between starts; differences of treatments within starts; trials."""
    term: str
    """Intercept, a numeric factor, or `factor = level`: that level against the first."""
    n: int
    """Values fitted: start means, means of a treatment in a start, or trials."""
    value: Annotated[
        Estimate | None,
        Column(unit=f"{IN_UNIT} per step of the factor, or from level to level; of logarithms as a factor"),
    ] = None
    """Coefficient: change of the response, all else equal; of logarithms, what a step multiplies it by."""
    std_err: Annotated[float | None, Column(unit="in its unit; of logarithms none", head="std. error")] = None
    """Standard error of the coefficient; of logarithms that of its logarithm."""
    p: P = None
    """p-value of t: no change per step."""
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
    for scale in (scales := scales_of(rows[response])):
        cells = rows.group_by("start", "block", *frame.names, maintain_order=True).agg(mean_on(scale, response))
        starts = cells.group_by("start", "block", *hard, maintain_order=True).agg(pl.col(response).mean())
        for stratum, factors, units in (("starts", hard, starts), ("within starts", easy, cells)):
            if factors:
                about = _Fitted(response, "honest", stratum, confidence, scale, tested=scale == scales[0])
                honest += _stratum(frame, units, factors, numbers, about)
    published = _Fitted(response, "published", "trials", confidence, note="trials are counted as independent")
    return (*honest, *published.fit(_columns(frame, rows, names, numbers), rows[response].to_list()))


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


def _stratum(
    frame: TrialFrame, units: pl.DataFrame, names: Sequence[str], numbers: Sequence[str], about: _Fitted
) -> Iterator[Coefficient]:
    """Fit over start means, about those of their block; or over the treatments of a start, about its own mean."""
    of_starts = about.common["stratum"] == "starts"
    repeats = max(units.group_by(names).len()["len"].to_list()) if of_starts else units["start"].n_unique()
    if repeats < 2:
        why = "one start: how an effect changes from start to start is not known"
        if of_starts:
            why = f"each combination of {' and '.join(names)} was started once, so there is no error term for them"
        if about.tested:
            yield about.refused(names, units.height, why)
        return
    shared = "start" if not of_starts else "block" if blocked(units, names) else ""
    response = str(about.common["response"])
    columns = _columns(frame, units, names, numbers)
    table = pl.DataFrame({**columns, response: units[response]})
    if shared:
        table = table.with_columns(units[shared].alias(shared))
        table = table.with_columns(pl.exclude(shared) - pl.exclude(shared).mean().over(shared))
        about.note = f"each {shared} about its own mean"
    less = units[shared].n_unique() if shared else 0
    yield from about.fit({name: table[name].to_list() for name in columns}, table[response].to_list(), less)


class _Fitted:
    """Fit of the coefficients of one stratum."""

    def __init__(
        self, response: str, form: Any, stratum: Any, confidence: float, scale: Scale = "as measured",
        tested: bool = True, note: str = "",
    ) -> None:  # fmt: skip
        self.common = {
            "form": form, "stratum": stratum, "scale": scale, "response": response, "unit": unit_of(response)
        }  # fmt: skip
        self.confidence, self.tested, self.note = confidence, tested, note

    def refused(self, names: Sequence[str], n: int, why: str) -> Coefficient:
        return Coefficient.model_validate({**self.common, "term": ", ".join(names), "n": n, "note": why})

    def fit(self, columns: Columns, y: Sequence[float], less: int = 0) -> Iterator[Coefficient]:
        """One coefficient per column; `less`: number of means removed from y, without which an intercept is fitted."""
        names = list(columns)
        degrees = len(y) - len(names) - (less or 1)
        if degrees < 1:
            why = f"{len(y)} values are too few for {len(names)} coefficients and an error"
            yield self.refused(names, len(y), why)
            return
        try:
            solution = least_squares(list(columns.values()), y, constant=not less)
        except Dependent as error:
            gone = names[error.column - (0 if less else 1)]
            why = f"{gone} varied together with the factors before it: they cannot be separated"
            yield self.refused(names, len(y), why)
            return
        # Means removed from y and x before use degrees of freedom too.
        widen = (solution.degrees / degrees) ** 0.5
        for place, name in enumerate(names if less else [INTERCEPT, *names]):
            yield self._coefficient(solution, place, name, degrees, widen)

    def _coefficient(self, solution: Coefficients, place: int, name: str, degrees: int, widen: float) -> Coefficient:
        value, error = solution.values[place], solution.std_errors[place] * widen
        half = t_interval.t_quantile(self.confidence, degrees) * error
        unit, on = str(self.common["unit"]), ""
        make: Callable[..., Estimate] = Estimate.around
        if self.common["scale"] == LOGARITHMS:
            make, on = estimates.exponential, "on logarithms, "
            unit = unit if name == INTERCEPT else "times"
        unit = unit if name == INTERCEPT or " = " in name else f"{unit} per step"
        method = f"{on}least squares over all factors of the stratum, t interval with {degrees} degrees of freedom"
        estimate = make(value, half, unit, self.confidence, solution.n, method)
        p = float(2 * special.stdtr(degrees, -abs(value) / error)) if error > 0 and self.tested else None
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
    compute=lambda context: coefficients(context.sized, context.response, context.confidence),
    order=60,
    published_form=True,
)
