"""Execution of one command: creates the table if asked to, drives the load, prints in YCSB's format."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from steelyard import __version__, hdrlog
from steelyard.atomic_file import write_output
from steelyard.dropin import agent_run, other_tables, shortfall, wording
from steelyard.dropin.ycsb import measures, output, property_support
from steelyard.dropin.ycsb.command import Command
from steelyard.dropin.ycsb.export_options import TIME_SERIES, Display, display
from steelyard.dropin.ycsb.order import Compiled, compile_command
from steelyard.engine_order import POPULATE_SEED
from steelyard.model.errors import EngineError, StudyError
from steelyard.wire.order import Ycsb
from steelyard.wire.record import Connected, Interval
from steelyard.wire.schedule import steady_per_s
from steelyard.wire.tables import Sums

EXIT_DONE, EXIT_INSERTION_FAILED, EXIT_INTERRUPTED = 0, 1, 130
CROWDED = "Warning: the threadcount is bigger than recordcount, the threadcount will be recordcount!"
REPLICATION = 3
"""Replication factor in YCSB's own instructions; lower with fewer nodes."""
SEED_BITS = 32
DIFFERENT = (
    "name another table (-p table=NAME, --create-table makes it), or say what this one has: fieldcount, fieldnameprefix"
)


async def carry_out(command: Command, out: TextIO, err: TextIO) -> int:
    """Run the command; data go to `out`, all else to `err`. Returns the exit code. Raises SteelyardError."""
    remarks = [*command.remarks, *property_support.check(command.properties)]
    shown = display(command.properties)
    seed = POPULATE_SEED if command.action == "load" else random.SystemRandom().getrandbits(SEED_BITS)
    compiled = compile_command(command, seed)
    _check_writable(shown)
    print("Command line: " + " ".join(command.words), file=err)
    print(f"Steelyard {__version__}, in place of YCSB Client 0.17.0", file=err)
    for line in remarks:
        print(f"steelyard: {line}", file=err)
    if compiled.crowded:
        print(CROWDED, file=out)
    words = wording.YCSB
    if compiled.target.user is not None:
        words = wording.typed("-p cassandra.username= and -p cassandra.password=", words)
    with wording.spoken(words):
        return await _sent(command, compiled, shown, out, err)


async def _sent(command: Command, compiled: Compiled, shown: Display, out: TextIO, err: TextIO) -> int:
    variables = agent_run.credentials(compiled.target.user, compiled.target.password)
    contacts = await _contacts(compiled, variables, err)
    if command.create_table:
        copies = min(REPLICATION, len(contacts))
        statements = compiled.target.statements(copies)
        await agent_run.cql(contacts, statements, variables=variables, tls=compiled.target.tls)
    print(f"Starting test. {_intention(compiled, shown)}", file=err, flush=True)
    screen = Screen(shown, compiled.operations, out, err)
    order = compiled.order.model_copy(update={"contacts": contacts, "interval_s": shown.interval_s})
    ended = await _drive(replace(compiled, order=order), screen, variables)
    screen.finish(ended.outcome, ended.cleanup_ns)
    for line in (
        *shortfall.sentences(ended.outcome.main.totals, steady_per_s(order.schedule), order.stop.duration_s),
        *_left_out(ended.outcome.connected),
    ):
        print(f"steelyard: {line}", file=err)
    if ended.failed_insertion:
        print("steelyard: an insertion failed, which ends the load as in YCSB; to continue anyway:", file=err)
        print("  -p core_workload_insertion_keep_going_on_error=true", file=err)
        return EXIT_INSERTION_FAILED
    return EXIT_INTERRUPTED if ended.outcome.interrupted else EXIT_DONE


async def _contacts(compiled: Compiled, variables: dict[str, str], err: TextIO) -> tuple[str, ...]:
    contacts, missing = await agent_run.discover(compiled.target.contacts, variables=variables, tls=compiled.target.tls)
    if len(contacts) > len(compiled.target.contacts):
        print(f"steelyard: nodes: {', '.join(contacts)}", file=err)
    for contact in missing:
        print(f"steelyard: {contact} belongs to the cluster, but cannot be reached: it is left out", file=err)
    return contacts


