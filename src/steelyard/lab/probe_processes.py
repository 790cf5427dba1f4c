"""Probe processes: one per placement of a probe, read line by line for as long as a cluster serves trials."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from steelyard.events.base import Watcher
from steelyard.events.shown import Sampled
from steelyard.format import listed
from steelyard.lab import clocks
from steelyard.lab.silence import SILENCE_S, Hearing
from steelyard.model.errors import ProbeError
from steelyard.model.sample import Sample
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.processor import process_time_s
from steelyard.node.secrets import cql_credentials
from steelyard.probe.base import READ_EVERY_S, Placement, Probe, Watched, placements_of
from steelyard.site.base import PATIENCE
from steelyard.system.base import Observed, System

REACH_TIMEOUT_S = 10.0
POLL_S = 0.05
END_GRACE_S = 2.0
EXIT_TIMEOUT_S = 2.0
"""Longest wait for the exit code of a probe whose output has ended."""
STDERR_BYTES = 2000
"""Length of a probe's last words that is kept."""
STDERR_LINES = 3
CLOCK_SET_S = 0.1
"""Jump of a clock that is no gradual correction."""
NOTHING_WRITTEN = " (nothing on its standard error)"

Instrument = tuple[str, str]
"""A probe and the node that its readings are of."""


@dataclass
class Readings:
    """Readings that came in so far, by instrument, oldest first."""

    samples: dict[Instrument, list[Sample]] = field(default_factory=dict)
    process_ids: list[int] = field(default_factory=list)
    """The probes' own processes on this machine."""
    failure: ProbeError | None = None
    offsets_s: Mapping[str, float] = field(default_factory=dict)
    """Offsets of the nodes' clocks from the conductor's, where they have their own."""
    hearing: Hearing[Instrument] = field(default_factory=Hearing)
    """When each last said a line."""
    last_words: dict[Instrument, Path] = field(default_factory=dict)
    """Files with what each instrument's command wrote to its standard error."""
    spent_s: float = 0.0
    """Processor seconds of the probes' processes that have ended."""
    gone: set[Instrument] = field(default_factory=set)
    """Instruments of nodes that leave: nothing more is expected of them."""
    processes: ProbeProcesses = field(init=False)
    """The running commands."""
    corrected: clocks.Moment = field(default_factory=clocks.now)
    """When the offsets became those that are in force."""

    async def correct_by(self, offsets_s: Mapping[str, float]) -> None:
        """Correct times by these offsets from now on. Commands begin again if a clock was set since they were read
        before: each goes on by the time at which it was started. Raises ProbeError."""
        before_s, self.offsets_s = self.offsets_s, offsets_s
        before, self.corrected = self.corrected, clocks.now()
        moved_s = [offset_s - before_s.get(node, offset_s) for node, offset_s in offsets_s.items()]
        if any(abs(by_s) > CLOCK_SET_S for by_s in (*moved_s, before.until(self.corrected).step_s)):
            await self.processes.begin_again()

    def on_our_clock(self, samples: Iterable[Sample], where: str) -> list[Sample]:
        """Samples with their times on the conductor's clock; `where`: the node whose clock they are by."""
        offset_s = self.offsets_s.get(where, 0.0)
        return [one._replace(t_s=one.t_s - offset_s) for one in samples] if offset_s else list(samples)

    def between(self, begun_s: float, ended_s: float) -> dict[Instrument, list[Sample]]:
        """Samples of a span, and what was sampled within one interval before and after it."""
        low_s, high_s = begun_s - READ_EVERY_S, ended_s + READ_EVERY_S
        return {who: [one for one in samples if low_s <= one.t_s <= high_s] for who, samples in self.samples.items()}

    def forget_before(self, t_s: float) -> None:
        """Let go of samples that no trial needs any more."""
        for who, samples in self.samples.items():
            self.samples[who] = [one for one in samples if one.t_s >= t_s]

    def expect_no_more(self, node: str) -> None:
        """Expect no more readings of a node, whose commands may end from now on."""
        self.gone |= {who for who in self.samples if who[1] == node}

    def check(self) -> None:
        """Raises ProbeError for an instrument that has said nothing for SILENCE_S beyond its interval."""
        limit_s = SILENCE_S + READ_EVERY_S
        silences_s = self.hearing.silences_s().items()
        late = [who for who, silent_s in silences_s if silent_s > limit_s and who not in self.gone]
        if late and self.failure is None:
            self._silent(f"no reading for {limit_s:g} s under load", late)

    def _silent(self, what: str, late: Sequence[Instrument]) -> NoReturn:
        """Raises ProbeError, and keeps it, so that the next trial is not measured with the same silent process."""
        words = "; ".join(f"{probe} of {node}{self._wrote(probe, node)}" for probe, node in late)
        self.failure = ProbeError(f"{what}: {words}", _without({probe for probe, _ in late}))
        raise self.failure

    async def reach(self, t_s: float, timeout_s: float = REACH_TIMEOUT_S) -> None:
        """Wait until every instrument has a sample at or after `t_s`. Raises ProbeError if one failed or is silent for
        `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while True:
            if self.failure is not None:
                raise self.failure
            expected = {who: samples for who, samples in self.samples.items() if who not in self.gone}
            late = [who for who, samples in expected.items() if not samples or samples[-1].t_s < t_s]
            if not late:
                return
            if time.monotonic() > deadline:
                self._silent(f"no reading for {timeout_s:g} s after the load", late)
            await asyncio.sleep(POLL_S)

    def _wrote(self, probe: str, node: str) -> str:
        path = self.last_words.get((probe, node))
        return _last_lines(path) or NOTHING_WRITTEN if path is not None else ""


async def watched_nodes(system: System, nodes: Sequence[Node]) -> tuple[Watched, ...]:
    """Leased nodes as probes find them: the database nodes with their server and the ways into it."""
    return tuple([await _watched(system, node) for node in nodes])


async def _watched(system: System, node: Node) -> Watched:
    if node.role != "database":
        return Watched(node)
    ways = system.ways(node) if isinstance(system, Observed) else {}
    return Watched(node, await system.process_ids(node), ways)


@dataclass(frozen=True)
class _Running:
    """A command of a probe that is running."""

    probe: Probe
    placement: Placement
    process: asyncio.subprocess.Process
    last_words: Path
    """File with its standard error."""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by its first line, and when it has failed."""

    @property
    def instruments(self) -> set[Instrument]:
        """Subjects of its readings."""
        return {(self.probe.name, node) for node in self.placement.speaks_of}

    @property
    def clock(self) -> str:
        """The node whose clock its readings are by; empty for the conductor's."""
        return self.placement.on.name if self.placement.on else ""

    @property
    def name(self) -> str:
        """Name and metrics, for people."""
        where = self.placement.on.name if self.placement.on else "this machine"
        of = ", ".join(self.placement.speaks_of)
        return f"{self.probe.name} on {where}" + ("" if of == where else f" (of {of})")


