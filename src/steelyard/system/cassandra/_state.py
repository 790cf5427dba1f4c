"""What a node's answers and log lines mean: ready, busy, schema. Pure, but for reading the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.model.schema import Schema
from steelyard.system.cassandra._golden import table_id
from steelyard.system.cassandra._settings import COMPACTIONS, COMPRESSORS, Settings

LISTENING = "Starting listening for CQL clients"
LIVENESS = re.compile(r"InetAddress /?(\S+) is now (UP|DOWN)")

DOING = (
    (LISTENING, "answering"),
    ("state jump to NORMAL", "joining the ring"),
    ("Listening on address", "gossiping"),
    ("Replaying", "replaying the commit log"),
    ("Initializing system", "opening tables"),
    ("Configuration location", "reading its configuration"),
)
"""Texts of the log, latest phase first, and what the node is doing after it."""

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
    """What the log of a node says."""

    listening: bool
    up: frozenset[str]
    """Addresses of peers whose last word is UP."""
    doing: str
    members: int

    @property
    def ready(self) -> bool:
        """Whether it is worth asking the node itself."""
        return self.listening and len(self.up) >= self.members - 1


def seen(log: Path, members: int) -> Seen:
    """Read the log of a node, which begins anew with each start."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    last = dict(LIVENESS.findall(text))
    up = frozenset(address for address, state in last.items() if state == "UP")
    doing = next((what for mark, what in DOING if mark in text), "starting the Java machine")
    listening = LISTENING in text
    if listening and len(up) < members - 1:
        doing = f"sees {len(up) + 1} of {members} nodes up"
    return Seen(listening, up, doing, members)


def set_aside(logs: Path) -> None:
    """Number the logs of earlier starts, so that a log tells of one start only and none is lost."""
    previous = [path for path in logs.iterdir() if path.is_file() and not path.name.startswith("start-")]
    if not previous:
        return
    number = 1 + len({path.name.split(".", 1)[0] for path in logs.glob("start-*")})
    for path in previous:
        path.rename(logs / f"start-{number}.{path.name}")


def is_normal(row: Mapping[str, Any]) -> bool:
    """Whether a row of gossip_info is of a node that serves clients and owns its tokens."""
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
        # A running compaction is a task of the executor too: the larger number, not the sum.
        amounts["compactions"] += max(waiting["compactions"], len(tasks))
        amounts["flushes"] += waiting["flushes"]
        amounts["hints"] += waiting["hints"] + sum(row["files"] for row in hints)
        amounts["streams"] += sum(str(row["status"]).lower() not in STREAM_ENDED for row in streams)
    return amounts


def schema_statements(settings: Settings, schema: Schema) -> tuple[str, str]:
    """Keyspace and table with the settings' replication, compression and compaction, and an id that never differs."""
    columns = ", ".join([f"{schema.key} text PRIMARY KEY", *(f"{field} text" for field in schema.fields)])
    compressor = COMPRESSORS[settings.compression]
    compression = f"{{'class': '{compressor}'}}" if compressor else "{'enabled': 'false'}"
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {schema.keyspace} WITH replication = "
        f"{{'class': 'SimpleStrategy', 'replication_factor': {settings.replication_factor}}}",
        f"CREATE TABLE IF NOT EXISTS {schema.keyspace}.{schema.table} ({columns}) WITH ID = {table_id(schema)} "
        f"AND compression = {compression} AND compaction = {{'class': '{COMPACTIONS[settings.compaction]}'}}",
    )


def table_questions(schema: Schema) -> tuple[str, str]:
    """What to ask for the settings of keyspace and table."""
    return (
        f"SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{schema.keyspace}'",
        f"SELECT compression, compaction FROM system_schema.tables WHERE keyspace_name = '{schema.keyspace}' "
        f"AND table_name = '{schema.table}'",
    )


def asked_of_table(settings: Settings) -> dict[str, str]:
    """The settings of keyspace and table, named as the study names them."""
    return {
        "replication_factor": str(settings.replication_factor),
        "compression": settings.compression,
        "compaction": settings.compaction,
    }


def table_in_force(answers: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """The answers to `table_questions`, in the words of the settings; `missing` where there is no table."""
    keyspaces, tables = answers
    if not keyspaces or not tables:
        return dict.fromkeys(("replication_factor", "compression", "compaction"), "missing")
    compression, compaction = tables[0]["compression"], tables[0]["compaction"]
    compressor = "" if compression.get("enabled") == "false" else _short(compression.get("class"))
    strategy = _short(compaction.get("class"))
    return {
        "replication_factor": str(keyspaces[0]["replication"].get("replication_factor")),
        "compression": next((word for word, name in COMPRESSORS.items() if name == compressor), compressor),
        "compaction": next((word for word, name in COMPACTIONS.items() if name == strategy), strategy),
    }


def _short(name: Any) -> str:
    return str(name).rpartition(".")[2]
