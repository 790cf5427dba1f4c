"""Expected seconds of each phase of a trial by rules of thumb, and their correction from the store's history.

Sites and systems declare their own times (see `plan.abilities`); this module adds the laboratory's. On another machine
the expectations are wrong by a factor. The history gives this factor: the median of observed over expected seconds of
each phase.

A system estimates nodes that share all cores of the machine and its disk. Where limits are in force (when: decision
0014), what the processor does takes longer by what is missing, and no data is written faster than the disk allows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pydantic import Field, ValidationError

from steelyard.judging.dilation import effective_limits, effective_link, effective_load
from steelyard.link.linktest import expected_s
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.model.node_limits import LIMIT_SETTLE_S, NodeLimits
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import gauge
from steelyard.plan.abilities import Abilities
from steelyard.system.base import ClusterTimes, Dilates
from steelyard.wire.order import Jobs

DRAIN_S = 0.6
COLLECT_S = 0.1
TRACE_S = 60.0
"""Assumed length of a trial whose length is determined only by a trace file."""
MIN_OBSERVED_S = 0.05
"""Shorter phases are excluded from the correction."""
MS_PER_S = 1000.0
SERVER_WARM_UP_PART = 0.8
"""Fraction of its deadline that a server warm-up is assumed to take if nothing is known."""
START_CORES = 2.0
"""Processors that a starting server can keep busy: a Java machine compiles while it runs. The rules of thumb of
Cassandra, 3.3 s to start, are from a machine of two cores."""
WRITTEN_PER_STORED = 2.0
"""Bytes written to fill a table, per byte stored: the commit log, then the tables."""
BYTES_PER_MB = 1e6


def start_phases(
    settings: TrialSettings,
    abilities: Abilities,
    cores: int,
    *,
    has_snapshot: bool,
    warmed_up: bool = False,
    links: bool = False,
) -> dict[Phase, float]:
    """Expected seconds of the phases of a start. `has_snapshot`: whether an earlier start left a snapshot of the filled
    state; without server warm-up, a start that fills the tables and takes a snapshot is then wiped and started again
    from it. `links`: whether all paths between the nodes are measured, before its first trial and after its last."""
    lease = abilities.lease_times(settings)
    link, limits = effective_link(settings.link, settings.node.dilation), effective_limits(settings.node)
    links_s = expected_s(link, settings.load_nodes, settings.site.nodes) if links else 0.0
    gauge_s = gauge.expected_s(limits) * settings.most_nodes
    cluster = limited_times(settings, abilities, cores, warm=False)
    populate_s = cluster.schema_s
    starts = 1
    match settings.data.state:
        case "reload":
            populate_s += cluster.fill_s
        case "restore" | "continue" if has_snapshot or cluster.always_filled:
            populate_s += cluster.restore_s
        case "restore" | "continue":
            populate_s += cluster.fill_s + cluster.snapshot_s
            if not warmed_up:
                populate_s += cluster.schema_s + cluster.restore_s
                starts = 2
    return {
        Phase.LEASE: lease.lease_s,
        Phase.DEPLOY: cluster.start_s * starts + gauge_s + links_s,
        Phase.POPULATE: populate_s,
        **_limit_phase(settings, cluster, warmed_up=warmed_up),
        Phase.WIPE: cluster.wipe_s * starts + gauge_s,
        Phase.RELEASE: lease.release_s + links_s,
    }


def _limit_phase(settings: TrialSettings, cluster: ClusterTimes, *, warmed_up: bool) -> dict[Phase, float]:
    """The phase in which limits are put in force that begin when the cluster is warm: the data are put back before."""
    if not settings.node.limited_when_warm:
        return {}
    puts_back = warmed_up and settings.data.state in ("restore", "continue")
    return {Phase.LIMIT: (cluster.restore_s if puts_back else 0.0) + cluster.settle_s + LIMIT_SETTLE_S}


def server_warm_up_s(settings: ServerWarmUp, history: Sequence[TrialRecord], *, slowed: bool = False) -> float:
    """Expected seconds of the server warm-up of a start: the mean of the history, otherwise a fraction of the deadline.
    What is not warm by the deadline takes all of it, as servers do that are held to a quota meanwhile (`slowed`)."""
    starts = {record.start: record.server_warm_up.seconds for record in history if record.server_warm_up is not None}
    return (
        statistics.fmean(starts.values()) if starts else settings.deadline_s * (1.0 if slowed else SERVER_WARM_UP_PART)
    )


def trial_phases(settings: TrialSettings, abilities: Abilities, cores: int) -> dict[Phase, float]:
    """Expected seconds of the phases of a trial, whose limits are in force."""
    cluster, load = limited_times(settings, abilities, cores, warm=True), effective_load(settings)
    restored_s = _restore_s(settings.data.state, abilities.shape(settings), cluster)
    return {
        Phase.SETTLE: cluster.settle_s + restored_s,
        Phase.MEASURE: load.warm_up_s + measured_s(load, cluster) + _idle_s(settings, abilities),
        Phase.DRAIN: DRAIN_S,
        Phase.COLLECT: COLLECT_S,
    }


def _idle_s(settings: TrialSettings, abilities: Abilities) -> float:
    """Seconds before jobs that belong to none."""
    work = abilities.workload(settings).order()
    return work.idle_s * (settings.load.operations or 1) / settings.load.threads if isinstance(work, Jobs) else 0.0


def _restore_s(state: str, shape: WorkloadShape, cluster: ClusterTimes) -> float:
    """Seconds to bring the data to the state at the beginning of a trial."""
    match state:
        case "reload":
            return cluster.fill_s
        case "truncate":
            return cluster.restore_s
        case "restore" if shape.writes > 0:
            return cluster.restore_s
    return 0.0


def measured_s(load: Load, cluster: ClusterTimes) -> float:
    """Expected seconds of the measured phases: whichever of operations and duration ends first. The length of a trace
    file is not looked up."""
    lasts_s = load.measured_s if load.measured_s is not None else math.inf
    if load.operations is not None:
        closed = closed_per_s(load, cluster)
        rate_per_s = (load.capacity_fraction or 0.0) * cluster.most_per_s or load.peak_per_s() or closed
        lasts_s = min(lasts_s, load.operations / rate_per_s)
    return lasts_s if math.isfinite(lasts_s) else TRACE_S


def closed_per_s(load: Load, cluster: ClusterTimes) -> float:
    """Expected operations per second of a closed loop (Little's law)."""
    return min(load.threads * MS_PER_S / cluster.service_ms, cluster.most_per_s)


def capacity_s(load: Load) -> float:
    """Seconds of a capacity measurement, including its warm-up."""
    return load.warm_up_s + load.capacity_s + DRAIN_S


def observed(record: TrialRecord) -> dict[Phase, float]:
    """Seconds that a trial spent in each phase."""
    spent: dict[Phase, float] = {}
    for time in record.phases:
        if time.left_s is not None:
            spent[time.phase] = spent.get(time.phase, 0.0) + time.left_s - time.entered_s
    return spent


class Corrections(Value):
    """Corrections from the history: observed over expected seconds, and measured seconds of treatments seen before."""

    factor: dict[Phase, float] = Field(default_factory=dict)
    measured_s: dict[str, float] = Field(default_factory=dict)
    """Settings' hash -> median seconds of the measured phase."""
    trials: int = 0

    def of(self, phase: Phase) -> float:
        """Factor for a phase, 1 if nothing was observed."""
        return self.factor.get(phase, 1.0)


def corrections(history: Sequence[TrialRecord], abilities: Abilities, cores: int) -> Corrections:
    """Corrections of the rules of thumb from the valid trials of a store."""
    ratios: dict[Phase, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    valid = [record for record in history if record.verdict.outcome == "valid"]
    for record in valid:
        spent = observed(record)
        # A record holds a wipe only if its start had to be filled: no record holds the wipe at the end of a start.
        filled = spent.pop(Phase.WIPE, None) is not None
        try:
            warmed_up = record.server_warm_up is not None
            expected = start_phases(
                record.settings, abilities, cores, has_snapshot=not filled, warmed_up=warmed_up,
                links="link_mbit_per_s" in record.covariates,
            )  # fmt: skip
            expected |= trial_phases(record.settings, abilities, cores)
        except (StudyError, ValidationError):
            continue  # the workload's file has been edited or moved since
        for phase, second in spent.items():
            if expected.get(phase, 0.0) > 0 and second >= MIN_OBSERVED_S:
                ratios.setdefault(phase, []).append(second / expected[phase])
        if Phase.MEASURE in spent:
            seconds.setdefault(treatment_hash(record.id), []).append(spent[Phase.MEASURE])
    return Corrections(
        factor={phase: statistics.median(found) for phase, found in ratios.items()},
        measured_s={key: statistics.median(found) for key, found in seconds.items()},
        trials=len(valid),
    )


def treatment_hash(trial_id: str) -> str:
    """The part of a trial's id that represents its complete settings."""
    return trial_id.partition("-")[0]


def limited_times(settings: TrialSettings, abilities: Abilities, cores: int, *, warm: bool) -> ClusterTimes:
    """Expected times of the cluster under its limits. `warm`: whether those are in force, too, that begin only then."""
    limits, by_timers = effective_limits(settings.node), isinstance(abilities.system(settings), Dilates)
    times, stored_bytes = abilities.cluster_times(settings, cores), abilities.stored_bytes(settings)
    if (warm or not limits.processors_from_warm) and limits.cpus is not None and not by_timers:
        times = _in_quotas(times, settings, limits.cpus, cores)
    if warm or not limits.disks_from_warm:
        times = _on_slow_disks(times, limits, stored_bytes, settings.data.state)
    return times


def slowed_from_start(settings: TrialSettings, abilities: Abilities) -> bool:
    """Whether processor limits are in force while servers start, are filled and are warmed up."""
    limits = settings.node
    timed_by_processor = not isinstance(abilities.system(settings), Dilates)
    return limits.cpus is not None and not limits.processors_from_warm and timed_by_processor


def _in_quotas(times: ClusterTimes, settings: TrialSettings, quota: float, cores: int) -> ClusterTimes:
    """Times under a quota of processors for each node."""
    share = cores / settings.site.nodes
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


def _on_slow_disks(times: ClusterTimes, limits: NodeLimits, each_bytes: float, state: str) -> ClusterTimes:
    """Times where each node's disk, which stores `each_bytes`, has rates. A kept state is on the machine's disk, so it
    is copied."""
    update: dict[str, float] = {}
    if limits.disk_write_mb_per_s is not None:
        copied_s = each_bytes / (limits.disk_write_mb_per_s * BYTES_PER_MB)
        update["fill_s"] = max(times.fill_s, copied_s * WRITTEN_PER_STORED)
        if state != "truncate":
            update["restore_s"] = max(times.restore_s, copied_s)
    if limits.disk_read_mb_per_s is not None:
        update["snapshot_s"] = max(times.snapshot_s, each_bytes / (limits.disk_read_mb_per_s * BYTES_PER_MB))
    return times.model_copy(update=update) if update else times
