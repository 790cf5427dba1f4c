"""Events of the journal (`events.jsonl`): one definition for its writer, its readers and the views of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from steelyard.events.base import Kept, live
from steelyard.judging.stopping import Decision
from steelyard.model.derived import Derived
from steelyard.model.estimate import Estimate
from steelyard.model.gauged import Gauged
from steelyard.model.named_level import Level
from steelyard.model.plausible import Moment
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.trial import PhaseTime, TrialRecord
from steelyard.model.verdict_reasons import Reason


class SessionBegan(Kept):
    """A session began: one call of `steelyard run`."""

    name = "session-began"
    todo: int
    """Number of trials to do."""
    total: int
    """Number of trials in the plan."""
    command: tuple[str, ...] = ()
    folder: str = ""
    """Working directory of the command."""
    commit: str = ""
    """Commit of the checkout that the program runs from; empty for an installed program."""
    boot: str = ""
    """Id of the kernel's boot on the machine that conducts, or the name in its `STEELYARD_MACHINE`: sessions at the
    same time with the same id ran on one machine."""
    study: str = live("")
    store: str = live("")
    """The study's folder in the store."""
    blocks: int = live(0)
    at_most: bool = live(False)
    """A stopping rule may end it before the last of these trials and blocks."""
    response: str = live("execution_time_ms")
    """The study's main response."""


class SessionEnded(Kept):
    """A session ended as planned: everything is done, or it was asked to stop after a trial."""

    name = "session-ended"
    valid: int
    invalid: int
    missing: int


class SessionFailed(Kept):
    """The laboratory gave up."""

    name = "session-failed"
    message: str
    hint: str


class SessionInterrupted(Kept):
    """A session was stopped while it measured, filled or waited."""

    name = "session-interrupted"


class StartBegan(Kept):
    """A cluster is about to be started."""

    name = "start-began"
    start: str
    block: int
    trials: int
    blocks: int = live(0)
    treatment: dict[str, Level] = live({})
    nodes: int = live(1)
    searches: bool = live(False)
    """Whether its trials are searches."""


class StartReady(Kept):
    """The nodes of a start answer and have their data."""

    name = "start-ready"
    start: str
    cluster: str
    """Unique name of this start's cluster."""


class NodesGauged(Kept):
    """The limits of the nodes of a start were measured, at its beginning or at its end."""

    name = "nodes-gauged"
    start: str
    gauged: Gauged


class ServersWarmedUp(Kept):
    """The server warm-up of a start is over."""

    name = "servers-warmed-up"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    warmth: ServerWarmth


class ProcessorsLimited(Kept):
    """Processor limits were put in force on the nodes of a start that had begun without them."""

    name = "processors-limited"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    cpus: dict[str, float]
    """Node to the processors that it may use from now on, as the kernel reports them."""


class DisksLimited(Kept):
    """Rates of disks were put in force on the nodes of a start that had begun without them."""

    name = "disks-limited"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    rates: dict[str, dict[str, float]]
    """Node to its rates from now on as the kernel reports them, in bytes/s and operations/s by the names of facts."""


class LinksMeasured(Kept):
    """The paths between the nodes of a start were measured again, after its last trial."""

    name = "links-measured"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    links: tuple[dict[str, Any], ...]
    """As in `links.json` of its trials, which holds them as they were before the first."""


class LevelDerived(Kept):
    """Trials without a policy have given the threshold of a policy."""

    name = "level-derived"
    start: str
    """The first start of this session that uses it."""
    treatment: Mapping[str, Level]
    """The levels that both have."""
    derived: Derived
    fired: int
    """In how many of the trials that gave it the policy would have acted at this threshold."""
    share: Estimate
    """The same as a fraction, with its interval."""


class ActivityBegan(Kept):
    """A cluster begins to change its size during a trial."""

    name = "activity-began"
    trial: str
    kind: str
    nodes: tuple[str, ...]
    cause: str


class ActivityEnded(Kept):
    """A change of size is over, or the load has ended before it."""

    name = "activity-ended"
    trial: str
    kind: str
    nodes: tuple[str, ...]
    outcome: str
    error: str = ""


