"""Protocol of a scaling policy: a pure function from what was measured so far to a desired size.

A policy is asked at fixed times of the measured phase, each time with the whole history until then. It needs no memory
of its own, so its answers can be computed again from a stored trial. It is held to its bounds and to the replication
factor afterwards, by `bounded`.

All times are seconds of the measured phase. The functions below read a history; authors of policies may use them.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from steelyard.model.policy import THRESHOLD, THRESHOLD_OF, PolicyChoice
from steelyard.model.scaling import Desired, Point, Supply
from steelyard.model.trial_settings import TrialSettings

LIMITS = (THRESHOLD, "target", "setpoint", "high")
"""Settings with which policies compare their metric."""
RATES = "rates"
"""Setting that stands for the offered rates, which the load gives if the study does not."""


class Bounds(NamedTuple):
    """The size of a cluster at the beginning, and the sizes that it may get."""

    nodes: int
    """Size at the beginning."""
    min_nodes: int
    """Smallest size (AWS: MinSize)."""
    max_nodes: int
    """Largest size (AWS: MaxSize)."""


class History(NamedTuple):
    """Measurements, nodes and answers until a time, each in order of time."""

    period_s: float
    """Length of a point's period; 0 without a metric."""
    points: Sequence[Point]
    supply: Sequence[Supply]
    desired: Sequence[Desired]
    """Earlier answers that changed the size, after bounding."""


class Policy(Protocol):
    """Rule that says which size a cluster is to have."""

    name: str
    metric: str
    """The response whose points it follows; empty if it follows none."""
    period_s: float
    """Length of a point's period; 0 without a metric."""
    every_s: float
    """Time between two questions."""

    def desired(self, history: History, now_s: float) -> Desired:
        """The desired size at a time. Pure; uses nothing of the history that is later than `now_s`."""
        ...


@runtime_checkable
class HasTimes(Protocol):
    """Ability: is asked at times of its own, in place of every `every_s`."""

    at_s: Sequence[float]
    """In order of time."""


@runtime_checkable
class WantsPrepared(Protocol):
    """Ability: asks for nodes to be prepared, which no laboratory can do whose spares are lent beforehand."""

    prepares: bool


def bounded(desired: Desired, bounds: Bounds, replication: int) -> Desired:
    """A desired size within the bounds, and never below the replication factor; the reason says what was changed."""
    least = max(bounds.min_nodes, replication)
    nodes, reason = max(least, min(desired.nodes, bounds.max_nodes)), desired.reason
    if nodes != desired.nodes:
        if nodes == bounds.max_nodes < desired.nodes:
            why = f"max_nodes = {nodes}"
        else:
            why = f"min_nodes = {nodes}" if nodes == bounds.min_nodes else f"a replication factor of {nodes}"
        reason = f"{reason}; {desired.nodes} nodes became {nodes} by {why}".removeprefix("; ")
    prepared = max(0, min(desired.prepared, bounds.max_nodes - nodes))
    if prepared != desired.prepared:
        reason = f"{reason}; {desired.prepared} prepared became {prepared}".removeprefix("; ")
    return Desired(desired.t_s, nodes, reason, prepared)


def ask_times(policy: Policy) -> Iterator[float]:
    """The times at which a policy is asked: its own, or a grid without an end."""
    if isinstance(policy, HasTimes):
        return iter(policy.at_s)
    return (times * policy.every_s for times in itertools.count(1))


def asked(
    policy: Policy, bounds: Bounds, replication: int, points: Sequence[Point], supply: Sequence[Supply], until_s: float
) -> tuple[Desired, ...]:
    """As `answers`, all of them."""
    return tuple(answers(policy, bounds, replication, points, supply, until_s))


def answers(
    policy: Policy, bounds: Bounds, replication: int, points: Sequence[Point], supply: Sequence[Supply], until_s: float
) -> Iterator[Desired]:
    """The answers of a policy that differ from the one before, after bounding; the first is the size at the beginning.

    At each of its times it is given what was closed by then. Points and supply are those of a trial: after the first
    answer that differs from what was done in it, they are those of another cluster.
    """
    given = [Desired(0.0, bounds.nodes, "")]
    yield given[0]
    for now_s in itertools.takewhile(lambda t_s: t_s <= until_s, ask_times(policy)):
        history = known(History(policy.period_s, points, supply, tuple(given)), now_s)
        answer = bounded(policy.desired(history, now_s), bounds, replication)
        if (answer.nodes, answer.prepared) != (given[-1].nodes, given[-1].prepared):
            given.append(answer)
            yield answer


_Timed = TypeVar("_Timed", Point, Supply)


