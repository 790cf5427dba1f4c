"""Properties that a plan's plug-ins declare: shape of the workload, times, disk. Missing ones are assumed.

An assumption is never silent: `assumptions` has a sentence for each.
"""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.judging.settings_hash import canonical
from steelyard.model.plan import Plan
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.workload_shape import DEFAULT_MIX, WorkloadShape
from steelyard.plugins.parts import Parts
from steelyard.site import base as sites
from steelyard.site.base import LeaseTimes, Request
from steelyard.system.base import ClusterTimes, Footprint, System, Timed, nodes_to_lend
from steelyard.wire.order import Ycsb
from steelyard.workload.base import Explains, Explanation, Workload

ASSUMED_LEASE = LeaseTimes(lease_s=60.0, release_s=10.0)
ASSUMED_START_S = 60.0
ASSUMED_FILL_PER_S = 1_000.0
ASSUMED_SERVICE_MS = 1.0
ASSUMED_PER_CORE_PER_S = 1_000.0
ASSUMED_STEP_S = 1.0
"""Seconds for each of: creating the schema, taking a snapshot, restoring, wiping."""
ASSUMED_COPIES = 1
ASSUMED_ROOM = 2.0
"""Disk used per stored byte."""


class Abilities(Parts):
    """Plug-ins of complete settings, and the properties that they declare."""

    def shape(self, settings: TrialSettings) -> WorkloadShape:
        """Shape of the workload: records, bytes per record, shares of operations."""
        return self.once(("shape", canonical(settings.part("workload"))), lambda: _shape_of(self.workload(settings)))

    def cluster_times(self, settings: TrialSettings, cores: int) -> ClusterTimes:
        """Expected times of the cluster as the system declares them, otherwise assumed."""
        nodes = settings.site.nodes
        k = settings.node.dilation
        parts = canonical(settings.part("system", "workload"))

        def asked() -> ClusterTimes:
            system, shape = self.system(settings), self.shape(settings)
            times = system.times(shape, nodes, cores) if isinstance(system, Timed) else assumed_times(shape, cores)
            stretched = {"service_ms": times.service_ms * k, "most_per_s": times.most_per_s / k}
            return times if k == 1 else times.model_copy(update=stretched)

        return self.once(("times", parts, f"{k:g} {nodes} {cores}"), asked)

    def lease_times(self, settings: TrialSettings) -> LeaseTimes:
        """Expected times of a lease as the site declares them, otherwise assumed."""
        requests = requests_of("", settings, self.system(settings))
        times = [
            site.times(request) if isinstance(site, sites.EstimatesLeaseTimes) else ASSUMED_LEASE
            for site, request in zip(self.sites(settings), requests, strict=True)
        ]
        return LeaseTimes(lease_s=sum(each.lease_s for each in times), release_s=sum(each.release_s for each in times))

    def copies(self, settings: TrialSettings) -> int:
        """Copies of each record."""
        system = self.system(settings)
        return system.copies(settings.site.nodes) if isinstance(system, Footprint) else ASSUMED_COPIES

    def stored_bytes(self, settings: TrialSettings) -> float:
        """Bytes that each database node stores, copies included, at the smallest size."""
        shape = self.shape(settings)
        nodes = settings.policy.least(settings.site.nodes)
        return shape.records * shape.record_bytes * self.copies(settings) / nodes

    def disk_bytes(self, settings: TrialSettings, stored_bytes: float) -> int:
        """Peak disk use of the whole cluster while it stores `stored_bytes`."""
        system = self.system(settings)
        if isinstance(system, Footprint):
            return system.disk_bytes(stored_bytes, settings.site.nodes)
        return int(stored_bytes * ASSUMED_ROOM)


def distinct(plan: Plan, *parts: str) -> list[TrialSettings]:
    """Settings of one trial of each combination of some sections."""
    return list({canonical(trial.settings.part(*parts)): trial.settings for trial in plan.trials}.values())


def requests_of(
    study: str, settings: TrialSettings, system: System, seed: int = 0, nodes: int | None = None
) -> tuple[Request, ...]:
    """The requests to the site of the databases, and to that of the load nodes, if it is another. `nodes`: database
    nodes that are lent at once, by default the largest size."""
    return sites.requests_of(study, nodes_to_lend(system, nodes or settings.most_nodes), settings, seed)


def assumed_times(shape: WorkloadShape, cores: int) -> ClusterTimes:
    """Times assumed for a system that declares none."""
    return ClusterTimes(
        start_s=ASSUMED_START_S,
        schema_s=ASSUMED_STEP_S,
        fill_s=shape.records / ASSUMED_FILL_PER_S,
        snapshot_s=ASSUMED_STEP_S,
        restore_s=ASSUMED_STEP_S,
        wipe_s=ASSUMED_STEP_S,
        service_ms=ASSUMED_SERVICE_MS,
        most_per_s=ASSUMED_PER_CORE_PER_S * cores,
    )


def assumptions(plan: Plan, abilities: Abilities) -> Iterator[str]:
    """A sentence for each property that a plug-in of the plan does not declare."""
    systems = {trial.settings.system.name: trial.settings for trial in reversed(plan.trials)}
    for name, settings in reversed(systems.items()):
        system = abilities.system(settings)
        if not isinstance(system, Timed):
            yield (
                f"system {name} does not declare how long a start takes: {ASSUMED_START_S:g} s assumed, with "
                f"{ASSUMED_FILL_PER_S:,.0f} records/s filled and {ASSUMED_SERVICE_MS:g} ms per operation"
            )
        if not isinstance(system, Footprint):
            yield (
                f"system {name} does not declare how much disk it needs: {ASSUMED_COPIES} copy of each record and "
                f"{ASSUMED_ROOM:g} times its size assumed"
            )
    lending = {site.name: site for trial in plan.trials for site in abilities.sites(trial.settings)}
    for name, site in lending.items():
        if not isinstance(site, sites.EstimatesLeaseTimes):
            yield (
                f"site {name} does not declare how long lending takes: {ASSUMED_LEASE.lease_s:g} s to lend and "
                f"{ASSUMED_LEASE.release_s:g} s to take back assumed"
            )


def _shape_of(workload: Workload) -> WorkloadShape:
    if isinstance(workload, Explains):
        return explained(workload.explain())
    if inputs := workload.schema().inputs:
        sizes = [size for _, _, size, _ in inputs]
        return WorkloadShape(records=len(sizes), record_bytes=max(sizes), mix={"read": 1.0})
    work = workload.order()
    if not isinstance(work, Ycsb):
        return WorkloadShape(records=work.records, record_bytes=0, mix=DEFAULT_MIX)
    mix = {name: share for name, share in work.proportions.model_dump().items() if share > 0}
    return WorkloadShape(records=work.records, record_bytes=len(work.fields) * work.field_length, mix=mix)


def explained(explanation: Explanation) -> WorkloadShape:
    """Shape of a workload that explains itself: each operation costs as much as the similar YCSB operation."""
    mix: dict[str, float] = {}
    for operation in explanation.operations:
        mix[operation.kind] = mix.get(operation.kind, 0.0) + operation.share
    return WorkloadShape(records=explanation.records, record_bytes=explanation.record_bytes, mix=mix or DEFAULT_MIX)
