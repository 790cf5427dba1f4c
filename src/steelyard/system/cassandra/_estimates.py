"""Time and disk estimates for a Cassandra cluster before anything has been measured, by rules of thumb.

The rules come from readings on an idle 2-core machine: 1 node was ready in 3.3 s, 3 in 11 to 13 s, 6 in 29 s; 5,000
records of 1 kB were filled in 2 s; 600 operations of one thread took 0.3 s (YCSB A, C, I) and 0.6 to 1 s (E) on 1 node,
0.75 to 0.95 s and 3.3 s on 3. On another machine they are wrong by a factor, which a store's history corrects.
"""

from __future__ import annotations

from steelyard.model.workload_shape import WorkloadShape
from steelyard.system.base import ClusterTimes

SERVICE_MS = {"read": 0.48, "update": 0.52, "insert": 0.43, "scan": 1.5, "read_modify_write": 1.0}
"""Service times on one node that has the machine to itself, ms."""
OTHER_SERVICE_MS = 1.0
REMOTE_COST = 1.5
"""Extra time of an operation, relative to its service time, when its coordinator must query another node."""
MOST_RATE_PER_CORE = 3_000.0
"""Operations per second and core, client and servers together."""
NODE_START_S = 3.3
JOIN_S = 3.5
"""Seconds that each further node adds to a start in addition to its processor time: nodes wait for each other."""
SCHEMA_S = 0.4
FILL_COLD_S = 1.0
"""Extra seconds of filling because the servers have just started."""
FILL_RATE_PER_CORE = 2_500.0
SNAPSHOT_S = 0.5
RESTORE_S = 0.4
"""Also for emptying a table, which takes most of that time."""
SETTLE_S = 0.1
WIPE_S = 0.2

COMPACTION_OVERHEAD = 2.0
"""A compaction holds old and new tables at the same time."""
MOST_COMMIT_LOG_MB = 8192
"""Per node, if the settings have no limit: Cassandra's own limit."""
LEAST_COMMIT_LOG_MB = 64
"""Per node, MiB: segments that exist even if little was written."""
BYTES_PER_MIB = 1 << 20


def times(shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
    """Expected times of a cluster whose nodes share `cores` cores with the load."""
    alone_ms = shape.mean_of(SERVICE_MS, OTHER_SERVICE_MS)
    # One node of n has the row.
    work = 1.0 + REMOTE_COST * (1.0 - 1.0 / nodes)
    crowding = max(1.0, nodes / cores)
    read_ms = SERVICE_MS["read"]
    return ClusterTimes(
        start_s=NODE_START_S * crowding + JOIN_S * (nodes - 1),
        schema_s=SCHEMA_S,
        fill_s=FILL_COLD_S + shape.records / (FILL_RATE_PER_CORE * cores),
        snapshot_s=SNAPSHOT_S,
        restore_s=RESTORE_S,
        settle_s=SETTLE_S,
        wipe_s=WIPE_S,
        service_ms=alone_ms * work * crowding,
        most_per_s=MOST_RATE_PER_CORE * cores * read_ms / (max(alone_ms, read_ms) * work),
    )


def disk_bytes(stored_bytes: float, nodes: int, commit_log_mb: int | None) -> int:
    """Peak disk use of a cluster: tables during compaction, and commit logs, limited to `commit_log_mb` MiB per node
    (None: Cassandra's own limit)."""
    tables = stored_bytes * COMPACTION_OVERHEAD
    most = (commit_log_mb or MOST_COMMIT_LOG_MB) * BYTES_PER_MIB * nodes
    commit_logs = min(most, int(tables) + LEAST_COMMIT_LOG_MB * BYTES_PER_MIB * nodes)
    return int(tables) + commit_logs
