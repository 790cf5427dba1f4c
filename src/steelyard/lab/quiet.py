"""Wait for a quiet machine: no trial begins while other programs, or other guests of the hardware, take more of the
processor than the verdict on a trial allows.

On a quiet machine nothing waits: the readings are those of the previous attempt, and of the time that passes anyway
until a trial can begin. Only if one of them is over a limit is the machine watched, second by second, until it was
quiet for QUIET_S. Only for sites whose nodes run on this machine: nodes elsewhere are judged by their probes alone.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.events.base import Watcher
from steelyard.events.kept import QuietAwaited, QuietReached
from steelyard.events.shown import StillBusy
from steelyard.format import duration
from steelyard.judging.background_load import MOST_NAMED, THIS_MACHINE, BackgroundLoad
from steelyard.judging.verdict import disturbances
from steelyard.model.errors import NotQuiet
from steelyard.model.study import Limits, Study
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.node import reading_commands
from steelyard.node.processor import MachineTime, RunningProgram, busiest, census, machine_time
from steelyard.progress.reason_words import short
from steelyard.site.base import Site, on_this_machine

QUIET_S = 3.0
"""Seconds for which a machine that was busy must be quiet before a trial begins."""
LOOK_S = 1.0
"""Seconds between two readings while it is waited for."""
LEAST_SPAN_S = 0.25
"""A shorter span says nothing: the kernel counts in hundredths of a second."""
Ours = Callable[[int], bool]
"""Whether a process belongs to the study: its cluster, its load, its probes."""


@dataclass(frozen=True)
class ProcessorReading:
    """The processor of this machine at one moment."""

    t_s: float
    """Seconds of a clock that is never set."""
    machine: MachineTime
    programs: dict[tuple[int, int], RunningProgram] = field(default_factory=dict)
    own_s: float = 0.0
    """Seconds of this process and of those that it has waited for."""
    reading_s: dict[str, float] = field(default_factory=dict)
    """Seconds of the laboratory's own reading commands."""
    readers: frozenset[int] = frozenset()
    """Processes of these commands."""


def look(state: Path) -> ProcessorReading:
    """The processor now. `state`: where the laboratory's reading commands are recorded."""
    programs = census()
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ProcessorReading(
        t_s=time.monotonic(),
        machine=machine_time(),
        programs=programs,
        own_s=sum(usage.ru_utime + usage.ru_stime for usage in spent),
        reading_s=reading_commands.times_s(state, programs),
        readers=reading_commands.process_ids(state, programs),
    )


def disturbed(
    before: ProcessorReading, after: ProcessorReading, ours: Ours, limits: Limits, *, named_only: bool = False
) -> list[Reason]:
    """Limits that were exceeded between two looks. Pure but for `ours`.

    Background load is what the machine did, without interrupts, this process, the reading commands and the study's own
    processes. `named_only`: only what living programs took. That is less, and right also while a cluster starts or is
    taken down, whose short-lived processes cannot be distinguished from others."""
    span_s = after.t_s - before.t_s
    machine = after.machine.since(before.machine)
    if span_s < LEAST_SPAN_S or machine.total_s <= 0:
        return []

    def known(pid: int) -> bool:
        return pid == os.getpid() or pid in after.readers or ours(pid)

    others = busiest(before.programs, after.programs, span_s, known)
    reading_s = reading_commands.taken_s(before.reading_s, after.reading_s)
    if named_only:
        background_s = sum(cores for _, cores in others) * span_s
    else:
        own = busiest(before.programs, after.programs, span_s, lambda pid: pid == os.getpid() or not ours(pid))
        cluster_s = sum(cores for _, cores in own) * span_s
        background_s = machine.busy_s - machine.interrupt_s - (after.own_s - before.own_s) - reading_s - cluster_s
    of = max(1, round(machine.total_s / span_s))
    load = BackgroundLoad(THIS_MACHINE, max(0.0, background_s) / span_s, of, others[:MOST_NAMED], reading_s / span_s)
    return disturbances([load], {THIS_MACHINE: machine.steal_s / machine.total_s}, limits)