def _left_out(connected: Connected | None) -> list[str]:
    return [f"left out: {cause}" for cause in connected.absent] if connected is not None else []


def _intention(compiled: Compiled, shown: Display) -> str:
    """A line that describes the load, with the seed that repeats it."""
    order = compiled.order
    rate_per_s = steady_per_s(order.schedule)
    rate = "" if rate_per_s is None else f", {rate_per_s:g} operations/s"
    text = f"threadcount={compiled.threads}{rate}, steelyard.workers={compiled.workers}, steelyard.seed={order.seed}."
    halves = isinstance(order.work, Ycsb) and order.work.proportions.read_modify_write > 0
    if halves and shown.interval != "op" and order.action == "load":
        text += " Intended times of reads leave out those within read-modify-writes."
    return text


def _check_writable(shown: Display) -> None:
    """Fail before the load rather than after it."""
    paths = [Path(shown.export_file)] if shown.export_file else []
    paths += [Path(shown.hdr_path + "probe")] if shown.hdr_files else []
    for path in paths:
        if not path.absolute().parent.is_dir() or path.is_dir():
            raise StudyError(f"{path}: no file can be written there", "does its folder exist?", path=str(path))


@dataclass(frozen=True)
class Ended:
    """End of the load. `cleanup_ns`: from the last answer to the agent's end."""

    outcome: agent_run.LoadResult
    cleanup_ns: int
    failed_insertion: bool


async def _drive(compiled: Compiled, screen: Screen, variables: dict[str, str]) -> Ended:
    stop = asyncio.Event()
    answered_ns = time.monotonic_ns()
    failed = False
    ends_at_error = compiled.order.action == "populate" and not compiled.keeps_going

    def on_interval(interval: Interval) -> None:
        nonlocal failed
        screen.add(interval)
        if ends_at_error and interval.errors and not stop.is_set():
            failed = True
            stop.set()

    def on_phase(_name: str, _phase: agent_run.PhaseOutcome) -> None:
        nonlocal answered_ns
        answered_ns = time.monotonic_ns()

    try:
        outcome = await agent_run.drive(
            compiled.order,
            workers=compiled.workers,
            variables=variables,
            on_connected=screen.begin,
            on_interval=on_interval,
            on_phase=on_phase,
            stop=stop,
        )
    except EngineError as error:
        target, contacts = compiled.target, compiled.order.contacts

        async def rows(statements: Sequence[str]) -> Any:
            return await agent_run.cql(contacts, statements, variables=variables, tls=target.tls)

        wanted = "; ".join(target.statements(min(REPLICATION, len(contacts))))
        absent = f"create them, with --create-table or with: {wanted};"
        raise await other_tables.explained(error, target.schema, rows, absent, DIFFERENT) from None
    return Ended(outcome, time.monotonic_ns() - answered_ns, failed)


