"""The probe `os`: its command, its parser, and that page, table and agent name the same metrics."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.plugins import find
from steelyard.probe import os as os_probe

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>[a-z0-9_]+)` \| (?P<unit>[a-z/]+) \|", re.MULTILINE)


def _node(**changes: object) -> Node:
    defaults: dict[str, object] = {
        "name": "n1", "role": "database", "address": "127.0.0.1", "prefix": (), "folder": Path("/tmp/n1")
    }  # fmt: skip
    return Node(**{**defaults, **changes})  # type: ignore[arg-type]


@pytest.fixture
def fake_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "steelyard-agent"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv(agent.OVERRIDE, str(path))
    return str(path)


def test_is_found_by_name() -> None:
    probe = find.find("probe", "os").create()
    assert probe.name == "os"
    assert len({metric.name for metric in probe.metrics}) == len(probe.metrics)


def test_command_names_cgroups_and_processes(fake_agent: str) -> None:
    node = _node(cgroups=(Path("/sys/fs/cgroup/cpu/n1"), Path("/sys/fs/cgroup/memory/n1")))
    argv = list(os_probe.create().command(node, 0.5, (12, 34)))
    inode = str(os_probe.OWN_NETWORK.stat().st_ino)
    assert argv == [
        fake_agent, "probe", "--interval-s", "0.5",
        "--cgroup", "/sys/fs/cgroup/cpu/n1", "--cgroup", "/sys/fs/cgroup/memory/n1",
        "--pid", "12", "--pid", "34", "--shared-netns", inode,
    ]  # fmt: skip


def test_a_disk_of_its_own_is_named_by_its_mount(fake_agent: str) -> None:
    shared, own = _node(), _node(own_disk=True)
    commands = [list(os_probe.create().command(node, 1.0, ())) for node in (shared, own)]
    assert "--disk" not in commands[0]
    assert commands[1][commands[1].index("--disk") + 1] == str(own.folder)


def test_a_machine_of_its_own_shares_no_network() -> None:
    away = _node(processes="through", prefix=("ssh", "pi3"), agent="/far/agent", kernel="pi3")
    argv = os_probe.create().command(away, 1.0, ())
    assert list(argv) == ["/far/agent", "probe", "--interval-s", "1"]


def test_samples_of_the_shared_example() -> None:
    probe = os_probe.create()
    lines = [json.loads(line) for line in (ROOT / "schema" / "records.example.jsonl").read_text().splitlines()]
    (example,) = [line for line in lines if line["record"] == "sample"]
    samples = list(probe.parse("n2", json.dumps(example).encode()))
    assert {sample.metric: sample.value for sample in samples} == example["values"]
    assert {(sample.node, sample.t_s) for sample in samples} == {("n2", example["t_s"])}
    assert {sample.metric for sample in samples} <= {metric.name for metric in probe.metrics}


def test_a_greeting_has_no_samples_but_a_version() -> None:
    probe = os_probe.create()
    hello = {"record": "hello", "format": 1, "agent": "0.1.0", "optimised": True, "t_s": 1.0}
    assert list(probe.parse("n1", json.dumps(hello).encode())) == []
    with pytest.raises(ProbeError, match="format 2") as caught:
        probe.parse("n1", json.dumps({**hello, "format": 2}).encode())
    assert "same version" in caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"[]",
        b"7",
        b'{"record":"sample"}',
        b'{"record":"sample","t_s":1,"values":{"a":"x"}}',
        b'{"record":"done"}',
    ],
)
def test_foreign_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ProbeError, match="n1"):
        os_probe.create().parse("n1", line)


def test_the_agents_failure_is_the_probes() -> None:
    line = b'{"record":"error","message":"/x is no cgroup","hint":"is the node still lent?"}'
    with pytest.raises(ProbeError, match="/x is no cgroup") as caught:
        os_probe.create().parse("n1", line)
    assert caught.value.hint == "is the node still lent?"


def test_page_and_table_agree() -> None:
    rows = [(match["name"], match["unit"]) for match in ROW.finditer(PAGE.read_text())]
    assert rows == [(metric.name, metric.unit) for metric in os_probe.METRICS]


def _agent() -> str:
    return str(agent.find())


@pytest.mark.agent
def test_agent_and_table_agree() -> None:
    listed = subprocess.run([_agent(), "probe", "--list"], check=True, capture_output=True, text=True, timeout=10)
    rows = [tuple(line.split(" ", 1)) for line in listed.stdout.splitlines()]
    assert rows == [(metric.name, metric.unit) for metric in os_probe.METRICS]


@pytest.mark.agent
def test_agents_lines_are_parsed() -> None:
    probe = os_probe.create()
    argv = [_agent(), "probe", "--interval-s", "0.1", "--lines", "3", "--pid", "1"]
    output = subprocess.run(argv, check=True, capture_output=True, timeout=10).stdout
    lines = output.splitlines()
    assert len(lines) == 4
    samples = [list(probe.parse("n1", line)) for line in lines]
    assert samples[0] == []
    values = {sample.metric: sample.value for sample in samples[-1]}
    assert set(values) <= {metric.name for metric in probe.metrics}
    cpu = sum(values[f"machine_cpu_{kind}_fraction"] for kind in ("user", "system", "iowait", "steal", "idle"))
    assert cpu == pytest.approx(1.0)
    assert values["machine_memory_available_bytes"] > 0
    assert values["node_processes"] >= 1.0, "with its descendants"
    times = [group[0].t_s for group in samples[1:]]
    assert all(abs(t_s * 10 - round(t_s * 10)) < 0.5 for t_s in times)


@pytest.mark.agent
def test_agent_ends_when_nobody_listens() -> None:
    process = subprocess.Popen([_agent(), "probe", "--interval-s", "30"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=5) == 0


@pytest.mark.agent
def test_agent_says_which_cgroup_is_gone() -> None:
    argv = [_agent(), "probe", "--cgroup", "/nowhere/at/all"]
    done = subprocess.run(argv, capture_output=True, timeout=10, check=False)
    assert done.returncode == 1
    with pytest.raises(ProbeError, match="/nowhere/at/all"):
        os_probe.create().parse("n1", done.stdout.splitlines()[-1])
