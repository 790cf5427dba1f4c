"""Regression plots: trials over a numeric factor with a least-squares line or a scalability law."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from steelyard.analysis.inference.least_squares import Fit
from steelyard.analysis.statistics.law import NAMES, LawFit, drawn
from steelyard.analysis.statistics.regression import Regression
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital
from steelyard.format import listed, with_interval
from steelyard.model.responses import label_of
from steelyard.report.data.chart_rows import law_curve, law_scale, n_range, thinned, thinning, tip, trial_dots
from steelyard.report.data.presentation import Figure, View, panels_of
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import Dot, FittedPoint, regression_chart
from steelyard.report.draw.scales import from_zero


def regressions(this: View) -> Figure | None:
    """Trials over the numeric factor with the least-squares line; None without a fit."""
    panels = []
    amounts: list[int] = []
    honest, most = 0, 1
    ends = sorted(this.positions.places)
    reach = [ends[0] - this.positions.step * 0.2, ends[-1] + this.positions.step * 0.2]
    trials = trial_dots(this)
    for regression in this.results.of(Regression):
        fit = regression.honest or regression.published
        name = label(regression.others)
        dots = [dot for dot in trials if dot.series == name]
        if fit is None or not dots:
            continue
        honest += regression.honest is not None
        amounts.append(len(dots))
        line = _line(this, fit, reach)
        drawn, step = thinned(dots)
        most = max(most, step)
        y = measured(from_zero(value for value in (*(dot.y for dot in drawn), *(end.y for end in line))), this.y_title)
        panels.append((name, partial(regression_chart, drawn, line, this.positions, y, this.colour(name))))
    if not panels:
        return None
    form = "start means; the table also has the published form, fitted to trials" if honest else "trials"
    caption = (
        f"Least-squares line of {this.results.response_label} on {this.positions.name}, fitted to {form}. "
        f"Each trial is a dot, set side by side within its {'size' if this.axis == 'nodes' else 'level'}; n = "
        f"{n_range(amounts)} "
        f"trials per panel.{thinning(most)} Each panel has its own axis, from 0."
    )
    title = f"{capital(this.results.response_label)} on {this.positions.name}"
    return Figure("regression", title, caption, panels_of(panels), zoom="each")


def _line(this: View, fit: Fit, reach: Sequence[float]) -> list[FittedPoint]:
    """Both ends of a fitted line, cut at 0 where the axis ends."""
    slope, intercept = fit.slope.value, fit.intercept.value
    ends = []
    for place in reach:
        inside = -intercept / slope if intercept + slope * place < 0 and slope else place
        ends.append(FittedPoint(inside, max(intercept + slope * inside, 0.0) * this.scale.factor))
    return ends


def laws(this: View) -> Figure | None:
    """Fitted scalability laws with their bands; None if too few sizes are measured."""
    panels, fitted = [], []
    title = ""
    for law in drawn(this.results.of(LawFit)):
        shown = law_scale(this, law)
        if shown is None:
            continue
        fitted.append(law)
        per, scale = shown
        title = f"{label_of(law.response)}, {scale.unit}"
        dots = [
            Dot(
                this.level(one.treatment),
                "",
                middle.value,
                tip=tip(label(one.treatment), f"mean {with_interval(middle)} {scale.unit}"),
            )
            for one in (*this.results.main(Summary), *this.results.others(Summary))
            if one.response == law.response and this.of(one.treatment) == label(law.others) and one.mean is not None
            for middle in [scale.estimate(one.mean_of_starts or one.mean)]
        ]
        curve, name = law_curve(law, per, scale), label(law.others)
        y = measured(from_zero([*(dot.y for dot in dots), *(end for one in curve for end in (one.y, one.high))]), title)
        panels.append((name, partial(regression_chart, dots, curve, this.positions, y, this.colour(name))))
    if not panels:
        return None
    caption = (
        f"{capital(listed(sorted({NAMES[law.law] for law in fitted}, reverse=True)))} fitted to "
        f"{title.partition(',')[0]} over {this.positions.name}, n = {n_range(law.n for law in fitted)} start means per "
        "panel, with its "
        f"pointwise {100 * this.results.confidence:g}% band; dots are means of start means. The axis starts at 0."
    )
    return Figure("laws", "Scalability laws", caption, panels_of(panels), zoom="each")
