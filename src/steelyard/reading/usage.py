"""Resources that each trial used, from samples and facts: nodes, fraction of cores busy, measured power."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steelyard.analysis.statistic import Attempt, Use
from steelyard.heavy import pl
from steelyard.judging.measures import machine_cores
from steelyard.model.facts import of_machines, of_systems
from steelyard.model.power import power_metrics
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.store.read import Store

ENERGY = "energy"
COUNTERS = "machine_energy_counters"
"""The probe of the processor's own counters, and how many of them it could read."""
MEASURED = "power_watts_mean"
"""The response that trials have whose samples hold power, of whatever probe."""
CORES_BUSY = ("node_cpu_user_cores", "node_cpu_system_cores")


def uses(store: Store, study: Study, records: Iterable[TrialRecord]) -> Mapping[Attempt, Use]:
    """Resources of each trial; empty where the study declares neither cost nor power and no probe measures power."""
    records = tuple(records)
    asked = ENERGY in study.probes or any(MEASURED in record.measures for record in records)
    if not study.cost.declared and not asked:
        return {}
    reads = asked or study.cost.node_watts_idle is not None
    return {(record.id, record.attempt): _use(store, study, record, asked=asked, reads=reads) for record in records}


def _use(store: Store, study: Study, record: TrialRecord, *, asked: bool, reads: bool) -> Use:
    settings = record.settings
    nodes = settings.site.nodes + (settings.load_nodes if study.cost.count_load_nodes else 0)
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
        cores = machine_cores(facts.get(node, {}))
        if cores is None or any(node not in one for one in parts):
            return None
        fractions.append(sum(one[node] for one in parts) / cores)
    return sum(fractions) / len(fractions) if fractions else None


def _power(samples: pl.DataFrame, nodes: list[str], *, shared: bool) -> tuple[float | None, str]:
    """Mean power of the machines (shared ones counted once), or None and the reason."""
    counters = _means(samples, COUNTERS)
    chosen = {node: power_metrics(_present(samples, node)) for node in nodes}
    if not any(chosen.values()) and not counters:
        return None, "no reading of power in the measured phase"
    without = [node for node in nodes if not chosen[node] or counters.get(node) == 0]
    if without:
        return None, _why_without(without, counters)
    own = any(metric.startswith("node_") for metrics in chosen.values() for metric in metrics)
    machines = nodes[:1] if shared and not own else nodes
    means = {metric: _means(samples, metric) for metrics in chosen.values() for metric in metrics}
    return sum(means[metric][node] for node in machines for metric in chosen[node]), ""


def _present(samples: pl.DataFrame, node: str) -> set[str]:
    return set(samples.filter(pl.col("node") == node)["metric"].unique())


def _why_without(without: list[str], counters: Mapping[str, float]) -> str:
    named = ", ".join(without)
    if not all(node in counters for node in without):
        return f"no reading of power of {named} in the measured phase"
    return (
        f"no energy counters could be read on {named}: the machine has none that its kernel lists "
        "(virtual machines and most small boards), or only root may read them"
    )
