"""Journal events (`events.jsonl`): one definition for writer and reader.

An event is a frozen value with a name; an entry is an event with its time and its line. A line whose name
is unknown here, and a line whose fields do not match its name, are kept as `Unknown`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from pydantic import ConfigDict, ValidationError

from steelyard.judging.stopping import Decision
from steelyard.model.errors import StoreError
from steelyard.model.gauged import Gauged
from steelyard.model.plausible import LATEST_S, Moment, read_json_leniently
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.trial import PhaseTime
from steelyard.model.value import Value
from steelyard.model.verdict_reasons import Reason
from steelyard.store.plain_file import content_of, loaded, problem_of

NOT_UTF8: Final = "\N{REPLACEMENT CHARACTER}"
"""Replacement of a byte that is not UTF-8."""


class Event(Value):
    """An event, without its time. Fields that this version does not know are ignored when reading."""

    model_config = ConfigDict(extra="ignore")

    name: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """The fields as written to the journal: those that were set."""
        return self.model_dump(mode="json", exclude_unset=True)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """The event with the fields of a line. Raises pydantic's ValidationError."""
        return cls.model_validate(fields)


class SessionBegan(Event):
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


class SessionEnded(Event):
    """A session ended as planned: everything is done, or it was asked to stop after a trial."""

    name = "session-ended"
    valid: int
    invalid: int
    missing: int


class SessionFailed(Event):
    """The laboratory gave up."""

    name = "session-failed"
    message: str
    hint: str


class SessionInterrupted(Event):
    """A session was stopped while it measured, filled or waited."""

    name = "session-interrupted"


class StartBegan(Event):
    """A cluster is about to be started."""

    name = "start-began"
    start: str
    block: int
    trials: int


class StartReady(Event):
    """The nodes of a start answer and have their data."""

    name = "start-ready"
    start: str
    cluster: str
    """Unique name of this start's cluster."""


class NodesGauged(Event):
    """The limits of the nodes of a start were measured, at its beginning or at its end."""

    name = "nodes-gauged"
    start: str
    gauged: Gauged


class ServersWarmedUp(Event):
    """The server warm-up of a start is over."""

    name = "servers-warmed-up"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    warmth: ServerWarmth


class ProcessorsLimited(Event):
    """Processor limits were put in force on the nodes of a start that had begun without them."""

    name = "processors-limited"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    cpus: dict[str, float]
    """Node to the processors that it may use from now on, as the kernel reports them."""


class DisksLimited(Event):
    """Rates of disks were put in force on the nodes of a start that had begun without them."""

    name = "disks-limited"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    rates: dict[str, dict[str, float]]
    """Node to its rates from now on as the kernel reports them, in bytes/s and operations/s by the names of facts."""


class LinksMeasured(Event):
    """The paths between the nodes of a start were measured again, after its last trial."""

    name = "links-measured"
    start: str
    cluster: str
    """Unique name of the cluster of this start."""
    links: tuple[dict[str, Any], ...]
    """As in `links.json` of its trials, which holds them as they were before the first."""


class StartFailed(Event):
    """A cluster did not start, through a fault of the system."""

    name = "start-failed"
    start: str
    message: str
    count: int
    """Number of failures of this start."""


class StartEnded(Event):
    """A cluster was released."""

    name = "start-ended"
    start: str
    phases: tuple[PhaseTime, ...]


class LaboratoryFailed(Event):
    """A start was lost through a fault of the laboratory."""

    name = "laboratory-failed"
    start: str
    message: str
    notes: tuple[str, ...]


class QuietAwaited(Event):
    """The machine was not quiet: no trial begins until it is."""

    name = "quiet-awaited"
    reasons: tuple[Reason, ...]
    """Limits that were exceeded."""
    wait_s: float
    """Longest wait, seconds."""


class QuietReached(Event):
    """The machine was quiet again, and the study went on."""

    name = "quiet-reached"
    waited_s: float


class TrialSealed(Event):
    """An attempt at a trial is in the store."""

    name = "trial-sealed"
    trial: str
    attempt: int
    outcome: str
    reasons: tuple[str, ...]
    """Names of kinds of reasons."""
    record_sha256: str
    """SHA-256 of `trial.json`."""


class SealCorrected(Event):
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


class DraftRemoved(Event):
    """Remains of an attempt by a killed process were removed."""

    name = "draft-removed"
    folder: str


class FolderSetAside(Event):
    """An entry of the folder `trials` that is no sealed attempt was moved out of the way, and kept."""

    name = "set-aside"
    folder: str
    """Its name in `trials`."""
    to: str
    """Where it is now, relative to the study's folder."""
    why: str


class FolderMissed(Event):
    """A session found that a sealed attempt is no longer there."""

    name = "trial-missing"
    folder: str


class StudyWritten(Event):
    """The study and its plan are about to be written into the store."""

    name = "study-written"
    sha256: dict[str, str]
    """File name to its SHA-256."""


