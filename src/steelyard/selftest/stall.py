"""Coordinated-omission proof: a server stalls, and different ways of measuring are compared with the exact result.

Operations are due evenly over T seconds; the server stalls for S of them. An operation that is due x seconds before the
server wakes is answered x seconds late. The share of operations that take longer than x is thus (S - x) / T, and the
quantile q of the response time is

    S - (1 - q) T        where (1 - q) T < S

at any rate, as the service time and the time to drain the backlog are small in comparison. Service times hardly show
the stall: only operations that are in flight when it begins are slow after they are sent. A closed loop does not even
send the operations that are due during the stall. See docs/explanation/coordinated-omission.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.judging.trial_responses import merged, quantile_ms
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.value import Value
from steelyard.node.tasks import together
from steelyard.selftest.bench import BenchServer, Driven, bench_of, drive, order, serving
from steelyard.wire.order import CQL
from steelyard.wire.record import Interval
from steelyard.wire.schedule import Closed, Steady

QUANTILE = 0.99
IN_FLIGHT = 64
TOLERANCE = 0.03
"""Allowed relative error of the measured quantile."""
SERVICE_TOLERANCE = 0.01
"""Share of the stall by which the quantile of service times may change."""
LEAST_OPERATIONS = 2 * IN_FLIGHT * 100
"""With fewer operations, those in flight when the stall begins are more than 0.5% of all, close to what p99 shows."""
MARGIN_S = 1.5
"""Minimum seconds before and after the stall; the first interval gives the start of the load."""
LEAST_TRUTH_S = 0.1
DRAIN_S = 1.0
"""Seconds after the server wakes in which operations still differ from those without a stall."""
GRACE_S = 60.0


@dataclass(frozen=True)
class Asked:
    """Parameters of the proof."""

    protocol: str = CQL
    seconds: float = 20.0
    rate_per_s: float = 1_000.0
    stall_s: float = 2.0

    @property
    def due(self) -> int:
        """Number of operations that are due."""
        return round(self.seconds * self.rate_per_s)

    def check(self) -> None:
        """Raises StudyError if the proof is impossible with these parameters."""
        bench_of(self.protocol)
        if self.seconds < self.stall_s + 2 * MARGIN_S:
            raise _wrong("--seconds", self.seconds, f"at least {self.stall_s + 2 * MARGIN_S:g} for this stall")
        if truth_s(QUANTILE, self.stall_s, self.seconds) < LEAST_TRUTH_S:
            least_s = (1 - QUANTILE) * self.seconds + LEAST_TRUTH_S
            raise _wrong("--stall", self.stall_s, f"at least {least_s:g} s, to be seen at p99 of {self.seconds:g} s")
        if self.due < LEAST_OPERATIONS:
            least = f"at least {LEAST_OPERATIONS / self.seconds:g} operations per second for {self.seconds:g} s"
            raise _wrong("--rate", self.rate_per_s, least)


def _wrong(key: str, read: float, allowed: str) -> StudyError:
    return StudyError(f"{key} {read:g} is too low to prove anything", allowed, key=key, read=read)


def truth_s(q: float, stall_s: float, seconds: float) -> float:
    """The exact quantile q of response times for a stall of `stall_s` within `seconds` of even arrivals; 0 if the stall
    is too short to reach it."""
    return max(0.0, stall_s - (1 - q) * seconds)


class Proof(Value):
    """Measured and exact results. Times in milliseconds."""

    due: int
    sent: int
    answered: int
    errors: int
    seconds: float
    rate_per_s: float
    stall_ms: float
    """Actual length of the stall."""
    truth_ms_p99: float
    response_ms_p99: float
    service_ms_p99: float
    service_ms_p99_without: float
    """Over the seconds that the stall does not affect."""
    closed_sent: int
    """Operations of a closed loop with one operation in flight, against a server that serves one at a time, at most
    `rate_per_s`, stalled at the same time."""
    closed_ms_p99: float

    @property
    def error_fraction(self) -> float:
        """Relative error of the measured quantile."""
        return self.response_ms_p99 / self.truth_ms_p99 - 1

    @property
    def checks(self) -> dict[str, bool]:
        """The conditions of the proof and whether each holds."""
        moved_ms = abs(self.service_ms_p99 - self.service_ms_p99_without)
        return {
            "every operation that was due was sent and answered": self.sent == self.answered == self.due
            and self.errors == 0,
            f"response p99 is within {TOLERANCE:.0%} of the truth": abs(self.error_fraction) <= TOLERANCE,
            "service p99 is not moved by the stall": moved_ms <= SERVICE_TOLERANCE * self.stall_ms,
        }

    @property
    def passed(self) -> bool:
        """Whether all conditions hold."""
        return all(self.checks.values())


@dataclass
class _Course:
    """Times of the events, seconds since the epoch."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    begun_s: float = 0.0
    stopped_s: float = 0.0
    woken_s: float = 0.0
    stall_s: float = 0.0
    """Measured by the monotonic clock."""


