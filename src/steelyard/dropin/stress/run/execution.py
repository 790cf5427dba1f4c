"""Execution of a command in cassandra-stress's order: schema, warm-up, truncation, load, results.

Two waits are left out because the server's answer makes them unnecessary: 2 s before a load, and 1 s per node after a
schema change. The pause of 15 s between two thread counts of `auto` stays, because it changes what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.dropin import agent_run, shortfall
from steelyard.dropin.agent_run import LoadResult
from steelyard.dropin.stress.parse.settings import Settings
from steelyard.dropin.stress.plan import orders, schema
from steelyard.dropin.stress.plan.orders import Ending, Plan
from steelyard.dropin.stress.print import hdr, output
from steelyard.dropin.stress.print.output import Finished
from steelyard.dropin.stress.print.output_stream import Voice, opened
from steelyard.dropin.stress.run import interval_stats
from steelyard.dropin.stress.run.interval_stats import Span
from steelyard.dropin.stress.run.load_counts import Recorder
from steelyard.model.errors import SystemFault
from steelyard.wire.order import Tls
from steelyard.wire.record import Connected, Interval
from steelyard.wire.schedule import steady_per_s

REST_S = 15.0
"""Pause between two thread counts of a writing command, so that the server can flush the data of the first."""
SCHEMA_TIMEOUT_S = 60.0
SMALLER_BATCHES = (
    "an insert is one batch: fewer `partitions`, a smaller `select` or `cluster` make it smaller; the limit is the "
    "server's batch_size_fail_threshold"
)
Tables = Sequence[tuple[str, str]]
"""Keyspace and name of each."""


@dataclass(frozen=True)
class Tools:
    """Functions with side effects; tests replace them."""

    drive: Callable[..., Any] = agent_run.drive
    cql: Callable[..., Any] = agent_run.cql
    discover: Callable[..., Any] = agent_run.discover
    rest_s: float = REST_S


@dataclass(frozen=True)
class Asking:
    """CQL queries to the nodes."""

    contacts: Sequence[str]
    variables: Mapping[str, str]
    tls: Tls | None
    cql: Callable[..., Any]

    @classmethod
    def of(cls, settings: Settings, contacts: Sequence[str], tools: Tools) -> Asking:
        """Create it from the settings of a command line."""
        user = agent_run.credentials(settings.connection.user, settings.connection.password)
        return cls(contacts, user, orders.tls(settings), tools.cql)

    async def rows(self, statements: Sequence[str]) -> tuple[tuple[dict[str, Any], ...], ...]:
        """The rows of each statement. Raises SystemFault if the server refuses one."""
        answers: tuple[tuple[dict[str, Any], ...], ...] = await self.cql(
            self.contacts, statements, variables=self.variables, tls=self.tls, timeout_s=SCHEMA_TIMEOUT_S
        )
        return answers

    async def is_there(self, keyspace: str) -> str:
        """A note that a keyspace exists, with its replication; empty if it does not."""
        question = "SELECT keyspace_name, replication FROM system_schema.keyspaces WHERE keyspace_name = "
        (described,) = await self.rows([question + schema.literal(keyspace)])
        if not described:
            return ""
        return f"keyspace {keyspace} already exists (replication {described[0].get('replication')})"


class Action:
    """Executes one command line. `seed`: of the operation stream."""

    def __init__(
        self, settings: Settings, plan: Plan, contacts: Sequence[str], voice: Voice, seed: int, tools: Tools
    ) -> None:
        self.settings = settings
        self.plan = plan
        self.contacts = contacts
        self.voice = voice
        self.seed = seed
        self.tools = tools
        self.interrupted = False
        self._connected = False
        self._read: dict[str, Span] = {}
        """Measured span of each reading query of a profile over all loads."""
        self.asking = Asking.of(settings, contacts, tools)

    async def run(self, creations: Sequence[str], tables: Tables) -> bool:
        """Run everything after the settings; returns whether it succeeded. Raises SteelyardError if it could not
        begin."""
        if creations:
            if note := await self.asking.is_there(self.settings.schema.keyspace):
                self.voice.note(f"steelyard stress: {note}: -schema does not change it, nor existing tables")
            await self.asking.rows(creations)
            self.voice.say_here("Created keyspaces.")
        if self.settings.command.count == 0:
            self.voice.say("N=0: SCHEMA CREATED, NOTHING ELSE DONE.")
            return True
        good = await self._warm_up()
        if good and not self.interrupted:
            threads, truncate = self.settings.rate.threads, self.settings.command.truncate
            if truncate == "once" or (truncate == "always" and threads is not None):
                await self._truncate(tables)
            if threads is None:
                self.voice.say("Thread count was not specified")
                good = await self._thread_counts(tables)
            else:
                good = await self._load(threads) is not None
        unfound = output.without_rows(self._read)
        ending = f"END, but {', '.join(unfound)} found no rows" if unfound else "END"
        self.voice.say(ending if good else "FAILURE")
        return good

    async def _truncate(self, tables: Tables) -> None:
        for keyspace, table in tables:
            with contextlib.suppress(_NoSuchTable):
                await self._empty(keyspace, table)
        for keyspace in dict.fromkeys(keyspace for keyspace, _ in tables):
            names = ", ".join(table for within, table in tables if within == keyspace)
            self.voice.say_here(f"Truncated {keyspace}.[{names}].")

    async def _empty(self, keyspace: str, table: str) -> None:
        try:
            await self.asking.rows(schema.truncations(keyspace, (table,)))
        except SystemFault as fault:
            # cassandra-stress truncates tables that may not exist.
            if "does not exist" in fault.message or "unconfigured table" in fault.message:
                raise _NoSuchTable from fault
            raise

    async def _warm_up(self) -> bool:
        operations = orders.warm_up_operations(self.settings)
        if not self.settings.command.warm_up or operations <= 0:
            return True
        threads = orders.warm_up_threads(self.settings)
        for name in sorted(self.plan.counted):
            self.voice.say(f"Warming up {name} with {operations} iterations...")
            outcome, _ = await self._drive(threads, Ending(operations), None, only=name)
            if outcome is None or self.interrupted:
                return outcome is not None
        return True

    async def _thread_counts(self, tables: Tables) -> bool:
        """One load per thread count, until the rate stops growing."""
        rate, command = self.settings.rate, self.settings.command
        if command.uncertainty is not None:
            self.voice.say(
                "WARNING: uncertainty mode (err<) results in uneven workload between thread runs, "
                "so should be used for high level analysis only"
            )
        finished: list[Finished] = []
        rates: list[float] = []
        threads, before = rate.least, 0
        growth = -1.0 if command.uncertainty is None else command.uncertainty
        while True:
            self.voice.say("", f"Running with {threads} threadCount")
            if command.truncate == "always":
                await self._truncate(tables)
            recorder = await self._load(threads)
            if recorder is None:
                return False
            rates.append(recorder.whole.operations_per_s)
            share = recorder.uncertainty.share
            finished.append(Finished(f"{threads} threadCount", recorder.whole, recorder.spans, share))
            if before:
                gain = 100 * interval_stats.average_improvement(rates, 1)
                self.voice.say_here(f"Improvement over {before} threadCount: {gain:.0f}%")
            before, threads = threads, interval_stats.threads_after(threads)
            if threads > rate.most or self.interrupted:
                break
            if command.writes:
                self.voice.say("Sleeping for 15s")
                await self._rest()
            if rate.auto and not (
                interval_stats.still_improves(rates, 3, 0.0) and interval_stats.still_improves(rates, 5, growth)
            ):
                break
        self.voice.say(*output.summary(finished))
        return True

    async def _rest(self) -> None:
        await asyncio.sleep(self.tools.rest_s)

    async def _load(self, threads: int) -> Recorder | None:
        """One measured load; None if it failed."""
        stop = orders.ending(self.settings)
        self.voice.say(f"Running {self._description()} with {threads} threads {self._how_long(stop)}", output.header())
        outcome, recorder = await self._drive(threads, stop, self.voice)
        if outcome is None:
            return None
        self.voice.say(*output.results(recorder.whole, recorder.spans, outcome.main.totals.unsent))
        reads = {name: span for name, span in recorder.spans.items() if self.plan.counted[name].reads}
        self.voice.say(*output.found_nothing(reads))
        for name, span in reads.items():
            self._read[name] = interval_stats.merged((self._read.get(name, span), span), side_by_side=False)
        self._tell_of_waiting(outcome)
        self._tell_of_lacks(outcome, stop)
        return recorder

    def _description(self) -> str:
        names = list(self.plan.counted)
        return names[0] if self.settings.command.clustering is None else f"[{', '.join(names)}]"

    def _how_long(self, stop: Ending) -> str:
        command = self.settings.command
        if command.duration is not None:
            return f"{command.duration[0]} {command.duration[1].lower()}"
        if command.count is not None:
            return f"for {command.count} iteration"
        return f"until stderr of mean < {command.uncertainty}"

    async def _drive(
        self, threads: int, stop: Ending, voice: Voice | None, only: str | None = None
    ) -> tuple[LoadResult | None, Recorder]:
        """Run one order, measured if there is a voice. The result is None if a failed operation aborted the load."""
        command, rate = self.settings.command, self.settings.rate
        paced = only is None and bool(rate.throttle_per_s or rate.fixed_per_s)
        time_of = "response" if paced and rate.fixed_per_s else "service"
        end = asyncio.Event()
        failed: dict[str, int] = {}
        async with self._histograms(voice) as log:
            recorder = Recorder(
                self.plan,
                time_of,
                voice,
                log,
                paced,
                row_every=self._intervals_in(self.settings.log.row_every_s) or 1,
                header_every=self._intervals_in(self.settings.log.header_every_s),
            )

            def on_interval(interval: Interval) -> None:
                recorder.take(interval)
                self._count_failures(interval, failed)
                if failed and not self.settings.errors.ignore:
                    end.set()
                if voice is not None and command.uncertainty is not None:
                    least, most = command.measurements
                    if recorder.uncertainty.settled(command.uncertainty, least, most):
                        end.set()

            order = orders.order(self.settings, self.plan, self.contacts, threads, stop, self.seed, only)
            workers = agent_run.workers_for(threads, steady_per_s(order.schedule))
            outcome = await self.tools.drive(
                order,
                workers=workers,
                variables=self.asking.variables,
                on_connected=self._say_connected,
                on_interval=on_interval,
                stop=end,
            )
            recorder.print_rows()
        # Set by this class, or else by a signal.
        own_end = bool(failed and not self.settings.errors.ignore) or (
            command.uncertainty is not None
            and voice is not None
            and recorder.uncertainty.settled(command.uncertainty, *command.measurements)
        )
        self.interrupted = self.interrupted or (outcome.interrupted and not own_end)
        self._tell_of_failures(failed, outcome)
        if failed and not self.settings.errors.ignore:
            return None, recorder
        return outcome, recorder

    def _intervals_in(self, seconds: int | None) -> int | None:
        return None if seconds is None else max(1, round(1000 * seconds / self.settings.log.interval_ms))

    @contextlib.asynccontextmanager
    async def _histograms(self, voice: Voice | None) -> AsyncIterator[hdr.LogWriter | None]:
        path = self.settings.log.histograms
        if path is None or voice is None:
            yield None
            return
        with opened("-log hdrfile=", path) as out:
            yield hdr.LogWriter(out, time.time())

    def _count_failures(self, interval: Interval, failed: dict[str, int]) -> None:
        for operation, counting in self.plan.counted.items():
            for outcome, number in interval.tables.outcomes(operation).items():
                if counting.fails(outcome) and number:
                    name = f"{operation}: {outcome}"
                    failed[name] = failed.get(name, 0) + number

    def _tell_of_failures(self, failed: Mapping[str, int], outcome: LoadResult) -> None:
        if not failed or self.settings.log.level == "MINIMAL":
            return
        listed = ", ".join(f"{name} x{number}" for name, number in sorted(failed.items()))
        self.voice.note(f"steelyard stress: operations failed: {listed}")
        for phase in outcome.phases.values():
            for kind, text in phase.totals.texts:
                self.voice.note(f"  servers said of {kind}: {text}")
                if "batch too large" in text.lower():
                    self.voice.note(f"  {SMALLER_BATCHES}")
        if not self.settings.errors.ignore:
            self.voice.note("  the load ends at the first interval with one; `-errors ignore` counts them instead")

    def _say_connected(self, record: Connected) -> None:
        if self._connected:
            return
        self._connected = True
        self.voice.note(f"steelyard stress: connected to {', '.join(record.nodes)} ({record.server})")
        self._tell_of_absent(record)
        self.voice.note("steelyard stress: nothing is read over JMX, so the gc columns are 0")

    def _tell_of_lacks(self, outcome: LoadResult, stop: Ending) -> None:
        """Report what was due and not sent, the rate that was not reached, and nodes that were left out."""
        rate = max(self.settings.rate.throttle_per_s, self.settings.rate.fixed_per_s)
        for line in shortfall.sentences(outcome.main.totals, rate or None, stop.duration_s):
            self.voice.note(f"steelyard stress: {line}")
        self._tell_of_absent(outcome.connected)

    def _tell_of_absent(self, connected: Connected | None) -> None:
        for cause in connected.absent if connected is not None else ():
            self.voice.note(f"steelyard stress: left out: {cause}")

    def _tell_of_waiting(self, outcome: LoadResult) -> None:
        """Report how late operations were sent: with `throttle=` the printed times begin when an operation is sent."""
        rate = self.settings.rate
        if not rate.throttle_per_s:
            return
        response = outcome.main.histogram("response", outcomes=None)
        median, high = (response.quantile_ns(share) for share in (0.5, 0.99))
        if median is None or high is None:
            return
        self.voice.note(
            f"steelyard stress: throttle={rate.throttle_per_s}/s: the times above begin when an operation is sent. "
            f"From when it was due: median {median / 1e6:.1f} ms, 99th percentile {high / 1e6:.1f} ms "
            f"(n = {response.n}). `fixed=` prints those"
        )


class _NoSuchTable(Exception):
    """An optional table does not exist."""
