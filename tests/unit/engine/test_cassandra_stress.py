"""cassandra-stress as an engine: orders that it can say, those that it cannot, and what it prints as our records.

`cassandra_stress.mixed.txt` is what the real tool printed to a real node for
`mixed ratio(write=1,read=3) clustering=fixed(1) duration=3s no-warmup cl=ONE -pop dist=UNIFORM(1..2100) -rate threads=4
fixed=300/s -errors ignore retries=0 -log hdrfile=/dev/stdout interval=1s no-settings`, of 2100 rows 2000 written.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine import _stress_tool as tool
from steelyard.engine import cassandra_stress
from steelyard.engine._stress_line import distribution, line
from steelyard.engine._stress_output import Output, kinds
from steelyard.engine.base import Fetched
from steelyard.model.errors import EngineError
from steelyard.node.base import Node
from steelyard.node.java import Java
from steelyard.plugins import find
from steelyard.wire.order import Order
from steelyard.workload import stress
from tests.unit.wire import orders
from tests.unit.workload.reference import EXAMPLE

HERE = Path(__file__).resolve().parent
NAMES = {"READ": "read", "WRITE": "write"}


def order(changes: dict[str, Any] | None = None, **settings: Any) -> Order:
    """An order that the tool can carry out."""
    workload = stress.create(stress.Settings(**{"records": 3000, **settings}))
    own = {
        "keyspace": "keyspace1",
        "table": "standard1",
        "key": "key",
        "contacts": ["10.0.0.1:9042", "10.0.0.2:9042"],
        "work": workload.order(),
        "schedule": {"kind": "closed", "threads": 50},
        "stop": {"duration_s": 60.0},
        "warm_up_s": 10.0,
        "read_consistency": "QUORUM",
        "write_consistency": "QUORUM",
    }
    return orders.order(**{**own, **(changes or {})})


def said(made: Order, index: int = 0, of: int = 1) -> str:
    return " ".join(line(made, index, of).words)


def test_a_mix_is_said_in_the_tools_words() -> None:
    text = said(order(read_proportion=0.75, write_proportion=0.25))
    assert text.startswith(
        "mixed ratio(read=0.75,write=0.25) clustering=FIXED(1) keysize=10 duration=70s no-warmup cl=QUORUM"
    )
    for part in (
        "-col n=FIXED(5) size=FIXED(34) -schema keyspace=keyspace1 -node 10.0.0.1,10.0.0.2 -port native=9042 jmx=1",
        "-errors ignore retries=0 skip-read-validation",
        "-log hdrfile=/dev/stdout interval=1000ms no-settings -pop dist=UNIFORM(1..3000) -rate threads=50",
    ):
        assert part in text
    assert line(order(), 0, 1).names == NAMES


def test_one_kind_of_operation_is_its_own_command_and_validates_if_asked() -> None:
    text = said(order(write_proportion=0, validate_fraction=1, population="gaussian(1..3000)"))
    assert text.startswith("read keysize=10 duration=70s")
    assert "-pop dist=GAUSSIAN(1..3000)" in text
    assert "skip-read-validation" not in text


def test_several_load_nodes_share_operations_threads_rate_and_rows() -> None:
    stop = {"stop": {"operations": 1000, "duration_s": None}, "warm_up_s": 0.0}
    texts = [said(order(stop), index, 3) for index in range(3)]
    assert [text.split("n=")[1].split()[0] for text in texts] == ["333", "333", "334"]
    assert [text.split("threads=")[1] for text in texts] == ["16", "17", "17"]
    paced = {"schedule": {"kind": "constant", "rate_per_s": 900.0, "in_flight": 30}}
    assert said(order(paced), 1, 3).endswith("-rate threads=10 fixed=300/s")
    filling = [said(order({"action": "populate", "write_consistency": "ALL"}), index, 2) for index in range(2)]
    assert filling[0].startswith("write n=1500 keysize=10 no-warmup cl=ALL")
    assert [text.split("seq=")[1].split()[0] for text in filling] == ["1..1500", "1501..3000"]


def test_distributions_are_said_as_the_tool_writes_them() -> None:
    gaussian = {"name": "gaussian", "min": 0, "max": 99, "mean": 20.0, "deviation": 7.5}
    assert distribution(gaussian, shift=1) == "GAUSSIAN(1..100,21.0,7.5)"
    extreme = {"name": "extreme", "min": 0, "max": 99, "shape": 0.6, "quanta": 5}
    assert distribution({"name": "inverted", "of": extreme}, shift=1) == "~QEXTREME(1..100,0.6,5)"
    assert distribution({"name": "exponential", "min": 1, "max": 9}) == "EXP(1..9)"
    assert said(order(population="sequence(1..50)")).count("-pop seq=1..50 ") == 1


@pytest.mark.parametrize(
    ("contacts", "names", "port"),
    [
        (["[fd00:116::1]:9042"], "fd00:116::1", 9042),
        (["[fd00:116::1]:9142", "[fd00:116::2]:9142"], "fd00:116::1,fd00:116::2", 9142),
        (["[::1]:9042", "10.0.0.2:9042", "node-3:9042"], "::1,10.0.0.2,node-3", 9042),
    ],
)
def test_addresses_in_brackets_lose_them(contacts: list[str], names: str, port: int) -> None:
    """The tool takes addresses and port apart, so that nothing has to part an IPv6 address from its port."""
    text = said(order({"contacts": contacts}))
    assert f"-node {names} -port native={port} " in text


def _program(change: Callable[[dict[str, Any]], None]) -> Order:
    made = orders.sent(order())
    change(made["work"])
    return Order.model_validate(made)


REFUSED = [
    ({"work": EXAMPLE["work"]}, "kind 'ycsb'"),
    ({"compression": "lz4"}, "compression = 'lz4'"),
    ({"phases": [{"name": "a", "duration_s": 1, "schedule": {"kind": "closed", "threads": 1}}]}, "phases"),
    ({"tls": {}}, "tls = {}"),
    ({"routing": "round-robin"}, "routing"),
    ({"read_consistency": "ONE"}, "reads at ONE and writes at QUORUM"),
    ({"schedule": {"kind": "poisson", "rate_per_s": 10.0, "in_flight": 1}}, "'poisson'"),
    ({"schedule": {"kind": "constant", "rate_per_s": 10.5, "in_flight": 1}}, "10.5 operations/s"),
    ({"stop": {"operations": 5, "duration_s": 5.0}}, "both"),
    ({"stop": {"operations": 5, "duration_s": None}}, "warm_up_s with load.operations"),
    ({"stop": {"operations": None, "duration_s": 5.5}}, "15.5 s of load"),
    ({"contacts": ["a:1", "b:2"]}, "several ports"),
    ({"contacts": ["[fd00::1]:9042", "[fd00::1]:9043"]}, "several ports (9042, 9043)"),
]


@pytest.mark.parametrize(("changes", "named"), REFUSED)
def test_what_the_tool_cannot_do_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(EngineError, match="cannot run") as caught:
        line(order(changes), 0, 1)
    assert named in caught.value.message
    assert "cassandra-stress can: " in caught.value.hint


def _other_table(program: dict[str, Any]) -> None:
    program["statements"][0]["cql"] = program["statements"][0]["cql"].replace("standard1", "standard12")


def _own_level(program: dict[str, Any]) -> None:
    program["statements"][1]["consistency"] = "ALL"


def _two_steps(program: dict[str, Any]) -> None:
    program["operations"][0]["steps"] *= 2


def _other_keys(program: dict[str, Any]) -> None:
    program["operations"][0]["keys"] = {"kind": "new"}


def _part(program: dict[str, Any]) -> None:
    program["validate_fraction"] = 0.5


def _sizes(program: dict[str, Any]) -> None:
    program["statements"][0]["values"][0]["make"]["size"] = {"name": "fixed", "value": 9.0}


def _zipfian(program: dict[str, Any]) -> None:
    for operation in program["operations"]:
        operation["keys"] = {"kind": "drawn", "number": {"name": "zipfian", "min": 0, "max": 9}}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_other_table, "statement 'write'"),
        (_own_level, "consistency = 'ALL'"),
        (_two_steps, "several requests"),
        (_other_keys, "choose their keys differently"),
        (_part, "validate_fraction = 0.5"),
        (_sizes, "several size distributions"),
        (_zipfian, "'zipfian'"),
    ],
)
def test_programs_that_are_not_its_own_are_refused(change: Callable[[dict[str, Any]], None], named: str) -> None:
    with pytest.raises(EngineError) as caught:
        line(_program(change), 0, 1)
    assert named in caught.value.message


def parsed(warm_up_s: float = 0.0) -> tuple[Output, list[Any]]:
    output = Output(NAMES, ["a:1"], "measure", warm_up_s)
    made: list[Any] = []
    text = (HERE / "cassandra_stress.mixed.txt").read_text()
    for number, one in enumerate(text.splitlines()):
        made += output.take(one, 1000.0 + number, number / 10)
    return output, made


def test_what_it_prints_becomes_intervals() -> None:
    output, records = parsed()
    assert [record.record for record in records] == ["connected", *["interval"] * 4]
    assert output.ended
    intervals = records[1:]
    assert [interval.sent for interval in intervals] == [186, 302, 294, 122]
    assert [interval.errors for interval in intervals] == [6, 10, 10, 0]
    assert [round(interval.seconds, 3) for interval in intervals] == [1.0, 1.0, 1.0, 0.384]
    assert [round(later.t_s - intervals[0].t_s, 3) for later in intervals] == [0, 1, 2, 3]
    counts = {(one.operation, one.measure): one.buckets for one in intervals[0].counts}
    assert set(counts) == {(name, measure) for name in NAMES.values() for measure in ("response", "service", "lag")}
    assert sum(count for _, _, count in counts["read", "response"]) == 142
    # The row says that the longest read answered after 116.5 ms.
    low_ns, high_ns, _ = counts["read", "response"][-1]
    assert low_ns <= 116_523_000 <= high_ns + 1000
    assert counts["read", "response"] != counts["read", "service"]


def test_the_end_sums_up_what_was_measured() -> None:
    output, records = parsed(warm_up_s=1.0)
    assert [record.phase for record in records[1:]] == ["warm-up", "measure", "measure", "measure"]
    messages = ["Operation x0 on key(s) [00]: Data returned was not validated\n", "\n"] * 26
    done = output.done(messages, 0.25)
    assert (done.operations, done.errors, done.errors_by_kind) == (302 + 294 + 122 - 20, 20, {"invalid": 20})
    assert done.execution_ns == 2_384_000_000
    assert done.first_sent_s == records[2].t_s
    assert done.busiest_thread_fraction == 0.25


def test_closed_loop_operations_are_due_when_they_are_sent() -> None:
    output = Output(NAMES, ["a:1"], "populate")
    text = (HERE / "cassandra_stress.mixed.txt").read_text()
    made = [
        record
        for one in text.splitlines()
        if "-rt," not in one and "-wt," not in one
        for record in output.take(one, 1, 0)
    ]
    counts = {(one.operation, one.measure): one.buckets for one in made[1].counts}
    assert counts["read", "response"] == counts["read", "service"]
    assert ("read", "lag") not in counts
    assert made[1].phase == "populate"


def test_errors_are_told_apart_by_their_messages() -> None:
    prefix = "Operation x0 on key(s) [30]: Error executing: "
    messages = [f"{prefix}({name}): x" for name in ("WriteTimeoutException", "UnavailableException", "Odd")]
    assert kinds(messages, 4) == {"write-timeout": 1, "unavailable": 1, "server": 2}
    assert kinds(messages, 1) == {"server": 1}
    assert kinds(messages, 0) == {}


def test_it_is_fetched_by_name_and_says_so_until_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cassandra-stress" in find.names("engine")
    assert isinstance(find.find("engine", "cassandra-stress").create(), Fetched)
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    node = Node("load1", "load", "127.0.0.1", (), tmp_path)
    with pytest.raises(EngineError, match="not installed") as caught:
        asyncio.run(cassandra_stress.create().drive(order(), [node], lambda name, record: None, 5.0))
    assert "steelyard setup cassandra-stress" in caught.value.hint


def test_of_a_release_only_the_jars_are_taken(tmp_path: Path) -> None:
    tarball = tmp_path / "x.tar.gz"
    names = ("lib/a.jar", "tools/lib/stress.jar", f"lib/{tool.REPLACED}", "lib/b.zip", "conf/c.jar", "lib/deep/d.jar")
    with tarfile.open(tarball, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(f"apache-cassandra-3.11.4/{name}")
            archive.addfile(member, io.BytesIO(b""))
    tool._unpack(tarball, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jar", "stress.jar"]


def test_jars_that_are_not_the_releases_are_refused(tmp_path: Path) -> None:
    library = tool.library(tmp_path)
    library.mkdir(parents=True)
    (library / tool.COMPLETE).touch()
    (library / tool.STRESS_JAR).write_bytes(b"another")
    with pytest.raises(
        EngineError, match=r"files in .* differ from those fetched: HdrHistogram-2\.1\.12\.jar is missing"
    ):
        asyncio.run(tool.find(tmp_path))


SCRIPT = "#!/bin/sh\ncat {file}\n{end}\n"


def _fake_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str) -> Node:
    program = tmp_path / "java"
    program.write_text(SCRIPT.format(file=HERE / "cassandra_stress.mixed.txt", end=end))
    program.chmod(0o755)

    async def find(cache_folder: Path) -> tool.Tool:
        return tool.Tool(Java(program, "17"), tmp_path)

    # The tool is a script in place of its jars.
    monkeypatch.setattr(tool, "find", find)
    return Node("load1", "load", "127.0.0.1", (), tmp_path)


def test_it_is_driven_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = _fake_tool(monkeypatch, tmp_path, "echo 'Operation x0 on key(s) [30]: (ReadTimeoutException)' >&2")
    records: list[Any] = []
    changes = {"warm_up_s": 0.0}
    engine = cassandra_stress.create()
    asyncio.run(engine.drive(order(changes), [node], lambda name, record: records.append((name, record)), 20.0))
    assert [record.record for _, record in records] == ["hello", "connected", *["interval"] * 4, "done"]
    assert {name for name, _ in records} == {"load1"}
    done = records[-1][1]
    assert done.errors_by_kind == {"read-timeout": 1, "server": 25}
    assert done.operations == 904 - 26


@pytest.mark.parametrize(
    ("end", "told"), [("exit 3", "exited with code 3"), ("echo FAILURE; kill -9 $$", "exited with code -9")]
)
def test_its_failure_is_the_laboratorys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, told: str) -> None:
    node = _fake_tool(monkeypatch, tmp_path, end)
    with pytest.raises(EngineError, match=told):
        asyncio.run(cassandra_stress.create().drive(order(), [node], lambda name, record: None, 20.0))
