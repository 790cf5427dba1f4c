"""Every probe that is shipped keeps the contract of a probe."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.node import agent
from steelyard.probe.cassandra import CACHES, POOLS, QUESTIONS
from steelyard.probe.jmx import GROUPS
from steelyard.probe.os import METRICS
from steelyard.testing.probe import ProbeContract


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
