"""Resources that each trial used, from samples and facts: nodes, fraction of cores busy, measured power."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steelyard.analysis.statistic import Attempt, Use
from steelyard.heavy import pl
from steelyard.model.facts import of_machines, of_systems
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.store.read import Store

ENERGY = "energy"
COUNTERS = "machine_energy_counters"
POWERS = ("machine_package_power_watts", "machine_memory_power_watts")
CORES_BUSY = ("node_cpu_user_cores", "node_cpu_system_cores")


def uses(store: Store, study: Study, records: Iterable[TrialRecord]) -> Mapping[Attempt, Use]:
    """Resources of each trial; empty where the study declares neither cost nor power and has no energy probe."""
    asked = ENERGY in study.probes
    if not study.cost.declared and not asked:
        return {}
    reads = asked or study.cost.node_watts_idle is not None
    return {(record.id, record.attempt): _use(store, study, record, asked=asked, reads=reads) for record in records}


def _use(store: Store, study: Study, record: TrialRecord, *, asked: bool, reads: bool) -> Use:
    site = record.settings.site
    nodes = site.nodes + (site.load_nodes if study.cost.count_load_nodes else 0)
    if not reads:
        return Use(nodes=nodes)
    samples = measured_samples(store.samples(record), record)
    facts = store.facts(record)
    counted = set(of_systems(facts))
    if study.cost.count_load_nodes:
        counted |= set(of_machines(facts))
    watts, why = _power(samples, sorted(counted), shared="cpu" in record.shares) if asked else (None, "")
    return Use(nodes=nodes, busy=_busy(samples, sorted(counted), facts), measured_watts=watts, why_not=why)


def measured_samples(samples: pl.DataFrame, record: TrialRecord) -> pl.DataFrame:
    """Samples of the measured phase: a reading at t covers the interval that ends at t."""
    span = record.measured_span
    if span is None:
        return samples.clear()
    return samples.filter((pl.col("t_s") > span[0]) & (pl.col("t_s") <= span[1] + 1.0))


def _means(samples: pl.DataFrame, metric: str) -> dict[str, float]:
    rows = samples.filter(pl.col("metric") == metric).sort("node", "t_s")
    rows = rows.group_by("node", maintain_order=True).agg(pl.col("value").mean())
    return {str(node): float(value) for node, value in rows.iter_rows()}


def _busy(samples: pl.DataFrame, nodes: list[str], facts: Mapping[str, Mapping[str, str]]) -> float | None:
    """Mean over nodes of busy cores / cores; None where a node has no reading."""
    parts = [_means(samples, metric) for metric in CORES_BUSY]
    fractions = []
    for node in nodes:
        cores = facts.get(node, {}).get("cores", "")
        if not cores.isdigit() or any(node not in one for one in parts):
            return None
        fractions.append(sum(one[node] for one in parts) / int(cores))
    return sum(fractions) / len(fractions) if fractions else None


def _power(samples: pl.DataFrame, nodes: list[str], *, shared: bool) -> tuple[float | None, str]:
    """Mean power of the machines (shared ones counted once), or None and the reason."""
    counters = _means(samples, COUNTERS)
    if not nodes or not counters:
        return None, "no reading of the probe energy in the measured phase"
    without = [node for node in nodes if not counters.get(node)]
    if without:
        return None, (
            f"no energy counters could be read on {', '.join(without)}: the machine has none that its kernel lists "
            "(virtual machines and most small boards), or only root may read them"
        )
    machines = nodes[:1] if shared else nodes
    by_metric = [_means(samples, metric) for metric in POWERS]
    return sum(one.get(node, 0.0) for one in by_metric for node in machines), ""
