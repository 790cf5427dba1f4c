"""Contract tests of an engine; authors of engines inherit them.

    class TestMyEngine(EngineContract):
        module = "path/to/my_engine.py"         # module name, entry point or path, as in a study

Orders are run for real against the simulated cluster, which knows every key. An engine that cannot speak to it
overrides `contacts`; one that cannot run
YCSB's reads names another `workload`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard import engine_order
from steelyard.engine.base import DrivenByWords, Engine, FallsSilent, Selective
from steelyard.model.errors import EngineError
from steelyard.model.load import Load
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.base import Node
from steelyard.plugins.find import Plugins, any_file
from steelyard.plugins.parts import Parts
from steelyard.system.base import Endpoint
from steelyard.testing.cluster import running
from steelyard.testing.findings import check_findings
from steelyard.wire.order import Order, RespTarget
from steelyard.wire.record import Connected, Doing, Done, Hello, Interval, Record, SampleRecord
from steelyard.wire.schedule import Closed, Steady
from steelyard.wire.word import PhaseWord
from steelyard.workload.base import Workload

MARK = "STEELYARD_CONTRACT"
"""Environment variable of every process that an engine starts here, so that leftover processes can be found."""
OPERATIONS = 600
THREADS = 4
SPOKEN_S = 3.0
"""Duration of a load whose intervals are timed as they arrive."""
LONG_S = 120.0
"""Duration of a load that no test waits for."""
TIMEOUT_S = 60.0
SHORT_TIMEOUT_S = 3.0
CANCEL_AFTER_S = 1.0
POLL_S = 0.05
END_TIMEOUT_S = 30.0
"""Time limit for an engine to end."""
FORMAT = 1
NO_SERVER = "127.0.0.1:1"
"""A contact where no server listens."""

Heard = list[tuple[str, Record]]
"""Node and record, in order of arrival."""


class EngineContract:
    """Inherit it and set `module`; everything else has a default."""

    module: ClassVar[str]
    load_nodes: ClassVar[int] = 2
    workload: ClassVar[str] = "ycsb-c"
    workload_settings: ClassVar[Mapping[str, Any]] = {"records": 1000}
    port: ClassVar[int] = 19176
    """Port of the simulated cluster."""
    operations: ClassVar[int] = OPERATIONS
    """Number of operations of a load."""
    exact: ClassVar[bool] = True
    """Whether the number of operations done equals the number ordered exactly."""

    @asynccontextmanager
    async def contacts(self, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
        """A running cluster; everything is undone at the end."""
        settings = {"port": self.port, "service_us": 100.0, "servers": 64}
        async with running(tmp_path / "state", system="simulated", system_settings=settings) as cluster:
            await cluster.system.create_schema(cluster.nodes, self.new_workload().schema())
            yield tuple(f"{node.address}:{self.port}" for node in cluster.nodes)

    def order(self, contacts: Sequence[str], load: Load) -> Order:
        """The order of a load on the cluster."""
        workload = self.new_workload()
        schema = workload.schema()
        endpoint = Endpoint(workload.protocols[0], tuple(contacts), schema.keyspace, schema.table)
        return engine_order.measure(load, endpoint, schema, workload, 1)

    def new_workload(self) -> Workload:
        """The workload of the orders."""
        return Parts(Plugins(trust=any_file)).workload(
            TrialSettings.model_validate({"workload": {"name": self.workload, **self.workload_settings}}),
        )

    def nodes(self, tmp_path: Path, count: int = 1) -> tuple[Node, ...]:
        """Local load nodes; their processes have a unique mark."""
        mark = {MARK: f"{uuid.uuid4()}"}
        nodes = []
        for index in range(count):
            folder = tmp_path / f"l{index + 1}"
            folder.mkdir(exist_ok=True)
            nodes.append(Node(f"l{index + 1}", "load", "127.0.0.1", (), folder, environment=mark))
        return tuple(nodes)

    def engine(self) -> Engine:
        """The engine that a study with this name would get."""
        return Parts(Plugins(trust=any_file)).engine_named(self.module)

    def test_says_what_it_needs(self) -> None:
        """An engine that `Diagnoses` reports what is there, and gives a hint for the rest."""
        check_findings(self.engine())

    def test_carries_out_an_order(self, tmp_path: Path) -> None:
        """On every load node: hello, intervals, done; and the interval counts add up to those in the end record."""
        nodes = self.nodes(tmp_path, self.load_nodes)

        async def body() -> Heard:
            async with self.contacts(tmp_path) as contacts:
                return await self._driven(contacts, Load(operations=self.operations, threads=THREADS), nodes)

        heard = asyncio.run(body())
        assert {name for name, _ in heard} == {node.name for node in nodes}
        whole = sum(_says_what_it_did([record for name, record in heard if name == node.name]) for node in nodes)
        assert whole == self.operations if self.exact else whole > 0
        assert left_over(nodes) == []

    def test_says_how_far_it_is_while_it_drives(self, tmp_path: Path) -> None:
        """An engine that is not `FallsSilent` reports each interval as it ends, so that a hung engine is noticed."""
        engine = self.engine()
        if isinstance(engine, FallsSilent):
            return
        nodes = self.nodes(tmp_path)
        # On a busy machine the first interval may be late, but not each time.
        ahead_s = (self._first_interval_ahead_s(engine, tmp_path, nodes) for _ in range(3))
        assert any(ahead > SPOKEN_S / 3 for ahead in ahead_s), "its intervals arrived at the end"

    def _first_interval_ahead_s(self, engine: Engine, tmp_path: Path, nodes: Sequence[Node]) -> float:
        """Time from the first interval to the end record, in seconds."""
        heard_s = dict[type[Record], float]()

        def take(node: str, record: Record) -> None:
            heard_s.setdefault(type(record), time.monotonic())

        async def body() -> None:
            async with self.contacts(tmp_path) as contacts:
                order = self.order(contacts, Load(duration_s=SPOKEN_S, threads=THREADS))
                await engine.drive(order, nodes, take, TIMEOUT_S)

        asyncio.run(body())
        return heard_s[Done] - heard_s[Interval]

    def test_carries_out_orders_one_after_the_other(self, tmp_path: Path) -> None:
        """Files that an order left in the node's folder do not affect the next one."""
        nodes = self.nodes(tmp_path)

        async def body() -> tuple[Heard, Heard]:
            async with self.contacts(tmp_path) as contacts:
                load = Load(operations=self.operations, threads=THREADS)
                return await self._driven(contacts, load, nodes), await self._driven(contacts, load, nodes)

        first, second = asyncio.run(body())
        assert _says_what_it_did([record for _, record in first]) > 0
        assert sum(isinstance(record, Done) for _, record in second) == 1

    def test_ends_in_time(self, tmp_path: Path) -> None:
        """A load that exceeds its time limit is a fault of the engine, and none of its processes remains."""
        nodes = self.nodes(tmp_path)

        async def body() -> None:
            async with self.contacts(tmp_path) as contacts:
                begun = time.monotonic()
                with pytest.raises(EngineError, match=f"{SHORT_TIMEOUT_S:g} s"):
                    await self._driven(contacts, Load(duration_s=LONG_S, threads=THREADS), nodes, SHORT_TIMEOUT_S)
                assert time.monotonic() - begun < SHORT_TIMEOUT_S + END_TIMEOUT_S

        asyncio.run(body())
        assert left_over(nodes) == []

    def test_cancelled_it_leaves_no_process(self, tmp_path: Path) -> None:
        """An interrupted study ends the load at once."""
        nodes = self.nodes(tmp_path)

        async def body() -> None:
            async with self.contacts(tmp_path) as contacts:
                load = Load(duration_s=LONG_S, threads=THREADS)
                driving = asyncio.ensure_future(self._driven(contacts, load, nodes))
                await _until_there(nodes, driving)
                await asyncio.sleep(CANCEL_AFTER_S)
                driving.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(driving, END_TIMEOUT_S)

        asyncio.run(body())
        assert left_over(nodes) == []

    def test_nobody_there_is_said(self, tmp_path: Path) -> None:
        """A cluster that does not answer is an error with the node's name, not a load with errors."""
        nodes = self.nodes(tmp_path)
        with pytest.raises(EngineError, match="l1"):
            asyncio.run(self._driven((NO_SERVER,), Load(operations=self.operations, threads=THREADS), nodes))
        assert left_over(nodes) == []

    def test_what_it_cannot_is_refused_before_anything_starts(self, tmp_path: Path) -> None:
        """An engine with `check` refuses an unsupported order, as one over another protocol than the workload's, with a
        reason, and so does its `drive`."""
        engine = self.engine()
        if not isinstance(engine, Selective):
            return
        order = self.order((NO_SERVER,), Load(operations=self.operations, threads=THREADS))
        engine.check(order, 1)
        strange = order.model_copy(update={"target": RespTarget()})
        with pytest.raises(EngineError) as refused:
            engine.check(strange, 1)
        assert refused.value.message
        nodes = self.nodes(tmp_path)
        with pytest.raises(EngineError):
            asyncio.run(engine.drive(strange, nodes, lambda name, record: None, TIMEOUT_S))
        assert left_over(nodes) == []

    def test_takes_phases_as_they_are_decided(self, tmp_path: Path) -> None:
        """An engine that is driven by words runs each phase on every load node when the phase is requested, and
        ends after the last."""
        engine = self.engine()
        if not isinstance(engine, DrivenByWords):
            return
        nodes = self.nodes(tmp_path, self.load_nodes)
        heard: Heard = []

        async def phases() -> AsyncIterator[PhaseWord]:
            for name, rate_per_s in (("a", 200.0), ("b", 400.0)):
                schedule = Steady(kind="constant", rate_per_s=rate_per_s, in_flight=THREADS * len(nodes))
                yield PhaseWord(name=name, schedule=schedule, duration_s=1.0, settle_s=0.5)
                while sum(isinstance(end, Done) and end.phase == name for _, end in heard) < len(nodes):  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)

        async def body() -> None:
            async with self.contacts(tmp_path) as contacts:
                load = Load(
                    schedule="search", objective=("response_ms_p99 <= 1000",), threads=THREADS * len(nodes),
                    warm_up_s=0.5,
                )  # fmt: skip
                take = heard.append
                await engine.drive_by_words(
                    self.order(contacts, load), nodes, lambda name, record: take((name, record)), phases(), TIMEOUT_S
                )

        asyncio.run(body())
        for node in nodes:
            records = [record for name, record in heard if name == node.name]
            ends = [record.phase for record in records if isinstance(record, Done)]
            assert ends == ["warm-up", "search-settle", "a", "search-settle", "b"]
            assert sum(isinstance(record, Connected) for record in records) == 1, "one set of connections"
        done = {name: sum(record.operations for _, record in heard if isinstance(record, Done) and record.phase == name)
                for name in ("a", "b")}  # fmt: skip
        assert done["b"] > 1.5 * done["a"] > 0
        assert left_over(nodes) == []

    def test_a_load_by_words_that_nobody_answers_ends_with_the_reason(self, tmp_path: Path) -> None:
        """A cluster that does not answer also ends a load that is driven by words."""
        engine = self.engine()
        if not isinstance(engine, DrivenByWords):
            return
        nodes = self.nodes(tmp_path)

        asked: list[str] = []

        async def phases() -> AsyncIterator[PhaseWord]:
            asked.append("a")
            yield PhaseWord(name="a", schedule=Closed(threads=1), duration_s=1.0)

        load = Load(schedule="search", objective=("response_ms_p99 <= 1000",), threads=THREADS)
        with pytest.raises(EngineError, match="l1"):
            asyncio.run(
                engine.drive_by_words(
                    self.order((NO_SERVER,), load), nodes, lambda name, record: None, phases(), TIMEOUT_S
                )
            )
        assert asked == []
        assert left_over(nodes) == []

    async def _driven(
        self, contacts: Sequence[str], load: Load, nodes: Sequence[Node], timeout_s: float = TIMEOUT_S
    ) -> Heard:
        heard: Heard = []
        take = heard.append
        order = self.order(contacts, load)
        await self.engine().drive(order, nodes, lambda name, record: take((name, record)), timeout_s)
        return heard


