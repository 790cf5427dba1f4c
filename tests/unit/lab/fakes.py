"""A laboratory without machines: a site, a system, an engine and a workload that do what the test says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from steelyard.judging.noise_floor import Circumstances, FoundFloor
from steelyard.lab import cluster as cluster_module
from steelyard.lab import links as links_module
from steelyard.lab.parts import CalibrationStatus
from steelyard.leases.lease import Lease
from steelyard.model.data_model import Schema
from steelyard.model.link import LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.base import Node
from steelyard.plan import expand
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.policy.base import Policy
from steelyard.site.base import Request
from steelyard.system.base import Endpoint
from steelyard.wire.order import Order, Ycsb
from steelyard.wire.record import Record, Summary
from steelyard.wire.schedule import Schedule, steady_per_s
from steelyard.wire.word import PhaseWord
from steelyard.workload import ycsb
from tests.unit.wire import made

SCHEMA = Schema("ks", "t", "k", ("f0",))


def study(**changes: Any) -> Study:
    """Two sizes, one workload, two starts, two trials each, unless changed."""
    return Study.model_validate(
        {
            "study": {"name": "fake", "question": "does the laboratory work?"},
            "site": {"name": "local"},
            "system": {"name": "simulated"},
            "workload": {"name": "ycsb-a", "records": 100},
            "load": {"operations": 10},
            "design": {"starts": 2, "trials": 2, "seed": 3},
            "factors": {"nodes": [1, 3]},
            "probes": [],
            **changes,
        }
    )


@dataclass
class Script:
    """What the fakes do, and what was done to them."""

    folder: Path
    leases: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    driven: list[Order] = field(default_factory=list)
    words: list[PhaseWord] = field(default_factory=list)
    milliseconds: Callable[[float], float] = lambda rate_per_s: 5.0
    """Response time in a window of a search, by its rate."""
    on_drive: Callable[[int, Order], None] = lambda count, order: None
    on_ready: Callable[[Node], bool] = lambda node: True
    healthy: bool = True
    broken_links: set[str] = field(default_factory=set)
    """Leases whose link no longer works."""
    moved: list[MovedFrames] = field(default_factory=list)
    """What the link program moves in the next trials; nothing is counted in any further ones."""
    links: list[LinkChoice] = field(default_factory=list)
    """The link of each lease."""
    hang_at_drive: int | None = None
    says: Callable[[Order], Sequence[Record]] = lambda order: records_of(order)  # noqa: PLW0108 - it is defined below
    """What the engine says for an order."""


class FakeSite:
    name = "fake"
    shares = frozenset({"cpu"})
    links = frozenset({"switched"})

    def __init__(self, script: Script) -> None:
        self.script = script

    async def lease(self, request: Request, until: datetime) -> Lease:
        name = f"lease{len(self.script.leases)}"
        self.script.leases.append(name)
        self.script.links.append(request.link)
        nodes = [
            Node(f"n{i + 1}", "database", f"10.0.0.{i + 1}", (), self.script.folder)
            for i in range(request.database_nodes)
        ]
        nodes.append(Node("l1", "load", "10.0.1.1", (), self.script.folder))
        return Lease(name, self.name, tuple(nodes), until, self.script.folder / name)

    async def release(self, lease: Lease) -> None:
        self.script.released.append(lease.id)

    async def leftovers(self) -> Sequence[Lease]:
        return ()

    def link_failure(self, lease: Lease) -> str | None:
        return "the link program exited with code -9" if lease.id in self.script.broken_links else None

    async def moved_frames(self, lease: Lease, begun_s: float, ended_s: float) -> MovedFrames | None:
        return self.script.moved.pop(0) if self.script.moved else None

    async def facts(self, node: Node) -> dict[str, str]:
        return {"cpu": "fake"}

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        return None


class FakeSystem:
    name = "fake"
    protocol = "cql"
    version = "1"
    memory_mb_per_node = 1

    def __init__(self, script: Script) -> None:
        self.script = script

    async def prepare(self) -> None: ...
    async def install(self, node: Node, peers: Sequence[Node]) -> None: ...
    async def start(self, node: Node, peers: Sequence[Node]) -> None: ...
    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None: ...
    async def stop(self, node: Node) -> None: ...
    async def kill(self, node: Node) -> None: ...
    async def wipe(self, node: Node) -> None: ...

    async def ready(self, node: Node, members: int) -> bool:
        return self.script.healthy and self.script.on_ready(node)

    async def waiting_for(self, node: Node) -> str:
        return "is thinking"

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        return Endpoint("cql", tuple(f"{node.address}:1" for node in nodes), "ks", "t")

    async def facts(self, node: Node) -> Mapping[str, str]:
        return {"version": "1"}

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        return {}

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        return ()

    def logs(self, node: Node) -> tuple[Path, ...]:
        return ()


class FakeWorkload:
    name = "ycsb-a"
    protocol = "cql"
    writes = True

    def schema(self) -> Schema:
        return SCHEMA

    def data(self) -> dict[str, Any]:
        return {"records": 100}

    def order(self) -> Ycsb:
        return ycsb.Core("ycsb-a", ycsb.Settings(), SCHEMA).order()


CAPACITY_PER_S = 500.0
"""What the system of the fakes can do, however much is in flight."""


def records_of(order: Order, *, errors: int = 0, milliseconds: float = 5.0) -> list[Record]:
    """What a well-behaved engine says for an order."""
    if order.action == "populate":
        return _phase_of("populate", 100, 100 * milliseconds / 1000, errors, milliseconds)
    if not order.phases:
        stop = order.stop
        if stop.operations is None:
            amount, seconds = _offered(order.schedule, stop.duration_s), stop.duration_s
        else:
            amount, seconds = stop.operations, stop.operations * milliseconds / 1000
        return _phase_of("measure", amount, seconds, errors, milliseconds)
    found: list[Record] = []
    for phase in order.phases:
        amount = _offered(phase.schedule, phase.duration_s)
        found += _phase_of(phase.name, amount, phase.duration_s, errors, milliseconds)
    return found


def _offered(schedule: Schedule, duration_s: float) -> int:
    return int(min(steady_per_s(schedule) or CAPACITY_PER_S, CAPACITY_PER_S) * duration_s + 0.5)


def _phase_of(phase: str, operations: int, seconds: float, errors: int, milliseconds: float) -> list[Record]:
    bucket = (int(milliseconds * 1e6), int(milliseconds * 1e6) + 1023, operations)
    tables = (made.counts([bucket], measure=measure) for measure in ("response", "service"))
    summary = Summary(
        rate_per_s=1.0, response_ms_p50=1.0, response_ms_p99=1.0, service_ms_p50=1.0, service_ms_p99=1.0,
        pacing_ms_p99=1.0,
    )  # fmt: skip
    interval = made.interval(
        *tables, phase=phase, seconds=seconds, sent=operations, done=operations, errors=errors, summary=summary
    )
    done = made.done(
        phase=phase, last_done_s=100.0 + seconds, execution_ns=int(seconds * 1e9), operations=operations - errors,
        errors=errors, errors_by_kind={"timeout": errors} if errors else {},
    )  # fmt: skip
    return [made.HELLO, interval, done]


class FakeEngine:
    def __init__(self, script: Script) -> None:
        self.script = script

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        count = len(self.script.driven)
        self.script.driven.append(order)
        if self.script.hang_at_drive == count:
            await asyncio.sleep(3600)
        self.script.on_drive(count, order)
        for record in self.script.says(order):
            on_record("l1", record)

    async def drive_by_words(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        phases: AsyncIterator[PhaseWord],
        timeout_s: float,
    ) -> None:
        self.script.driven.append(order)
        async for phase in phases:
            self.script.words.append(phase)
            rate_per_s = phase.schedule.rate_per_s
            operations = round(rate_per_s * phase.duration_s)
            for record in _phase_of(phase.name, operations, phase.duration_s, 0, self.script.milliseconds(rate_per_s)):
                on_record("l1", record)


@dataclass
class FakeParts:
    script: Script
    plugins: Plugins = field(default_factory=Plugins)
    state_folder: Path = Path("/there/is/no/state")
    wall_clock: Callable[[], float] = time.time
    site_of: Callable[[Script], FakeSite] = FakeSite
    system_of: Callable[[Script], FakeSystem] = FakeSystem
    engine_of: Callable[[Script], FakeEngine] = FakeEngine

    def site(self, settings: Mapping[str, Any]) -> FakeSite:
        return self.site_of(self.script)

    def load_site(self, settings: Mapping[str, Any]) -> FakeSite | None:
        return None

    def system(self, settings: Mapping[str, Any]) -> FakeSystem:
        return self.system_of(self.script)

    def policy(self, settings: TrialSettings, threshold: float | None = None) -> Policy:
        return Parts(self.plugins).policy(settings)

    def workload(self, settings: Mapping[str, Any]) -> FakeWorkload:
        return FakeWorkload()

    def calibration(self, engine: str, protocol: str, facts: Mapping[str, str]) -> CalibrationStatus:
        return CalibrationStatus()

    def noise_floor(self, of: Sequence[Circumstances]) -> FoundFloor:
        return FoundFloor()

    def engine(self, settings: Mapping[str, Any]) -> FakeEngine:
        return self.engine_of(self.script)


def without_waiting(monkeypatch: Any) -> None:
    """No paths to measure, and no patience with a node that does not answer. Patches stay here: they are the machine
    that the whole laboratory would need."""

    async def no_link(*_: Any) -> dict[str, float]:
        return {"rtt_ms_min": 0.1, "rtt_ms_mean": 0.1}

    async def slow_link(*_: Any) -> dict[str, float]:
        return {"rtt_ms_min": 0.1, "rtt_ms_mean": 0.1, "mbit_per_s": 50.0, "loss_percent": 0.0}

    monkeypatch.setattr(links_module, "measure_link", no_link)
    monkeypatch.setattr(links_module, "measure_path", slow_link)
    monkeypatch.setattr(cluster_module, "HEALTH_TIMEOUT_S", 0.5)


def plan_of(a_study: Study) -> Any:
    return expand(a_study)
