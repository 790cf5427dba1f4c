"""Verdict on a trial: kinds of reasons, and the reasons with number and threshold.

A new kind is a member of `ReasonKind`; the function in `judging/verdict.py` that finds it defines when it applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, Literal

from steelyard.model.value import Value


class Speaks(Enum):
    """Which side of its threshold counts against a trial."""

    ABOVE = "above"
    AT_OR_ABOVE = "at or above"
    BELOW = "below"

    def crossed(self, measured: float, threshold: float) -> bool:
        """Whether the measured value is on that side."""
        if self is Speaks.BELOW:
            return measured < threshold
        return measured >= threshold if self is Speaks.AT_OR_ABOVE else measured > threshold


@dataclass(frozen=True)
class KindFacts:
    """Facts about a kind of reason, for code that judges, checks or shows it."""

    measured: str
    """Measured quantity, and when it counts against the trial."""
    limit: str = ""
    """The field of the study's `limits` that holds the threshold; empty if there is none, or more than one."""
    invalid_if: str = ""
    """Clause for the report's method, with fields of `limits` in braces: "a trial is invalid if ..."."""
    speaks: Speaks = Speaks.ABOVE
    void: bool = False
    """Whether the laboratory or its surroundings are at fault: the attempt is voided and worth repeating. All other
    kinds would recur: they describe what the system did under the requested load, which is a result, or the limit of
    this machine's generator."""
    of_generator: bool = False
    """Whether the load generator, not the system, limited the trial."""
    in_store: bool = False
    """Whether the store's intervals and records hold all evidence for it, so that it can be judged again: then
    `verify/recompute.py:_verdict` gives that evidence, too."""
    of_link: bool = False
    """Whether it concerns only trials over a link program."""


