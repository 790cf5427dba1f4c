"""Whole commands against a stand-in for the agent: what goes where, which code, what ends a load."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from steelyard.dropin import agent_run
from steelyard.dropin.ycsb import command, command_run
from steelyard.model.errors import EngineError, StudyError
from steelyard.wire.record import Interval
from tests.unit.dropin.fake_agent import CONNECTED, HELLO, FakeAgent, counts, done, interval

BASE = (
    "-p workload=site.ycsb.workloads.CoreWorkload -p hosts=127.0.0.1 -p port=25099 "
    "-p recordcount=10 -p operationcount=8"
)
SYSTEM: list[dict[str, Any]] = [
    {"columns": ["data_center"], "rows": [{"data_center": "dc1"}]},
    {"columns": ["peer", "rpc_address", "data_center"], "rows": []},
]


def both(operation: str, us: int, n: int, outcome: str = "ok") -> list[dict[str, Any]]:
    """Service and response time of `n` operations."""
    bucket = (us * 1000, us * 1000 + 999, n)
    return [counts(operation, [bucket], outcome=outcome, measure=measure) for measure in ("service", "response")]


def carry_out(line: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = asyncio.run(command_run.carry_out(command.parse(line.split()), out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def agent(fake_agent: FakeAgent) -> FakeAgent:
    """Answers the questions about the cluster."""
    fake_agent.says("cql", SYSTEM)
    return fake_agent


def test_a_load_that_took_less_than_a_millisecond_has_a_rate(agent: FakeAgent) -> None:
    quick = {**done("measure", 1), "execution_ns": 200_000}
    agent.says("load", [HELLO, CONNECTED, interval("measure", 100.0, both("read", 10, 1)), quick])
    _, out, _ = carry_out(f"run cassandra-cql {BASE}")
    assert out.splitlines()[:2] == ["[OVERALL], RunTime(ms), 1", "[OVERALL], Throughput(ops/sec), 1000.0"]


def test_a_run_from_first_line_to_last(agent: FakeAgent) -> None:
    first = interval("measure", 100.0, both("read", 10, 4))
    second = interval("measure", 101.0, both("read", 30, 3) + both("update", 20, 1))
    agent.says("load", [HELLO, CONNECTED, first, second, done("measure", 8)])
    code, out, err = carry_out(f"run cassandra-cql {BASE} -s -p status.interval=1 -p cassandra.password=x")
    assert code == 0
    assert out.splitlines()[:2] == ["[OVERALL], RunTime(ms), 2000", "[OVERALL], Throughput(ops/sec), 4.0"]
    assert "[READ], Operations, 7" in out
    assert "[READ], Return=OK, 7" in out
    assert "[CLEANUP], Operations, 1" in out
    status = [line for line in err.splitlines() if " sec: " in line]
    assert [line.split(" sec: ")[1].split(";")[0] for line in status] == [
        "0 operations",
        "4 operations",
        "8 operations",
        "8 operations",
    ]
    assert "[READ: Count=4," in status[1]
    assert "[READ: Count=3," in status[2]
    assert "[READ: Count=0," in status[3]
    assert "est completion" not in status[2]


def test_the_order_and_the_password_go_their_own_ways(agent: FakeAgent) -> None:
    agent.says("load", [HELLO, CONNECTED, done("populate", 10)])
    given = "-p cassandra.username=ada -p cassandra.password=secret -threads 3"
    code, out, err = carry_out(f"load cassandra-cql {BASE} {given}")
    call = agent.calls[-1]
    assert code == 0
    assert call["order"]["action"] == "populate"
    assert call["order"]["seed"] == 0
    assert call["order"]["contacts"] == ["127.0.0.1:25099"]
    assert call["variables"] == {agent_run.USER_VARIABLE: "ada", agent_run.PASSWORD_VARIABLE: "secret"}
    assert "secret" not in json.dumps(call["order"]) + " ".join(call["argv"]) + out + err


def test_other_nodes_are_found_and_those_out_of_reach_left_out(agent: FakeAgent) -> None:
    peers = [
        {"peer": "127.0.0.2", "rpc_address": "127.0.0.2", "data_center": "dc1"},
        {"peer": "127.0.0.3", "rpc_address": "0.0.0.0", "data_center": "dc1"},
        {"peer": "127.0.0.4", "rpc_address": "127.0.0.4", "data_center": "dc2"},
    ]
    agent.says("cql", [SYSTEM[0], {"columns": [], "rows": peers}])
    agent.says("load", [HELLO, CONNECTED, done("measure", 8)])

    with socket.create_server(("127.0.0.2", 25099)):
        _, _, err = carry_out(f"run cassandra-cql {BASE}")
    assert agent.calls[-1]["order"]["contacts"] == ["127.0.0.1:25099", "127.0.0.2:25099"]
    assert "127.0.0.3:25099 belongs to the cluster, but cannot be reached" in err


def test_the_table_is_made_when_asked_for(agent: FakeAgent) -> None:
    agent.says("load", [HELLO, CONNECTED, done("populate", 10)])
    carry_out(f"load cassandra-cql {BASE} --create-table -p fieldcount=1")
    statements = agent.calls[1]["argv"][-2:]
    assert "'replication_factor': 1" in statements[0]
    assert statements[1] == "CREATE TABLE IF NOT EXISTS ycsb.usertable (y_id text PRIMARY KEY, field0 text)"


def test_a_missing_table_is_told_with_the_statements(agent: FakeAgent) -> None:
    hint = "do keyspace, table and columns exist, and may this user use them?"
    failure = {"record": "error", "message": "unconfigured table ycsb.usertable", "hint": hint}
    agent.says("load", [HELLO, failure], code=1)
    with pytest.raises(EngineError, match="unconfigured table") as caught:
        carry_out(f"load cassandra-cql {BASE}")
    assert "--create-table" in caught.value.hint
    assert "CREATE KEYSPACE IF NOT EXISTS ycsb" in caught.value.hint
    assert "CREATE TABLE IF NOT EXISTS ycsb.usertable" in caught.value.hint


def test_a_failed_insertion_ends_a_load(agent: FakeAgent) -> None:
    failed = interval("populate", 100.0, both("insert", 10, 3) + both("insert", 50, 1, "timeout"), errors=1)
    lines = [HELLO, CONNECTED, failed]
    agent.says("load", lines, waits=True, after_stop=[done("populate", 3, errors=1)])
    code, out, err = carry_out(f"load cassandra-cql {BASE}")
    assert code == command_run.EXIT_INSERTION_FAILED
    assert "[INSERT], Return=OK, 3" in out
    assert "[INSERT], Return=ERROR, 1" in out
    assert "[INSERT-FAILED], Operations, 1" in out
    assert "core_workload_insertion_keep_going_on_error" in err
    agent.says("load", [*lines, done("populate", 3, errors=1)])
    code, _, _ = carry_out(f"load cassandra-cql {BASE} -p core_workload_insertion_keep_going_on_error=true")
    assert code == 0


def test_an_interrupt_still_gives_the_block(agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    first = interval("measure", 100.0, both("read", 10, 4))
    agent.says("load", [HELLO, CONNECTED, first], waits=True, after_stop=[done("measure", 4)])
    add = command_run.Screen.add

    def add_and_interrupt(screen: command_run.Screen, one: Interval) -> None:
        add(screen, one)
        os.kill(os.getpid(), signal.SIGINT)

    # The signal has to come after the first interval.
    monkeypatch.setattr(command_run.Screen, "add", add_and_interrupt)
    code, out, _ = carry_out(f"run cassandra-cql {BASE}")
    assert code == command_run.EXIT_INTERRUPTED
    assert "[READ], Operations, 4" in out


def test_files(agent: FakeAgent, tmp_path: Path) -> None:
    first = interval("measure", 100.0, both("read", 10, 4))
    agent.says("load", [HELLO, CONNECTED, first, done("measure", 4)])
    exported = tmp_path / "result.json"
    given = f"-p exportfile={exported} -p exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter"
    _, out, _ = carry_out(
        f"run cassandra-cql {BASE} {given} -p hdrhistogram.fileoutput=true -p hdrhistogram.output.path={tmp_path}/h-"
    )
    assert out == ""
    assert json.loads(exported.read_text())[0] == {"metric": "OVERALL", "measurement": "RunTime(ms)", "value": 2000}
    log = (tmp_path / "h-READ.hdr").read_text().splitlines()
    assert log[0] == "#[Logging for: READ]"
    assert log[-1].startswith("0.000,2.000,0.000,HISTFAAA")


def test_folders_are_looked_for_before_the_load(agent: FakeAgent, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no file can be written there"):
        carry_out(f"run cassandra-cql {BASE} -p exportfile={tmp_path}/gone/result.txt")
    assert agent.calls == []


def test_averages_over_time(agent: FakeAgent) -> None:
    parts = [interval("measure", 100.0 + second, both("read", us, 2)) for second, us in ((0, 10), (1, 30), (2, 50))]
    agent.says("load", [HELLO, CONNECTED, *parts, done("measure", 6)])
    given = "-p measurementtype=timeseries -p timeseries.granularity=2000 -s"
    _, out, _ = carry_out(f"run cassandra-cql {BASE} {given}")
    rows = [line.split(", ") for line in out.splitlines() if line.startswith("[READ], ")]
    assert [(row[1], float(row[2])) for row in rows[-2:]] == [("0", 20.4995), ("2000", 50.4995)]
    assert " sec: 6 operations; " in out


def test_what_means_nothing_is_said_and_crowds_are_thinned(agent: FakeAgent) -> None:
    agent.says("load", [HELLO, CONNECTED, done("measure", 8)])
    _, out, err = carry_out(f"run cassandra-cql {BASE} -threads 100 -p cassandra.coreconnections=2")
    assert out.startswith(command_run.CROWDED)
    assert "cassandra.coreconnections=2 means nothing here" in err
    assert agent.calls[-1]["order"]["schedule"] == {"kind": "closed", "threads": 8}


def test_what_was_due_and_not_sent_is_neither_done_nor_failed(agent: FakeAgent) -> None:
    reads = interval("measure", 100.0, both("read", 10, 8), unsent=92)
    agent.says("load", [HELLO, CONNECTED, reads, done("measure", 8, unsent=92)])
    code, out, err = carry_out(f"run cassandra-cql {BASE} -target 50 -p maxexecutiontime=2")
    assert code == 0
    lines = out.splitlines()
    assert lines[1] == "[OVERALL], Throughput(ops/sec), 4.0"
    assert "[OVERALL], DueAndNotSent, 92" in lines
    assert not any("FAILED" in line or "Return=ERROR" in line for line in lines)
    assert (
        "steelyard: 92 of 100 operations were due and not sent: neither done nor failed; what was due by the end, "
        in err
    )
    assert "steelyard: the rate was not reached: asked 50/s, reached 4/s" in err
    assert agent.calls[-1]["order"]["drain_s"] == 2.0


def test_a_host_that_is_down_is_named_at_the_beginning_and_in_the_result(agent: FakeAgent) -> None:
    connected = {**CONNECTED, "absent": ["127.0.0.9:25099 refused the connection"]}
    reads = interval("measure", 100.0, both("read", 10, 8))
    agent.says("load", [HELLO, connected, reads, done("measure", 8)])
    code, out, err = carry_out(f"run cassandra-cql {BASE} -p hosts=127.0.0.1,127.0.0.9 -s")
    assert (code, "[OVERALL], ContactsLeftOut, 1" in out, "DueAndNotSent" in out) == (0, True, False)
    named = [
        number
        for number, line in enumerate(err.splitlines())
        if "left out: 127.0.0.9:25099 refused the connection" in line
    ]
    status = [number for number, line in enumerate(err.splitlines()) if " sec: " in line]
    assert named[0] < status[0] < status[-1] < named[-1]
    assert agent.calls[-1]["order"]["contacts"] == ["127.0.0.1:25099", "127.0.0.9:25099"]
