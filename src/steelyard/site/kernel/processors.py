"""Processors that nodes of this machine can be given: how many, which cores, and why not."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from steelyard.format import count
from steelyard.model.node_limits import NodeLimits
from steelyard.site.base import LETTERS, Refusal, Request
from steelyard.site.kernel import cgroup
from steelyard.site.kernel.cgroup import Hierarchies

STEPS_PER_UNIT = 10
"""A dilation is offered in tenths."""
STRETCHED = "docs/explanation/dilation.md"


def usable_cores() -> tuple[int, ...]:
    """Cores that this process, and so a node, may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def too_many(cpus: float, dilation: float, *, quota: bool, usable: int | None = None) -> Refusal | None:
    """Reason why a node cannot have that many processors, or None. `cpus`: already divided by the dilation; `quota`:
    any part of one can be given, so that a dilation helps; `usable`: cores that it may run on, if not those of this
    process."""
    usable = len(usable_cores()) if usable is None else usable
    if cpus <= usable:
        return None
    stretched = "" if dilation == 1 else f" (node.cpus divided by node.dilation = {dilation:g})"
    k = math.ceil(STEPS_PER_UNIT * cpus * dilation / usable - 1e-9) / STEPS_PER_UNIT
    offer = f", or node.dilation = {k:g}: everything takes {k:g} times as long ({STRETCHED})" if quota else ""
    hint = f"at most {usable * dilation:g}: a smaller node.cpus or profile{offer}, or a larger machine"
    return Refusal(f"cpus = {cpus:g} per node{stretched}, but {_there(usable)}", "node.cpus", hint)


def too_few(cpus: float) -> Refusal | None:
    """Reason why so small a quota cannot be enforced, or None."""
    if cpus >= cgroup.LEAST_CPUS:
        return None
    least = f"{cgroup.LEAST_CPUS:g}"
    words = f"cpus = {cpus:g} a node: a quota of less than {least} cannot be enforced"
    return Refusal(words, "node.cpus", f"node.cpus of at least {least}, after division by node.dilation")


def refusal(request: Request, limits: NodeLimits, hierarchies: Hierarchies, why: str) -> str | None:
    """Reason why the processors of a request's database nodes cannot be limited, or None. `why`: obstacle to control
    groups, where commands cannot join any; empty if they can."""
    if limits.cpus is None:
        return None
    bound = cgroup.bound_to_cores(limits)
    if reason := too_many(limits.cpus, request.dilation, quota=not bound):
        return reason
    if not bound:
        lacking = why or ("" if hierarchies.has("cpu") else _why(hierarchies))
        return too_few(limits.cpus) or (f"cpus = {limits.cpus:g} cannot be enforced: {lacking}" if lacking else None)
    usable, asked = len(bindable_cores(hierarchies)), limits.cpus * request.database_nodes
    if limits.cpus != int(limits.cpus) or asked > usable:
        hint = (
            f'use fewer nodes or cores, node.cpu_limit = "quota" (parts of any core), or a machine with {asked:g} cores'
        )
        words = f'cpu_limit = "cpuset": {request.database_nodes} x {limits.cpus:g} whole cores, but {_there(usable)}'
        return Refusal(words, "node.cpus", hint)
    lacking = why or ("" if hierarchies.has("cpuset") else _why(hierarchies))
    return f'cpu_limit = "cpuset" cannot be enforced: {lacking}' if lacking else None


def bindable_cores(hierarchies: Hierarchies) -> tuple[int, ...]:
    """Cores that nodes can be bound to: those that this process may use and the groups above hand down. Cores to which
    nodes of other leases are bound come last."""
    usable, given = set(usable_cores()), cgroup.cores_handed_down(hierarchies)
    taken = cgroup.cores_taken(hierarchies)
    return tuple(sorted(usable & given if given else usable, key=lambda core: (core in taken, core)))


def cores_of(name: str, limits: NodeLimits, cores: Sequence[int]) -> str:
    """The cores that a database node is bound to, such as `0,1`: nodes take theirs in turn. Pure."""
    each = round(limits.cpus or 0)
    first = (int(name.removeprefix(LETTERS["database"])) - 1) * each
    return ",".join(str(core) for core in sorted(cores[first : first + each]))


def _there(usable: int) -> str:
    every = os.cpu_count() or 1
    if usable == every:
        return f"there {'is' if usable == 1 else 'are'} {count(usable, 'core')}"
    return f"this process may use {usable} of {every} cores"


def _why(hierarchies: Hierarchies) -> str:
    return "; ".join(hierarchies.problems) or "no such controller"
