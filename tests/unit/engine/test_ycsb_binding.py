"""YCSB's own bindings: the shipped MongoDB system and engine are planned, and turn orders into YCSB and back."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from steelyard import engine_order
from steelyard.engine.base import FallsSilent, Selective, StampedHere
from steelyard.model.errors import EngineError
from steelyard.model.load import MEASURE, Load
from steelyard.node.base import Node
from steelyard.plan.check import weigh
from steelyard.plugins.find import Plugins, any_file
from steelyard.system.base import Existing, ValidatesLoad
from steelyard.wire.order import Order
from steelyard.wire.record import Record
from steelyard.workload import ycsb as workload

FOLDER = Path(__file__).parents[3] / "studies" / "mongodb"
PLUGINS = Plugins(FOLDER, any_file)
ENGINE: Any = PLUGINS.find("engine", "./ycsb.py")
SYSTEM: Any = PLUGINS.find("system", "./mongodb.py")
LOADER = Node("l1", "load", "127.0.0.1", (), Path("/"))
OUTPUT = """\
YCSB Client 0.17.0
Starting test.
[OVERALL], RunTime(ms), 456
[OVERALL], Throughput(ops/sec), 17.54385964912281
[TOTAL_GC_TIME_%], Time(%), 0.0
[READ], Operations, 5
[READ], 99thPercentileLatency(us), 1165
[READ], Return=OK, 5
[READ], 8, 2.0
[READ], 9, 1.0
[READ], 1118, 1.0
[READ], 1165, 1.0
[CLEANUP], 2, 1.0
[UPDATE-FAILED], Operations, 1
[UPDATE-FAILED], 5967, 1.0
[Intended-READ], 249, 1.0
[Intended-READ], 1375, 1.0
[Intended-READ], 1464, 1.0
[Intended-READ], 3715, 1.0
[Intended-READ], 4127, 1.0
[Intended-CLEANUP], 3, 1.0
[Intended-UPDATE-FAILED], 8083, 1.0
"""
"""Of YCSB 0.17.0 with its binding `basic`, shortened; its updates as if they had failed."""
STAND_IN = """#!/bin/sh
echo "$@" > "$(dirname "$4")/argv"
cat {output}
"""


def system(*contacts: str) -> Any:
    return SYSTEM.create(SYSTEM.Settings(contact_points=contacts), Path("/none"))


def order(load: Load, **settings: Any) -> Order:
    core = workload.create(workload.Settings(**settings))
    endpoint = system("10.0.0.1", "10.0.0.2:27018").endpoint((), core.schema())
    return engine_order.measure(load, endpoint, core.schema(), core, 1)


def paced(**settings: Any) -> Load:
    given = {"schedule": "constant", "rate_per_s": 500, "threads": 32, "duration_s": 60, **settings}
    return Load.model_validate(given)


def test_check_plans_a_cluster_that_exists() -> None:
    checked = weigh(FOLDER / "mongodb.toml", None, 1.0, any_file)
    assert (checked.missing, checked.refusals) == ((), ())
    assert len({trial.start for trial in checked.plan.trials}) == 1
    assert isinstance(ENGINE.create(), Selective)
    assert isinstance(ENGINE.create(), FallsSilent)
    assert isinstance(ENGINE.create(), StampedHere)


def test_check_refuses_the_agent(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_text(path.read_text().replace('engine = "./ycsb.py"\n', ""))
    (refusal,) = weigh(tmp_path / "mongodb.toml", None, 1.0, any_file).refusals
    assert refusal.message.endswith(
        ":30: engine agent does not run YCSB's bindings, but system ./mongodb.py speaks ycsb-binding"
    )
    assert "an engine of your own" in refusal.hint


def test_the_system_leaves_the_cluster_as_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ours = system(f"127.0.0.1:{port}", "127.0.0.1:1")
        assert isinstance(ours, Existing)
        assert isinstance(ours, ValidatesLoad)
        there, absent = ours.members((), (LOADER,))
        assert not there.commands
        assert asyncio.run(ours.ready(there, 2))
        assert not asyncio.run(ours.ready(absent, 2))
    assert [error.key for error in ours.problems(3, Load(operations=1))] == ["site.nodes"]
    facts = asyncio.run(ours.facts(there))
    url = ENGINE.connection(order(paced()))["mongodb.url"]
    assert "w = majority" in facts["promise: mongodb"]
    assert "readPreference = primary" in facts["promise: mongodb"]
    assert url == (
        "mongodb://10.0.0.1:27017,10.0.0.2:27018/steelyard"
        "?w=majority&readPreference=primary&maxPoolSize=32&socketTimeoutMS=10000"
    )


def test_an_order_becomes_properties_and_a_command_line() -> None:
    settings = {"records": 5000, "insert_start": 100, "read_proportion": 0.5, "update_proportion": 0.5}
    load = order(paced(), **settings, request_distribution="zipfian", write_all_fields=True)
    found = ENGINE.properties(load)
    wanted = {
        "workload": "site.ycsb.workloads.CoreWorkload", "recordcount": "5100", "insertstart": "100",
        "insertcount": "5000", "operationcount": "30000", "maxexecutiontime": "60", "fieldcount": "10",
        "fieldlength": "100", "readproportion": "0.5", "updateproportion": "0.5", "readmodifywriteproportion": "0.0",
        "requestdistribution": "zipfian", "writeallfields": "true", "readallfields": "true", "insertorder": "hashed",
        "measurement.interval": "both", "measurement.histogram.verbose": "true",
    }  # fmt: skip
    assert {name: found.get(name) for name in wanted} == wanted
    url = f"mongodb.url={ENGINE.connection(load)['mongodb.url']}"
    shared = ["mongodb", "-P", "/node/ycsb.properties", "-p", url, "-p", "mongodb.upsert=true", "-threads", "32"]
    program = str(Path(os.environ.get("YCSB_HOME", "/opt/ycsb-0.17.0"), "bin", "ycsb.sh"))
    assert ENGINE.argv(load, Path("/node")) == [program, "run", *shared, "-target", "500"]
    closed = order(Load(operations=10, threads=32))
    assert ENGINE.argv(closed, Path("/node")) == [program, "run", *shared]
    assert ENGINE.properties(closed)["operationcount"] == "10"
    assert "maxexecutiontime" not in ENGINE.properties(closed)
    endless = ENGINE.properties(order(Load(duration_s=5, threads=32)))
    assert endless["operationcount"] == "2147483647", "YCSB does nothing where it is 0"
    fill = closed.model_copy(update={"action": "populate"})
    assert ENGINE.argv(fill, Path("/node"))[:3] == [program, "load", "mongodb"]


@pytest.mark.parametrize(
    ("load", "settings", "says"),
    [
        (paced(schedule="poisson"), {}, "schedule 'poisson'"),
        (paced(rate_per_s=0.5), {}, r"load.rate_per_s = 0.5"),
        (paced(warm_up_s=5), {}, "warm_up_s = 5"),
        (Load(duration_s=5), {"insert_proportion": 0.1, "request_distribution": "zipfian"}, "zipfian with inserts"),
        (Load(operations=5), {"read_modify_write_proportion": 0.5}, "counts three times"),
        (Load(operations=5), {"insert_lag": 1}, "insert_lag"),
        (Load(phases=({"name": "a", "duration_s": 5.0},)), {}, "phases = "),  # type: ignore[arg-type]
    ],
)
def test_what_ycsb_cannot_do_is_refused(load: Load, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(EngineError, match=says):
        ENGINE.create().check(order(load, **settings), 1)


def test_one_load_node() -> None:
    with pytest.raises(EngineError, match="from 2 load nodes"):
        ENGINE.create().check(order(paced()), 2)


def test_output_becomes_records() -> None:
    whole, done = ENGINE.records(OUTPUT, MEASURE, 1000.456)
    assert (whole.t_s, whole.seconds, whole.done, whole.errors) == (pytest.approx(1000), 0.456, 6, 1)
    tables = {(one.operation, one.outcome, one.measure): one.buckets for one in whole.counts}
    assert tables["read", "ok", "service"] == (
        (8_000, 8_999, 2), (9_000, 9_999, 1), (1_118_000, 1_118_999, 1), (1_165_000, 1_165_999, 1)
    )  # fmt: skip
    assert tables["update", "server", "service"] == ((5_964_000, 5_967_999, 1),), "11 bits are kept"
    assert len(tables["read", "ok", "response"]) == 5
    assert len(tables) == 4
    assert (done.operations, done.errors, done.errors_by_kind) == (5, 1, {"server": 1})
    with pytest.raises(EngineError, match=r"YCSB did nothing: .*RunTime"):
        ENGINE.records("[OVERALL], RunTime(ms), 1\n", MEASURE, 0.0)


def driven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> list[Record]:
    """Records of a load by a stand-in for ycsb.sh."""
    node, heard = Node("l1", "load", "127.0.0.1", (), tmp_path / "node"), list[Record]()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ycsb.sh").write_text(program)
    (tmp_path / "bin" / "ycsb.sh").chmod(0o755)
    node.folder.mkdir()
    monkeypatch.setenv("YCSB_HOME", str(tmp_path))
    load = order(Load(operations=5, threads=2))
    asyncio.run(ENGINE.create().drive(load, (node,), lambda _, record: heard.append(record), 20.0))
    return heard


def test_it_drives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "output").write_text(OUTPUT)
    heard = driven(tmp_path, monkeypatch, STAND_IN.format(output=tmp_path / "output"))
    assert [one.record for one in heard] == ["hello", "connected", "interval", "done"]
    assert (tmp_path / "node" / "argv").read_text().startswith("run mongodb -P ")
    assert "recordcount=1000\n" in (tmp_path / "node" / "ycsb.properties").read_text()


@pytest.mark.parametrize("program", ["#!/bin/sh\necho no java\nexit 1\n", "#!/bin/sh\necho no java\n"])
def test_a_failure_is_said(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="no java"):
        driven(tmp_path, monkeypatch, program)
