"""Limit of an objective: a response, a comparison and a number, as in `response_ms_p99 <= 10`."""

from __future__ import annotations

import re
from typing import Literal

from steelyard.model.value import Value

Comparison = Literal["<=", "<", ">=", ">"]
WRITTEN = re.compile(r"\s*(?P<response>[a-z][a-z0-9_]*)\s*(?P<comparison><=|>=|<|>)\s*(?P<value>\S+)\s*")
HOW = "NAME <= NUMBER, for example response_ms_p99 <= 10 (also <, >=, >), without a unit, one limit per text"


class Limit(Value):
    """One limit of an objective."""

    response: str
    """Name of the response that is limited."""
    comparison: Comparison
    value: float
    """In the response's unit."""

    @property
    def text(self) -> str:
        """The limit as it is written in a study."""
        return f"{self.response} {self.comparison} {self.value:g}"

    def is_met(self, measured: float | None) -> bool:
        """Whether a measured value meets the limit; a value that is missing does not."""
        if measured is None:
            return False
        match self.comparison:
            case "<=":
                return measured <= self.value
            case "<":
                return measured < self.value
            case ">=":
                return measured >= self.value
        return measured > self.value

    def used(self, measured: float | None, most: float) -> float:
        """The share of the limit that a value takes: 1 at the limit, above it where the limit is not met; at most
        `most`, which also represents a missing value."""
        if measured is None:
            return most
        if self.value == 0:
            return 0.0 if self.is_met(measured) else most
        share = measured / self.value if self.comparison in ("<=", "<") else self.value / measured if measured else most
        return max(0.0, min(most, share))


def parse(text: str) -> Limit:
    """The limit that a text states. Raises ValueError with the form that is allowed."""
    parts = WRITTEN.fullmatch(text)
    try:
        value = float(parts["value"]) if parts else None
    except ValueError:
        value = None
    if parts is None or value is None or not 0 <= value < float("inf"):
        raise ValueError(f"{text!r} is not a limit: {HOW}")
    return Limit(response=parts["response"], comparison=parts["comparison"], value=value)
