"""Offered load: when operations are due, and how many there are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from steelyard.model import percentiles, responses
from steelyard.model.client import Client
from steelyard.model.objective import Limit, parse
from steelyard.model.search import (
    ERROR_FRACTION,
    SATURATED_BELOW,
    SATURATED_ERRORS,
    SATURATION,
    THROUGHPUT_FRACTION,
    SearchRules,
)
from steelyard.model.value import Value, later

MOST_PER_S = 1e7
"""Upper bound of rates, far above what a generator can send: beyond it, operations would only be counted as unsent."""
BACKLOG_LIMIT = 1_000_000
"""Default limit of operations that are due but not yet sent: 10 s at 100,000/s."""
MEASURE, WARM_UP, POPULATE = "measure", "warm-up", "populate"
CAPACITY, CAPACITY_WARM_UP = "capacity", "capacity-warm-up"
SERVER_WARM_UP = "server-warm-up"
SEARCH_SETTLE = "search-settle"
READ_BACK, READ_AGAIN = "read-back", "read-again"
"""Names of phases in records and in the store."""
RESERVED = (POPULATE, WARM_UP, CAPACITY, CAPACITY_WARM_UP, SEARCH_SETTLE, READ_BACK, READ_AGAIN)
"""Names that no phase of a study may have. The load engine refuses those of its own phases again."""
NEEDS: dict[str, tuple[str, ...]] = {
    "ramp": ("from_per_s", "to_per_s", "ramp_s"),
    "steps": ("rates_per_s", "step_s"),
    "sine": ("mean_per_s", "amplitude_per_s", "period_s"),
    "trace": ("trace",),
}
"""Fields that a schedule requires; of a search, `objective`."""
TAKES: dict[str, tuple[str, ...]] = {
    "constant": ("rate_per_s", "capacity_fraction"),
    "poisson": ("rate_per_s", "capacity_fraction"),
    "ramp": ("arrivals",),
    "steps": ("arrivals",),
    "sine": ("arrivals",),
    "trace": ("speed",),
    "search": ("arrivals",),
}
"""Further fields that a schedule allows."""
SEARCHES = (
    "objective", "first_rate_per_s", "step_per_s", "highest_rate_per_s", "window_s", "settle_s", "precision",
    "most_windows",
)  # fmt: skip
"""Fields of a load that belong to schedule search."""
ENDS = ("operations", "duration_s", "phases")
"""Fields of a load that say when it ends, if it is no search."""
LONGEST_WINDOW = 4
"""A window at a low rate lasts this multiple of `window_s` at most."""
LOWEST_RATE = 1000
"""A search gives up at the first rate over this."""


Objective = Annotated[
    tuple[str, ...],
    BeforeValidator(
        lambda given: (given,) if isinstance(given, str) else given, json_schema_input_type=tuple[str, ...] | str
    ),
]


def for_schedule(load: Mapping[str, Any], schedule: object) -> dict[str, Any]:
    """The settings of a load without those that belong only to other schedules than this: a level that sets the
    schedule leaves them out."""
    others = {*SEARCHES, *ENDS, *(name for names in (NEEDS, TAKES) for own in names.values() for name in own)}
    kept = {*NEEDS.get(str(schedule), ()), *TAKES.get(str(schedule), ()), *(SEARCHES if schedule == "search" else ENDS)}
    return {name: value for name, value in load.items() if name in kept or name not in others}


class Offered(Value):
    """Schedule of a load: when operations are due."""

    schedule: Literal["closed", "constant", "poisson", "ramp", "steps", "sine", "trace", "search"] = "closed"
    """closed: each thread sends its next operation when the previous one is answered (saturation). All others are open
    loops, in which operations are due regardless of earlier answers. constant: evenly spaced; poisson: independent of
    each other; ramp: from one rate to another, then constant; steps: one rate after another; sine: a rate that
    oscillates around a mean; trace: at the timestamps in a file; search: one constant rate after another, each decided
    by what the ones before have shown, to find the highest rate that meets `objective`; the response is
    capacity_per_s."""
    rate_per_s: float | None = Field(default=None, gt=0)
    """constant, poisson: the offered rate."""
    capacity_fraction: float | None = Field(default=None, gt=0, le=10)
    """constant, poisson, instead of rate_per_s: the offered rate as a fraction of the cluster's capacity, which is
    measured in each start before the first trial that needs it: see capacity_threads."""
    from_per_s: float | None = Field(default=None, ge=0)
    """ramp: the initial rate."""
    to_per_s: float | None = Field(default=None, ge=0)
    """ramp: the final rate, which then stays constant."""
    ramp_s: float | None = Field(default=None, gt=0)
    """ramp: seconds from the initial to the final rate."""
    rates_per_s: tuple[float, ...] | None = None
    """steps: the rates, in order; the last one stays."""
    step_s: float | None = Field(default=None, gt=0)
    """steps: seconds per rate."""
    mean_per_s: float | None = Field(default=None, gt=0)
    """sine: the mean rate."""
    amplitude_per_s: float | None = Field(default=None, ge=0)
    """sine: how far the rate rises above and falls below the mean; at most the mean."""
    period_s: float | None = Field(default=None, gt=0)
    """sine: seconds per oscillation."""
    trace: str | None = None
    """trace: the file, relative to the study or to the working directory: one timestamp in seconds per line, in
    ascending order. Times count from the first one."""
    speed: float | None = Field(default=None, gt=0)
    """trace: speed-up factor of the replay; default 1."""
    arrivals: Literal["even", "poisson"] | None = None
    """ramp, steps, sine, search: even (default): one operation whenever the integrated rate reaches the next whole
    number; poisson: independent of each other."""

    @model_validator(mode="after")
    def _whole(self) -> Offered:
        needs, takes = NEEDS.get(self.schedule, ()), TAKES.get(self.schedule, ())
        given = {name for name in Offered.model_fields if getattr(self, name) is not None} - {"schedule"}
        for name in sorted(given - {*needs, *takes}):
            belongs = [kind for kind in TAKES if name in (*NEEDS.get(kind, ()), *TAKES[kind])]
            raise ValueError(f"{name} applies only to schedule {' or '.join(belongs)}, but this is {self.schedule}")
        for name in needs:
            if name not in given:
                raise ValueError(f"schedule {self.schedule} needs {name}")
        if "rate_per_s" in takes and len(given & {"rate_per_s", "capacity_fraction"}) != 1:
            what = (
                "either rate_per_s or capacity_fraction, not both"
                if given
                else "rate_per_s, or capacity_fraction (also where a factor sets it)"
            )
            raise ValueError(f"schedule {self.schedule} needs {what}")
        if self.rates_per_s is not None and (min(self.rates_per_s, default=0) < 0 or not any(self.rates_per_s)):
            raise ValueError("rates_per_s: none may be below 0, and one must be above 0")
        if self.schedule == "ramp" and not self.from_per_s and not self.to_per_s:
            raise ValueError("from_per_s or to_per_s must be above 0")
        if (self.peak_per_s() or 0.0) > MOST_PER_S:
            raise ValueError(f"no rate may be above {MOST_PER_S:,.0f} operations/s: what is due is counted one by one")
        if self.schedule == "sine" and (self.amplitude_per_s or 0) > (self.mean_per_s or 0):
            raise ValueError("amplitude_per_s must be at most mean_per_s: no rate is below 0")
        return self

    @property
    def is_open(self) -> bool:
        """Whether the loop is open: operations are due regardless of earlier answers."""
        return self.schedule != "closed"

    def peak_per_s(self) -> float | None:
        """The highest offered rate; None for a closed loop, for a trace, and before capacity was measured."""
        match self.schedule:
            case "ramp":
                return max(self.from_per_s or 0.0, self.to_per_s or 0.0)
            case "steps":
                return max(self.rates_per_s or (0.0,))
            case "sine":
                return (self.mean_per_s or 0.0) + (self.amplitude_per_s or 0.0)
        return self.rate_per_s

    def operations_within(self, seconds: float) -> float | None:
        """Number of operations due within the first `seconds`, the integral of the rate; None if `peak_per_s` is
        None."""
        match self.schedule:
            case "ramp":
                first, last, length = self.from_per_s or 0.0, self.to_per_s or 0.0, self.ramp_s or 1.0
                ramping = min(seconds, length)
                mean = first + (last - first) * ramping / length / 2
                return mean * ramping + last * (seconds - ramping)
            case "steps":
                rates, length = self.rates_per_s or (0.0,), self.step_s or 1.0
                step = min(int(seconds / length), len(rates) - 1)
                return sum(rates[:step]) * length + rates[step] * (seconds - step * length)
            case "sine":
                mean, swing, period = self.mean_per_s or 0.0, self.amplitude_per_s or 0.0, self.period_s or 1.0
                angle = 2 * math.pi / period
                return mean * seconds + swing / angle * (1 - math.cos(angle * seconds))
        return None if self.rate_per_s is None else self.rate_per_s * seconds


class LoadPhase(Offered):
    """One of several measured phases, which follow each other without a pause."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")
    """Name of the phase in records, store and tables; not populate, warm-up, capacity, capacity-warm-up or
    search-settle, which mean something else in records."""
    duration_s: float = Field(gt=0)
    """Duration of the phase in seconds."""
    threads: int | None = Field(default=None, ge=1, le=100_000)
    """Overrides load.threads for this phase."""

    @model_validator(mode="after")
    def _named(self) -> LoadPhase:
        if self.name in RESERVED:
            raise ValueError(f"name: {self.name} means something else in records; not allowed: {', '.join(RESERVED)}")
        if self.schedule == "search":
            raise ValueError("schedule search belongs to the whole load, not to one of its phases")
        return self


