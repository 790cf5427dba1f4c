"""Requirements of a plan: disk and memory of this machine, and settings that sites, systems and probes refuse."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.format import count, data_size
from steelyard.judging.dilation import effective_load
from steelyard.judging.settings_hash import canonical
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.machine import Machine
from steelyard.plan.abilities import Abilities, distinct, requests_of
from steelyard.probe.base import ReadsWay, no_way
from steelyard.site.base import Refusal, both_need, own_network, unenforced, unreached
from steelyard.system.base import Existing, Offers, ValidatesLoad

STORE_BYTES_PER_TRIAL = 300_000
SECONDS_PER_HOUR = 3600
MARGIN_MEMORY_MB = 512
"""Memory for the conductor, the load engine and the page cache of the files that they read."""
OWN_NETWORK = (
    'its nodes have their own network, from which an existing cluster cannot be reached; site local: mode = "loopback"'
)
ONCE = "one machine lends one node: fewer nodes, or without [load_site] one inventory for both (site.load_nodes)"
THIS_MACHINE = frozenset({"cpu", "memory", "kernel"})
"""A site whose nodes share one of these resources lends parts of this machine."""
CLUSTER = "site", "load_site", "system", "node", "link", "policy"
"""Sections of the settings that make a cluster."""


def memory_mb(settings: TrialSettings, abilities: Abilities) -> int:
    """Memory of a treatment's cluster plus a margin for the laboratory, MiB."""
    return abilities.system(settings).memory_mb_per_node * settings.most_nodes + MARGIN_MEMORY_MB


def memory_mb_of_plan(plan: Plan, abilities: Abilities) -> int:
    """Memory of the largest cluster of a plan, MiB."""
    return max((memory_mb(settings, abilities) for settings in distinct(plan, *CLUSTER)), default=0)


def filled_state(settings: TrialSettings, records: int) -> str:
    """Name of the filled state that a start needs, derived from everything its size depends on."""
    return canonical({**settings.part("system"), "nodes": settings.site.nodes, "records": records})


def written_bytes(settings: TrialSettings, abilities: Abilities) -> float:
    """Bytes of the rows that a trial writes, all copies counted; 0 if a duration ends it."""
    shape = abilities.shape(settings)
    return (settings.load.operations or 0) * shape.writes * abilities.copies(settings) * shape.record_bytes


def stored_bytes(plan: Plan, abilities: Abilities) -> Iterator[tuple[PlannedTrial, float]]:
    """Each trial in order, with the bytes that its cluster stores at its end, all copies counted."""
    written: dict[str, float] = {}
    for trial in plan.trials:
        shape = abilities.shape(trial.settings)
        added = written_bytes(trial.settings, abilities)
        continues = trial.settings.data.state == "continue"
        written[trial.start] = written.get(trial.start, 0.0) + added if continues else added
        yield trial, shape.records * abilities.copies(trial.settings) * shape.record_bytes + written[trial.start]


def disk_bytes(plan: Plan, abilities: Abilities) -> int:
    """Live data and logs of the largest cluster, a snapshot of every filled state, and the store."""
    snapshots: dict[str, int] = {}
    largest = 0
    for trial, stored in stored_bytes(plan, abilities):
        shape = abilities.shape(trial.settings)
        filled = shape.records * abilities.copies(trial.settings) * shape.record_bytes
        snapshots[filled_state(trial.settings, shape.records)] = filled
        largest = max(largest, abilities.disk_bytes(trial.settings, stored))
    return largest + sum(snapshots.values()) + len(plan.trials) * STORE_BYTES_PER_TRIAL


