"""Every probe that is shipped keeps the contract of a probe."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.probe.cassandra import CACHES, POOLS, QUESTIONS
from steelyard.probe.etcd import NUMBERS
from steelyard.probe.jmx import GROUPS
from steelyard.probe.os import METRICS
from steelyard.probe.postgresql import GAUGES, RATES
from steelyard.probe.redis import FIELDS
from steelyard.system.postgresql._system import packaged
from steelyard.testing.probe import ProbeContract
from steelyard.testing.system import make_system, until


@pytest.mark.agent
class TestOs(ProbeContract):
    module = "os"
    lines: ClassVar = (
        json.dumps({"record": "sample", "t_s": 1.5, "values": {metric.name: 0.25 for metric in METRICS}}).encode(),
        b'{"record":"sample","t_s":2.5,"values":{"node_processes":3.0}}\n',
    )
    silent: ClassVar = (b'{"record":"hello","format":1,"agent":"0.1.0","optimised":true,"t_s":1.0}\n',)
    wrong: ClassVar = (
        *ProbeContract.wrong,
        b'{"record":"hello","format":99}\n',
        b'{"record":"sample","t_s":1.5}\n',
        b'{"record":"error","message":"n1 has no /proc","hint":"mount it"}\n',
        b'{"record":"done"}\n',
        b"[]\n",
    )


class TestEnergy(ProbeContract):
    module = "energy"
    lines: ClassVar = (
        b"10.0 intel-rapl:0/package-0=1000000/99 intel-rapl:0:1/dram=5/99 | "
        b"11.0 intel-rapl:0/package-0=3000000/99 intel-rapl:0:1/dram=6/99\n",
    )
    silent: ClassVar = (b"10.0 | 10.0\n",)
    wrong: ClassVar = (*ProbeContract.wrong, b"10.0\n", b"10.0 | 11.0 package=x/y\n")


class TestMeter(ProbeContract):
    """Its readings for real, of a made-up plug: `tests/unit/probe/test_meter.py`."""

    module = "meter"
    settings: ClassVar = {"meters": [{"kind": "shelly", "address": "127.0.0.1:9", "nodes": ["n1"]}]}
    lines: ClassVar = (b'10.0 {"id":0,"apower":40.5}  | 11.0 {"id":0,"apower":41.5} \n',)
    wrong: ClassVar = (*ProbeContract.wrong, b"10.0 {}\n", b'10.0 {"apower":1} | x {"apower":1}\n')
    test_reads_for_real = None  # type: ignore[assignment]


@pytest.mark.agent
class TestGc(ProbeContract):
    module = "gc"
    lines: ClassVar = (
        b'{"t_s":1.5,"seconds":1.0,"lines":["[2026-11-22T03:32:59.326+0000][93.840s] GC(10) Pause Young '
        b'(Allocation Failure) 130M->69M(247M) 171.573ms"]}\n',
    )
    silent: ClassVar = (b'{"t_s":1.5,"missing":true}\n',)
    wrong: ClassVar = (*ProbeContract.wrong, b'{"t_s":1.5}\n', b"[]\n", b'{"t_s":1.5,"seconds":1.0,"lines":7}\n')

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        log = tmp_path / "gc.log"
        log.touch()
        return {"gc_log": str(log)}


def _answers() -> list[Any]:
    """An answer to each question of the probe `cassandra` that has every metric."""
    pools = [[name, 1, 2, 0.5] for name in POOLS]
    caches = [[name, 4096, 9.0, 10.0] for name in CACHES]
    answers = {
        "operations": {"columns": ["keyspace_name", "count"], "rows": [["ks", 7.0]]},
        "tombstones": {"columns": ["p99th", "max"], "rows": [[3.0, 9.0]]},
        "disk": {"columns": ["mebibytes"], "rows": [[12]]},
        "pools": {"columns": ["name", "active_tasks", "pending_tasks", "blocked_tasks_all_time"], "rows": pools},
        "caches": {"columns": ["name", "size_bytes", "hit_count", "request_count"], "rows": caches},
        "compactions": {"columns": ["progress", "total", "unit"], "rows": [[1, 5, "bytes"]]},
        "hints": {"columns": ["files"], "rows": []},
    }
    return [answers[question.view] for question in QUESTIONS]


@pytest.mark.agent
class TestCassandra(ProbeContract):
    """Its readings for real: `tests/e2e/test_cassandra_probes.py`, on a real node."""

    module = "cassandra"
    lines: ClassVar = (json.dumps({"t_s": 1.5, "answers": _answers()}).encode(),)
    silent: ClassVar = (b'{"t_s":1.5,"connected":true}\n', b'{"t_s":1.5,"lost":"n1 refused"}\n')
    wrong: ClassVar = (*ProbeContract.wrong, b'{"t_s":1.5}\n', b"[]\n", b'{"t_s":1.5,"answers":[null]}\n')
    test_reads_for_real = None  # type: ignore[assignment]

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"cql": "127.0.0.1:9042"}


SIMULATED = "127.94.10.1:19147"


@pytest.mark.agent
class TestSimulated(ProbeContract):
    module = "simulated"
    lines: ClassVar = (b'{"t_s":2.5,"answers":[{"columns":["busy_server_ns","servers"],"rows":[[2.5e8,4]]}]}\n',)
    silent: ClassVar = (
        b'{"t_s":1.5,"connected":true}\n',
        b'{"t_s":1.5,"lost":"n1 refused"}\n',
        b'{"t_s":1.5,"answers":[{"columns":["busy_server_ns","servers"],"rows":[[null,4]]}]}\n',
    )
    wrong: ClassVar = (*ProbeContract.wrong, b'{"t_s":1.5}\n', b"[]\n", b'{"t_s":1.5,"answers":[]}\n')

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"simulated_load": SIMULATED}

    def test_reads_for_real(self, tmp_path: Path) -> None:
        """As the contract's, of a node that runs."""
        argv = [agent.find(), "sim", "--listen", SIMULATED]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as node:
            try:
                assert node.stdout is not None
                assert node.stdout.readline() == f"listening {SIMULATED}\n".encode()
                super().test_reads_for_real(tmp_path)
            finally:
                node.kill()


