"""Calibration of this machine's load engine against a server that answers at once: ceiling, cost, slip, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from steelyard.judging.trial_responses import merged, quantile_ms
from steelyard.model.calibration import Calibration, Ceiling, Kind, Slip
from steelyard.model.errors import EngineError
from steelyard.model.machine_identity import identity
from steelyard.node import agent, machine_facts, processor
from steelyard.node.calibration import fingerprint
from steelyard.selftest.bench import BenchServer, Driven, bench_of, drive, order, serving
from steelyard.wire.record import Done
from steelyard.wire.schedule import Closed, Steady

IN_FLIGHT = (64, 512)
SLIP_RATE_PER_S = 2_000.0
SLIP_IN_FLIGHT = 64
CEILINGS_SHARE = 0.64
"""Share of the time for all ceilings; the slip takes the rest, apart from starting and ending."""
SLIP_SHARE = 0.25
WARM_UP_SHARE = 0.15
"""Warm-up share of a ceiling's time, for connections, caches and the clock speed of the processor."""
GRACE_S = 30.0


@dataclass(frozen=True)
class Step:
    """One part of a calibration, when it begins or when it has ended."""

    name: str
    seconds: float
    result: Ceiling | Slip | None = None


async def calibrate(protocol: str, seconds: float, on_step: Callable[[Step], None]) -> Calibration:
    """Measure for about `seconds`; `on_step` receives every step when it begins (`result` None) and when it
    has ended. Raises EngineError, and StudyError for a protocol without a bench."""
    before, own = processor.machine_time(), os.times()
    drives: list[Driven] = []
    ceilings: list[Ceiling] = []
    kinds = bench_of(protocol).loads
    async with serving(protocol, "--null") as server:
        for kind in kinds:
            for in_flight in IN_FLIGHT:
                share = CEILINGS_SHARE / (len(kinds) * len(IN_FLIGHT))
                step = Step(f"{kind}s of 1 KB, {in_flight} in flight", share * seconds)
                on_step(step)
                drives.append(await _saturate(server, protocol, kind, in_flight, step.seconds))
                ceilings.append(ceiling_of(kind, in_flight, drives[-1].done))
                on_step(Step(step.name, step.seconds, ceilings[-1]))
        step = Step(f"{SLIP_RATE_PER_S:,.0f} reads per second, open loop", SLIP_SHARE * seconds)
        on_step(step)
        schedule = Steady(kind="constant", rate_per_s=SLIP_RATE_PER_S, in_flight=SLIP_IN_FLIGHT)
        asked = order(server.contact, protocol, "read", schedule, duration_s=step.seconds)
        drives.append(await drive(asked, step.seconds + GRACE_S))
        slip = slip_of(drives[-1])
        on_step(Step(step.name, step.seconds, slip))
        ours_s = processor.process_time_s(server.server.pid)
    machine = processor.machine_time().since(before)
    now = os.times()
    ours_s += (now.user + now.system) - (own.user + own.system)
    # Children that have ended and were waited for: the generators.
    ours_s += (now.children_user + now.children_system) - (own.children_user + own.children_system)
    program = agent.find()
    hello = drives[0].hello
    return Calibration(
        protocol=protocol,
        made_s=time.time(),
        machine=identity(machine_facts.facts()),
        agent=f"{hello.agent} {fingerprint(program)}",
        optimised=hello.optimised,
        ceilings=tuple(ceilings),
        slip=slip,
        memory_bytes=max(one.memory_bytes for one in drives),
        background_cpu_fraction=max(0.0, machine.busy_s - ours_s) / machine.total_s,
        steal_fraction=machine.steal_s / machine.total_s,
    )


async def _saturate(server: BenchServer, protocol: str, kind: Kind, in_flight: int, seconds: float) -> Driven:
    warm_up_s = WARM_UP_SHARE * seconds
    schedule = Closed(threads=in_flight)
    duration_s = seconds - warm_up_s
    asked = order(server.contact, protocol, kind, schedule, duration_s=duration_s, warm_up_s=warm_up_s)
    return await drive(asked, seconds + GRACE_S)


def ceiling_of(kind: Kind, in_flight: int, done: Done) -> Ceiling:
    """The ceiling from the end of a phase. Raises EngineError if any operation was not answered."""
    if done.errors or not done.operations:
        kinds = ", ".join(f"{count} {name}" for name, count in done.errors_by_kind.items())
        raise EngineError(f"the null server did not answer {done.errors} of the operations: {kinds}")
    seconds = done.execution_ns / 1e9
    return Ceiling(
        kind=kind,
        in_flight=in_flight,
        measured_per_s=done.operations / seconds,
        busiest_thread_fraction=done.busiest_thread_fraction,
        cpu_us_per_operation=done.cpu_ns / 1e3 / done.operations,
    )


def slip_of(driven: Driven) -> Slip:
    """The generator's own delay over all operations. Raises EngineError if there was none."""
    pacing = merged(driven.intervals, "pacing")
    p50_ms, p99_ms = quantile_ms(pacing, 0.50), quantile_ms(pacing, 0.99)
    if p50_ms is None or p99_ms is None:
        raise EngineError("the null server answered no operation of the open loop")
    operations = driven.done.operations
    return Slip(rate_per_s=SLIP_RATE_PER_S, operations=operations, pacing_ms_p50=p50_ms, pacing_ms_p99=p99_ms)
