"""Notes of `check` from the sites, systems and probes of a plan, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.format import duration, listed
from steelyard.judging.dilation import effective_load
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.node.gauge import wanted
from steelyard.plan.abilities import Abilities, distinct, requests_of
from steelyard.plan.phase_times import measured_s
from steelyard.probe.base import READ_EVERY_S, TakesTurns
from steelyard.site.base import DescribesCpuLimits, HasLeaseNotes
from steelyard.system.base import Dilates, HasNotes, HasSizeNotes

PLANTED = "limits of nodes are set and measured, but the system's times are simulated and ignore them"


def notes(study: Study, plan: Plan, cores: int, abilities: Abilities) -> Iterator[str]:
    """A sentence for each thing that a site has to do first, for sites that enforce processor limits in different ways,
    and for probes that read more slowly than trials last."""
    yield from of_sites(plan, abilities)
    yield from dict.fromkeys(_of_systems(plan, abilities))
    limited = [settings for settings in distinct(plan, "system", "node") if wanted(settings.node)]
    if any(isinstance(abilities.system(settings), Dilates) for settings in limited):
        yield PLANTED
    yield from _of_processors(plan, abilities)
    yield from _of_probes(study, plan, cores, abilities)


def of_sites(plan: Plan, abilities: Abilities) -> tuple[str, ...]:
    """Notes of the sites before they lend, one sentence each."""
    return tuple(dict.fromkeys(_of_sites(plan, abilities)))


def _of_sites(plan: Plan, abilities: Abilities) -> Iterator[str]:
    for settings in distinct(plan, "site", "load_site", "system", "node", "link"):
        requests = requests_of(plan.study, settings, abilities.system(settings))
        for site, request in zip(abilities.sites(settings), requests, strict=True):
            if isinstance(site, HasLeaseNotes) and (request.database_nodes or request.load_nodes):
                yield from (f"site {site.name}: {sentence}" for sentence in site.notes(request))


def _of_systems(plan: Plan, abilities: Abilities) -> Iterator[str]:
    """Notes of the systems."""
    for settings in distinct(plan, "system"):
        system = abilities.system(settings)
        if isinstance(system, HasNotes):
            yield from system.notes()
    for settings in distinct(plan, "site", "system"):
        system = abilities.system(settings)
        if isinstance(system, HasSizeNotes):
            yield from system.size_notes(settings.site.nodes)


def _of_processors(plan: Plan, abilities: Abilities) -> Iterator[str]:
    """A sentence where sites that are compared enforce `node.cpus` in different ways."""
    ways: dict[str, set[str]] = {}
    for settings in distinct(plan, "site", "node"):
        site = abilities.site(settings)
        if settings.node.cpus is not None and isinstance(site, DescribesCpuLimits):
            ways.setdefault(site.name, set()).add(site.cpus_by(settings.node))
    if len(ways) > 1 and len(set.union(*ways.values())) > 1:
        each = [f"site {name} by {' or '.join(sorted(how))}" for name, how in sorted(ways.items())]
        yield f"node.cpus is enforced in different ways, {listed(each)}: differences between sites may come from this"


def _of_probes(study: Study, plan: Plan, cores: int, abilities: Abilities) -> Iterator[str]:
    """A sentence for each probe that takes longer to read all of its metrics once than the shortest trial lasts."""
    asked = distinct(plan, "site", "system", "workload", "load", "node")
    shortest_s = min(measured_s(effective_load(one), abilities.cluster_times(one, cores)) for one in asked)
    for name in study.probes:
        probe = abilities.probe(name, study.probe.get(name, {}))
        if isinstance(probe, TakesTurns) and (turn_s := probe.turn_s(READ_EVERY_S)) > shortest_s:
            faster = probe.faster(READ_EVERY_S)
            yield (
                f"probe {name} reads each metric in turn, every {duration(turn_s)}, and the shortest trial measures "
                f"{duration(shortest_s)}: some metrics may have no sample, and rates cover more than the trial; longer "
                f"trials{f', or {faster}' if faster else ''}"
            )
