"""The contract suites see what is wrong: each is tried on a plug-in that breaks one promise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steelyard.testing.engine import EngineContract
from steelyard.testing.policy import PolicyContract
from steelyard.testing.probe import ProbeContract
from steelyard.testing.workload import WorkloadContract

PROBE = """
from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
class Probe:
    name = "broken"
    metrics = (Metric(name="machine_a", unit="u", description="d"), Metric(name="machine_b", unit="u", description="d"))
    said = 0
    def command(self, node, interval_s, process_ids):
        return ["sh", "-c", "while sleep 1; do date +%s.%N; done"]
    def parse(self, node, line):
        self.said += 1
        return [Sample(float(line) + self.said, node, "machine_a", 1.0)] if line[:1].isdigit() else []
def create():
    return Probe()
"""
WORKLOAD = """
from pydantic import BaseModel
from steelyard.model.data_model import Schema
from steelyard.workload import ycsb
KEPT = {"records": 5}
class Settings(BaseModel):
    records: int = 5
class Workload:
    name, protocol, writes = "broken", "cql", False
    def schema(self): return Schema("ks", "t", "k", ("f0",))
    def data(self): return KEPT
    def order(self): return ycsb.create(ycsb.Settings()).order()
def create(settings):
    return Workload()
"""
ENGINE = """
from steelyard.node.command import spawn
from steelyard.wire.record import Counts, Done, Hello, Interval, Summary
class Engine:
    async def drive(self, order, nodes, on_record, timeout_s):
        await spawn(nodes[0], ["sleep", "8"])
        on_record("l1", Hello(format=1, agent="x", optimised=True, t_s=1.0))
        buckets = ((1, 2, 3),)
        summary = Summary(rate_per_s=1.0, response_ms_p50=1.0, response_ms_p99=1.0, service_ms_p50=1.0,
                          service_ms_p99=1.0, pacing_ms_p99=0.0)
        counts = (Counts(operation="read", outcome="ok", measure="response", buckets=buckets),)
        on_record("l1", Interval(phase="measure", t_s=1.0, seconds=1.0, sent=4, done=4, errors=0, backlog=0,
                                 cpu_fraction=0.0, summary=summary, counts=counts))
        on_record("l1", Done(phase="measure", first_sent_s=1.0, last_done_s=2.0, execution_ns=1, operations=4,
                             errors=0, errors_by_kind={}, not_found=0, rows=0, cpu_ns=1,
                             busiest_thread_fraction=0.0, dropped=0, reconnections=0))
def create():
    return Engine()
"""
POLICY = """
from pydantic import BaseModel
from steelyard.policy.base import Desired
class Settings(BaseModel):
    limit: float = 50
class Policy:
    name, metric, period_s, every_s = "broken", "cpu_percent_mean", 10.0, 10.0
    asked = 0
    def desired(self, history, now_s):
        self.asked += 1
        high = any(point.value and point.value > 50 for point in history.points)
        return Desired(now_s, 3 + self.asked % 2 + high + (now_s > 300), "")
def create(settings, bounds):
    return Policy()
"""


def test_a_probe_that_lies_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)

    class Broken(ProbeContract):
        module = str(tmp_path / "probe.py")
        lines = (b"1.5\n",)

    contract = Broken()
    with pytest.raises(AssertionError):
        contract.test_its_command_is_words_and_starts_nothing(tmp_path / "none")
    with pytest.raises(AssertionError):
        contract.test_parsing_is_pure()
    with pytest.raises(AssertionError):
        contract.test_declares_what_it_says_and_says_what_it_declares()
    with pytest.raises(pytest.fail.Exception):
        contract.test_refuses_lines_that_are_not_its_own()


def test_a_workload_that_gives_itself_away_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "workload.py").write_text(WORKLOAD)

    class Broken(WorkloadContract):
        module = str(tmp_path / "workload.py")

    contract = Broken()
    with pytest.raises(pytest.fail.Exception):
        contract.test_refuses_misspelt_settings()
    with pytest.raises(AssertionError, match="no description"):
        contract.test_every_setting_says_what_it_means()
    with pytest.raises(AssertionError):
        contract.test_is_the_same_every_time_it_is_asked()


def test_a_policy_that_remembers_or_foresees_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "foresees.py").write_text(POLICY.replace("self.asked % 2", "0"))

    class Remembers(PolicyContract):
        module = str(tmp_path / "policy.py")

    class Foresees(PolicyContract):
        module = str(tmp_path / "foresees.py")

    with pytest.raises(pytest.fail.Exception):
        Remembers().test_refuses_misspelt_settings()
    with pytest.raises(AssertionError, match="no description"):
        Remembers().test_every_setting_says_what_it_means()
    with pytest.raises(AssertionError):
        Remembers().test_is_the_same_every_time_it_is_asked()
    Foresees().test_is_the_same_every_time_it_is_asked()
    with pytest.raises(AssertionError, match=r"at \d+ s"):
        Foresees().test_never_looks_ahead()
    with pytest.raises(AssertionError):
        Foresees().test_does_not_depend_on_the_time_of_day()
    with pytest.raises(AssertionError, match="has a reason"):
        Foresees().test_a_part_gives_the_first_answers_of_the_whole()


def test_an_engine_that_leaves_a_process_or_loses_operations_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(ENGINE)

    class Broken(EngineContract):
        module = str(tmp_path / "engine.py")
        load_nodes = 1

        @asynccontextmanager
        async def contacts(self, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
            yield ("127.0.0.1:9",)

    contract = Broken()
    with pytest.raises(AssertionError, match="every operation is in a histogram"):
        contract.test_carries_out_an_order(tmp_path)
    with pytest.raises(pytest.fail.Exception):
        contract.test_ends_in_time(tmp_path)
    with pytest.raises(pytest.fail.Exception):
        contract.test_nobody_there_is_said(tmp_path)
