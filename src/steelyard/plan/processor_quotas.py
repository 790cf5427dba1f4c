"""Processors that a plan asks of this machine: quotas of all nodes against its cores, and the dilation that fits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from steelyard.format import count
from steelyard.judging.dilation import effective_limits
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities, distinct
from steelyard.site.base import QUOTA, DescribesCpuLimits, on_this_machine
from steelyard.system.base import Dilates, nodes_to_lend

LOAD_NODE_CORES = 0.5
"""Cores that are left to each load node, its probes and the conductor included."""
STEPS_PER_UNIT = 10
"""A dilation is offered in tenths."""
PARTS = "site", "system", "node", "link", "policy"
HOW = "docs/explanation/dilation.md"


def notes(plan: Plan, cores: int, abilities: Abilities) -> Iterator[str]:
    """A sentence about the largest sum of quotas that exceeds what this machine has, and one about each dilation that
    leaves disks or links as fast as they are."""
    clusters = distinct(plan, *PARTS)
    beyond = [settings for settings in clusters if _beyond(settings, cores, abilities)]
    if beyond:
        yield _beyond(max(beyond, key=lambda settings: _quotas(settings, abilities)), cores, abilities)
    slowed = [settings for settings in clusters if not isinstance(abilities.system(settings), Dilates)]
    yield from dict.fromkeys(_not_slowed(settings) for settings in slowed if settings.node.dilation != 1)


def refusals(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """An error for a dilation that slows nothing down: times would be divided for no reason."""
    for settings in distinct(plan, *PARTS):
        k, system = settings.node.dilation, abilities.system(settings)
        if k != 1 and settings.node.cpus is None and not isinstance(system, Dilates):
            yield StudyError(
                f"node.dilation = {k:g} divides limits, but processors have no limit: the cluster would run at full "
                "speed, yet its times would be divided",
                "node.cpus sets how much of a processor each node represents",
                key="node.dilation",
                read=k,
            )
            return


def _quotas(settings: TrialSettings, abilities: Abilities) -> float:
    """Processors that all database nodes of a cluster may use together, in the time of the clock."""
    nodes = nodes_to_lend(abilities.system(settings), settings.most_nodes)
    return nodes * (effective_limits(settings.node).cpus or 0.0)


def _beyond(settings: TrialSettings, cores: int, abilities: Abilities) -> str:
    """Reason why the nodes' quotas do not fit next to the load generator; empty if they do, or if there are none."""
    asked, load_nodes = _quotas(settings, abilities), settings.site.load_nodes
    left = cores - LOAD_NODE_CORES * load_nodes
    if not on_this_machine(abilities.site(settings)) or asked <= left:
        return ""
    nodes, each = settings.most_nodes, effective_limits(settings.node).cpus or 0.0
    fits = (
        math.ceil(STEPS_PER_UNIT * asked * settings.node.dilation / left - 1e-9) / STEPS_PER_UNIT if left > 0 else None
    )
    site = abilities.site(settings)
    shares = not isinstance(site, DescribesCpuLimits) or site.cpus_by(effective_limits(settings.node)) == QUOTA
    offer = (
        f"node.dilation = {fits:g} makes them fit: everything takes {fits:g} times as long, and the report divides "
        f"times by {fits:g} ({HOW})"
        if fits is not None and shares
        else "fewer nodes, or a larger machine"
    )
    return (
        f"{count(nodes, 'node')} of {each:g} processors may use {asked:g} together; this machine has "
        f"{count(cores, 'core')}, of which {LOAD_NODE_CORES * load_nodes:g} are left to "
        f"{count(load_nodes, 'load node')}: nodes would wait for each other for an unknown time; {offer}"
    )


def _not_slowed(settings: TrialSettings) -> str:
    """Resources that a dilation does not slow down."""
    k = settings.node.dilation
    limited = any(name.startswith("disk_") and name.endswith("_per_s") and value for name, value in settings.node)
    disk = "" if limited else f"the disk, which has no limit, looks {k:g} times as fast; "
    paced = settings.link.rate_mbit is not None or settings.link.phy is not None
    link = "" if paced else f"the network, which has no limit, looks {k:g} times as fast; "
    timers = f"timers of the system itself, such as its timeouts, look {k:g} times shorter"
    return f"dilation {k:g}: {disk}{link}{timers} ({HOW})"
