"""Checks of a plan whose clusters change their size during trials, before anything starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import Any, Final

from steelyard.engine.base import ReportsRouting
from steelyard.format import count, duration, listed
from steelyard.judging.policy_points import OF_CLIENTS, metrics
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.policy import NO_CONTROL, SCHEDULED
from steelyard.model.responses import probe_of
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan import derived_levels
from steelyard.plan.abilities import Abilities, distinct
from steelyard.plan.phase_times import measured_s
from steelyard.policy.base import WantsPrepared
from steelyard.site.base import Extends
from steelyard.system.base import Elastic, ValidatesLoad

CLOSE_S: Final = 30.0
"""A change of size that follows another within this time probably waits for it: a join of Cassandra takes longer."""


def refusals(study: Study, plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for policies that a cluster, a load or an engine cannot follow."""
    every = [one for one in distinct(plan, "site", "system", "load", "data", "node", "policy") if one.policy.changes]
    errors = [
        error for settings in every for error in (*_of(settings, abilities), *_of_metric(settings, study, abilities))
    ]
    errors += derived_levels.refusals(study, plan, abilities)
    yield from {error.message: error for error in errors}.values()


def _of(settings: TrialSettings, abilities: Abilities) -> Iterator[StudyError]:
    system, policy, nodes = abilities.system(settings), settings.policy, settings.site.nodes
    lasts_s, times = settings.load.measured_s, [list(step) for step in policy.times]
    late = [at_s for at_s, _ in policy.times if lasts_s is not None and at_s >= lasts_s]
    least, most = policy.least(nodes), policy.most(nodes)
    stays = system.keeps_size() if isinstance(system, Elastic) else ""
    refused: tuple[tuple[object, str, str, str, Any], ...] = (
        (
            not isinstance(system, Elastic),
            f"system {settings.system.name} cannot change its size while it runs",
            'policy.name = "none", or a cluster that Steelyard starts itself', "policy.name", policy.name,
        ),
        (stays, f"no node can join: {stays}", "", "policy.name", policy.name),
        (
            not isinstance(abilities.engine(settings), ReportsRouting),
            f"engine {settings.engine} does not report when its driver sends the first operation to a new node",
            "leave out load.engine", "load.engine", settings.engine,
        ),
        (
            settings.load.schedule == "search",
            "a search looks for the rate of one size, and the policy changes the size",
            'another load.schedule, or policy.name = "none"', "policy.name", policy.name,
        ),
        (
            settings.data.state == "continue",
            "a trial that changes the cluster's size ends its start, so that none can continue from its data",
            'data.state = "restore"', "data.state", "continue",
        ),
        (
            settings.node.dilation != 1,
            "a join takes its time from timers (failure detection, ring delay), which dilation does not slow down",
            "node.dilation = 1, with node.cpus such that the largest size fits on this machine", "node.dilation",
            settings.node.dilation,
        ),
        (
            late,
            f"the load ends after {lasts_s or 0.0:g} s, and the change of size at {min(late, default=0):g} s is at or "
            "after its end",
            f"{'longer load.phases' if settings.load.phases else 'a longer load.duration_s'}, or earlier times",
            "policy.times", times,
        ),
        (
            policy.times and least == most,
            f"the policy changes nothing: the cluster has {count(nodes, 'node')} from the beginning",
            "other numbers of nodes in policy.times", "policy.times", times,
        ),
        (
            not policy.times and least == most,
            f"the policy changes nothing: the cluster has {count(nodes, 'node')}, and it may ask for no other number",
            f"policy.max_nodes above {nodes}", "policy.max_nodes", policy.max_nodes,
        ),
        (
            policy.joins is not None and policy.joins < most - nodes,
            f"from {count(nodes, 'node')} to {most} takes {most - nodes} joins",
            f"policy.joins = {most - nodes}, or more",
            "policy.joins", policy.joins,
        ),
        (
            policy.min_nodes is not None and policy.min_nodes > nodes,
            f"the cluster begins with {count(nodes, 'node')}, less than its policy's smallest size",
            f"policy.min_nodes up to {nodes}, or more site.nodes", "policy.min_nodes", policy.min_nodes,
        ),
    )  # fmt: skip
    yield from (StudyError(what, hint, key=key, read=read) for wrong, what, hint, key, read in refused if wrong)
    key = "policy.times" if policy.times else "policy.min_nodes"
    for error in system.problems(least, settings.load) if least < nodes and isinstance(system, ValidatesLoad) else ():
        what = f"{key} shrinks the cluster to {count(least, 'node')}: {error.message}"
        yield StudyError(what, error.hint, key=key, read=times or policy.min_nodes)