def known(history: History, now_s: float) -> History:
    """The part of a history that a policy knows when it is asked at a time: its answer then is not yet in it."""
    answers = bisect_left(history.desired, now_s, key=lambda answer: answer.t_s)
    points, supply = _until(history.points, now_s), _until(history.supply, now_s)
    return History(history.period_s, points, supply, history.desired[:answers])


def _until(entries: Sequence[_Timed], now_s: float) -> Sequence[_Timed]:
    return entries[: bisect_right(entries, now_s, key=lambda entry: entry.t_s)]


def latest(history: History, bounds: Bounds, now_s: float) -> Desired:
    """The size that was desired last, as an answer: nothing is to change."""
    last = history.desired[-1] if history.desired else Desired(now_s, bounds.nodes, "")
    return Desired(now_s, last.nodes, "", last.prepared)


def in_service(history: History, bounds: Bounds) -> int:
    """Nodes in service at the end of a history."""
    return history.supply[-1].in_service if history.supply else bounds.nodes


def warm(history: History, bounds: Bounds, now_s: float, warmup_s: float) -> int:
    """Nodes that have been in service for a warm-up time."""
    nodes = in_service(history, bounds)
    for supply in reversed(history.supply):
        nodes = min(nodes, supply.in_service)
        if supply.t_s <= now_s - warmup_s:
            break
    return nodes


def changes(history: History, bounds: Bounds) -> list[tuple[float, int]]:
    """The changes of the desired size: when, and by how many nodes."""
    answers = (Desired(0.0, bounds.nodes, ""), *history.desired)
    differences = [(after.t_s, after.nodes - before.nodes) for before, after in itertools.pairwise(answers)]
    return [(t_s, difference) for t_s, difference in differences if difference]


def rested(history: History, bounds: Bounds, now_s: float, cooldown_s: float) -> bool:
    """Whether the last change of size is over, and a cooldown since then has passed: since its last node came into
    service or, of a change that took nodes away or did not reach its size, since it ended. AWS: the time between one
    scaling activity ending and another one starting (DefaultCooldown)."""
    when = changes(history, bounds)
    if not when:
        return True
    since_s, at_s = math.inf, when[-1][0]
    for supply in reversed(history.supply):
        if supply.pending or supply.in_service != history.desired[-1].nodes:
            break
        since_s = supply.t_s
    ended_s = history.supply[-1].ended_s if history.supply else None
    # Nodes that are leaving are not counted any more: when they have left is when the change ended.
    left = when[-1][1] < 0 and at_s <= since_s
    if since_s == math.inf or left:
        since_s = ended_s if ended_s is not None and ended_s > at_s else math.inf
    return now_s >= max(since_s, at_s) + cooldown_s


def value(history: History) -> float | None:
    """The metric over the last period; None if no node had a reading, or no period has ended."""
    return history.points[-1].value if history.points else None


def shipped(settings: TrialSettings) -> ModuleType | None:
    """The module of a policy that Steelyard ships; None of any other."""
    name = settings.policy.name.replace("-", "_")
    if not name.isidentifier() or importlib.util.find_spec(f"{__package__}.{name}") is None:
        return None
    module = importlib.import_module(f"{__package__}.{name}")
    return module if hasattr(module, "create") else None


def policy_of(settings: TrialSettings, module: ModuleType, threshold: float | None = None) -> Policy:
    """The policy of a trial by its module. `threshold`: that of `threshold_of`, without which the policy only says what
    it follows. Raises ValidationError for settings that the module does not take."""
    stated = settings.policy.settings
    if threshold is not None:
        stated = {**stated, THRESHOLD: threshold, THRESHOLD_OF: ""}
    own = module.Settings.model_validate(stated)
    if RATES in module.Settings.model_fields and not getattr(own, RATES):
        own = own.model_copy(update={RATES: tuple(settings.load.rates())})
    policy: Policy = module.create(own, bounds(settings.policy, settings.site.nodes))
    return policy


def limit_words(stated: Mapping[str, Any], threshold: float | None = None) -> str:
    """`target 75`: what a policy of these settings compares its metric with, for display; empty if with nothing.
    `threshold`: that of `threshold_of`."""
    known = {**stated, **({} if threshold is None else {THRESHOLD: threshold})}
    limits = ((name, known.get(name)) for name in LIMITS)
    return next((f"{name} {limit:g}" for name, limit in limits if isinstance(limit, int | float)), "")


def bounds(choice: PolicyChoice, nodes: int) -> Bounds:
    """The sizes that a policy may ask for."""
    return Bounds(nodes, choice.least(nodes), choice.most(nodes))
