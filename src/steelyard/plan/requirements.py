"""What a plan needs of a machine: disk and memory; and what it asks for that cannot work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.format import count
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.plan.machine import Machine
from steelyard.plan.phase_times import Shapes, plugin_of
from steelyard.site.base import Request
from steelyard.study.settings import canonical

COMPACTION_OVERHEAD = 2.0
"""A compaction holds old and new tables at the same time."""
STORE_BYTES_PER_TRIAL = 300_000
MOST_COMMIT_LOG_MB = 8192
"""Of each node, where the settings do not say: Cassandra's own limit."""
LEAST_COMMIT_LOG_MB = 64
"""Of each node, MiB: segments that are there although little was written."""
MARGIN_MEMORY_MB = 512
"""The conductor, the load engine and the page cache of what they read."""
BYTES_PER_MIB = 1 << 20
LEAST_REPLICAS = {"TWO": 2, "THREE": 3}
"""Consistency levels that need so many replicas whatever the replication factor."""
THIS_MACHINE = frozenset({"cpu", "memory", "kernel"})
"""A site whose nodes share one of these lends parts of this machine."""


def memory_mb(settings: Mapping[str, Any], cache: Path) -> int:
    """What the cluster of a treatment needs, and a margin for the laboratory, MiB."""
    system = plugin_of("system", settings, cache)
    return int(system.memory_mb_per_node) * int(settings["site"]["nodes"]) + MARGIN_MEMORY_MB


def memory_mb_of_plan(plan: Plan, cache: Path) -> int:
    """What the largest cluster of a plan needs, MiB."""
    clusters = {canonical({part: trial.settings[part] for part in ("site", "system")}): trial for trial in plan.trials}
    return max((memory_mb(trial.settings, cache) for trial in clusters.values()), default=0)


def filled_state(settings: Mapping[str, Any], records: int) -> str:
    """Name of the filled state that a start needs: what its size depends on."""
    return canonical({"system": settings["system"], "nodes": settings["site"]["nodes"], "records": records})


def disk_bytes(plan: Plan, shapes: Shapes) -> int:
    """Live data and commit logs of the largest cluster, a snapshot of every filled state, and the store."""
    snapshots: dict[str, int] = {}
    written: dict[str, float] = {}
    largest = 0
    for trial in plan.trials:
        shape = shapes.of(trial.settings)
        system, nodes = trial.settings["system"], int(trial.settings["site"]["nodes"])
        row_bytes = min(int(system.get("replication_factor", 1)), nodes) * shape.record_bytes
        snapshots[filled_state(trial.settings, shape.records)] = shape.records * row_bytes
        added = (trial.settings["load"]["operations"] or 0) * shape.writes * row_bytes
        continues = trial.settings["data"]["state"] == "continue"
        written[trial.start] = written.get(trial.start, 0.0) + added if continues else added
        live = (shape.records * row_bytes + written[trial.start]) * COMPACTION_OVERHEAD
        largest = max(largest, int(live) + _commit_log_bytes(system, nodes, live))
    return largest + sum(snapshots.values()) + len(plan.trials) * STORE_BYTES_PER_TRIAL


def _commit_log_bytes(system: Mapping[str, Any], nodes: int, live_bytes: float) -> int:
    if system["name"] == "simulated":
        return 0
    most = int(system.get("commitlog_total_space_mb") or MOST_COMMIT_LOG_MB) * BYTES_PER_MIB * nodes
    return min(most, int(live_bytes) + LEAST_COMMIT_LOG_MB * BYTES_PER_MIB * nodes)


def impossible(plan: Plan, machine: Machine, *, state: Path, cache: Path) -> Iterator[StudyError]:
    """What settings of a plan cannot work. Plug-ins are told `state` and `cache`; nothing is written there."""
    distinct = {canonical({**trial.settings, "workload": {}}): trial for trial in plan.trials}
    for trial in distinct.values():
        yield from _replicas(trial.settings)
    clusters = {canonical({part: trial.settings[part] for part in ("site", "system")}): trial for trial in plan.trials}
    refused: dict[tuple[str, str], set[int]] = {}
    for trial in clusters.values():
        chosen = trial.settings["site"]
        if reason := _refusal(plan.study, trial.settings, state, cache):
            refused.setdefault((chosen["name"], reason), set()).add(chosen["nodes"])
        else:
            yield from _too_little_memory(trial.settings, machine, state, cache)
    for (site, reason), sizes in refused.items():
        counts = " or ".join(str(size) for size in sorted(sizes))
        nodes = "node" if sizes == {1} else "nodes"
        yield StudyError(f"site {site} cannot lend {counts} {nodes}: {reason}", key="site.nodes", read=max(sizes))


def _replicas(settings: Mapping[str, Any]) -> Iterator[StudyError]:
    nodes = settings["site"]["nodes"]
    copies = settings["system"].get("replication_factor")
    if copies is None:
        return
    if copies > nodes:
        yield StudyError(
            f"system.replication_factor = {copies} with {count(nodes, 'node')}: more copies than nodes",
            f"allowed: 1 to {nodes}, or more nodes",
            key="system.replication_factor",
            read=copies,
        )
    for field in ("read_consistency", "write_consistency"):
        level = settings["load"][field]
        if LEAST_REPLICAS.get(level, 1) > copies:
            yield StudyError(
                f"load.{field} = {level!r} with replication factor {copies}: no operation could succeed",
                f"needs a replication factor of {LEAST_REPLICAS[level]} or more",
                key=f"load.{field}",
                read=level,
            )


def _refusal(study: str, settings: Mapping[str, Any], state: Path, cache: Path) -> str | None:
    """Why the site cannot lend what a cluster needs."""
    chosen = settings["site"]
    request = Request(study, chosen["nodes"], chosen["load_nodes"])
    per_node_mb = plugin_of("system", settings, cache).memory_mb_per_node
    reason: str | None = plugin_of("site", settings, state).refuse(request, per_node_mb)
    return reason


def _too_little_memory(settings: Mapping[str, Any], machine: Machine, state: Path, cache: Path) -> Iterator[StudyError]:
    nodes = settings["site"]["nodes"]
    needed_mb = memory_mb(settings, cache)
    if plugin_of("site", settings, state).shares & THIS_MACHINE and needed_mb > machine.memory_mb:
        yield StudyError(
            f"{count(nodes, 'node needs', 'nodes need')} {needed_mb:,} MiB of memory "
            f"({(needed_mb - MARGIN_MEMORY_MB) // nodes:,} each, and the laboratory's own {MARGIN_MEMORY_MB}), "
            f"this machine has {machine.memory_mb:,} available",
            "fewer nodes or a smaller heap",
            key="site.nodes",
            read=nodes,
        )
