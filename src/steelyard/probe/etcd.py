"""etcd probe: a member's own metrics, from its page /metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.probe import pages
from steelyard.probe.base import Placement, Watched

NAME: Final = "etcd"
WAY: Final = "etcd"
MS_PER_S: Final = 1000.0


def _metric(name: str, unit: str, description: str, *, cumulative: bool = False) -> Metric:
    return Metric(name=f"node_etcd_{name}", unit=unit, description=description, cumulative=cumulative)


GAUGES: Final = {
    "etcd_server_is_leader": _metric("is_leader", "leaders", "1 on the member that leads, 0 on the others"),
    "etcd_server_leader_changes_seen_total": _metric(
        "leader_changes", "changes", "leaders that the member has seen since its start; the first is one of them"
    ),
    "etcd_server_proposals_pending": _metric(
        "pending_proposals", "proposals", "writes that this member was asked for and that are not committed yet"
    ),
    "etcd_mvcc_db_total_size_in_bytes": _metric(
        "database_bytes", "bytes", "the member's database with all versions, and pages that are free"
    ),
}
"""Number of the page to its metric."""
COMMITTED: Final = "etcd_server_proposals_committed_total"
PROPOSALS: Final = _metric(
    "proposals_per_s",
    "proposals/s",
    "committed entries of the log, nearly all of them writes",
    cumulative=True,
)
TIMES: Final = {
    "etcd_disk_wal_fsync_duration_seconds": (
        _metric("wal_syncs_per_s", "syncs/s", "syncs of the member's log to its disk", cumulative=True),
        _metric("wal_sync_ms", "ms", "mean length of those since the previous sample", cumulative=True),
    ),
    "etcd_disk_backend_commit_duration_seconds": (
        _metric("commits_per_s", "commits/s", "commits of the member's database to its disk", cumulative=True),
        _metric("commit_ms", "ms", "mean length of those since the previous sample", cumulative=True),
    ),
}
"""Histogram of the page to the metrics of its count and its mean."""
NUMBERS: Final = (*GAUGES, COMMITTED, *(f"{name}_{part}" for name in TIMES for part in ("count", "sum")))


class EtcdProbe:
    """Probe that asks each member for its metrics, once per interval."""

    name = NAME
    way = WAY
    metrics = (*GAUGES.values(), PROPOSALS, *(metric for pair in TIMES.values() for metric in pair))

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """A loop of requests to each member, on its node. Raises ProbeError for another system."""
        return pages.asking(NAME, WAY, watched, interval_s, "/metrics", f"^({'|'.join(NUMBERS)}) ")

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Numbers of the second page, and rates and means since the first. Raises ProbeError on any other line."""
        try:
            (from_s, first), (t_s, second) = pages.readings(line)
            before, now = _numbers(first), _numbers(second)
            values = dict(_values(before, now, t_s - from_s))
        except (ValueError, KeyError, ZeroDivisionError) as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error
        return [Sample(t_s, node, metric.name, value) for metric, value in values.items()]


def _values(before: Mapping[str, float], now: Mapping[str, float], seconds: float) -> Iterator[tuple[Metric, float]]:
    """Metrics and their values; none of a mean without events."""
    for name, metric in GAUGES.items():
        yield metric, now[name]
    yield PROPOSALS, (now[COMMITTED] - before[COMMITTED]) / seconds
    for name, (rate, mean) in TIMES.items():
        events = now[f"{name}_count"] - before[f"{name}_count"]
        yield rate, events / seconds
        if events > 0:
            yield mean, (now[f"{name}_sum"] - before[f"{name}_sum"]) / events * MS_PER_S


def _numbers(text: str) -> dict[str, float]:
    words = text.split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def create() -> EtcdProbe:
    """The probe; no side effects."""
    return EtcdProbe()