def _says_what_it_did(records: Sequence[Record]) -> int:
    """Check that the records of one node are complete; returns their operations, failed ones included."""
    hello, done = records[0], records[-1]
    assert isinstance(hello, Hello), records
    assert (hello.format, bool(hello.agent)) == (FORMAT, True)
    assert isinstance(done, Done), records
    kinds = [type(record) for record in records]
    assert kinds.count(Hello) == kinds.count(Done) == 1
    assert set(kinds) <= {Hello, Connected, Interval, Done, Doing, SampleRecord}
    intervals = [record for record in records if isinstance(record, Interval) and record.phase == done.phase]
    assert intervals
    times_s = [interval.t_s for interval in intervals]
    assert times_s == sorted(times_s)
    for interval in intervals:
        answered = sum(
            count
            for counts in interval.counts
            if counts.measure == "response"
            for low_ns, high_ns, count in counts.buckets
            if low_ns <= high_ns
        )
        assert answered == interval.done, "every operation is in a histogram of response times"
    whole = done.operations + done.errors
    assert sum(interval.done for interval in intervals) == whole
    assert sum(interval.errors for interval in intervals) == done.errors
    assert sum(done.errors_by_kind.values()) == done.errors
    assert done.execution_ns > 0
    assert done.first_sent_s <= done.last_done_s
    return whole


async def _until_there(nodes: Sequence[Node], driving: asyncio.Future[Heard]) -> None:
    """Wait until a process of the engine runs. Raises the error of a drive that ended before, and TimeoutError."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while not left_over(nodes):
        if driving.done():
            raise AssertionError(f"the load ended before it was seen: {driving.result()}")
        if time.monotonic() > deadline:
            raise TimeoutError("no process of the engine was seen")
        await asyncio.sleep(POLL_S)


def left_over(nodes: Sequence[Node]) -> list[int]:
    """Ids of running processes with the mark of these nodes."""
    mark = f"{MARK}={nodes[0].environment[MARK]}".encode()
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                pids.append(int(folder.name))
        except OSError:
            continue
    return pids
