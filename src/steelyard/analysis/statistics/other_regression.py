"""Linear regression over every numeric factor other than the size."""

from __future__ import annotations

from steelyard.analysis.frame import TrialFrame, numeric
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.regression import Regression, regressions

FEWEST_LEVELS = 3
"""With two levels there is a comparison instead; the size factor has a line with two or more levels, as published."""


class OtherRegression(Regression):
    """The same over a factor that is not the size."""


def other_regressions(
    frame: TrialFrame, response: str, size: str | None, confidence: float = 0.95
) -> tuple[OtherRegression, ...]:
    """A line over every other numeric factor with three levels or more."""
    return tuple(
        OtherRegression.model_validate(dict(one))
        for name in numeric(frame, FEWEST_LEVELS)
        if name != size
        for one in regressions(frame, response, name, confidence)
    )


STATISTIC = Statistic(
    name="other_regression",
    row=OtherRegression,
    title="Straight lines of {response} over the other numeric factors",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: other_regressions(context.frame, context.response, context.size, context.confidence),
    order=50,
)
