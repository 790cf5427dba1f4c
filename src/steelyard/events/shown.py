"""Events that only pass: shown to watchers while they happen, and not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.events.base import Event
from steelyard.judging.stopping import Decision
from steelyard.model.plan import PlannedTrial
from steelyard.model.sample import Sample
from steelyard.model.scaling import Desired
from steelyard.model.trial import Phase
from steelyard.model.verdict_reasons import Reason
from steelyard.wire.record import Interval


@dataclass(frozen=True)
class RuleBegan(Event):
    """A stopping rule holds for the study, and no block is whole yet."""

    decision: Decision


@dataclass(frozen=True)
class StillBusy(Event):
    """The machine is not quiet yet, and the study waits on."""

    reasons: Sequence[Reason]
    """Limits that the newest second exceeded."""
    waited_s: float
    limit_s: float


@dataclass(frozen=True)
class TimeLeft(Event):
    """The conductor's newest idea of when it will be done, in seconds from now."""

    seconds: float
    low_s: float
    high_s: float
    trials: int | None = None
    """Trials that are left, the one in progress not counted; None if that was not said."""


@dataclass(frozen=True)
class TrialBegan(Event):
    """A trial is in progress."""

    planned: PlannedTrial
    attempt: int
    number: int
    total: int


@dataclass(frozen=True)
class PhaseEntered(Event):
    """A bracket was entered; at most `timeout_s` is spent in it, and `expected_s` where that is known."""

    phase: Phase
    timeout_s: float
    expected_s: float | None = None


@dataclass(frozen=True)
class Waiting(Event):
    """Something that is waited for."""

    what: str


@dataclass(frozen=True)
class Sized(Event):
    """The size of a cluster under a policy: nodes in service, the size that was desired last, and the metric."""

    in_service: int
    """Those that are leaving included."""
    desired: Desired
    metric: str = ""
    """The response that the policy follows; empty if it follows none."""
    value: float | None = None
    """Its newest point; None without one, or without a reading."""
    limit: str = ""
    """Threshold or target of the metric, in words, such as `threshold 80`."""


@dataclass(frozen=True)
class Ticked(Event):
    """One interval of load, as the engine said it."""

    node: str
    record: Interval


@dataclass(frozen=True)
class Sampled(Event):
    """Readings of one node."""

    samples: Sequence[Sample]


@dataclass(frozen=True)
class Trouble(Event):
    """Something went wrong and was dealt with: what, and what is done about it."""

    message: str
    hint: str