class Screen:
    """Sums intervals, prints status lines when they are due, and prints the final block."""

    def __init__(
        self,
        shown: Display,
        operations: int | None,
        out: TextIO,
        err: TextIO,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._shown = shown
        self._operations = operations
        self._out, self._err, self._now_s = out, err, now_s
        self._start_s: float | None = None
        self._line_s = 0.0
        """Time of the last status line, since the start."""
        self._done = self._done_at_line = 0
        self._sums = Sums()
        self._seen: dict[str, None] = {}
        """Measurements so far; each status line has all of them."""
        self._points: dict[str, list[tuple[int, float]]] = {}
        self._unit, self._unit_ms = Sums(), 0
        """timeseries: sums of the current unit, and its start."""
        self._files: dict[str, list[str]] = {}
        """Lines of the .hdr files, by measurement."""

    def begin(self, connected: Connected) -> None:
        """Name contacts that do not answer, and print the line before the first operation."""
        for line in _left_out(connected):
            print(f"steelyard: {line}", file=self._err)
        self._print_status(self._now_s(), 0.0, {})

    def add(self, interval: Interval) -> None:
        """Add an interval, and print a status line if one is due."""
        if self._start_s is None:
            self._start_s = interval.t_s
        self._done += interval.done
        self._sums.add(interval.tables)
        end_s = interval.t_s + interval.seconds
        if self._shown.kind == TIME_SERIES:
            # The start of an interval jitters by microseconds.
            units = int(((interval.t_s - self._start_s) * 1000 + 1) // self._shown.granularity_ms)
            if units * self._shown.granularity_ms > self._unit_ms:
                self._average()
                self._unit_ms = units * self._shown.granularity_ms
            self._unit.add(interval.tables)
        # Half of the agent's interval: its ends jitter by microseconds.
        if end_s - self._start_s - self._line_s >= self._shown.status_interval_s - self._shown.interval_s / 2:
            self._turn(end_s, None)

    def finish(self, outcome: agent_run.LoadResult, cleanup_ns: int) -> None:
        """Print the last status line and the final block, the latter to `out` or to the requested file."""
        main = outcome.main
        self._average()
        self._turn(main.totals.last_done_s or self._now_s(), cleanup_ns)
        measured = measures.measures(main.tables, self._shown, cleanup_ns)
        operations = main.totals.operations + main.totals.errors
        # YCSB's run time includes connecting, so it is never 0 after an operation.
        runtime_ms = max(round(main.totals.execution_ns / 1e6), min(operations, 1))
        rows = [*output.overall(runtime_ms, operations), *output.lacking(main.totals.unsent, outcome.connected)]
        text = output.export(rows + output.measured(measured, self._shown, self._points), self._shown.exporter)
        if self._shown.export_file:
            write_output(Path(self._shown.export_file), text)
        else:
            print(text, end="" if text.endswith("\n") else "\n", file=self._out)
        self._write_files()

    def _turn(self, end_s: float, cleanup_ns: int | None) -> None:
        """Write the counts since the last line as a status line and a line of each .hdr file."""
        tables = self._sums.take()
        measured = measures.measures(tables, self._shown, cleanup_ns)
        self._seen.update(dict.fromkeys(measured))
        elapsed_s = max(end_s - (self._start_s if self._start_s is not None else end_s), self._line_s)
        every = {name: measured.get(name, measures.Measure()) for name in self._order()}
        if self._shown.hdr_files:
            for name, measure in every.items():
                line = hdrlog.line(self._line_s, elapsed_s - self._line_s, measure.counts_us())
                self._files.setdefault(name, []).append(line)
        self._print_status(end_s, elapsed_s, every)
        self._line_s, self._done_at_line = elapsed_s, self._done

    def _order(self) -> list[str]:
        """All measurements so far, in YCSB's order."""
        own = [name for name in self._seen if not name.startswith("Intended-")]
        intended = [name.removeprefix("Intended-") for name in self._seen if name not in own]
        return [
            *measures.in_order(own),
            *(f"Intended-{name}" for name in measures.in_order(intended)),
        ]

    def _print_status(self, at_s: float, elapsed_s: float, measured: measures.Measures) -> None:
        if not self._shown.status:
            return
        since_s = elapsed_s - self._line_s
        text = output.status(
            self._shown,
            datetime.fromtimestamp(at_s),
            measured,
            elapsed_s=elapsed_s,
            done=self._done,
            current_per_s=(self._done - self._done_at_line) / since_s if since_s > 0 else 0.0,
            todo=max((self._operations or 0) - self._done, 0),
        )
        print(text, file=self._err, flush=True)
        if self._shown.kind == TIME_SERIES:
            print(text, file=self._out, flush=True)

    def _average(self) -> None:
        for name, measure in measures.measures(self._unit.take(), self._shown).items():
            if measure.n:
                self._points.setdefault(name, []).append((self._unit_ms, measure.mean_us))

    def _write_files(self) -> None:
        start_s = self._start_s if self._start_s is not None else self._now_s()
        for name, kept in self._files.items():
            text = hdrlog.head(f"Logging for: {name}", start_s) + "".join(kept)
            write_output(Path(f"{self._shown.hdr_path}{name}.hdr"), text)
