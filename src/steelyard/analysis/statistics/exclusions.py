"""Excluded trials, by reason."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.model.named_level import Level


class Exclusion(Row):
    """Trials left out for one reason."""

    reason: str
    """Why the trials were left out."""
    trials: int
    """Trials (attempts)."""


def exclusions(frame: TrialFrame, response: str, treatment: Mapping[str, Level] | None = None) -> tuple[Exclusion, ...]:
    """Number of trials excluded from estimates of this response, by reason."""
    return tuple(
        Exclusion(reason=reason, trials=trials) for reason, trials in frame.exclusions(response, treatment).items()
    )


STATISTIC = Statistic(
    name="exclusions",
    row=Exclusion,
    title="Attempts left out, with reasons",
    section=Section.VALIDITY,
    compute=lambda context: exclusions(context.frame, context.response),
    order=20,
)