class ReasonKind(StrEnum):
    """Why a trial is not valid: the words used in the store, and the facts about each kind."""

    about: KindFacts

    def __new__(cls, text: str, about: KindFacts) -> ReasonKind:
        """The member's value is its text; `about` is kept as an attribute."""
        kind = str.__new__(cls, text)
        kind._value_ = text
        kind.about = about
        return kind

    LAG = (
        "lag p99 above the limit",
        KindFacts(
            "open loop: p99 of `pacing`, the generator's own delay, above `lag_p99_ms`",
            invalid_if="in an open loop the generator sends operations more than {lag_p99_ms} late at p99",
            limit="lag_p99_ms", void=True, of_generator=True, in_store=True,
        ),
    )  # fmt: skip
    RATE = (
        "offered rate not reached",
        KindFacts(
            "open loop: operations sent / operations due below `offered_rate_fraction`",
            invalid_if="in an open loop less than {offered_rate_fraction} of the operations due are sent",
            limit="offered_rate_fraction", speaks=Speaks.BELOW,
        ),
    )  # fmt: skip
    GENERATOR_BUSY = (
        "generator too busy",
        KindFacts(
            "CPU time of its busiest thread / time above `generator_cpu_fraction`",
            invalid_if="the generator’s busiest thread takes more than {generator_cpu_fraction} of its core",
            limit="generator_cpu_fraction", void=True, of_generator=True,
        ),
    )  # fmt: skip
    GENERATOR_BOUND = (
        "generator-bound",
        KindFacts(
            "share u of its calibrated ceiling at `generator_ceiling_fraction` or above; u = Σ rate of a kind of "
            "operation / ceiling of that kind, of each second of each load node, and of those the value that one in "
            "ten exceeds. Reads and scans count as reads, updates and inserts as writes, a read-modify-write as both, "
            "anything else as the dearer of both; where each request opens a connection, all count as connections; the "
            "ceiling is that of the calibrated 64 or 512 in flight that is not above the trial's",
            invalid_if="the generator reaches {generator_ceiling_fraction} of its calibrated ceiling",
            limit="generator_ceiling_fraction", speaks=Speaks.AT_OR_ABOVE, of_generator=True,
        ),
    )  # fmt: skip
    PROBE_GAP = (
        "a probe gap",
        KindFacts(
            "longest time without a sample of one probe on one node, within the measured phase, above `probe_gap_s`",
            invalid_if="no sample of a probe on a node arrives for {probe_gap_s}",
            limit="probe_gap_s", void=True,
        ),
    )  # fmt: skip
    CLOCK = (
        "clock of a node wrong",
        KindFacts(
            "a node with its own clock: how far its offset to the conductor's clock moved during the trial, plus "
            "the error of measuring it, above `clock_s`; or the offset could not be measured",
            limit="clock_s", void=True,
        ),
    )  # fmt: skip
    CLOCK_STEP = (
        "the conductor's clock was set",
        KindFacts(
            "how far the conductor's wall clock moved against its monotonic one while the load ran, less the 500 ppm "
            "by which a clock may be slewed, above `clock_step_s`",
            limit="clock_step_s", void=True, in_store=True,
        ),
    )  # fmt: skip
    LINK_LATE = (
        "the link program was late",
        KindFacts(
            "how much later than the link says frames were delivered by the link program while the load ran, mean, "
            "above `link_late_ms`; by the clock, also in dilated trials",
            invalid_if="the link program delivers frames more than {link_late_ms} late, mean",
            limit="link_late_ms", void=True, in_store=True, of_link=True,
        ),
    )  # fmt: skip
    LINK_STALLED = (
        "the link program stood still",
        KindFacts(
            "pauses of the link program of 1 ms or more, added up, of the time in which the load ran, above "
            "`link_stalled_fraction`",
            invalid_if="the link program stands still for more than {link_stalled_fraction} of the time",
            limit="link_stalled_fraction", void=True, in_store=True, of_link=True,
        ),
    )  # fmt: skip
    LINK_UNREAD = (
        "the link program left frames unread",
        KindFacts(
            "frames that the kernel dropped because the link program did not read them in time, of all that nodes sent "
            "while the load ran, above `link_unread_fraction`",
            invalid_if="the kernel drops more than {link_unread_fraction} of the frames before the link program reads "
            "them",
            limit="link_unread_fraction", void=True, in_store=True, of_link=True,
        ),
    )  # fmt: skip
    DROPPED = (
        "records dropped",
        KindFacts("lines of the engine that could not be written: more than 0", void=True),
    )  # fmt: skip
    SETTINGS = (
        "settings in force differ from those asked",
        KindFacts("name, asked, in force; secrets are not compared"),
    )  # fmt: skip
    STILL_BUSY = (
        "still busy at the start",
        KindFacts("compactions, flushes, hints, streams after `settle_timeout_s`: more than 0", void=True),
    )  # fmt: skip
    DEBUG_ENGINE = (
        "engine built without optimisation",
        KindFacts("the agent says so", void=True),
    )  # fmt: skip
    POLICY_LATE = (
        "the scaling policy was late or blind",
        KindFacts(
            "how often the scaling policy was asked 3 s after its time or later, or before every node had said "
            "something of the last period, of all times that it was asked, above `policy_late_fraction`",
            limit="policy_late_fraction", void=True, in_store=True,
        ),
    )  # fmt: skip
    STEAL = (
        "background load or steal",
        KindFacts(
            "steal: mean of `machine_cpu_steal_fraction` on the worst node above `steal_fraction`. Background load: "
            "(user + system − interrupts) × cores − nodes − generators − probes − conductor − reading commands − "
            "helpers, over all cores of a machine, above `background_cpu_fraction`; nodes of one kernel are on one "
            "machine; kernel threads count as background",
            invalid_if="other guests of the hardware take more than {steal_fraction} of the processor, or other "
            "programs more than {background_cpu_fraction}",
            void=True,
        ),
    )  # fmt: skip
    HARDWARE = (
        "a node's hardware was slowed down",
        KindFacts(
            "readings other than 0 of a metric `machine_fault_…` (too little voltage, too hot) in the measured phase: "
            "more than 0",
            invalid_if="the firmware of a node slows it down, for want of power or because it is too hot",
            void=True,
        ),
    )
    ERRORS = (
        "errors above the limit",
        KindFacts(
            "failed / all operations above `error_fraction`",
            invalid_if="more than {error_fraction} of its operations fail",
            limit="error_fraction", in_store=True,
        ),
    )  # fmt: skip
    NOT_FOUND = (
        "answers wrong or missing",
        KindFacts(
            "reads of keys that must exist without a row / answered operations above `not_found_fraction`; answers "
            "that held other values than were written / all operations",
            invalid_if="more than {not_found_fraction} of the answers are wrong or missing",
            limit="not_found_fraction", in_store=True,
        ),
    )  # fmt: skip
    INCOMPLETE = (
        "fewer operations done than asked",
        KindFacts(
            "below the number asked, where no duration ends the trial", speaks=Speaks.BELOW, in_store=True,
        ),
    )  # fmt: skip
    LOWER_BOUND = (
        "the search found a lower bound only",
        KindFacts(
            "a search that ended before a limit was missed: by the load generator, at the highest rate allowed, or out "
            "of windows",
        ),
    )
    NONE_FOUND = (
        "the search ended before it found a rate",
        KindFacts("a search out of windows before a rate met the limits: lower rates were not tried"),
    )
    NO_RATE = (
        "no rate meets the limits",
        KindFacts("a search in which the lowest rate allowed misses a limit"),
    )
    SYSTEM_FAULT = ("the system under test failed", KindFacts("what was said"))
    LAB_FAULT = ("the laboratory failed", KindFacts("what was said", void=True))


GUESTS: Final = "other guests"
"""Prefix of the detail of a STEAL reason about other guests of the hardware; any other is about other programs."""


class Reason(Value):
    """One reason: the measured number, and the threshold that it crossed."""

    kind: ReasonKind
    measured: float | None = None
    threshold: float | None = None
    unit: str = ""
    detail: str = ""


class Verdict(Value):
    """valid, invalid(reasons) or unknown(reasons)."""

    outcome: Literal["valid", "invalid", "unknown"]
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    """Something that could not be judged, and why: not a reason against the trial."""

    @property
    def system_fault(self) -> bool:
        """Whether the system under test, not the laboratory, is at fault."""
        return any(reason.kind is ReasonKind.SYSTEM_FAULT for reason in self.reasons)

    @property
    def final(self) -> bool:
        """Whether the trial needs no further attempt: valid, or invalid because of the system's behaviour."""
        if self.outcome == "valid":
            return True
        return self.outcome == "invalid" and not self._spoilt

    @property
    def voided(self) -> bool:
        """Whether the laboratory or its surroundings spoilt the attempt: it counts for nothing and is repeated."""
        return self.outcome != "valid" and self._spoilt

    @property
    def _spoilt(self) -> bool:
        return any(reason.kind.about.void for reason in self.reasons)

    @property
    def lab_fault(self) -> bool:
        """Whether the laboratory itself failed."""
        return any(reason.kind is ReasonKind.LAB_FAULT for reason in self.reasons)
