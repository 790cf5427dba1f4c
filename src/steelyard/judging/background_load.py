"""Background load of machines during a trial, stolen processor time, and gaps in instruments. Pure.

Background load is processor time on a machine that neither the cluster nor the laboratory used:

    (user + system - interrupts) x cores - nodes - load generators - probes - conductor - reading commands - helpers

Nodes with the same kernel are on one machine: each of them reads the whole machine's time, so their readings are
averaged and the use of all of them is subtracted. The conductor and the reading commands count on their machine only.
Interrupts are left out because many kernels charge them to no process; most are the nodes' own traffic. Kernel threads
(write-back, memory) count as background load. Time in which a guest got no processor (steal) is monitored separately.
Reading commands are the laboratory's own `status`, `report` and `serve`, which run at idle priority. Helpers are other
programs of the laboratory that serve several nodes (link emulation, a container daemon, meters): they are charged to
none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from steelyard.judging.membership import Span
from steelyard.model.sample import Sample

INTERVAL_S = 1.0
"""A reading at t covers the second that ends at t."""
SLACK_S = 0.05
MOST_NAMED, NAMED_CORES = 3, 0.02
LEAST_READINGS = 3
"""Minimum number of whole seconds within the measured phase; with fewer, a difference of two means is too coarse."""
BUSY = ("machine_cpu_user_fraction", "machine_cpu_system_fraction")
INTERRUPTS = "machine_cpu_interrupt_fraction"
STEAL = "machine_cpu_steal_fraction"
NODE = ("node_cpu_user_cores", "node_cpu_system_cores")
THIS_MACHINE = "this machine"
ALWAYS_THERE: Mapping[str, Span] = {}


@dataclass(frozen=True)
class OwnTime:
    """Processor seconds that the laboratory used during `elapsed_s`."""

    elapsed_s: float = 0.0
    conductor_s: float = 0.0
    """Time of this process and its probes, all on this machine."""
    load_s: Mapping[str, float] = field(default_factory=dict)
    """Load node to processor seconds of its generator."""
    reading_s: float = 0.0
    """Time of the laboratory's own reading commands (`status`, `report`, `serve`) on this machine."""
    others: Sequence[tuple[str, float]] = ()
    """Other programs on this machine and the number of cores that they kept busy, the busiest first."""
    helpers_s: Mapping[str, float] = field(default_factory=dict)
    """Kernel (empty: this machine's) to processor seconds of the laboratory's helpers on it."""

    @property
    def conductor_cores(self) -> float:
        """Cores that the conductor and the probes kept busy."""
        return self.conductor_s / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def reading_cores(self) -> float:
        """Cores that the reading commands kept busy."""
        return self.reading_s / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def helper_cores(self, kernel: str) -> float:
        """Cores that the helpers on a machine kept busy."""
        return self.helpers_s.get(kernel, 0.0) / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class Machines:
    """Distribution of nodes over machines, each with one kernel."""

    cores: Mapping[str, int] = field(default_factory=dict)
    """Node to number of cores of its machine."""
    kernels: Mapping[str, str] = field(default_factory=dict)
    """Node to the name of its kernel; empty, or not listed: the conductor's."""

    def kernel(self, node: str) -> str:
        """Name of a node's kernel; empty: the conductor's."""
        return self.kernels.get(node, "")

    def where(self, kernel: str) -> str:
        """A machine in words, with the nodes on it unless it is named after the only one."""
        if not kernel:
            return THIS_MACHINE
        nodes = sorted(node for node, name in self.kernels.items() if name == kernel)
        return kernel if nodes == [kernel] else f"{kernel} ({', '.join(nodes)})"


@dataclass(frozen=True)
class BackgroundLoad:
    """Processor time that other programs used on one machine."""

    where: str
    cores: float
    of: int
    programs: Sequence[tuple[str, float]] = ()
    """Background programs and the number of cores that they kept busy, as far as known."""
    reading_cores: float = 0.0
    """Cores that the laboratory's own reading commands kept busy in addition; not part of `cores`."""
    helper_cores: float = 0.0
    """Cores that the laboratory's helpers kept busy in addition; not part of `cores`."""

    @property
    def text(self) -> str:
        """The background load in words."""
        named = ", ".join(f"{name} {cores:.2f}" for name, cores in self.programs if cores >= NAMED_CORES)
        among = f", among them {named}" if named else ""
        own_use = (("reading commands", self.reading_cores), ("helpers", self.helper_cores))
        own = "".join(
            f"; in addition, {what} of Steelyard {cores:.2f}" for what, cores in own_use if cores >= NAMED_CORES
        )
        return f"other programs on {self.where} kept {self.cores:.2f} of {self.of} cores busy{among}{own}"

    @property
    def fraction(self) -> float:
        """Background load as a fraction of all cores."""
        return self.cores / self.of


