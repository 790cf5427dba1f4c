"""The data state that a trial starts from: a snapshot of tables filled once, restored; or reloaded, emptied,
continued."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from steelyard import engine_order
from steelyard.engine.base import Engine
from steelyard.events.base import Watcher
from steelyard.events.shown import Ticked, Waiting
from steelyard.lab.node_death import while_alive
from steelyard.lab.silence import Listening
from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError, SystemFault
from steelyard.model.study import Data
from steelyard.node.base import Node
from steelyard.system.base import Settles, Snapshots, System, Truncates
from steelyard.wire.record import Done, Interval, Record
from steelyard.workload.base import Workload

DIRTY = "dirty"
EMPTY = "empty"
SPENT = "spent"
SETTLE_POLL_S = 0.5


@dataclass
class DataState:
    """Content of the tables of one start of a cluster, and the way to the content that a trial needs."""

    system: System
    engine: Engine
    databases: Sequence[Node]
    loaders: Sequence[Node]
    data: Data
    watcher: Watcher
    timeout_s: float
    current: str = EMPTY
    """Key of the filled state that is in the tables, or DIRTY, or EMPTY; SPENT: by the server warm-up, so that
    nothing continues from it."""
    created: set[Schema] = field(default_factory=set)
    """Whose tables there are."""

    @property
    def takes_snapshots(self) -> bool:
        """Whether a snapshot of filled data is kept for later."""
        return self.data.state in ("restore", "continue") and isinstance(self.system, Snapshots)

    def emptied(self) -> None:
        """The nodes were wiped."""
        self.current = EMPTY
        self.created.clear()

    async def settle(self) -> Mapping[str, float]:
        """Wait until compactions, hints and streams are done, for `settle_timeout_s` at most; returns what is still
        outstanding then, nothing if all is quiet."""
        if not isinstance(self.system, Settles):
            return {}
        deadline = time.monotonic() + self.data.settle_timeout_s
        while True:
            busy = await self.system.busy(self.databases)
            outstanding = {what: amount for what, amount in busy.items() if amount > 0}
            if not outstanding or time.monotonic() > deadline:
                return outstanding
            text = ", ".join(f"{amount:g} {what}" for what, amount in outstanding.items())
            self.watcher.tell(Waiting(f"waiting for {text} to end"))
            await asyncio.sleep(SETTLE_POLL_S)

    async def ensure(self, workload: Workload) -> str:
        """Bring the tables to what `data.state` asks before a trial; returns what was done, in a word."""
        schema, wanted = workload.schema(), self.key(workload)
        if schema not in self.created:
            await self.system.create_schema(self.databases, schema)
            self.created.add(schema)
        if self.data.state == "continue" and self.current not in (EMPTY, SPENT):
            return "continued"
        if self.data.state == "truncate":
            await self._truncate(schema)
            return "truncated"
        if self.current == wanted and self.data.state != "reload":
            return "unchanged"
        if (
            self.data.state != "reload"
            and isinstance(self.system, Snapshots)
            and await self.system.has(self.databases, wanted)
        ):
            self.watcher.tell(Waiting("restoring the snapshot"))
            await self.system.restore(self.databases, schema, wanted)
            self.current = wanted
            return "restored"
        await self._fill(workload, schema, wanted)
        return "filled"

    def used(self, workload: Workload) -> None:
        """A trial of `workload` has run on the tables."""
        if workload.writes:
            self.current = DIRTY

    def warmed_up(self) -> None:
        """The server warm-up is over: the next trial begins with what the study asks for, as in a start without it.
        Also where nothing was written: the first start of a study then has restored data as all others have."""
        if isinstance(self.system, Snapshots):
            self.current = SPENT

    def key(self, workload: Workload) -> str:
        """Name of the filled state that a workload works on."""
        if isinstance(self.system, Snapshots):
            return self.system.snapshot_key(self.databases, workload.schema(), workload.data())
        return repr(sorted(workload.data().items()))

    async def _truncate(self, schema: Schema) -> None:
        if not isinstance(self.system, Truncates):
            raise StudyError(
                f"system {self.system.name} cannot empty its tables",
                "use data.state = 'continue'",
                key="data.state",
                read=self.data.state,
                allowed=("continue",),
            )
        await self.system.truncate(self.databases, schema)
        self.current = EMPTY

    async def _fill(self, workload: Workload, schema: Schema, key: str) -> None:
        if self.current != EMPTY:
            await self._truncate(schema)
        endpoint = self.system.endpoint(self.databases, schema)
        records = engine_order.filling_operations(workload)
        self.watcher.tell(Waiting(f"filling {int(workload.data().get('records', 0)):,} records"))
        dones: list[Done] = []

        def take(node: str, record: Record) -> None:
            if isinstance(record, Interval):
                self.watcher.tell(Ticked(node, record))
            elif isinstance(record, Done):
                dones.append(record)

        filling = engine_order.populate(endpoint, schema, workload, self.data.populate_threads)
        if records:
            listening = Listening(self.engine, filling, self.loaders)
            driving = self.engine.drive(filling, self.loaders, listening.to(take), self.timeout_s)
            await while_alive(driving, self.system, lambda: self.databases, (listening.check,))
        done = sum(end.operations for end in dones)
        errors = sum(end.errors for end in dones)
        if errors or done != records:
            raise SystemFault(
                f"filling ended with {done:,} of {records:,} operations and {errors:,} errors",
                "lower data.populate_threads, or give the nodes more memory",
                system=self.system.name,
            )
        self.current = key
        if self.takes_snapshots and isinstance(self.system, Snapshots):
            await self.settle()
            self.watcher.tell(Waiting("taking a snapshot of the filled tables"))
            await self.system.snapshot(self.databases, schema, key)
