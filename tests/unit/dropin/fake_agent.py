"""A program that stands in for `steelyard-agent`: keeps how it was called, prints the lines that a test has written."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from steelyard.node import agent
from steelyard.wire.record import NO_SUMMARY

PROGRAM = """#!{python}
import json, os, signal, sys, time
from dataclasses import asdict
from pathlib import Path

folder = Path({folder!r})
arguments = sys.argv[1:]
kept = {{name: value for name, value in os.environ.items() if name.startswith("STEELYARD_CQL")}}
order = None
if arguments[0] == "load":
    order = json.loads(Path(arguments[arguments.index("--order") + 1]).read_text())
with (folder / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps({{"argv": arguments, "order": order, "variables": kept}}) + "\\n")
script = json.loads((folder / "script.json").read_text())[arguments[0]]
stopped = False
def stop(*_):
    global stopped
    stopped = not script["deaf"]
signal.signal(signal.SIGTERM, stop)
for line in script["lines"]:
    print(line if isinstance(line, str) else json.dumps(line), flush=True)
while script["waits"] and not stopped:
    time.sleep(0.01)
for line in script["after_stop"] if stopped else []:
    print(json.dumps(line), flush=True)
sys.stderr.write(script["stderr"])
sys.exit(script["code"])
"""


class FakeAgent:
    """Write what it says with `says`; read how it was called from `calls`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._script: dict[str, Any] = {}
        program = folder / "fake-agent"
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)
        monkeypatch.setenv(agent.OVERRIDE, str(program))
        self.says("load", [])
        self.says("cql", [])

    def says(
        self,
        command: str,
        lines: Sequence[Mapping[str, Any] | str],
        *,
        code: int = 0,
        stderr: str = "",
        waits: bool = False,
        after_stop: Sequence[Mapping[str, Any]] = (),
        deaf: bool = False,
    ) -> None:
        """The command prints `lines`, then waits for SIGTERM if `waits` and prints `after_stop`, then ends; `deaf`:
        it does not listen."""
        self._script[command] = {
            "lines": list(lines),
            "code": code,
            "stderr": stderr,
            "waits": waits,
            "after_stop": list(after_stop),
            "deaf": deaf,
        }
        (self.folder / "script.json").write_text(json.dumps(self._script))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Arguments, order and credentials of each call so far."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


HELLO = {"record": "hello", "format": 1, "agent": "0", "optimised": True, "t_s": 0.0}
CONNECTED = {"record": "connected", "nodes": ["127.0.0.1:9042"], "connections": 1, "server": "fake 1.0"}


def counts(operation: str, buckets: Sequence[tuple[int, int, int]], **more: str) -> dict[str, Any]:
    """Counts of an interval; `outcome` ok and `measure` response unless told."""
    return {"operation": operation, "outcome": "ok", "measure": "response", "buckets": list(buckets), **more}


def interval(phase: str, t_s: float, tables: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """An interval record of one second."""
    done = sum(count for table in tables if table["measure"] == "response" for _, _, count in table["buckets"])
    plain = {"seconds": 1.0, "sent": done, "done": done, "errors": 0, "backlog": 0, "cpu_fraction": 0.1}
    return {
        "record": "interval",
        "phase": phase,
        "t_s": t_s,
        **plain,
        "summary": asdict(NO_SUMMARY),
        "counts": list(tables),
        **more,
    }


def done(phase: str, operations: int, **more: Any) -> dict[str, Any]:
    """A done record of two seconds."""
    return {
        "record": "done",
        "phase": phase,
        "first_sent_s": 100.0,
        "last_done_s": 102.0,
        "execution_ns": 2_000_000_000,
        "operations": operations,
        "errors": 0,
        "errors_by_kind": {},
        "not_found": 0,
        "rows": 0,
        "cpu_ns": 5_000_000,
        "busiest_thread_fraction": 0.1,
        "dropped": 0,
        "reconnections": 0,
        **more,
    }
