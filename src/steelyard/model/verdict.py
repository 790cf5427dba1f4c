"""The verdict on a trial: valid, invalid or unknown, every reason with its number and its threshold."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from steelyard.model import former_words
from steelyard.model.value import Value


class ReasonKind(StrEnum):
    """Why a trial is not valid."""

    LAG = "lag p99 above the limit"
    RATE = "offered rate not reached"
    GENERATOR_BUSY = "generator too busy"
    GENERATOR_BOUND = "generator-bound"
    PROBE_GAP = "a probe gap"
    DROPPED = "records dropped"
    SETTINGS = "settings in force differ from those asked"
    STILL_BUSY = "still busy at the start"
    DEBUG_ENGINE = "engine built without optimisation"
    STEAL = "background load or steal"
    ERRORS = "errors above the limit"
    NOT_FOUND = "answers wrong or missing"
    INCOMPLETE = "fewer operations done than asked"
    SYSTEM_FAULT = "the system under test failed"
    LAB_FAULT = "the laboratory failed"

    @classmethod
    def _missing_(cls, value: object) -> ReasonKind | None:
        """The kind that an earlier version called otherwise."""
        today = former_words.REASONS.get(value) if isinstance(value, str) else None
        return None if today is None else cls(today)


LABORATORY = frozenset(
    {
        ReasonKind.LAG,
        ReasonKind.GENERATOR_BUSY,
        ReasonKind.PROBE_GAP,
        ReasonKind.DROPPED,
        ReasonKind.STILL_BUSY,
        ReasonKind.DEBUG_ENGINE,
        ReasonKind.STEAL,
        ReasonKind.LAB_FAULT,
    }
)
"""Reasons that are the laboratory's, or its surroundings': the attempt is void and worth another. All others are the
same again if repeated: what the system did under the load that was asked for, which is a result, and what is as much as
this machine's generator can do (GENERATOR_BOUND)."""


class Reason(Value):
    """One reason: the number that was measured, and the threshold that it crossed."""

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
    """What could not be judged, and why: no reason against the trial."""

    @property
    def system_fault(self) -> bool:
        """Whether the system under test, not the laboratory, is to blame."""
        return any(reason.kind is ReasonKind.SYSTEM_FAULT for reason in self.reasons)

    @property
    def final(self) -> bool:
        """Whether the trial needs no further attempt: valid, or invalid by what the system did."""
        if self.outcome == "valid":
            return True
        return self.outcome == "invalid" and not any(reason.kind in LABORATORY for reason in self.reasons)

    @property
    def lab_fault(self) -> bool:
        """Whether the laboratory itself failed."""
        return any(reason.kind is ReasonKind.LAB_FAULT for reason in self.reasons)