class StartFailed(Kept):
    """A cluster did not start, through a fault of the system."""

    name = "start-failed"
    start: str
    message: str
    count: int
    """Number of failures of this start."""


class StartEnded(Kept):
    """A cluster was released."""

    name = "start-ended"
    start: str
    phases: tuple[PhaseTime, ...]


class LaboratoryFailed(Kept):
    """A start was lost through a fault of the laboratory."""

    name = "laboratory-failed"
    start: str
    message: str
    notes: tuple[str, ...]


class BlockLost(Kept):
    """A block that another machine measured was lost in flight, with its trials: none of them is in the store."""

    name = "block-lost"
    block: int
    machine: str
    """Id of the machine, or its name in `STEELYARD_MACHINE`."""
    why: str


class QuietAwaited(Kept):
    """The machine was not quiet: no trial begins until it is."""

    name = "quiet-awaited"
    reasons: tuple[Reason, ...]
    """Limits that were exceeded."""
    wait_s: float
    """Longest wait, seconds."""


class QuietReached(Kept):
    """The machine was quiet again, and the study continued."""

    name = "quiet-reached"
    waited_s: float


class TrialSealed(Kept):
    """An attempt at a trial is in the store."""

    name = "trial-sealed"
    trial: str
    attempt: int
    outcome: str
    reasons: tuple[str, ...]
    """Names of kinds of reasons."""
    record_sha256: str
    """SHA-256 of `trial.json`."""
    record: TrialRecord | None = live(None)
    number: int = live(0)
    """Place among the trials of the plan."""
    total: int = live(0)

    @classmethod
    def of_record(cls, record: TrialRecord, sha256: str, number: int = 0, total: int = 0) -> TrialSealed:
        """The event of a sealed record, which views are shown with its number."""
        return cls(
            trial=record.id, attempt=record.attempt, outcome=record.verdict.outcome,
            reasons=tuple(reason.kind.name for reason in record.verdict.reasons), record_sha256=sha256,
            record=record if total else None, number=number, total=total,
        )  # fmt: skip


class SealCorrected(Kept):
    """A session found that the line about a sealed attempt was changed, and noted again what its record says."""

    name = "seal-corrected"
    line: int
    """The line that was changed."""
    instead_of: str
    """Folder of the attempt that the changed line names."""
    trial: str
    attempt: int
    outcome: str
    reasons: tuple[str, ...]
    record_sha256: str
    why: str
    """Proof that the line was changed and not the record."""

    def sealed(self) -> TrialSealed:
        """The line as it should be."""
        return TrialSealed(
            trial=self.trial,
            attempt=self.attempt,
            outcome=self.outcome,
            reasons=self.reasons,
            record_sha256=self.record_sha256,
        )


class DraftRemoved(Kept):
    """Remains of an attempt by a killed process were removed."""

    name = "draft-removed"
    folder: str


class FolderSetAside(Kept):
    """An entry of the folder `trials` that is not a sealed attempt was moved out of the way, and kept."""

    name = "set-aside"
    folder: str
    """Its name in `trials`."""
    to: str
    """Where it is now, relative to the study's folder."""
    why: str


class FolderMissed(Kept):
    """A session found that a sealed attempt is no longer there."""

    name = "trial-missing"
    folder: str


class StudyWritten(Kept):
    """The study and its plan are about to be written into the store."""

    name = "study-written"
    sha256: dict[str, str]
    """File name to its SHA-256."""


class NoiseFloorSought(Kept):
    """The noise floor of this machine was copied into the store, or the reason why there is none."""

    name = "noise-floor"
    found: bool
    why: str = ""
    """Reason why there is none."""
    study: str = ""
    """Name of the study that measured it."""
    made_s: Moment | None = None
    sha256: str | None = None
    """SHA-256 of `noise-floor.json`; None if there is none."""


class StoppingJudged(Kept):
    """Decision of the stopping rule after a whole block. It is read back only for verification."""

    name = "judged"
    decision: Decision

    def fields(self) -> dict[str, Any]:
        """The decision's fields, at the top level of the line."""
        return self.decision.model_dump(mode="json")

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """The decision from its fields. Raises pydantic's ValidationError."""
        return cls(
            decision=Decision.model_validate({key: fields[key] for key in Decision.model_fields if key in fields})
        )
