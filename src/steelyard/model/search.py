"""Search for the highest rate that meets a limit: its rules, its windows and its result, as stored in `trial.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from steelyard.model.objective import Limit
from steelyard.model.value import Value, later

SATURATION = "saturation"
"""The objective that asks for the highest throughput in place of a limit."""
SATURATED_BELOW = 0.95
"""Saturation: a window whose throughput is a smaller share of its offered rate is beyond it."""
SATURATED_ERRORS = 0.01
"""Saturation: a window with a greater share of failed operations is beyond it."""
THROUGHPUT_FRACTION, ERROR_FRACTION = "throughput_fraction", "error_fraction"
"""Values of a window that are not responses of a trial: throughput over offered rate; failed over all operations."""
MOST_USED = 20.0
"""Most that a window uses of its limit: how far beyond it lies says nothing more."""


class SearchRules(Value):
    """Goal and limits of a search."""

    limits: tuple[Limit, ...]
    """Limits that a rate has to meet together."""
    saturation: bool = False
    """Whether the answer is the throughput at the rate, not the rate: the limits are those of saturation."""
    first_rate_per_s: float
    step_per_s: float | None = later(None)
    """By how much the rate rises until a window misses a limit; None: it doubles."""
    lowest_rate_per_s: float
    """The search gives up below it."""
    highest_rate_per_s: float
    """The search ends with a lower bound at it."""
    window_s: float
    """Seconds of a window."""
    settle_s: float
    """Seconds of the same rate before a window."""
    needed_operations: int = 0
    """Operations that the percentiles of the limits need: a window at a low rate lasts until it has them."""
    longest_window_s: float
    precision: float
    """The search ends when the half width of its interval is at most this share of the rate."""
    most_windows: int
    confidence: float = 0.95


class Window(Value):
    """One window of a search: a rate, and what was measured there."""

    name: str
    """Name of its phase in the records of the engine."""
    rate_per_s: float
    """Offered rate."""
    begun_at: float | None = later(None)
    """Begin of its first second with an operation, seconds since the epoch by the conductor's clock, also in stretched
    time; None in records of earlier versions, and without operations."""
    seconds: float
    """Length, without the settle time before it."""
    operations: int = 0
    errors: int = 0
    throughput_per_s: float | None = None
    values: dict[str, float | None] = Field(default_factory=dict)
    """Measured values of what the limits name; the mean, the median and the 99th percentile of response time in ms; the
    fractions of throughput and of errors."""
    met: bool
    """Whether all limits are met."""
    used: float
    """The largest share of a limit that is used, above 1 where a limit is not met: operations beyond a percentile's
    limit over those that it allows; of other limits, the measured value over the limit. `met` goes by the percentile
    itself, so close to 1 the two may differ."""
    spread: float
    """Standard error of `used`, from the spread between batches of the window; 0 if the limit is not on a
    percentile, and without operations."""
    generator: str = ""
    """Failure of the load generator, in words; such a window says nothing about the system."""


class NextWindow(Value):
    """The decision to measure one more window."""

    rate_per_s: float
    window_s: float
    settle_s: float
    rest_s: float = 0.0
    """Seconds without any load before it."""


class SearchResult(Value):
    """Outcome of a search."""

    outcome: Literal["found", "at-least", "not-found", "no-rate"]
    """found: `rate_per_s` with its interval.

    at-least: `rate_per_s` is a lower bound, as the search ended before a limit was missed, for one of three causes: the
    load generator failed in several windows in a row, the highest rate allowed meets the limits, or the windows ran out
    while the rate was still being doubled.

    not-found: the windows ran out before a rate met the limits; lower rates are allowed and were not tried.

    no-rate: the lowest rate allowed misses a limit."""
    rate_per_s: float | None = None
    """The answer, operations/s; None if no rate is known to meet the limits."""
    low_per_s: float | None = None
    high_per_s: float | None = None
    """The interval within the trial: how well its windows fix the rate. It holds no difference between trials."""
    knee_per_s: float | None = None
    """Of the rates tried, the one with the largest rate over mean response time; None if it is the lowest or the
    highest."""
    windows: int
    reason: str
    """Why the search ended, in words."""


class Search(Value):
    """A search, as stored with its trial."""

    rules: SearchRules
    windows: tuple[Window, ...] = ()
    result: SearchResult | None = None
    """None if the search was interrupted."""
