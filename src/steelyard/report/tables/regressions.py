"""Tables of lines and laws over sizes."""

from __future__ import annotations

from typing import Final

from steelyard.analysis.inference.least_squares import Fit
from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.regression import Regression
from steelyard.analysis.treatments import label
from steelyard.format import NONE, number, p_value
from steelyard.report.data.presentation import View
from steelyard.report.tables.generic import Cell, ShownColumn, Table, estimate_cell, number_cell, plain

FORMS: Final = ("start means", "trials, as published")


def regressions(this: View) -> Table | None:
    """Slope, intercept, r, p and standard error: the published form and the start-level form."""
    fitted = this.results.of(Regression)
    if not fitted:
        return None
    unit = this.scale.unit
    columns = (
        ShownColumn("", numeric=False),
        ShownColumn("fitted to", numeric=False, term="form of a regression"),
        ShownColumn("n", about=meaning(Fit, "n")),
        ShownColumn("slope", f"{unit}/{'node' if this.axis == 'nodes' else 'step'}", about=meaning(Fit, "slope")),
        ShownColumn("std. error", unit, about=meaning(Fit, "std_err")),
        ShownColumn("intercept", unit, about=meaning(Fit, "intercept")),
        ShownColumn("r", about=meaning(Fit, "r")),
        ShownColumn("p", about=meaning(Fit, "p")),
    )
    rows: list[tuple[Cell, ...]] = []
    for regression in fitted:
        for form, fit in zip(FORMS, (regression.honest, regression.published), strict=True):
            if fit is not None:
                name = plain(label(regression.others), "" if form == FORMS[0] else "quiet")
                rows.append((name, plain(form), *_fit(this, fit)))
            elif form == FORMS[0]:
                rows.append((plain(label(regression.others)), plain(form), *[plain(NONE)] * 6))
    caption = (
        f"Linear regression of {this.results.response_label} on {this.positions.name}. "
        f"Brackets: {100 * this.results.confidence:g}% intervals."
    )
    notes = sorted({regression.note for regression in fitted if regression.note})
    return Table("regression-table", " ".join([caption, *notes]), columns, tuple(rows))


def _fit(this: View, fit: Fit) -> tuple[Cell, ...]:
    error = this.scale.of(fit.std_err)
    return (
        plain(fit.n),
        estimate_cell(this.scale.estimate(fit.slope)),
        Cell(number(error, digits=3), repr(error)),
        estimate_cell(this.scale.estimate(fit.intercept)),
        Cell(number(fit.r, spread=0.01), "" if fit.r is None else repr(fit.r)),
        Cell(p_value(fit.p), "" if fit.p is None else repr(fit.p)),
    )


def laws(this: View) -> Table | None:
    """Fitted scalability laws; None if none is fitted."""
    fitted = [law for law in this.results.of(LawFit) if not law.refusal]
    if not fitted:
        return None
    names = list(dict.fromkeys(name for law in fitted for name in law.parameters))
    columns = (
        ShownColumn("", numeric=False),
        ShownColumn("law", numeric=False, about=meaning(LawFit, "law")),
        ShownColumn("sizes", about=meaning(LawFit, "sizes")),
        ShownColumn("n", "starts", about=meaning(Fit, "n")),
        *(ShownColumn(name.removesuffix("_nodes"), about=meaning(LawFit, name)) for name in names),
        ShownColumn("AICc", about=meaning(LawFit, "aicc")),
        ShownColumn("peak", "nodes", about=meaning(LawFit, "peak_nodes")),
    )
    rows = tuple(
        (
            plain(label(law.others)),
            plain(law.law),
            plain(law.sizes),
            plain(law.n),
            *(estimate_cell(law.parameters.get(name)) for name in names),
            number_cell(law.aicc),
            estimate_cell(law.peak_nodes),
        )
        for law in fitted
    )
    return Table("laws", "Scalability laws fitted over cluster size.", columns, rows)