@pytest.mark.redis
class TestRedis(ProbeContract):
    module = "redis"
    lines: ClassVar = (
        json.dumps("\r\n".join(["# Server", "server_time_usec:2500000", *(f"{name}:1.5" for name in FIELDS)])).encode(),
    )
    wrong: ClassVar = (*ProbeContract.wrong, b"[]\n", b'"server_time_usec:1\\r\\n"\n', b'error:"LOADING"\n')

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"resp": "127.96.9.1:6379", "redis_cli": "redis-cli"}

    def test_reads_for_real(self, tmp_path: Path) -> None:
        """As the contract's, of a server that runs."""
        with subprocess.Popen(["redis-server", "--bind", "127.96.9.1", "--save", ""], stdout=subprocess.PIPE) as node:
            try:
                assert node.stdout is not None
                assert any(b"Ready to accept connections" in line for line in node.stdout)
                super().test_reads_for_real(tmp_path)
            finally:
                node.kill()


def _page(value: int) -> str:
    """A page of etcd's metrics, with one value for all."""
    return " ".join(f"{name} {value}" for name in NUMBERS)


def _answer(value: int) -> str:
    """An answer of PostgreSQL's probe, with one value for all."""
    parts: dict[str, dict[str, int]] = {}
    for part, *fields in (*RATES, *GAUGES):
        parts.setdefault(part, {}).update(dict.fromkeys(fields, value))
    return json.dumps({"t": value, **parts})


class OnServer(ProbeContract):
    """Not collected: readings for real are of a server that runs."""

    system: ClassVar[str]
    address: ClassVar[str]

    def test_reads_for_real(self, tmp_path: Path) -> None:
        """As the contract's, of a server that runs."""
        node = Node("n1", "database", self.address, (), tmp_path)
        system = make_system(self.system, {}, tmp_path)

        async def begin() -> None:
            await system.install(node, [node])
            await system.start(node, [node])
            await until(lambda: system.ready(node, 1), 30.0, "the server is ready")

        try:
            asyncio.run(begin())
            super().test_reads_for_real(tmp_path)
            assert asyncio.run(system.ready(node, 1)), "reading does it no harm"
        finally:
            asyncio.run(system.wipe(node))


class HttpdContract(OnServer):
    """Not collected."""

    module = "httpd"
    wrong: ClassVar = (*ProbeContract.wrong, b"1.5\n", b"0.5 | 1.5 BusyWorkers: 1\n", b"0.5 | x BusyWorkers: 1\n")
    address = "127.97.9.2"

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"server_status": f"{self.address}:8080", "curl": "curl"}


