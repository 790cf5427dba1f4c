"""PostgreSQL probe: a server's own statistics, which `psql` asks for over one connection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.probe.base import Placement, Watched, with_way
from steelyard.wire.order import PostgresqlTarget

NAME: Final = "postgresql"
WAY: Final = "postgresql"
CLIENT: Final = "psql"
QUESTION: Final = """
SELECT coalesce(current_setting('steelyard.before', true), '') || ' | '
  || set_config('steelyard.before', now::text, false)
FROM (SELECT json_build_object(
  't', extract(epoch FROM clock_timestamp()),
  'database', (SELECT to_json(one) FROM pg_stat_database one WHERE datname = current_database()),
  'wal', (SELECT to_json(one) FROM pg_stat_wal one),
  'bgwriter', (SELECT to_json(one) FROM pg_stat_bgwriter one),
  'replication', (SELECT json_build_object('replicas', count(*), 'lag_bytes', max(pg_current_wal_lsn() - replay_lsn),
    'lag_s', max(extract(epoch FROM replay_lag))) FROM pg_stat_replication WHERE replay_lsn IS NOT NULL),
  'receiver', (SELECT json_build_object('behind_bytes', greatest(latest_end_lsn - pg_last_wal_replay_lsn(), 0),
    'behind_s', CASE WHEN latest_end_lsn > pg_last_wal_replay_lsn()
      THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) ELSE 0 END)
    FROM pg_stat_wal_receiver)
) AS now) AS answer
"""
"""The statistics of now behind those of the time before, so that each line suffices for rates."""
SCRIPT: Final = r"""
printf '%s \\watch %s\n' "$3" "$4" | "$1" -X --quiet --no-align --tuples-only --dbname="$2"
"""


def _metric(name: str, unit: str, description: str, *, cumulative: bool = False) -> Metric:
    return Metric(name=f"node_postgresql_{name}", unit=unit, description=description, cumulative=cumulative)


def _rate(what: str, unit: str, description: str) -> Metric:
    return _metric(f"{what}_per_s", f"{unit}/s", description, cumulative=True)


RATES: Final = {
    ("database", "xact_commit", "xact_rollback"): _rate("transactions", "transactions", "ended, by a commit or not"),
    ("database", "xact_rollback"): _rate("rollbacks", "transactions", "rolled back"),
    ("database", "tup_fetched"): _rate("rows_read", "rows", "read by an index"),
    ("database", "tup_inserted", "tup_updated", "tup_deleted"): _rate("rows_written", "rows", "written or deleted"),
    ("database", "blks_read"): _rate("pages_read", "pages", "not found in the shared buffers"),
    ("database", "blks_hit"): _rate("pages_hit", "pages", "found there"),
    ("wal", "wal_bytes"): _rate("wal_bytes", "bytes", "written to the write-ahead log"),
    ("wal", "wal_sync"): _rate("wal_syncs", "syncs", "of the write-ahead log to the disk"),
    ("bgwriter", "buffers_checkpoint"): _rate("checkpoint_pages", "pages", "written by checkpoints"),
}
"""Part of an answer and the fields whose sum grows, to the metric of its rate."""
GAUGES: Final = {
    ("database", "numbackends"): _metric("connections", "connections", "of all clients, the probe's own included"),
    ("bgwriter", "checkpoints_timed", "checkpoints_req"): _metric("checkpoints", "checkpoints", "since the start"),
    ("replication", "replicas"): _metric("replicas", "replicas", "that this server sends its log to"),
    ("replication", "lag_bytes"): _metric(
        "lag_bytes", "bytes", "of the log that the slowest replica does not show yet"
    ),
    ("replication", "lag_s"): _metric("lag_s", "s", "until the slowest replica showed what was written"),
    ("receiver", "behind_bytes"): _metric("behind_bytes", "bytes", "of the log that this replica does not show yet"),
    ("receiver", "behind_s"): _metric("behind_s", "s", "age of what this replica shows, if it does not show all"),
}
"""Part of an answer and the fields whose sum is read, to the metric."""


class PostgresqlProbe:
    """Probe that runs `psql` on each database node."""

    name = NAME
    way = WAY
    metrics = (*RATES.values(), *GAUGES.values())

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """One connection to each server. Raises ProbeError for another system."""
        return [
            Placement(on=each.node, argv=_argv(each, interval_s), speaks_of=(each.node.name,))
            for each in with_way(with_way(watched, WAY, NAME), CLIENT, NAME)
        ]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Gauges of an answer, and rates since the one before; none without it. Raises ProbeError on any other line."""
        try:
            before, now = (json.loads(text or "{}") for text in line.decode().strip("\r\n").split(" | "))
            t_s = float(now["t"])
            rates = _rates(before, now, t_s - before["t"]) if before else ()
            values = [*rates, *((metric, total(now, *at)) for at, metric in GAUGES.items())]
        except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error
        return [Sample(t_s, node, metric.name, value) for metric, value in values if value is not None]


def total(answer: Mapping[str, Any], part: str, *fields: str) -> float | None:
    """Sum of fields; None if the server has one of them not, as the roles or the releases differ."""
    values: list[Any] = [(answer.get(part) or {}).get(field) for field in fields]
    return None if None in values else float(sum(values))


def _rates(before: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> Iterator[tuple[Metric, float | None]]:
    """Rates of counters, but of those that were reset."""
    for at, metric in RATES.items():
        first, second = total(before, *at), total(now, *at)
        if first is not None and second is not None and second >= first:
            yield metric, (second - first) / seconds


def _argv(each: Watched, interval_s: float) -> tuple[str, ...]:
    host, _, port = each.ways[WAY].rpartition(":")
    of = PostgresqlTarget()
    contact = f"host={host.strip('[]')} port={port} user={of.user} dbname={of.database}"
    return ("sh", "-c", SCRIPT, NAME, each.ways[CLIENT], contact, " ".join(QUESTION.split()), f"{interval_s:g}")


def create() -> PostgresqlProbe:
    """The probe; no side effects."""
    return PostgresqlProbe()
