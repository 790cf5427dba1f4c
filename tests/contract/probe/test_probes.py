"""Every probe that is shipped keeps the contract of a probe."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

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


class TestRaspberryPi(ProbeContract):
    module = "raspberry-pi"
    lines: ClassVar = (
        b"10.0 throttled=50000 temperature=48312 frequency=600000 | "
        b"11.0 throttled=50005 temperature=48799 frequency=1500000\n",
    )
    wrong: ClassVar = (*ProbeContract.wrong, b"10.0\n", b"10.0 | 11.0 throttled=x\n", b"10.0 | 11.0 volts=5\n")