@contextlib.asynccontextmanager
async def watching(
    probes: Sequence[Probe],
    watched: Sequence[Watched],
    watcher: Watcher,
    offsets_s: Mapping[str, float] | None = None,
    first_reading_s: float = PATIENCE.first_reading_s,
    *,
    alone: bool = False,
) -> AsyncIterator[Readings]:
    """Run the commands of every probe for as long as the block lasts. Returns when each has given its first line.
    `offsets_s`: of the nodes' clocks, for as long as `Readings.offsets_s` is not replaced; `alone`: no command reads
    several nodes, so that nodes can come and go. Raises ProbeError for a probe that finds nothing to read, and for one
    that gives no line within `first_reading_s`."""
    readings = Readings(offsets_s=offsets_s or {})
    with tempfile.TemporaryDirectory(prefix="steelyard-probes-") as folder:
        processes = readings.processes = ProbeProcesses(readings, probes, watcher, Path(folder), first_reading_s)
        try:
            await processes.begin([[each] for each in watched] if alone else [watched])
            yield readings
        finally:
            await processes.end()


class ProbeProcesses:
    """Commands of probes that are running. Nodes can be added and taken away."""

    def __init__(
        self, readings: Readings, probes: Sequence[Probe], watcher: Watcher, folder: Path, first_reading_s: float
    ) -> None:
        self._readings = readings
        self._probes = probes
        self._watcher = watcher
        self._folder = folder
        self._first_reading_s = first_reading_s
        self._running: list[tuple[_Running, asyncio.Task[None]]] = []
        self._numbers = itertools.count()
        """Of commands."""
        self._nodes: dict[str, Node] = {}
        """Nodes that take commands, by name."""

    async def begin(
        self, groups: Sequence[Sequence[Watched]], wanted: Callable[[Probe], bool] = lambda probe: True
    ) -> None:
        """Start the commands of the wanted probes that read these nodes, each command those of one group, and return
        when each has given its first line. Raises ProbeError."""
        self._nodes |= {each.node.name: each.node for group in groups for each in group if each.node.commands}
        await self._start(one for each in self._probes if wanted(each) for one in self._placed(each, groups))

    async def begin_again(self) -> None:
        """End the commands that run, and start new ones: each keeps the time of when it was started, which is
        another once a clock was set. Raises ProbeError."""
        gone = set(self._readings.gone)
        running = [one for one, _ in self._running if not gone.issuperset(one.instruments)]
        await self.end()
        await self._start((one.probe, one.placement) for one in running)
        self._readings.gone = gone

    async def _start(self, placed: Iterable[tuple[Probe, Placement]]) -> None:
        begun = []
        for probe, placement in placed:
            last_words = self._folder / f"{next(self._numbers)}.stderr"
            known = cql_credentials() if placement.asks_cluster else {}
            pipe = asyncio.subprocess.PIPE
            process = await spawn(
                placement.on, placement.argv, stdout=pipe, stderr=last_words, watch=True, variables=known
            )
            self._readings.process_ids.append(process.pid)
            running = _Running(probe, placement, process, last_words)
            for instrument in running.instruments:
                self._readings.samples.setdefault(instrument, [])
                self._readings.last_words[instrument] = last_words
            begun.append(running)
            reader = asyncio.create_task(_read(running, self._readings, self._watcher))
            self._running.append((running, reader))
        await _all_started(begun, self._readings, self._first_reading_s)

    def _placed(self, probe: Probe, groups: Sequence[Sequence[Watched]]) -> list[tuple[Probe, Placement]]:
        """The commands of a probe for each group of nodes, each command once. Raises ProbeError if none finds
        anything to read, and if there is no node that is named to run one."""
        placements: list[Placement] = []
        failure = None
        for group in groups:
            try:
                placements += [one for one in placements_of(probe, group, READ_EVERY_S) if one not in placements]
            except ProbeError as error:
                failure = error
        if failure is not None and not placements:
            raise failure
        if missing := next((one.on_named for one in placements if one.on_named not in ("", *self._nodes)), ""):
            there = ", ".join(self._nodes) or "none"
            raise ProbeError(f"no node {missing} can run a command of the probe {probe.name}; nodes: {there}")
        return [(probe, replace(one, on=self._nodes.get(one.on_named, one.on))) for one in placements]

    async def end(
        self, node: str | None = None, wanted: Callable[[Probe], bool] = lambda probe: True
    ) -> set[Instrument]:
        """End the commands of wanted probes that read a node alone, or all; returns the instruments, of which nothing
        more is expected."""
        ending = [
            each
            for each in self._running
            if (node is None or each[0].placement.speaks_of == (node,)) and wanted(each[0].probe)
        ]
        self._running = [each for each in self._running if each not in ending]
        gone = {instrument for running, _ in ending for instrument in running.instruments}
        self._readings.gone |= gone
        # First the readers, to which a command that is ended here would have ended unasked.
        for _, reader in ending:
            reader.cancel()
        for running, _ in ending:
            self._readings.spent_s += process_time_s(running.process.pid)
        self._readings.process_ids = [
            pid for pid in self._readings.process_ids if pid not in {running.process.pid for running, _ in ending}
        ]
        await asyncio.gather(*(reader for _, reader in ending), return_exceptions=True)
        await asyncio.gather(*(end(running.process, END_GRACE_S) for running, _ in ending))
        return gone