class Load(Client, Offered):
    """Offered load of a trial: when operations are due, and how many there are."""

    engine: str = "agent"
    """The engine plug-in."""
    threads: int = Field(default=1, ge=1, le=100_000)
    """Closed loop: operations in flight. Open loop: the maximum number of operations in flight."""
    operations: int | None = Field(default=None, ge=1)
    """Stop after this many operations."""
    duration_s: float | None = Field(default=None, gt=0)
    """Stop after this many seconds."""
    warm_up_s: float = Field(default=0.0, ge=0)
    """Seconds of the same load before the measured phase, recorded separately and excluded from the responses. The
    schedule begins again afterwards."""
    timeout_ms: int = Field(default=10_000, ge=1)
    """An operation without an answer after this time counts as an error of kind timeout."""
    backlog_limit: int = Field(default=BACKLOG_LIMIT, ge=0, le=100_000_000)
    """Open loop: maximum number of operations per load node that are due but not yet sent. An operation that becomes
    due beyond it is never sent: it counts as due and not sent, neither done nor failed."""
    capacity_threads: int = Field(default=64, ge=1, le=100_000)
    """For capacity_fraction: operations in flight in the closed loop that measures the cluster's capacity."""
    capacity_s: float = Field(default=10.0, gt=0)
    """For capacity_fraction: seconds of that measurement, after a warm-up of warm_up_s."""
    objective: Objective = ()
    """search: the limits that a rate has to meet together, each a response time or service time in ms or
    error_fraction with a number, as "response_ms_p99 <= 10"; or "saturation" alone: the highest throughput. One limit
    needs no list. A rate of which the system does not keep up with nine tenths meets no limit."""
    first_rate_per_s: float = Field(default=500.0, gt=0, le=MOST_PER_S)
    """search: the first rate, which is doubled, or raised by `step_per_s`, until a window misses a limit (or halved, if
    the first one does)."""
    step_per_s: float | None = later(None, gt=0, le=MOST_PER_S)
    """search: how much the rate rises until a window misses a limit; None: it is doubled."""
    highest_rate_per_s: float = Field(default=MOST_PER_S, gt=0, le=MOST_PER_S)
    """search: no higher rate is tried; a search that ends here gives a lower bound."""
    window_s: float = Field(default=10.0, ge=0.5, le=3600)
    """search: seconds of a window. It lasts up to four times as long at a low rate, until percentiles are supported,
    and near the limit, while its seconds differ much."""
    settle_s: float = Field(default=2.0, ge=0, le=3600)
    """search: seconds of the same rate before each window that do not count. Between windows nothing is in flight."""
    precision: float = Field(default=0.05, gt=0, le=0.5)
    """search: it ends when half the width of its interval is at most this share of the rate."""
    most_windows: int = Field(default=20, ge=4, le=200)
    """search: it ends after this many windows, whatever its interval."""
    phases: tuple[LoadPhase, ...] = ()
    """Several measured phases instead of one, each in its own table `[[load.phases]]`: name, duration_s, schedule with
    its fields, threads. The load itself then has no schedule, operations or duration_s; the warm-up uses the beginning
    of the first phase."""

    @model_validator(mode="after")
    def _consistent(self) -> Load:
        if self.schedule == "search":
            return self._searching()
        fields = type(self).model_fields
        for name in SEARCHES:
            if getattr(self, name) != fields[name].default:
                raise ValueError(f"{name} applies only to schedule search, but this is {self.schedule}")
        if self.phases:
            return self._phased()
        if self.operations is None and self.duration_s is None and self.schedule != "trace":
            raise ValueError("load needs operations or duration_s, to know when to stop")
        return self

    def _searching(self) -> Load:
        if self.phases or self.operations is not None or self.duration_s is not None:
            raise ValueError("schedule search has windows: no phases, operations or duration_s")
        if not self.objective:
            raise ValueError(f'schedule search needs objective, as ["response_ms_p99 <= 10"] or ["{SATURATION}"]')
        self.limits()
        if self.first_rate_per_s > self.highest_rate_per_s:
            raise ValueError("first_rate_per_s must be at most highest_rate_per_s")
        if self.threads == 1:
            raise ValueError(
                "schedule search needs threads, the most operations in flight: with 1 it would find one operation per "
                "service time; 256 is much for most systems"
            )
        return self

    def limits(self) -> tuple[Limit, ...]:
        """The limits of a search's objective. Raises ValueError with what is allowed."""
        if self.objective == (SATURATION,):
            return (
                parse(f"{THROUGHPUT_FRACTION} >= {SATURATED_BELOW}"),
                parse(f"{ERROR_FRACTION} <= {SATURATED_ERRORS}"),
            )
        if SATURATION in self.objective:
            raise ValueError(f"objective: {SATURATION} must be the only entry")
        limits = tuple(parse(text) for text in self.objective)
        allowed = (*limited_names(), ERROR_FRACTION)
        for limit in limits:
            if limit.response not in allowed:
                raise ValueError(f"objective: no response {limit.response!r}; allowed: {', '.join(allowed)}")
            if limit.comparison not in ("<=", "<"):
                raise ValueError(f"objective: {limit.text}: a limit of a search is an upper one, <= or <")
        return limits

    def search_rules(self) -> SearchRules:
        """The rules of this load's search."""
        limits = self.limits()
        named = [responses.every()[limit.response] for limit in limits if limit.response in responses.every()]
        shares = [response.percentile for response in named]
        needed = max((percentiles.needed(share) for share in shares if share is not None and 0 < share < 1), default=0)
        longest_s = LONGEST_WINDOW * self.window_s
        lowest = max(self.first_rate_per_s / LOWEST_RATE, needed / longest_s)
        return SearchRules(
            limits=limits,
            saturation=self.objective == (SATURATION,),
            first_rate_per_s=self.first_rate_per_s,
            step_per_s=self.step_per_s,
            lowest_rate_per_s=min(self.first_rate_per_s, lowest),
            highest_rate_per_s=self.highest_rate_per_s,
            window_s=self.window_s,
            settle_s=self.settle_s,
            needed_operations=needed,
            longest_window_s=longest_s,
            precision=self.precision,
            most_windows=self.most_windows,
        )

    def _phased(self) -> Load:
        if self.schedule != "closed" or self.operations is not None or self.duration_s is not None:
            raise ValueError("load has phases: schedule, operations and duration_s belong to each of them")
        names = [phase.name for phase in self.phases]
        twice = [name for index, name in enumerate(names) if name in names[:index]]
        if twice:
            raise ValueError(f"phases: the name {twice[0]} is listed twice")
        return self

    @property
    def offered(self) -> tuple[Offered, ...]:
        """The schedules of the measured phases."""
        return self.phases or (self,) * len(self.measured)

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the measured phases; of a search, of all windows that it may have."""
        if self.schedule == "search":
            return tuple(window_name(number) for number in range(1, self.most_windows + 1))
        return tuple(phase.name for phase in self.phases) or (MEASURE,)

    @property
    def is_open(self) -> bool:
        """Whether some phase is an open loop: its operations are due regardless of earlier answers."""
        return self.schedule != "closed" or any(phase.is_open for phase in self.phases)

    @property
    def knows_rates(self) -> bool:
        """Whether the offered rate in each second of the measured phases is known beforehand, and their length."""
        return self.measured_s is not None and all(phase.operations_within(1.0) is not None for phase in self.offered)

    def rates(self) -> Iterator[tuple[float, float]]:
        """The offered rate of the measured phases in each second in which it changes: seconds, operations per second;
        nothing if it is not known beforehand."""
        from_s, last = 0.0, None
        for phase in self.offered if self.knows_rates else ():
            length_s = getattr(phase, "duration_s", None) or 0.0
            due = [phase.operations_within(float(second)) for second in range(int(length_s) + 1)]
            for place, (before, after) in enumerate(itertools.pairwise(due)):
                if before is None or after is None:
                    return
                if (rate := after - before) != last:
                    yield from_s + place, rate
                    last = rate
            from_s += length_s

    @property
    def wants_capacity(self) -> bool:
        """Whether a rate depends on the cluster's capacity."""
        return any(one.capacity_fraction is not None for one in self.offered)

    @property
    def measured_s(self) -> float | None:
        """Total seconds of the measured phases, if the load specifies them. Of a search, about: as many windows as it
        may have, each of twice `window_s`: windows at low rates and near the limit last up to four times as long. It
        ends earlier once it is precise; what a window beyond the limit leaves over is waited for."""
        if self.schedule == "search":
            return self.most_windows * (2 * self.window_s + self.settle_s)
        return sum(phase.duration_s for phase in self.phases) if self.phases else self.duration_s

    def threads_of(self, phase: Offered) -> int:
        """Operations in flight during one of the phases in `offered`."""
        return (phase.threads if isinstance(phase, LoadPhase) else None) or self.threads


def window_name(number: int) -> str:
    """Name of a search's window in records and in the store; the first is 1."""
    return f"w{number}"


def limited_names() -> tuple[str, ...]:
    """Names of the responses that an objective may limit apart from the share of errors."""
    return tuple(name for name in responses.every() if name.startswith(("response_ms_", "service_ms_")))