@pytest.mark.web
@pytest.mark.agent
class TestHttpdOfApache(HttpdContract):
    system = "apache"
    lines: ClassVar = (
        b"1790000000.0 HTTP/1.1 200 OK | "
        b"1790000000.5 HTTP/1.1 200 OK Total Accesses: 7 BusyWorkers: 2 IdleWorkers: 14 ConnsTotal: 3\n",
    )


@pytest.mark.web
@pytest.mark.agent
class TestHttpdOfNginx(HttpdContract):
    system = "nginx"
    lines: ClassVar = (
        b"1790000000.0 Active connections: 1 | "
        b"1790000000.5 Active connections: 3 server accepts handled requests 5 5 7 Reading: 1 Writing: 1 Waiting: 1\n",
    )


@pytest.mark.etcd
@pytest.mark.agent
class TestEtcd(OnServer):
    module = "etcd"
    lines: ClassVar = (f"1.5 {_page(1)} | 2.5 {_page(3)}".encode(),)
    wrong: ClassVar = (*ProbeContract.wrong, b"1.5\n", b"0.5 | 1.5\n", f"1.5 {_page(1)} | 1.5 {_page(3)}".encode())
    system = "etcd"
    address = "127.98.9.1"

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"etcd": f"{self.address}:2379", "curl": "curl"}


@pytest.mark.postgresql
@pytest.mark.agent
class TestPostgresql(OnServer):
    module = "postgresql"
    lines: ClassVar = (f"{_answer(1)} | {_answer(3)}".encode(),)
    silent: ClassVar = (b' | {"t": 1.5}\n',)
    wrong: ClassVar = (*ProbeContract.wrong, b"1.5\n", b"[] | []\n", f"{_answer(1)} | {_answer(1)}".encode())
    system = "postgresql"
    address = "127.99.9.1"

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"postgresql": f"{self.address}:5432", "psql": packaged(None).programs[1]}


class TestSpark(ProbeContract):
    """Its readings for real: `tests/contract/system/test_spark_hdfs.py`, on a real cluster."""

    module = "spark"
    lines: ClassVar = (
        b'1.5 "CapacityUsed" : 9, "UnderReplicatedBlocks" : 0, | 2.5 "CapacityUsed" : 9, "UnderReplicatedBlocks" : 0,',
        b'1.5 "BytesWritten" : 9, "BytesRead" : 0, | 2.5 "BytesWritten" : 9, "BytesRead" : 7,',
        b'1.5 {"gauges":{"master.apps":{"value":0}}} | 2.5 {"gauges":{"master.aliveWorkers":{"value":2},"master.apps":'
        b'{"value":1},"master.waitingApps":{"value":0},"master.workers":{"value":3}}}',
        b'1.5 {"gauges":{"worker.coresUsed":{"value":0}}} | 2.5 {"gauges":{"worker.coresFree":{"value":1},'
        b'"worker.coresUsed":{"value":1},"worker.memFree_MB":{"value":128},"worker.memUsed_MB":{"value":512}}}',
    )
    wrong: ClassVar = (*ProbeContract.wrong, b"1.5\n", b"0.5 | 1.5\n", b'1.5 "BytesRead" : 1 | 1.5 "BytesRead" : 1')
    test_reads_for_real = None  # type: ignore[assignment]

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {"spark_metrics": "127.0.0.1:8081/metrics", "hdfs_jmx": "127.0.0.1:9864", "curl": "curl"}


class TestJmx(ProbeContract):
    """Its readings for real: `tests/e2e/test_cassandra_probes.py`, on a real node."""

    module = "jmx"
    lines: ClassVar = (("1.5 1.0 " + " ".join(f"{name}=1/2" for group in GROUPS for name in group)).encode(),)
    silent: ClassVar = (b"1.5 connected\n", b"1.5 lost\n")
    wrong: ClassVar = (*ProbeContract.wrong, b"1.5\n", b"1.5 1.0 reads=7\n")
    test_reads_for_real = None  # type: ignore[assignment]

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        return {
            "jmx": "127.0.0.1:7199",
            "jmx_password_file": "/n/pw",
            "java": "/opt/java/bin/java",
            "beans": "/opt/beans",
        }


class TestRaspberryPi(ProbeContract):
    module = "raspberry-pi"
    lines: ClassVar = (
        b"10.0 throttled=50000 temperature=48312 frequency=600000 | "
        b"11.0 throttled=50005 temperature=48799 frequency=1500000\n",
    )
    wrong: ClassVar = (*ProbeContract.wrong, b"10.0\n", b"10.0 | 11.0 throttled=x\n", b"10.0 | 11.0 volts=5\n")