def disturbed_since(before: ProcessorReading, state: Path, limits: Limits) -> list[Reason]:
    """Limits that were exceeded since a look, while this process alone was the laboratory. Waits until LEAST_SPAN_S
    have passed."""
    time.sleep(max(0.0, LEAST_SPAN_S - (time.monotonic() - before.t_s)))
    return disturbed(before, look(state), lambda pid: False, limits)


def busy(study: Study, sites: Sequence[Site], before: ProcessorReading, state: Path) -> Iterator[str]:
    """A note if this machine, on which nodes of these sites run, was too busy to measure on since a look."""
    if any(on_this_machine(site) for site in sites):
        for reason in disturbed_since(before, state, study.limits):
            wait = f"`run` would wait for a quiet machine, at most {duration(study.limits.quiet_wait_s)}"
            yield f"this machine is busy: {short(reason)}; {wait} (limits.quiet_wait_s)"


class QuietGate:
    """Lets trials begin only while the machine is quiet."""

    def __init__(
        self,
        look: Callable[[], ProcessorReading],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Made at the beginning of a session: the first reading is of the time until its first start."""
        self._look = look
        self._sleep = sleep
        self._last = look()
        self._known: Sequence[Reason] = ()
        """Disturbances of the previous attempt."""
        self._alone = True
        """Whether no cluster was started yet since the last look, so that the machine's time can be attributed."""

    def attempted(self, verdict: Verdict) -> None:
        """Take note of an attempt: its probes say whether the machine was quiet a moment ago."""
        self._known = [reason for reason in verdict.reasons if reason.kind is ReasonKind.STEAL]
        self._last, self._alone = self._look(), False

    async def wait(self, limits: Limits, ours: Ours, watcher: Watcher, stop: Callable[[], bool]) -> None:
        """Return when the machine is quiet, at once if it was; or when `stop` says so. The first look of a session
        covers LEAST_SPAN_S at least. Raises NotQuiet after `limits.quiet_wait_s`."""
        began = self._look()
        if self._alone and (short_s := LEAST_SPAN_S - (began.t_s - self._last.t_s)) > 0:
            await self._sleep(short_s)
            began = self._look()
        reasons = self._known or disturbed(self._last, began, ours, limits, named_only=not self._alone)
        self._known, self._last, self._alone = (), began, False
        if not reasons:
            return
        watcher.tell(QuietAwaited(reasons=tuple(reasons), wait_s=limits.quiet_wait_s))
        waited_s = await self._watch(began, limits, ours, watcher, stop)
        if waited_s is not None:
            watcher.tell(QuietReached(waited_s=waited_s))

    async def _watch(
        self,
        began: ProcessorReading,
        limits: Limits,
        ours: Ours,
        watcher: Watcher,
        stop: Callable[[], bool],
    ) -> float | None:
        """Look once a second. Returns the seconds until it was quiet; None if `stop` ended the wait before."""
        quiet_since_s = began.t_s
        while not stop():
            await self._sleep(LOOK_S)
            now = self._look()
            waited_s = now.t_s - began.t_s
            newest = disturbed(self._last, now, ours, limits)
            self._last = now
            if newest:
                if waited_s >= limits.quiet_wait_s:
                    raise not_quiet(newest, limits)
                quiet_since_s = now.t_s
                watcher.tell(StillBusy(newest, waited_s, limits.quiet_wait_s))
            elif now.t_s - quiet_since_s >= QUIET_S:
                return waited_s
        return None


def not_quiet(reasons: Sequence[Reason], limits: Limits) -> NotQuiet:
    """The error after the deadline: who is busy, the limit and its option, what to do."""
    busy = "; ".join(short(reason) for reason in reasons)
    within = f" within {duration(limits.quiet_wait_s)}" if limits.quiet_wait_s > 0 else ""
    return NotQuiet(
        f"the machine was not quiet{within}: {busy}",
        "no trial is lost: run the same command to resume when the machine is quiet, wait longer "
        "(limits.quiet_wait_s, --quiet-wait), or raise the limit in the study: its trials are then measured "
        "despite the other load",
    )
