"""Cassandra probe: a node's own metrics from its virtual tables `system_views`, read over one CQL connection.

This module holds the tables' questions and what their answers mean; `virtual_tables.py` asks them. Tables of system
keyspaces are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pydantic import Field

from steelyard.model.sample import Metric, Sample
from steelyard.model.value import Value
from steelyard.probe.base import Placement, Watched
from steelyard.probe.virtual_tables import Row, Values, asking, samples

NAME: Final = "cassandra"
WAY: Final = "cql"
IN_TURN: Final = ("operations", "tombstones", "disk", "caches", "hints")
"""Views that change slowly or make the server walk all of its tables: one of their questions per interval, in turn."""
COUNTING: Final = ("count", "hit_count", "request_count", "blocked_tasks_all_time")
"""Columns that only grow: the agent gives their increase per second."""
MIB: Final = 2**20
View = Literal["operations", "tombstones", "disk", "pools", "caches", "compactions", "hints"]


class Settings(Value):
    """Virtual tables of Cassandra that the probe reads."""

    views: tuple[View, ...] = Field(default=get_args(View), min_length=1)
    """Groups of metrics to read: operations (as coordinator and as replica), tombstones, disk, pools (of threads),
    caches, compactions, hints."""


@dataclass(frozen=True)
class Question:
    """One virtual table, its metrics, and how its rows become their values."""

    view: View
    statement: str
    metrics: tuple[Metric, ...]
    values: Values


def _metric(name: str, unit: str, description: str, *, cumulative: bool = False) -> Metric:
    return Metric(name=name, unit=unit, description=description, cumulative=cumulative)


def _known(rows: Iterable[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows if isinstance(row.get(column), int | float)]


def _operations(who: str, what: str) -> Question:
    """Operations per second. The times in these tables are not read: 5.0.5 takes microseconds for nanoseconds there,
    and rounds them; the probe `jmx` has them."""
    name, as_ = f"node_{who}_{what}s_per_s", "coordinator" if who == "coordinator" else "replica, from its own tables"

    def values(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
        if rates := _known(rows, "count"):
            yield name, sum(rates)

    return Question(
        "operations",
        f"SELECT keyspace_name, table_name, count FROM system_views.{who}_{what}_latency",
        (_metric(name, "operations/s", f"{what}s that the node served as {as_}", cumulative=True),),
        values,
    )


def _tombstones(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    for column, name in (("p99th", "node_read_p99_tombstones"), ("max", "node_read_max_tombstones")):
        if counts := _known(rows, column):
            yield name, max(counts)


def _disk(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    yield "node_tables_disk_bytes", sum(_known(rows, "mebibytes")) * MIB


POOLS: Final = {
    "Native-Transport-Requests": ("native_transport", "requests of clients"),
    "ReadStage": ("read", "reads as replica"),
    "MutationStage": ("mutation", "writes as replica"),
    "RequestResponseStage": ("response", "answers of other nodes"),
    "CompactionExecutor": ("compaction", "compactions"),
    "MemtableFlushWriter": ("flush", "flushes of memtables"),
}
"""Thread pools that serve operations or compete with them, each with its word and its task."""


def _pools(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    for row in rows:
        if (known := POOLS.get(str(row.get("name")))) is not None:
            for column in ("active_tasks", "pending_tasks"):
                yield f"node_{known[0]}_{column}", float(row[column])
    if blocked := _known(rows, "blocked_tasks_all_time"):
        yield "node_blocked_tasks_per_s", sum(blocked)


CACHES: Final = {"chunks": "chunks of data files", "keys": "places of keys", "rows": "rows", "counters": "counters"}


def _caches(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    for row in rows:
        name = str(row.get("name"))
        if name not in CACHES:
            continue
        yield f"node_cache_{name}_bytes", float(row["size_bytes"])
        hits, requests = row.get("hit_count"), row.get("request_count")
        if hits is not None and requests:
            yield f"node_cache_{name}_hit_fraction", float(hits) / float(requests)


def _compactions(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    yield "node_compactions_running", float(len(rows))
    left = [float(row["total"]) - float(row["progress"]) for row in rows if row.get("unit") == "bytes"]
    yield "node_compactions_remaining_bytes", sum(left)


def _hints(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    yield "node_hints_pending_files", sum(_known(rows, "files"))


def _of_pools() -> Iterator[Metric]:
    for word, does in POOLS.values():
        yield _metric(f"node_{word}_active_tasks", "tasks", f"threads at work on {does}")
        yield _metric(f"node_{word}_pending_tasks", "tasks", f"waiting for a thread for {does}")
    yield _metric("node_blocked_tasks_per_s", "tasks/s", "refused by a full queue, all thread pools", cumulative=True)


def _of_caches() -> Iterator[Metric]:
    for name, of in CACHES.items():
        yield _metric(f"node_cache_{name}_bytes", "bytes", f"size of the cache of {of}")
        yield _metric(f"node_cache_{name}_hit_fraction", "fraction", f"hits of the cache of {of}", cumulative=True)


QUESTIONS: Final[tuple[Question, ...]] = (
    Question(
        "pools",
        "SELECT name, active_tasks, pending_tasks, blocked_tasks_all_time FROM system_views.thread_pools",
        tuple(_of_pools()),
        _pools,
    ),
    Question(
        "compactions",
        "SELECT keyspace_name, table_name, kind, progress, total, unit FROM system_views.sstable_tasks",
        (
            _metric("node_compactions_running", "compactions", "compactions and other work on data files"),
            _metric("node_compactions_remaining_bytes", "bytes", "what they have still to read"),
        ),
        _compactions,
    ),
    *(_operations(who, what) for who in ("coordinator", "local") for what in ("read", "write", "scan")),
    Question(
        "caches",
        "SELECT name, size_bytes, hit_count, request_count FROM system_views.caches",
        tuple(_of_caches()),
        _caches,
    ),
    Question(
        "hints",
        "SELECT files FROM system_views.pending_hints",
        (_metric("node_hints_pending_files", "files", "files of writes that other nodes have missed"),),
        _hints,
    ),
    Question(
        "tombstones",
        "SELECT * FROM system_views.tombstones_per_read",
        (
            _metric("node_read_p99_tombstones", "tombstones", "99th percentile per read of the last minutes"),
            _metric("node_read_max_tombstones", "tombstones", "most per read of the last minutes"),
        ),
        _tombstones,
    ),
    Question(
        "disk",
        "SELECT * FROM system_views.disk_usage",
        (_metric("node_tables_disk_bytes", "bytes", "data files of all tables, each rounded up to 1 MiB"),),
        _disk,
    ),
)
"""Questions in the order of the table of metrics; those of IN_TURN are asked and answered last."""


class CassandraProbe:
    """Probe that runs `steelyard-agent cql --every` on each database node."""

    name = NAME
    way = WAY

    def __init__(self, settings: Settings) -> None:
        asked = [question for question in QUESTIONS if question.view in settings.views]
        self._questions = tuple(sorted(asked, key=lambda question: question.view in IN_TURN))
        self.metrics = tuple(metric for question in self._questions for metric in question.metrics)

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """One connection to each node with a CQL port. Raises ProbeError for a system without one."""
        words = [word for column in COUNTING for word in ("--rate", column)]
        words += ["--without", "keyspace_name=system"]
        statements = [question.statement for question in self._questions if question.view not in IN_TURN]
        in_turn = [question.statement for question in self._questions if question.view in IN_TURN]
        words += [word for statement in in_turn for word in ("--in-turn", statement)]
        return asking(NAME, WAY, watched, interval_s, (*words, *statements))

    def turn_s(self, interval_s: float) -> float:
        """Seconds after which every question was asked once."""
        return interval_s * max(1, sum(question.view in IN_TURN for question in self._questions))

    def faster(self, interval_s: float) -> str:
        """Fewer views, where there is more than one of them."""
        views = list(dict.fromkeys(question.view for question in self._questions if question.view in IN_TURN))
        return f"fewer of {', '.join(views)} ([probe.{NAME}] views)" if len(views) > 1 else ""

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples of one round of answers; none of a connection that was opened or lost. Raises ProbeError on any other
        line."""
        return samples(NAME, [question.values for question in self._questions], node, line)


def create(settings: Settings) -> CassandraProbe:
    """The probe; no side effects."""
    return CassandraProbe(settings)
