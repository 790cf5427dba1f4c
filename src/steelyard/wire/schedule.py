"""Schedules of an order: when operations are due.

The definitions match `crates/steelyard-wire/src/schedule.rs`. Rates are over all shares; `threads` and `in_flight` are
one process's: at most this many operations are unanswered at once, the others wait and are sent late, never skipped.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steelyard.model.value import Value, later

Arrivals = Literal["even", "poisson"]
"""even: one whenever the integrated rate reaches the next whole number; poisson: independent of each other."""


class Closed(Value):
    """Each of `threads` sends its next operation when the previous one is answered."""

    kind: Literal["closed"] = "closed"
    threads: int = Field(ge=1)


class Steady(Value):
    """One rate: evenly spaced (constant), or with exponential gaps of mean 1 / `rate_per_s` (poisson)."""

    kind: Literal["constant", "poisson"]
    rate_per_s: float = Field(gt=0)
    in_flight: int = Field(ge=1)


class Varying(Value):
    """A rate that changes over time."""

    in_flight: int = Field(ge=1)
    arrivals: Arrivals = later("even")


class Ramp(Varying):
    """A rate that changes linearly from one value to another within `ramp_s`, and stays there."""

    kind: Literal["ramp"] = "ramp"
    from_per_s: float = Field(ge=0)
    to_per_s: float = Field(ge=0)
    ramp_s: float = Field(gt=0)


class Steps(Varying):
    """Each rate for `step_s`, in order; the last one stays."""

    kind: Literal["steps"] = "steps"
    rates_per_s: tuple[Annotated[float, Field(ge=0)], ...] = Field(min_length=1)
    step_s: float = Field(gt=0)


class Sine(Varying):
    """`mean_per_s` + `amplitude_per_s` x sin(2 pi t / `period_s`)."""

    kind: Literal["sine"] = "sine"
    mean_per_s: float = Field(gt=0)
    amplitude_per_s: float = Field(ge=0)
    period_s: float = Field(gt=0)


class Trace(Value):
    """Timestamps in a file: seconds, one per line, in ascending order. They count from the first one."""

    kind: Literal["trace"] = "trace"
    file: str = Field(min_length=1)
    """Path on the machine that drives the load."""
    speed: float = later(1.0, gt=0)
    """Speed-up; 1 keeps the original intervals."""
    in_flight: int = Field(ge=1)


Schedule = Annotated[Closed | Steady | Ramp | Steps | Sine | Trace, Field(discriminator="kind")]


def in_flight(schedule: Schedule) -> int:
    """The most operations that a process may have in flight."""
    return schedule.threads if isinstance(schedule, Closed) else schedule.in_flight


def with_in_flight(schedule: Schedule, most: int) -> Schedule:
    """The schedule with another limit of operations in flight."""
    name = "threads" if isinstance(schedule, Closed) else "in_flight"
    return schedule.model_copy(update={name: most})


def steady_per_s(schedule: Schedule | None) -> float | None:
    """The offered rate, if it is one for the whole length."""
    return schedule.rate_per_s if isinstance(schedule, Steady) else None
