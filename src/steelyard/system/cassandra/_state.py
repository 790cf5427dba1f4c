"""Interpretation of a node's answers and log lines: ready, busy, schema. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.model.data_model import Schema, Table
from steelyard.system.cassandra._settings import Settings, TableOption
from steelyard.system.cassandra._snapshots import table_id

LISTENING = "Starting listening for CQL clients"
LIVENESS = re.compile(r"InetAddress (?:\S*/)?(\S+) is now (UP|DOWN)")
"""A node that is down may have its name before the slash, one that is up has none."""

DOING = (
    (LISTENING, "answering"),
    ("Bootstrap completed", "joining the ring"),
    ("JOINING: Starting to bootstrap", "streaming"),
    ("for pending range setup", "ring delay"),
    ("Waiting for gossip to settle", "waiting for gossip to settle"),
    ("state jump to NORMAL", "joining the ring"),
    ("Listening on address", "gossiping"),
    ("Replaying", "replaying the commit log"),
    ("Initializing system", "opening tables"),
    ("Configuration location", "reading its configuration"),
)
"""Log texts, latest phase first, with the node's activity after each."""

POOLS = {
    "CompactionExecutor": "compactions",
    "MemtableFlushWriter": "flushes",
    "MemtablePostFlush": "flushes",
    "HintsDispatcher": "hints",
}
BUSY_QUESTIONS = (
    "SELECT task_id FROM system_views.sstable_tasks",
    "SELECT name, active_tasks, pending_tasks FROM system_views.thread_pools",
    "SELECT files FROM system_views.pending_hints",
    "SELECT id, status FROM system_views.streaming",
)
STREAM_ENDED = {"success", "failure"}


@dataclass(frozen=True)
class Seen:
    """State of a node according to its log."""

    listening: bool
    up: frozenset[str]
    """Addresses of peers whose latest state in the log is UP."""
    doing: str
    members: int

    @property
    def ready(self) -> bool:
        """Whether it is worth querying the node itself."""
        return self.listening and len(self.up) >= self.members - 1


def seen(text: str, members: int) -> Seen:
    """State from the text of a node's log, which is new with each start."""
    last = dict(LIVENESS.findall(text))
    up = frozenset(address for address, state in last.items() if state == "UP")
    doing = next((what for mark, what in DOING if mark in text), "starting the Java machine")
    listening = LISTENING in text
    if listening and len(up) < members - 1:
        doing = f"sees {len(up) + 1} of {members} nodes up"
    return Seen(listening, up, doing, members)


@dataclass
class LogSoFar:
    """Lines of a node's log: only those that `seen` looks for."""

    bytes_read: int = 0
    text: str = ""

    def take(self, content: bytes) -> list[str]:
        """The whole lines of further text; an incomplete one is left for the next call."""
        whole = content[: content.rfind(b"\n") + 1]
        self.bytes_read += len(whole)
        return whole.decode(errors="replace").splitlines()

    def append(self, content: bytes) -> None:
        """Keep those lines of further text that `seen` looks for."""
        lines = self.take(content)
        marks = [mark for mark, _ in DOING]
        kept = [line for line in lines if LIVENESS.search(line) or any(mark in line for mark in marks)]
        self.text += "".join(f"{line}\n" for line in kept)


def earlier_name(names: Collection[str]) -> dict[str, str]:
    """New names for the logs of an earlier start, numbered, so that each log covers one start and none is lost."""
    previous = [name for name in names if "/" not in name and not name.startswith("start-")]
    number = 1 + len({name.split(".", 1)[0] for name in names if name.startswith("start-")})
    return {name: f"start-{number}.{name}" for name in previous}


def is_normal(row: Mapping[str, Any]) -> bool:
    """Whether a row of gossip_info describes a node that serves clients and owns its tokens."""
    status = str(row.get("status_with_port") or row.get("status") or "")
    return status.startswith("NORMAL") and str(row.get("rpc_ready")).lower() == "true"


def busy(answers: Iterable[Sequence[Sequence[Mapping[str, Any]]]]) -> dict[str, float]:
    """Sum over nodes of the answers to BUSY_QUESTIONS."""
    amounts = dict.fromkeys(("compactions", "flushes", "hints", "streams"), 0.0)
    for tasks, pools, hints, streams in answers:
        waiting = dict.fromkeys(amounts, 0.0)
        for pool in pools:
            if kind := POOLS.get(pool["name"]):
                waiting[kind] += pool["active_tasks"] + pool["pending_tasks"]
        # A running compaction also counts as a task of the executor: take the larger number, not the sum.
        amounts["compactions"] += max(waiting["compactions"], len(tasks))
        amounts["flushes"] += waiting["flushes"]
        amounts["hints"] += waiting["hints"] + sum(row["files"] for row in hints)
        amounts["streams"] += sum(str(row["status"]).lower() not in STREAM_ENDED for row in streams)
    return amounts


def schema_statements(settings: Settings, schema: Schema) -> tuple[str, ...]:
    """Statements for keyspace, types, tables, indexes, with the settings' replication and table options (unless a table
    specifies them itself), and ids that are always the same."""

    def options(table: Table) -> list[str]:
        chosen = settings.annotated(TableOption)
        clauses = [f"{name} = {option.literal(value)}" for name, option, value in chosen if not table.says(name)]
        return [f"ID = {table_id(schema, table.name)}", *clauses]

    return (schema.create_keyspace(settings.replication_factor), *schema.create_rest(options))


def table_questions(settings: Settings, schema: Schema) -> tuple[str, str]:
    """Queries for the settings of keyspace and tables."""
    columns = ", ".join(["table_name", *(name for name, _, _ in settings.annotated(TableOption))])
    return (
        f"SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{schema.keyspace}'",
        f"SELECT {columns} FROM system_schema.tables WHERE keyspace_name = '{schema.keyspace}'",
    )


def asked_of_tables(settings: Settings, schema: Schema) -> dict[str, str]:
    """Requested settings of keyspace and tables, named as in the study; with the table's name if there are several."""
    asked = {"replication_factor": str(settings.replication_factor)}
    for table in schema.all_tables():
        for name, _, value in settings.annotated(TableOption):
            if not table.says(name):
                asked[_of(schema, table, name)] = str(value)
    return asked


def tables_in_force(
    settings: Settings, schema: Schema, answers: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, str]:
    """The answers to `table_questions`, in the words of the settings; `missing` if there is no such table."""
    keyspaces, tables = answers
    rows = {row["table_name"]: row for row in tables}
    force = {"replication_factor": "missing"}
    if keyspaces:
        force["replication_factor"] = str(keyspaces[0]["replication"].get("replication_factor"))
    for table in schema.all_tables():
        row = rows.get(table.name)
        for name, option, _ in settings.annotated(TableOption):
            force[_of(schema, table, name)] = "missing" if row is None else option.in_force(row[name])
    return force


def _of(schema: Schema, table: Table, option: str) -> str:
    return option if len(schema.all_tables()) == 1 else f"{option} of {table.name}"