def _of_metric(settings: TrialSettings, study: Study, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for a policy that lacks something, and for a metric that is not measured or has no value in each
    period."""
    try:
        policy = abilities.policy(settings)
    except StudyError as error:
        yield error
        return
    metric = policy.metric
    if isinstance(policy, WantsPrepared):
        yield StudyError(
            f"policy {policy.name} prepares nodes, and here all are lent and prepared beforehand: it could not differ "
            "from a single threshold", "ask it about stored trials: steelyard replay", key="policy.name",
            read=policy.name,
        )  # fmt: skip
    if metric in OF_CLIENTS and policy.period_s % 1:
        yield StudyError(
            f"{metric} is known for whole seconds", "policy.period_s in whole seconds", key="policy.period_s",
            read=policy.period_s,
        )  # fmt: skip
    if not metric:
        return
    known = metrics()
    if metric not in known:
        yield StudyError(
            f"policy {settings.policy.name} cannot follow {metric}: it has no value in each second",
            f"allowed: {', '.join(known)}", key="policy.metric", read=metric, allowed=known,
        )  # fmt: skip
    elif (probe := probe_of(metric)) and probe not in study.probes:
        yield StudyError(
            f"policy.metric = {metric!r} is read by probe {probe}, which the study does not run",
            f"add {probe!r} to `probes`", key="policy.metric", read=metric,
        )  # fmt: skip


def _schedule(times: Sequence[tuple[float, int]]) -> Iterator[str]:
    """Sizes of policy `scheduled` over time, and changes that probably wait for the one before."""
    (first_s, first), *later = times
    sizes = [f"{count(first, 'node')} from {first_s:g} s on", *(f"{size} from {at_s:g} s on" for at_s, size in later)]
    yield f"policy {SCHEDULED}: {', '.join(sizes)}, in seconds of the measured phase"
    close = [(one, other) for (one, _), (other, _) in pairwise(times) if other - one < CLOSE_S]
    if close:
        pairs = listed([f"{other:g} s comes {other - one:g} s after that at {one:g} s" for one, other in close])
        yield (
            f"the change of size at {pairs}: a change begins when the one before has ended, and then only the size "
            "that was desired last counts"
        )


def notes(study: Study, plan: Plan, cores: int, abilities: Abilities) -> Iterator[str]:
    """Sentences on what a change of size takes, and on what its times are not."""
    every = [one for one in distinct(plan, "site", "system", "load", "policy") if one.policy.changes]
    for nodes, lent in sorted({(one.site.nodes, one.most_nodes) for one in every if one.most_nodes > one.site.nodes}):
        if isinstance(abilities.site(every[0]), Extends):
            yield (
                f"{count(nodes, 'node')} at the beginning; the others, up to {lent} in all, are launched when they are "
                "to join: a join includes the time to get a machine"
            )
            continue
        spares = count(lent - nodes, "spare node is", "spare nodes are")
        yield (
            f"{count(nodes, 'node')} at the beginning, and {spares} lent with them: memory, disks and quotas are those "
            f"of {lent}, and a join does not include the time to get a machine"
        )
    if plan.trials and all(trial.settings.policy.changes for trial in plan.trials):
        yield NO_CONTROL
    for times in sorted({one.policy.times for one in every if one.policy.times}):
        yield from _schedule(times)
    starts = {trial.start for trial in plan.trials if trial.settings.policy.changes}
    trials = sum(trial.settings.policy.changes for trial in plan.trials)
    if trials > len(starts):
        yield (
            f"a trial that changes the cluster's size ends its start: {trials} trials take {trials} starts, "
            f"not {len(starts)}"
        )
    left_s = math.inf
    for settings in [one for one in every if one.policy.times]:
        seconds = measured_s(settings.load, abilities.cluster_times(settings, cores))
        left_s = min(left_s, seconds - settings.policy.times[-1][0])
    if math.isfinite(left_s):
        yield (
            f"the load goes on for about {duration(max(0.0, left_s))} after the last change of size begins: one that "
            "takes longer is recorded as unfinished"
        )
    searched = {trial.settings.site.nodes for trial in plan.trials if trial.settings.load.schedule == "search"}
    yield from _of_demand(study, every, searched)
    yield from derived_levels.notes(study, plan, abilities)


def _of_demand(study: Study, every: Sequence[TrialSettings], searched: Set[int]) -> Iterator[str]:
    """Sentences on what measures of elasticity lack, where a policy decides or there is a demand. `searched`: sizes
    whose capacity trials of the study search."""
    demand, changing = study.analysis.demand, [one for one in every if one.policy.changes]
    if demand is None:
        if any(one.policy.name != SCHEDULED and one.load.knows_rates for one in changing):
            yield (
                "no measures of elasticity, which say how well a policy meets the demand: they need the operations per "
                "second that each size carries, [analysis.demand] capacity"
            )
        return
    if not any(one.load.knows_rates for one in changing):
        yield "analysis.demand has no use: measures of elasticity need changes of size under a rate known beforehand"
    reach = {size for one in every for size in (one.policy.least(one.site.nodes), one.policy.most(one.site.nodes))}
    between = range(min(reach, default=1), max(reach, default=0) + 1)
    known = {nodes for nodes, _ in demand.capacity} if demand.capacity else searched
    if left_out := sorted({*between} - known):
        sizes = listed([str(nodes) for nodes in left_out])
        yield f"analysis.demand does not say what {sizes} nodes carry: no rate demands {sizes} nodes"