class NoiseFloorSought(Event):
    """The noise floor of this machine was copied into the store, or the reason why there is none."""

    name = "noise-floor"
    found: bool
    why: str = ""
    """Reason why there is none."""
    study: str = ""
    """Name of the study that measured it."""
    made_s: Moment | None = None
    sha256: str | None = None
    """SHA-256 of `noise-floor.json`; None where there is none."""


class StoppingJudged(Event):
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


@dataclass(frozen=True)
class Unknown:
    """An event with an unknown name, or one whose fields do not match its name."""

    name: str
    given: Mapping[str, Any]
    """Its fields."""
    problem: str = ""
    """Problem with its fields; empty if its name is unknown."""

    def fields(self) -> dict[str, Any]:
        """The fields as written in the journal."""
        return dict(self.given)


KINDS: Final[Mapping[str, type[Event]]] = {
    kind.name: kind
    for kind in (
        SessionBegan,
        SessionEnded,
        SessionFailed,
        SessionInterrupted,
        StartBegan,
        StartReady,
        NodesGauged,
        ServersWarmedUp,
        ProcessorsLimited,
        DisksLimited,
        LinksMeasured,
        StartFailed,
        StartEnded,
        LaboratoryFailed,
        QuietAwaited,
        QuietReached,
        TrialSealed,
        SealCorrected,
        DraftRemoved,
        FolderSetAside,
        FolderMissed,
        StudyWritten,
        NoiseFloorSought,
        StoppingJudged,
    )
}
"""Every event by its name."""


@dataclass(frozen=True)
class Entry:
    """A line of the journal."""

    number: int
    """From 1."""
    t_s: float | None
    """Time of the event, seconds since the epoch; None if the line has no such number."""
    event: Event | Unknown | None
    """None if the line cannot be read: a power cut tore it, or it is not UTF-8."""

    def fields(self) -> dict[str, Any]:
        """The line as a table."""
        if self.event is None:
            return {"t_s": self.t_s}
        return {"t_s": self.t_s, "event": self.event.name, **self.event.fields()}


def line(event: Event, t_s: float, conceal: Callable[[Any], Any] = lambda fields: fields) -> str:
    """An event as a line of the journal, with its line ending. `conceal` removes secrets from its fields."""
    return json.dumps({"t_s": round(t_s, 3), "event": event.name, **conceal(event.fields())}) + "\n"


def entries(text: str, conceal: Callable[[Any], Any] = lambda fields: fields) -> Iterator[Entry]:
    """Every line of a journal from any source. `conceal` removes secrets from each line. Never raises."""
    for number, written in enumerate(text.splitlines(), start=1):
        if NOT_UTF8 in written:
            # A writer escapes every other character.
            yield Entry(number, None, None)
            continue
        try:
            fields = conceal(loaded(written, read_json_leniently))
        except (ValueError, RecursionError):
            yield Entry(number, None, None)
            continue
        if isinstance(fields, dict):
            yield Entry(number, _time_of(fields), event_of(fields))
        else:
            yield Entry(number, None, Unknown("", {}, "no table"))


def read(path: Path, conceal: Callable[[Any], Any] = lambda fields: fields) -> tuple[Entry, ...]:
    """Every line of the journal at `path`; none if there is no such file. Raises StoreError if it is no regular
    file."""
    try:
        text = content_of(path).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    except OSError as error:
        what = f"the journal cannot be read: {problem_of(error)}"
        raise StoreError(
            f"{path}: {what}", "move it away, or restore it from a copy", path=str(path), what=what
        ) from error
    return tuple(entries(text, conceal))


def why_unreadable(numbers: Sequence[int], last: int) -> str:
    """Probable cause of lines that cannot be read; `last`: number of the last line."""
    return "torn by a power cut?" if list(numbers) == [last] else "edited, or damaged on the disk"


def written(entries: Iterable[Entry], name: str) -> frozenset[str]:
    """SHA-256 of a file of the study in each of its forms that a session wrote; empty if the journal does not say."""
    events = (entry.event for entry in entries)
    return frozenset(event.sha256[name] for event in events if isinstance(event, StudyWritten) and name in event.sha256)


def event_of(fields: Mapping[str, Any]) -> Event | Unknown:
    """The event described by a line's fields."""
    written = fields.get("event")
    given = {key: value for key, value in fields.items() if key not in ("event", "t_s")}
    if not isinstance(written, str):
        return Unknown("", given, "no name")
    if written not in KINDS:
        return Unknown(written, given)
    try:
        return KINDS[written].of(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        return Unknown(written, given, f"{where}: {fault['msg']}")


def _time_of(fields: Mapping[str, Any]) -> float | None:
    value = fields.get("t_s")
    return float(value) if isinstance(value, int | float) and 0 <= value <= LATEST_S else None
