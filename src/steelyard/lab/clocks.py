"""Clocks of nodes against the conductor's: measured before and after each trial, and corrected for at intake.

A node whose kernel is another than the conductor's has its own clock. Its offset follows from a few round trips to
`steelyard-agent clock`, by Cristian's method: in the shortest one, the node's reading belongs to the middle, give or
take half of the round trip (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989). Times
that such a node says are put on the conductor's clock as they come in; what the store holds is on one clock.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.model.errors import ClockError, SteelyardError
from steelyard.model.trial import ClockOffset, ClockStep
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.tasks import together
from steelyard.wire.record import Done, Hello, Interval, Record, Routed, SampleRecord

ROUND_TRIPS = 8
TIMEOUT_S = 20.0
"""Longest wait for all round trips to one node, with the start of the program there."""
END_GRACE_S = 2.0


@dataclass(frozen=True)
class Reading:
    """Offset of a node's clock from the conductor's, and its error."""

    offset_s: float
    error_s: float


@dataclass(frozen=True)
class Moment:
    """An instant by both clocks of the conductor: the wall clock, which may be set, and the monotonic one."""

    wall_s: float
    monotonic_s: float

    def until(self, later: Moment) -> ClockStep:
        """Movement of the wall clock against the other."""
        seconds = later.monotonic_s - self.monotonic_s
        return ClockStep(moved_s=later.wall_s - self.wall_s - seconds, seconds=seconds)


def now(wall: Callable[[], float] = time.time) -> Moment:
    """This instant. The monotonic clock is read before and after, so that a pause between the two counts half."""
    before_s = time.monotonic()
    wall_s = wall()
    return Moment(wall_s, (before_s + time.monotonic()) / 2)


def of_own_clock(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes whose clock is not the conductor's, as far as commands can be run on them."""
    return tuple(node for node in nodes if node.commands and node.kernel)


async def read(nodes: Sequence[Node], timeout_s: float = TIMEOUT_S) -> dict[str, Reading]:
    """The clocks of nodes against the conductor's, by name; empty if all share it. Raises ClockError that names the
    first node whose clock cannot be read."""
    apart = of_own_clock(nodes)
    readings = await together(_read(node, timeout_s) for node in apart)
    return {node.name: reading for node, reading in zip(apart, readings, strict=True)}


async def _read(node: Node, timeout_s: float) -> Reading:
    try:
        async with asyncio.timeout(timeout_s):
            return await _by_round_trips(node)
    except TimeoutError:
        raise ClockError(f"{node.name}: its clock was not read within {timeout_s:g} s", node=node.name) from None
    except (SteelyardError, OSError, ValueError, LookupError, TypeError) as error:
        why = str(error) or type(error).__name__
        raise ClockError(f"{node.name}: its clock cannot be read: {why}", node=node.name) from error


async def _by_round_trips(node: Node) -> Reading:
    pipe = asyncio.subprocess.PIPE
    process = await spawn(node, [agent.on(node), "clock"], stdin=pipe, stdout=pipe, watch=True)
    try:
        readings = [await _round_trip(process) for _ in range(ROUND_TRIPS)]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await end(process, END_GRACE_S)
    return min(readings, key=lambda reading: reading.error_s)


async def _round_trip(process: asyncio.subprocess.Process) -> Reading:
    assert process.stdin is not None
    assert process.stdout is not None
    asked_s, asked = time.time(), time.perf_counter()
    process.stdin.write(b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    half_s = (time.perf_counter() - asked) / 2
    if not line:
        raise ValueError("`steelyard-agent clock` ended without an answer")
    return Reading(float(json.loads(line)["t_s"]) - (asked_s + half_s), half_s)


def offsets(before: Mapping[str, Reading], after: Mapping[str, Reading]) -> tuple[ClockOffset, ...]:
    """Offsets around a trial, for its record."""
    return tuple(
        ClockOffset(
            node=node,
            before_s=reading.offset_s,
            after_s=after[node].offset_s,
            error_s=max(reading.error_s, after[node].error_s),
        )
        for node, reading in sorted(before.items())
    )


def corrected(record: Record, offset_s: float) -> Record:
    """The record with its times on the conductor's clock, given how far the node's is ahead."""
    if not offset_s:
        return record
    match record:
        case Hello() | Interval() | SampleRecord() | Routed():
            return replace(record, t_s=record.t_s - offset_s)
        case Done() if record.first_sent_s:
            first_sent_s, last_done_s = record.first_sent_s - offset_s, record.last_done_s - offset_s
            return replace(record, first_sent_s=first_sent_s, last_done_s=last_done_s)
    return record


def on_our_clock(
    on_record: Callable[[str, Record], None], offsets_s: Mapping[str, float]
) -> Callable[[str, Record], None]:
    """`on_record` for records whose times are by the clocks of their nodes."""

    def take(node: str, record: Record) -> None:
        on_record(node, corrected(record, offsets_s.get(node, 0.0)))

    return take