def impossible(plan: Plan, machine: Machine, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for settings of a plan that cannot work. Plug-ins are only queried; nothing is written."""
    every = {canonical(trial.settings.without("workload")): trial.settings for trial in plan.trials}
    for settings in every.values():
        system = abilities.system(settings)
        if isinstance(system, ValidatesLoad):
            yield from system.problems(settings.site.nodes, effective_load(settings))
    yield from _starts_anew(plan, abilities)
    refused: dict[tuple[str, str, str], set[int]] = {}
    for settings in distinct(plan, *CLUSTER):
        if refusal := _refusal(plan.study, settings, abilities):
            nodes = settings.most_nodes if refusal[0] == "site" else settings.load_nodes
            refused.setdefault(refusal, set()).add(nodes)
        else:
            yield from _too_little_memory(settings, machine, abilities)
    for (section, name, reason), sizes in refused.items():
        counts = " or ".join(str(size) for size in sorted(sizes))
        kind = "node" if section == "site" else "load node"
        what = f"site {name} cannot lend {counts} {kind if sizes == {1} else f'{kind}s'}: {reason}"
        if isinstance(reason, Refusal):
            yield StudyError(what, reason.hint, key=key_of(reason, section))
        else:
            yield StudyError(what, key=f"{section}.nodes", read=max(sizes))


def _starts_anew(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """An existing cluster has one start, whatever the study asks."""
    existing = {trial.start for trial in plan.trials if isinstance(abilities.system(trial.settings), Existing)}
    if len(existing) > 1:
        hard = sorted({name for trial in plan.trials for name in trial.hard})
        why = f"the factor {hard[0]} needs a new cluster for each level" if hard else "design.starts requires them"
        yield StudyError(
            f"an existing cluster is not restarted, but the plan has {len(existing)} starts: {why}",
            "set design.starts = 1 with more trials, and only factors that need no new cluster",
            key=f"factors.{hard[0]}" if hard else "design.starts",
        )


def key_of(reason: Refusal, section: str) -> str:
    """Key of the study that a site's refusal is about, for a site in this section."""
    key = reason.key.removeprefix("site.")
    if key == reason.key:
        return key
    return f"{section}.nodes" if (section, key) == ("load_site", "load_nodes") else f"{section}.{key}"


def _refusal(study: str, settings: TrialSettings, abilities: Abilities) -> tuple[str, str, str] | None:
    """The section and the name of the site that cannot lend a cluster's nodes, and why; None if all can."""
    system = abilities.system(settings)
    sites, requests = abilities.sites(settings), requests_of(study, settings, system)
    sections = ("site", "load_site")[: len(sites)]
    for section, site, request in zip(sections, sites, requests, strict=True):
        lends_load = request.load_nodes > 0
        reason = OWN_NETWORK if isinstance(system, Existing) and lends_load and own_network(site) else None
        if request.database_nodes or lends_load:
            reason = reason or site.refuse(request, system.memory_mb_per_node) or unenforced(site, request)
        if isinstance(reason, Refusal) and reason.key == "node.memory_mb" and reason.hint:
            reason = Refusal(reason, reason.key, reason.hint + _need(settings, system.memory_mb_per_node))
        if reason is not None:
            return section, site.name, reason
    if len(sites) > 1 and requests[0].database_nodes and (reason := unreached(*sites)):
        return "load_site", sites[1].name, reason
    if len(sites) > 1 and (twice := both_need(sites, requests)):
        return "load_site", sites[1].name, f"the databases already use {twice}; {ONCE}"
    return None


def _need(settings: TrialSettings, needed_mb: int) -> str:
    """Reason for a node's need of memory, in words that follow the hint."""
    name, heap_mb = settings.system.name, settings.at("system.heap_mb")
    if heap_mb is None:
        return f": system {name} says that a node needs this much"
    return f", or a lower system.heap_mb: with {heap_mb} MB of heap a node of system {name} needs {needed_mb} MB in all"


def _too_little_memory(settings: TrialSettings, machine: Machine, abilities: Abilities) -> Iterator[StudyError]:
    nodes = settings.most_nodes
    needed_mb = memory_mb(settings, abilities)
    if abilities.site(settings).shares & THIS_MACHINE and needed_mb > machine.memory_mb:
        yield StudyError(
            f"{count(nodes, 'node needs', 'nodes need')} {needed_mb:,} MiB of memory "
            f"({(needed_mb - MARGIN_MEMORY_MB) // nodes:,} each, plus the laboratory's {MARGIN_MEMORY_MB}), "
            f"this machine has {machine.memory_mb:,} available",
            "use fewer nodes or a smaller heap",
            key="site.nodes" if nodes == settings.site.nodes else "policy",
            read=nodes,
        )


def unreadable(study: Study, plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """An error for each probe whose way in a system of the plan does not offer."""
    systems = [abilities.system(settings) for settings in distinct(plan, "system")]
    for name in study.probes:
        probe = abilities.probe(name, study.probe.get(name, {}))
        for system in systems:
            if isinstance(probe, ReadsWay) and isinstance(system, Offers) and probe.way not in system.offers:
                what = no_way(name, probe.way, system.offers)
                yield StudyError(f"probes: {what}", f"leave {name!r} out of `probes`", key="probes", read=name)


def over_budget(study: Study, machine: Machine, disk_bytes: int, seconds: float) -> Iterator[StudyError]:
    """Errors of a plan that needs more disk than the machine has, or more hours than the study allows."""
    if disk_bytes > machine.disk_free_bytes:
        yield StudyError(
            f"about {data_size(disk_bytes)} of disk are needed, but {data_size(machine.disk_free_bytes)} are free",
            "use fewer records or another folder",
            key="workload.records",
        )
    budget_h = study.design.time_budget_h
    until = study.design.until
    most_h = float("inf") if until is None or until.hours is None else until.hours
    hours = min(seconds / SECONDS_PER_HOUR, most_h)
    if budget_h is not None and hours > budget_h:
        yield StudyError(
            f"design.time_budget_h = {budget_h:g}: about {hours:.1f} hours are needed",
            "use fewer treatments, starts, trials or operations" + (", or design.until.hours" if until else ""),
            key="design.time_budget_h",
            read=budget_h,
        )