async def _all_started(running: Sequence[_Running], readings: Readings, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            for each in running:
                await each.started.wait()
    except TimeoutError:
        silent = [each for each in running if not each.started.is_set()]
        words = "; ".join(f"{each.name}{_last_lines(each.last_words) or NOTHING_WRITTEN}" for each in silent)
        what = f"no reading within {within_s:g} s, as long as a first one is waited for on this site: {words}"
        raise ProbeError(what, _without({each.probe.name for each in silent})) from None
    if readings.failure is not None:
        raise readings.failure


async def _read(running: _Running, readings: Readings, watcher: Watcher) -> None:
    """Take in the lines of a command until it ends, which it should not do unasked."""
    probe, speaks_of = running.probe, running.placement.speaks_of
    assert running.process.stdout is not None
    try:
        async for line in running.process.stdout:
            node, rest = _node_of(line, speaks_of, running.name)
            # The clock is that of the node on which the command runs, whichever node the line is of.
            samples = readings.on_our_clock(probe.parse(node, rest), running.clock)
            readings.samples[probe.name, node].extend(samples)
            readings.hearing.heard((probe.name, node))
            running.started.set()
            if samples:
                watcher.tell(Sampled(samples))
        if all((probe.name, node) in readings.gone for node in speaks_of):
            return
        raise await _ended(running)
    except ProbeError as error:
        readings.failure = readings.failure or error
    except Exception as error:  # whatever a plug-in's parser raises
        failure = ProbeError(f"the probe {running.name} cannot read its own line: {type(error).__name__}: {error}")
        readings.failure = readings.failure or failure
    finally:
        running.started.set()


def _node_of(line: bytes, speaks_of: Sequence[str], name: str) -> tuple[str, bytes]:
    """The node that a line is of, and the line without its name."""
    if len(speaks_of) == 1:
        return speaks_of[0], line
    word, _, rest = line.partition(b" ")
    node = word.decode(errors="replace")
    if node not in speaks_of:
        raise ProbeError(f"the probe {name}: a line of no node that it reads: {line[:80]!r}")
    return node, rest


async def _ended(running: _Running) -> ProbeError:
    """Reason why a command ended, by its exit code and its last words."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running.process.wait(), EXIT_TIMEOUT_S)
    code = running.process.returncode
    how = "closed its output" if code is None else f"ended unasked with {_code(code)}"
    return ProbeError(f"the probe {running.name} {how}{_last_lines(running.last_words)}")


def _code(code: int) -> str:
    return f"code {code}" if code >= 0 else f"signal {-code}"


def _without(probes: Iterable[str]) -> str:
    """Hint for a study whose probes are silent."""
    return f"if this persists, remove {listed(sorted(probes))} from `probes` and run again"


def _last_lines(last_words: Path) -> str:
    """The last lines of a command's standard error, after a colon; empty if it wrote nothing."""
    try:
        with last_words.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - STDERR_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    last = " | ".join(line.strip() for line in lines[-STDERR_LINES:] if line.strip())
    return f": {last}" if last else ""
