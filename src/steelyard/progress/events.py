"""Progress events that the conductor sends to its watchers. Terminals and logs render them as they like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from steelyard.judging.stopping import Decision
from steelyard.model.plan import PlannedTrial
from steelyard.model.sample import Sample
from steelyard.model.secret import Concealer
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.verdict_reasons import Reason
from steelyard.wire.record import Interval


@dataclass(frozen=True)
class StudyBegan:
    """The study is about to do `todo` of `total` trials; it should take `seconds` (`low` to `high`)."""

    study: str
    total: int
    todo: int
    blocks: int
    folder: str
    at_most: bool = False
    """A stopping rule may end it before the last of these trials and blocks."""
    response: str = "execution_time_ms"
    """The study's main response."""


@dataclass(frozen=True)
class Judged:
    """Decision of the stopping rule after the last whole block."""

    decision: Decision


@dataclass(frozen=True)
class TimeLeft:
    """The conductor's newest idea of when it will be done, in seconds from now."""

    seconds: float
    low_s: float
    high_s: float
    trials: int | None = None
    """Trials that are left, the one under way not counted; None if that was not said."""


@dataclass(frozen=True)
class StartBegan:
    """A cluster is being started for the trials that follow."""

    start: str
    block: int
    blocks: int
    treatment: Mapping[str, Any]
    trials: int


@dataclass(frozen=True)
class TrialBegan:
    """A trial is under way."""

    planned: PlannedTrial
    attempt: int
    number: int
    total: int


@dataclass(frozen=True)
class PhaseEntered:
    """A bracket was entered; at most `timeout_s` is spent in it, and `expected_s` where that is known."""

    phase: Phase
    timeout_s: float
    expected_s: float | None = None


@dataclass(frozen=True)
class Waiting:
    """Something that is waited for."""

    what: str


@dataclass(frozen=True)
class QuietAwaited:
    """No trial begins until the machine is quiet: what is over its limit now, and how long is waited at most."""

    reasons: Sequence[Reason]
    """Of the newest second that was not quiet."""
    waited_s: float
    limit_s: float


@dataclass(frozen=True)
class QuietReached:
    """The machine is quiet, and the study goes on."""

    waited_s: float


@dataclass(frozen=True)
class Ticked:
    """One interval of load, as the engine said it."""

    node: str
    record: Interval


@dataclass(frozen=True)
class Sampled:
    """Readings of one node."""

    samples: Sequence[Sample]


@dataclass(frozen=True)
class TrialSealed:
    """A trial is in the store."""

    record: TrialRecord
    number: int
    total: int


@dataclass(frozen=True)
class Trouble:
    """Something went wrong and was dealt with: what, and what is done about it."""

    message: str
    hint: str


Event = (
    StudyBegan
    | Judged
    | TimeLeft
    | StartBegan
    | TrialBegan
    | PhaseEntered
    | Waiting
    | QuietAwaited
    | QuietReached
    | Ticked
    | Sampled
    | TrialSealed
    | Trouble
)


class Watcher(Protocol):
    """Anything that listens. It must return quickly and must not raise."""

    def tell(self, event: Event) -> None:
        """Take note of an event."""
        ...


class Silent:
    """Listens and says nothing."""

    def tell(self, event: Event) -> None:
        """Take no note."""


class Guarded:
    """Passes events on until the watcher cannot take them (a closed terminal, a full disk); then goes on without it.
    Nothing that only looks may stop a study, least of all its clean-up. What it says is said without secrets."""

    def __init__(self, watcher: Watcher, conceal: Concealer | None = None) -> None:
        self._watcher = watcher
        self._conceal = conceal or Concealer()

    def tell(self, event: Event) -> None:
        """Pass an event on."""
        if isinstance(event, Trouble):
            event = Trouble(self._conceal.text(event.message), self._conceal.text(event.hint))
        try:
            self._watcher.tell(event)
        except (OSError, SystemExit):
            self._watcher = Silent()
