"""Derived level: the level of a setting that other trials of the study give. Section `derived` of a study, and its
value in the record of each trial that used it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steelyard.model.one_of import OneOf
from steelyard.model.responses import main_names
from steelyard.model.value import Value


class DerivedLevel(Value):
    """How trials without a policy give the threshold of trials with one: the mean of a response over their starts. They
    are those of the treatment whose policy is `none` and whose other settings are the same, and come first."""

    response: Annotated[str, OneOf(main_names)] = "cpu_percent_mean"
    """Response whose mean it is: the metric that the policy follows."""
    least: int = Field(default=5, ge=2, le=1000)
    """Fewest valid trials that give it. With fewer, the trials that need it are not run."""
    add: float = 0.0
    """What is added to the mean, in the response's unit."""


class Derived(Value):
    """A derived level, and where it comes from."""

    level: str
    """Its name in the study."""
    response: str
    mean: float
    """Mean of the response over the starts of the trials."""
    add: float
    """What was added to it."""
    trials: tuple[tuple[str, int], ...]
    """Ids and attempts of the trials, in order of time."""
    acted: int | None = None
    """In how many of these trials the policy would have acted at this threshold, by replay before the first trial that
    used it."""

    @property
    def value(self) -> float:
        """The level."""
        return self.mean + self.add