def longest_gap_s(times_s: Sequence[float], begun_s: float, ended_s: float) -> float:
    """The longest interval of the measured phase without a sample."""
    inside = [begun_s, *sorted({t for t in times_s if begun_s < t < ended_s}), ended_s]
    return max(later - earlier for earlier, later in pairwise(inside))


def steal_fraction(samples: Sequence[Sample], begun_s: float, ended_s: float) -> float:
    """Mean steal on one node during the measurement; the readings for a second end up to a second after it."""
    values = [s.value for s in samples if s.metric == STEAL and begun_s <= s.t_s <= ended_s + INTERVAL_S]
    return sum(values) / len(values) if values else 0.0


def background_load(
    samples: Mapping[str, Sequence[Sample]],
    machines: Machines,
    own: OwnTime,
    begun_s: float,
    ended_s: float,
    there: Mapping[str, Span] = ALWAYS_THERE,
) -> list[BackgroundLoad] | None:
    """Background load of each machine whose nodes all say their own use; None if there is none such, or if one of them
    has too few readings. A member of a cluster that exists does not say its own use. `there`: when the servers of nodes
    ran that were not there all the time; the use of each is that of its own span, weighted by its length."""
    used: dict[str, float | None] = {}
    for node, readings in samples.items():
        if node not in there:
            used[node] = _node_cores(readings, begun_s, ended_s)
            continue
        span = there[node].within(Span(begun_s, ended_s))
        cores = _node_cores(readings, span.begun_s, span.ended_s)
        if cores is None and span.seconds < LEAST_READINGS + INTERVAL_S:
            cores = 0.0  # next to nothing of the whole span
        used[node] = None if cores is None else cores * span.seconds / (ended_s - begun_s)
    for node, seconds in own.load_s.items():
        if used.get(node) is None:
            used[node] = seconds / (ended_s - begun_s) if ended_s > begun_s else 0.0
    known = {node: cores for node, cores in used.items() if cores is not None}
    by_machine = []
    for kernel in sorted({machines.kernel(node) for node in samples}):
        read = [node for node in samples if machines.kernel(node) == kernel]
        if any(node not in known for node in read):
            continue
        always = [node for node in read if node not in there]
        whole = [_machine_cores(samples[node], machines.cores.get(node, 0), begun_s, ended_s) for node in always]
        busy = [cores for cores in whole if cores is not None]
        if not always:
            # A machine of its own, read while its node was there: what it did else is not known.
            continue
        if not busy:
            return None
        of = max(machines.cores.get(node, 0) for node in read)
        own_cores = sum(cores for node, cores in known.items() if machines.kernel(node) == kernel)
        by_machine.append(_background(machines, kernel, sum(busy) / len(busy) - own_cores, of, own))
    return by_machine or None


def _background(machines: Machines, kernel: str, cores: float, of: int, own: OwnTime) -> BackgroundLoad:
    """The background load of a machine from the cores that its nodes did not use."""
    where, helpers = machines.where(kernel), own.helper_cores(kernel)
    if kernel:
        return BackgroundLoad(where, max(0.0, cores - helpers), of, helper_cores=helpers)
    cores -= own.conductor_cores + own.reading_cores + helpers
    return BackgroundLoad(where, max(0.0, cores), of, own.others[:MOST_NAMED], own.reading_cores, helpers)


def _machine_cores(samples: Sequence[Sample], cores: int, begun_s: float, ended_s: float) -> float | None:
    busy = [_mean(samples, metric, begun_s, ended_s) for metric in BUSY]
    if not cores or any(value is None for value in busy):
        return None
    interrupts = _mean(samples, INTERRUPTS, begun_s, ended_s) or 0.0
    return cores * (sum(value for value in busy if value is not None) - interrupts)


def _node_cores(samples: Sequence[Sample], begun_s: float, ended_s: float) -> float | None:
    parts = [_mean(samples, metric, begun_s, ended_s) for metric in NODE]
    return None if any(part is None for part in parts) else sum(part for part in parts if part is not None)


def _mean(samples: Sequence[Sample], metric: str, begun_s: float, ended_s: float) -> float | None:
    """Mean of the readings for seconds within the span; None if there are fewer than LEAST_READINGS."""
    low_s, high_s = begun_s + INTERVAL_S - SLACK_S, ended_s + SLACK_S
    values = [one.value for one in samples if one.metric == metric and low_s <= one.t_s <= high_s]
    return sum(values) / len(values) if len(values) >= LEAST_READINGS else None
