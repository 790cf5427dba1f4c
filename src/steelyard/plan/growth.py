"""Checks of a plan whose clusters change their size during trials, before anything starts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from steelyard.engine.base import ReportsRouting
from steelyard.format import count, duration
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities, distinct
from steelyard.plan.phase_times import measured_s
from steelyard.system.base import Elastic, ValidatesLoad


def refusals(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for policies that a cluster, a load or an engine cannot follow."""
    every = [one for one in distinct(plan, "site", "system", "load", "data", "node", "policy") if one.policy.changes]
    errors = [error for settings in every for error in _of(settings, abilities)]
    yield from {error.message: error for error in errors}.values()


def _of(settings: TrialSettings, abilities: Abilities) -> Iterator[StudyError]:
    system, policy, nodes = abilities.system(settings), settings.policy, settings.site.nodes
    if not isinstance(system, Elastic):
        yield StudyError(
            f"system {settings.system.name} cannot change its size while it runs",
            'policy.name = "none", or a cluster that Steelyard starts itself',
            key="policy.name",
            read=policy.name,
        )
    elif why := system.keeps_size():
        yield StudyError(f"no node can join: {why}", key="policy.name", read=policy.name)
    if not isinstance(abilities.engine(settings), ReportsRouting):
        yield StudyError(
            f"engine {settings.engine} does not report when its driver sends the first operation to a new node",
            "leave out load.engine",
            key="load.engine",
            read=settings.engine,
        )
    if settings.load.schedule == "search":
        yield StudyError(
            "a search looks for the rate of one size, and the policy changes the size",
            'another load.schedule, or policy.name = "none"',
            key="policy.name",
            read=policy.name,
        )
    if settings.data.state == "continue":
        yield StudyError(
            "a trial that changes the cluster's size ends its start, so that none can continue from its data",
            'data.state = "restore"',
            key="data.state",
            read="continue",
        )
    if settings.node.dilation != 1:
        yield StudyError(
            "a join takes its time from timers (failure detection, ring delay), which dilation does not slow down",
            "node.dilation = 1, with node.cpus such that the largest size fits on this machine",
            key="node.dilation",
            read=settings.node.dilation,
        )
    lasts_s, times = settings.load.measured_s, [list(step) for step in policy.times]
    late = [desired.at_s for desired in policy.desired() if lasts_s is not None and desired.at_s >= lasts_s]
    if lasts_s is not None and late:
        yield StudyError(
            f"the load ends after {duration(lasts_s)}, before the change of size at {late[0]:g} s",
            "a longer load.duration_s, or earlier times",
            key="policy.times",
            read=times,
        )
    least = policy.least(nodes)
    if all(desired.nodes == nodes for desired in policy.desired()):
        yield StudyError(
            f"the policy changes nothing: the cluster has {count(nodes, 'node')} from the beginning",
            "other numbers of nodes in policy.times",
            key="policy.times",
            read=times,
        )
    if least < nodes and isinstance(system, ValidatesLoad):
        for error in system.problems(least, settings.load):
            yield StudyError(
                f"policy.times shrinks the cluster to {count(least, 'node')}: {error.message}",
                error.hint,
                key="policy.times",
                read=times,
            )


def notes(plan: Plan, cores: int, abilities: Abilities) -> Iterator[str]:
    """Sentences on what a change of size takes, and on what its times are not."""
    every = [one for one in distinct(plan, "site", "system", "load", "policy") if one.policy.changes]
    for nodes, lent in sorted({(one.site.nodes, one.most_nodes) for one in every if one.most_nodes > one.site.nodes}):
        spares = count(lent - nodes, "spare node is", "spare nodes are")
        yield (
            f"{count(nodes, 'node')} at the beginning, and {spares} lent with them: memory, disks and quotas are those "
            f"of {lent}, and a join does not include the time to get a machine"
        )
    starts = {trial.start for trial in plan.trials if trial.settings.policy.changes}
    trials = sum(trial.settings.policy.changes for trial in plan.trials)
    if trials > len(starts):
        yield (
            f"a trial that changes the cluster's size ends its start: {trials} trials take {trials} starts, "
            f"not {len(starts)}"
        )
    left_s = math.inf
    for settings in every:
        seconds = measured_s(settings.load, abilities.cluster_times(settings, cores))
        left_s = min(left_s, seconds - settings.policy.desired()[-1].at_s)
    if math.isfinite(left_s):
        yield (
            f"the load goes on for about {duration(max(0.0, left_s))} after the last change of size begins: one that "
            "takes longer is recorded as unfinished"
        )
