"""The verdict on a trial: valid, invalid or unknown, every reason with its number and its threshold."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from steelyard.model.base import Value


class ReasonKind(StrEnum):
    """Why a trial is not valid."""

    LAG = "lag p99 above the limit"
    RATE = "offered rate not reached"
    GENERATOR_BUSY = "generator too busy"
    PROBE_GAP = "a probe gap"
    DROPPED = "records dropped"
    SETTINGS = "settings in force differ from those asked"
    STILL_BUSY = "still busy at the start"
    DEBUG_ENGINE = "engine built without optimisation"
    STEAL = "foreign load or steal"
    ERRORS = "errors above the limit"
    NOT_FOUND = "answers wrong or missing"
    INCOMPLETE = "fewer operations done than asked"
    SYSTEM_FAULT = "the system under test failed"
    LAB_FAULT = "the laboratory failed"


class Reason(Value):
    """One reason: the number that was measured, and the threshold that it crossed."""

    kind: ReasonKind
    measured: float | None = None
    threshold: float | None = None
    unit: str = ""
    detail: str = ""


class Verdict(Value):
    """`system_fault` tells a result (the system failed) from a voided attempt (the laboratory failed)."""

    outcome: Literal["valid", "invalid", "unknown"]
    reasons: tuple[Reason, ...] = ()

    @property
    def system_fault(self) -> bool:
        """Whether the system under test, not the laboratory, is to blame."""
        return any(reason.kind is ReasonKind.SYSTEM_FAULT for reason in self.reasons)