@dataclass(frozen=True)
class Line:
    """A second of the open loop, for people."""

    second: int
    rate_per_s: float
    sent: int
    backlog: int
    response_ms_p99: float | None
    service_ms_p99: float | None
    stopped: bool
    """Whether the server was stalled during it."""


async def prove(asked: Asked, on_second: Callable[[Line], None]) -> Proof:
    """Run the proof; `on_second` receives every second of the open loop. Raises EngineError if the proof failed."""
    asked.check()
    course = _Course()
    service_us = f"{1e6 / asked.rate_per_s:g}"
    slowly = ("--service-us", service_us, "--contention", "0")
    async with serving(asked.protocol, "--null") as null, serving(asked.protocol, *slowly) as slow:
        constant = Steady(kind="constant", rate_per_s=asked.rate_per_s, in_flight=IN_FLIGHT)
        closed = Closed(threads=1)

        def listen(interval: Interval) -> None:
            if not course.begun.is_set():
                course.begun_s = interval.t_s
                course.begun.set()
            on_second(_line(interval, course))

        async def stand_still() -> Driven | None:
            await _stall((null, slow), asked, course)
            return None

        timeout_s, timeout_ms = asked.seconds + asked.stall_s + GRACE_S, int((asked.stall_s + GRACE_S) * 1000)
        sizes: dict[str, Any] = {"duration_s": asked.seconds, "timeout_ms": timeout_ms}
        due = order(null.contact, asked.protocol, "read", constant, **sizes)
        forgetful = order(slow.contact, asked.protocol, "read", closed, **sizes)
        driven = await together(
            (_some(drive(due, timeout_s, listen)), _some(drive(forgetful, timeout_s)), stand_still())
        )
    opened, other = driven[0], driven[1]
    assert opened is not None
    assert other is not None
    return _proof(asked, course, opened, other)


async def _some(coroutine: Coroutine[Any, Any, Driven]) -> Driven | None:
    return await coroutine


async def _stall(servers: Sequence[BenchServer], asked: Asked, course: _Course) -> None:
    """Suspend the servers in the middle of the load; wake them after the stall, even on errors."""
    await course.begun.wait()
    at_s = course.begun_s + (asked.seconds - asked.stall_s) / 2
    await asyncio.sleep(max(0.0, at_s - time.time()))
    try:
        course.stopped_s, before = time.time(), time.monotonic()
        for server in servers:
            server.stop()
        await asyncio.sleep(asked.stall_s)
    finally:
        for server in servers:
            server.go_on()
        course.woken_s, course.stall_s = time.time(), time.monotonic() - before


def _line(interval: Interval, course: _Course) -> Line:
    summary = interval.summary
    begun_s, ended_s = interval.t_s, interval.t_s + interval.seconds
    answered = interval.done > 0
    stopped = 0 < course.stopped_s < ended_s and (course.woken_s == 0 or course.woken_s > begun_s)
    return Line(
        second=round(ended_s - course.begun_s),
        rate_per_s=summary.rate_per_s,
        sent=interval.sent,
        backlog=interval.backlog,
        response_ms_p99=summary.response_ms_p99 if answered else None,
        service_ms_p99=summary.service_ms_p99 if answered else None,
        stopped=stopped,
    )


def _proof(asked: Asked, course: _Course, opened: Driven, other: Driven) -> Proof:
    def touched(interval: Interval) -> bool:
        ended_s = interval.t_s + interval.seconds
        return ended_s > course.stopped_s and interval.t_s < course.woken_s + DRAIN_S

    without = [interval for interval in opened.intervals if not touched(interval)]
    figures = {
        "response_ms_p99": quantile_ms(merged(opened.intervals, "response"), QUANTILE),
        "service_ms_p99": quantile_ms(merged(opened.intervals, "service"), QUANTILE),
        "service_ms_p99_without": quantile_ms(merged(without, "service"), QUANTILE),
        "closed_ms_p99": quantile_ms(merged(other.intervals, "response"), QUANTILE),
    }
    lacking = [name for name, value in figures.items() if value is None]
    if lacking or course.stall_s == 0:
        raise EngineError(f"the proof has no {', '.join(lacking) or 'stall'}: the load ended too early")
    return Proof(
        due=asked.due,
        sent=sum(interval.sent for interval in opened.intervals),
        answered=opened.done.operations,
        errors=opened.done.errors,
        seconds=asked.seconds,
        rate_per_s=asked.rate_per_s,
        stall_ms=course.stall_s * 1000,
        truth_ms_p99=truth_s(QUANTILE, course.stall_s, asked.seconds) * 1000,
        closed_sent=other.done.operations + other.done.errors,
        **{name: value for name, value in figures.items() if value is not None},
    )
