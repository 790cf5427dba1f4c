"""Least number of operations for a percentile; stopping rule and analysis use the same limit."""

from __future__ import annotations

import math

from steelyard.model import responses
from steelyard.model.trial import TrialRecord

BEYOND = 10
"""Operations that must lie on either side of a percentile for it to be given: 1,000 for a p99, 10,000 for a p99.9."""


def needed(q: float) -> int:
    """The least number of operations that support a percentile: BEYOND above it, and as many below."""
    return math.ceil(BEYOND / min(q, 1 - q) - 1e-6)


def supported(q: float, operations: int) -> bool:
    """Whether so many operations support a percentile."""
    return operations >= needed(q)


def response_of(record: TrialRecord, name: str) -> float | int | None:
    """A response; None for a percentile that the trial's count does not support, whatever was written."""
    q = responses.of(name).percentile
    return None if q is not None and not supported(q, record.responses.operations) else record.responses.of(name)
