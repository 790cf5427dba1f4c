"""Probe processes: one per probe and node, read line by line for as long as a cluster serves trials."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Sample
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.probe.base import Probe
from steelyard.progress.events import Sampled, Watcher

INTERVAL_S = 1.0
FIRST_LINE_TIMEOUT_S = 10.0
REACH_TIMEOUT_S = 10.0
POLL_S = 0.05
END_GRACE_S = 2.0


Instrument = tuple[str, str]
"""A probe and the node that it is on."""


@dataclass
class Readings:
    """What came in so far, by instrument, oldest first."""

    samples: dict[Instrument, list[Sample]] = field(default_factory=dict)
    process_ids: list[int] = field(default_factory=list)
    """The probes' own processes on this machine."""
    failure: ProbeError | None = None
    offsets_s: Mapping[str, float] = field(default_factory=dict)
    """How far the clocks of nodes are ahead of the conductor's, where they have one of their own."""

    def on_our_clock(self, samples: Iterable[Sample], where: str) -> list[Sample]:
        """Samples with their times on the conductor's clock; `where`: the node whose clock they are by."""
        offset_s = self.offsets_s.get(where, 0.0)
        return [one._replace(t_s=one.t_s - offset_s) for one in samples] if offset_s else list(samples)

    def between(self, begun_s: float, ended_s: float) -> dict[Instrument, list[Sample]]:
        """Samples of a span, and what was sampled within one interval before and after it."""
        low_s, high_s = begun_s - INTERVAL_S, ended_s + INTERVAL_S
        return {who: [one for one in samples if low_s <= one.t_s <= high_s] for who, samples in self.samples.items()}

    def forget_before(self, t_s: float) -> None:
        """Let go of samples that no trial needs any more."""
        for who, samples in self.samples.items():
            self.samples[who] = [one for one in samples if one.t_s >= t_s]

    async def reach(self, t_s: float) -> None:
        """Wait until every instrument has a sample at or after `t_s`. Raises ProbeError if one failed or is silent for
        REACH_TIMEOUT_S."""
        deadline = time.monotonic() + REACH_TIMEOUT_S
        while True:
            if self.failure is not None:
                raise self.failure
            late = [
                f"{probe} on {node}" for (probe, node), all_ in self.samples.items() if not all_ or all_[-1].t_s < t_s
            ]
            if not late:
                return
            if time.monotonic() > deadline:
                raise ProbeError(f"no reading for {REACH_TIMEOUT_S:g} s: {', '.join(late)}")
            await asyncio.sleep(POLL_S)


@contextlib.asynccontextmanager
async def watching(
    probes: Sequence[Probe],
    nodes: Sequence[Node],
    process_ids: Callable[[Node], Sequence[int]],
    watcher: Watcher,
    offsets_s: Mapping[str, float] | None = None,
) -> AsyncIterator[Readings]:
    """Run every probe on every node for as long as the block lasts. Returns when each has given its first line.
    `offsets_s`: of the nodes' clocks, for as long as `Readings.offsets_s` is not replaced."""
    readings = Readings(samples={(probe.name, node.name): [] for probe in probes for node in nodes})
    readings.offsets_s = offsets_s or {}
    started: dict[tuple[str, str], asyncio.Event] = {}
    processes: list[asyncio.subprocess.Process] = []
    readers: list[asyncio.Task[None]] = []
    try:
        for probe in probes:
            for node in nodes:
                argv = probe.command(node, INTERVAL_S, process_ids(node))
                process = await spawn(node, argv, stdout=asyncio.subprocess.PIPE, watch=True)
                processes.append(process)
                readings.process_ids.append(process.pid)
                event = started.setdefault((probe.name, node.name), asyncio.Event())
                readers.append(asyncio.create_task(_read(process, probe, node.name, readings, event, watcher)))
        await _all_started(started, readings)
        yield readings
    finally:
        await asyncio.gather(*(end(process, END_GRACE_S) for process in processes))
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _all_started(started: Mapping[tuple[str, str], asyncio.Event], readings: Readings) -> None:
    try:
        async with asyncio.timeout(FIRST_LINE_TIMEOUT_S):
            for event in started.values():
                await event.wait()
    except TimeoutError:
        late = ", ".join(f"{probe} on {node}" for (probe, node), event in started.items() if not event.is_set())
        raise ProbeError(f"no reading within {FIRST_LINE_TIMEOUT_S:g} s: {late}") from None
    if readings.failure is not None:
        raise readings.failure


async def _read(
    process: asyncio.subprocess.Process,
    probe: Probe,
    node: str,
    readings: Readings,
    started: asyncio.Event,
    watcher: Watcher,
) -> None:
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            samples = readings.on_our_clock(probe.parse(node, line), where=node)
            readings.samples[probe.name, node].extend(samples)
            started.set()
            if samples:
                watcher.tell(Sampled(samples))
        readings.failure = readings.failure or ProbeError(f"the probe {probe.name} on {node} ended by itself")
    except ProbeError as error:
        readings.failure = readings.failure or error
    finally:
        started.set()
