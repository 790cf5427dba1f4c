"""Judgement of a server warm-up after each round: what still keeps a start from being warm. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from steelyard.model.histogram import Bucket
from steelyard.model.server_warm_up import NodeWarmth, ServerWarmth, ServerWarmUp, WorkloadWarmth

LEAST_NOISE = 0.05
"""A fall of the mean service time by less than this is noise, however many operations it rests on: seconds of the same
trial differ by as much."""
MOST_NOISE = 0.1
"""A fall by more than this is none, however few operations it rests on."""
CPU_NOISE = 0.1
"""The same for the CPU time per operation of a node, where the kernel counts in hundredths of a second."""
LEAST_CPU_S = 0.1
"""Less CPU time in a round cannot be compared with another."""
ALARM = 0.05
"""Probability that a round without a fall shows one, over all workloads (Bonferroni)."""
NS_PER_MS = 1e6
MOST_DECIMALS = 3


@dataclass(frozen=True)
class Service:
    """Service times of one workload at the study's own load in one round."""

    count: int
    mean_ns: float
    variance: float
    """Variance of single operations, ns^2."""


@dataclass(frozen=True)
class Round:
    """Measurements at the study's own load in one round."""

    seconds: float
    """Time driven, without the restores between workloads of different data."""
    operations: int
    services: Mapping[str, Service]
    """By workload."""
    compiled_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds of compilation, by node; empty if the system does not say."""
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds by node; empty if they cannot be read."""


def service_of(buckets: Sequence[Bucket]) -> Service | None:
    """Count, mean and variance of a histogram of service times, by the middles of its buckets; None if it is empty."""
    total = sum(count for _, _, count in buckets)
    if not total:
        return None
    middles = [((low + high) / 2, count) for low, high, count in buckets]
    mean_ns = sum(middle * count for middle, count in middles) / total
    variance = sum(count * (middle - mean_ns) ** 2 for middle, count in middles) / total
    return Service(total, mean_ns, variance)


def workload_warmth(rounds: Sequence[Round], name: str, workloads: int = 1) -> WorkloadWarmth | None:
    """Service time of one of several workloads in the last round, and in the newest round before in which it served
    anything; None if it served nothing in the last.

    The noise of the logarithm of a ratio of two means is, by the delta method, sqrt(v1 / (n1 m1^2) + v2 / (n2 m2^2));
    operations of one second are more alike than that allows for, which the minimum noise makes up for.
    """
    last = rounds[-1].services.get(name)
    if last is None:
        return None
    before = next((one.services[name] for one in reversed(rounds[:-1]) if name in one.services), None)
    if before is None:
        return WorkloadWarmth(service_ms=last.mean_ns / NS_PER_MS)
    error = math.sqrt(sum(one.variance / (one.count * one.mean_ns**2) for one in (before, last)))
    one_sided = NormalDist().inv_cdf(1 - ALARM / workloads)
    noise = min(MOST_NOISE, max(LEAST_NOISE, one_sided * error))
    return WorkloadWarmth(
        service_ms=last.mean_ns / NS_PER_MS,
        change_percent=100 * (last.mean_ns / before.mean_ns - 1),
        noise_percent=100 * noise,
    )


def node_warmth(rounds: Sequence[Round], node: str) -> NodeWarmth:
    """State of a node in the last round and in the round before."""
    last = rounds[-1]
    if node in last.compiled_s:
        return NodeWarmth(compiler_fraction=last.compiled_s[node] / last.seconds)
    each = _cpu_us(last, node)
    before = _cpu_us(rounds[-2], node) if len(rounds) > 1 else None
    change = None if each is None or before is None else 100 * (each / before - 1)
    return NodeWarmth(cpu_us_per_operation=each, cpu_change_percent=change)


def _cpu_us(one: Round, node: str) -> float | None:
    spent_s = one.cpu_s.get(node, 0.0)
    return 1e6 * spent_s / one.operations if one.operations and spent_s >= LEAST_CPU_S else None


def still_falling(warmth: ServerWarmth) -> float:
    """Logarithm of the factor by which the times of a start may fall in one more round of its server warm-up: 0 if it
    is warm, otherwise the largest fall of the last round, at least its noise; infinite where one round showed none."""
    if warmth.reached:
        return 0.0
    changes = [(one.change_percent, one.noise_percent) for one in warmth.workloads.values()]
    cpu = (node.cpu_change_percent for node in warmth.nodes.values() if node.cpu_change_percent is not None)
    changes += [(change, 100 * CPU_NOISE) for change in cpu]
    falls = [math.inf if change is None or noise is None else max(-change, noise) for change, noise in changes]
    greatest = max(falls, default=math.inf)
    return -math.log1p(-greatest / 100) if greatest < 100 else math.inf


def longer(seconds: float) -> str:
    """The deadline to try where a server warm-up of `seconds` left servers cold: twice as long, in tens of
    seconds (docs/decisions/0021-one-warm-up-deadline.md)."""
    return f"server_warm_up.deadline_s = {10 * math.ceil(2 * seconds / 10)}"


def _above(fraction: float, limit: float) -> str:
    """A fraction above a limit in percent, with as many decimals as it takes to see that it is above."""
    texts = (f"{fraction:.{places}%}" for places in range(MOST_DECIMALS))
    return next((text for text in texts if float(text[:-1]) > 100 * limit), f"{fraction:.{MOST_DECIMALS}%}")


def not_reached(
    nodes: Mapping[str, NodeWarmth], workloads: Mapping[str, WorkloadWarmth | None], settings: ServerWarmUp
) -> Iterator[str]:
    """Reasons why the start is not warm, in a clause each; nothing if it is warm. Of `workloads`, None is one that
    answered nothing."""
    limit = settings.compiler_fraction
    compiling = {name: node.compiler_fraction for name, node in nodes.items() if node.compiler_fraction is not None}
    busy = {name: fraction for name, fraction in compiling.items() if fraction >= limit}
    if busy:
        taken = ", ".join(f"{_above(fraction, limit)} of a core on {name}" for name, fraction in busy.items())
        yield f"compilers still used {taken} (warm: below {limit:.0%})"
    changes = {name: node.cpu_change_percent for name, node in nodes.items() if node.cpu_change_percent is not None}
    falling = {name: change for name, change in changes.items() if change <= -100 * CPU_NOISE}
    if falling:
        by = ", ".join(f"by {-change:.0f}% on {name}" for name, change in falling.items())
        yield f"CPU per operation still fell {by} (noise: {CPU_NOISE:.0%})"
    silent = [name for name, workload in workloads.items() if workload is None]
    if silent:
        yield f"no operation was answered at the study's own load: {', '.join(silent)}"
    answered = {name: workload for name, workload in workloads.items() if workload is not None}
    if any(workload.change_percent is None for workload in answered.values()):
        yield "there was time for only one round, which shows no change of service times"
    changed = {
        name: (workload.change_percent, workload.noise_percent)
        for name, workload in answered.items()
        if workload.change_percent is not None and workload.noise_percent is not None
    }
    fallen = [
        f"by {-change:.0f}% for {name} (noise: {noise:.0f}%)"
        for name, (change, noise) in changed.items()
        if change <= -noise
    ]
    if fallen:
        yield f"service times still fell {', '.join(fallen)}"
