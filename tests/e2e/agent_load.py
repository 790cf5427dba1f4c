"""Drive the agent's load engine by itself, against servers that a test started."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.node import agent
from tests.unit.wire import orders
from tests.unit.workload.reference import EXAMPLE

SCHEMA = (
    "CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS ycsb.usertable (y_id text PRIMARY KEY, field0 text, field1 text)",
)
RECORDS = 500


def order(contacts: Sequence[str], **changes: Any) -> dict[str, Any]:
    """Reads and updates of two fields, by default closed with 16 in flight."""
    size = {"fields": ["field0", "field1"], "records": RECORDS, "field_length": 300}
    base = {
        "contacts": list(contacts),
        "work": {**EXAMPLE["work"], **size, "request_distribution": "uniform"},
        "schedule": {"kind": "closed", "threads": 16},
        "stop": {"operations": 3000},
    }
    return orders.sent(orders.order(**{**base, **changes}))


@dataclass(frozen=True)
class Ended:
    """What a load said until its end."""

    exit_code: int
    records: tuple[dict[str, Any], ...]
    stderr: str = field(repr=False)

    @property
    def done(self) -> dict[str, Any]:
        """The end of the last phase."""
        found = [record for record in self.records if record["record"] == "done"]
        assert found, (self.exit_code, self.stderr, self.records)
        return found[-1]

    @property
    def failure(self) -> dict[str, Any]:
        """Why it gave up."""
        return next(record for record in self.records if record["record"] == "error")


def start(folder: Path, said: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a load; its records come on standard output."""
    path = folder / "order.json"
    path.write_text(json.dumps(said))
    return subprocess.Popen(
        [str(agent.find()), "load", "--order", str(path)],
        env={**os.environ, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 240.0) -> Ended:
    """Wait for its end."""
    out, errors = process.communicate(timeout=timeout_s)
    return Ended(process.returncode, tuple(json.loads(line) for line in out.splitlines()), errors)


def drive(folder: Path, said: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> Ended:
    """A whole load."""
    return finish(start(folder, said, variables))


def ask(contact: str, *words: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`steelyard-agent cql`."""
    argv = [str(agent.find()), "cql", "--contact", contact, *words]
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60.0, check=False)


def fill(folder: Path, said: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> None:
    """Create the table and fill it over the same kind of connection that the order asks for; every record."""
    created = ask(said["contacts"][0], *SCHEMA, variables=variables)
    assert created.returncode == 0, created.stderr
    filled = drive(folder, {**said, "action": "populate", "stop": {"operations": None, "duration_s": None}}, variables)
    assert (filled.done["operations"], filled.done["errors"]) == (RECORDS, 0), filled
