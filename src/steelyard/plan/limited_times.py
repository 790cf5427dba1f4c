"""Times of a cluster whose nodes are limited: a system's own, under quotas of processors and rates of disks. Pure.

A system estimates nodes that share all cores of the machine and its disk. Where limits are in force, what the
processor does takes longer by what is missing, and no data is written faster than the disk allows. These are rules of
thumb; a store's history corrects them. Which limits are in force when: decision 0014.
"""

from __future__ import annotations

from steelyard.judging.dilation import effective_limits
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities
from steelyard.system.base import ClusterTimes, Dilates

START_CORES = 2.0
"""Processors that a starting server can keep busy: a Java machine compiles beside what it runs. The rules of thumb of
Cassandra, 3.3 s to start, are from a machine of two cores."""
WRITTEN_PER_STORED = 2.0
"""Bytes written to fill a table, per byte stored: the commit log, then the tables."""
BYTES_PER_MB = 1e6


def limited_times(settings: TrialSettings, abilities: Abilities, cores: int, *, warm: bool) -> ClusterTimes:
    """Expected times of the cluster under its limits. `warm`: whether those are in force, too, that begin only then."""
    times = abilities.cluster_times(settings, cores)
    if warm or not settings.node.processors_from_warm:
        times = _in_quotas(times, settings, abilities, cores)
    return _on_slow_disks(times, settings, abilities) if warm or not settings.node.disks_from_warm else times


def slowed_from_start(settings: TrialSettings, abilities: Abilities) -> bool:
    """Whether processor limits are in force while servers start, are filled and are warmed up."""
    limits = settings.node
    timed_by_processor = not isinstance(abilities.system(settings), Dilates)
    return limits.cpus is not None and not limits.processors_from_warm and timed_by_processor


def _in_quotas(times: ClusterTimes, settings: TrialSettings, abilities: Abilities, cores: int) -> ClusterTimes:
    """Times under quotas of processors; those that are timers' of the system itself stay."""
    quota, nodes = effective_limits(settings.node).cpus, settings.site.nodes
    if quota is None or isinstance(abilities.system(settings), Dilates):
        return times
    share = cores / nodes
    slower = max(1.0, share / quota)
    most_per_s = times.most_per_s * settings.node.dilation / slower
    return times.model_copy(
        update={
            "start_s": times.start_s * max(1.0, min(START_CORES, share) / quota),
            "schema_s": times.schema_s * slower,
            "fill_s": times.fill_s * slower,
            "most_per_s": min(times.most_per_s, most_per_s),
        }
    )


def _on_slow_disks(times: ClusterTimes, settings: TrialSettings, abilities: Abilities) -> ClusterTimes:
    """Times where each node's disk has rates. A kept state is on the machine's disk, so it is copied."""
    limits, shape = effective_limits(settings.node), abilities.shape(settings)
    each_bytes = shape.records * shape.record_bytes * abilities.copies(settings) / settings.site.nodes
    update: dict[str, float] = {}
    if limits.disk_write_mb_per_s is not None:
        copied_s = each_bytes / (limits.disk_write_mb_per_s * BYTES_PER_MB)
        update["fill_s"] = max(times.fill_s, copied_s * WRITTEN_PER_STORED)
        if settings.data.state != "truncate":
            update["restore_s"] = max(times.restore_s, copied_s)
    if limits.disk_read_mb_per_s is not None:
        update["snapshot_s"] = max(times.snapshot_s, each_bytes / (limits.disk_read_mb_per_s * BYTES_PER_MB))
    return times.model_copy(update=update) if update else times
