"""Interval arithmetic: each result contains all values that its operands allow, so that rounding is not a finding.

Ends are floats without outward rounding; comparisons therefore allow a relative slack of 1e-9, far below any printed
digit. Source of the rules: Moore, Kearfott and Cloud, *Introduction to Interval Analysis*, 2009, chapter 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

SLACK = 1e-9
"""Relative tolerance; float arithmetic loses about 1e-15 per step."""


class Interval(NamedTuple):
    """All values from `low` to `high`, both included; either may be infinite."""

    low: float
    high: float

    def plus(self, other: Interval) -> Interval:
        """All sums."""
        return Interval(self.low + other.low, self.high + other.high)

    def minus(self, other: Interval) -> Interval:
        """All differences."""
        return Interval(self.low - other.high, self.high - other.low)

    def times(self, factor: float) -> Interval:
        """All products with a number."""
        return Interval(*sorted((self.low * factor, self.high * factor)))

    def by(self, other: Interval) -> Interval:
        """All products."""
        ends = [a * b for a in self for b in other]
        return Interval(min(ends), max(ends))

    def over(self, other: Interval) -> Interval:
        """All quotients; unbounded if the divisor may be 0."""
        if other.low <= 0 <= other.high:
            return EVERYTHING
        ends = [a / b for a in self for b in other]
        return Interval(min(ends), max(ends))

    def squared(self) -> Interval:
        """All squares."""
        ends = (self.low * self.low, self.high * self.high)
        return Interval(0.0 if self.low <= 0 <= self.high else min(ends), max(ends))

    def root(self) -> Interval:
        """All square roots; values below 0 count as 0."""
        return Interval(math.sqrt(max(self.low, 0.0)), math.sqrt(max(self.high, 0.0)))

    def size(self) -> Interval:
        """All absolute values."""
        ends = (abs(self.low), abs(self.high))
        return Interval(0.0 if self.low <= 0 <= self.high else min(ends), max(ends))

    def within(self, other: Interval) -> Interval:
        """The part that lies in both; `empty` if there is none."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    @property
    def empty(self) -> bool:
        """Whether no value is left, slack included."""
        return self.low > self.high + SLACK * max(abs(self.low), abs(self.high))

    def meets(self, other: Interval) -> bool:
        """Whether a value lies in both, slack included."""
        return not self.within(other).empty

    def gap(self, other: Interval) -> float:
        """Distance from this interval up to (positive) or down to (negative) the other; 0 if they meet."""
        if self.meets(other):
            return 0.0
        return other.low - self.high if other.low > self.high else other.high - self.low

    @property
    def finite(self) -> bool:
        """Whether both ends are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)


EVERYTHING = Interval(-math.inf, math.inf)


def exactly(value: float) -> Interval:
    """The interval of one value."""
    return Interval(value, value)


def hull(intervals: Iterable[Interval]) -> Interval:
    """From the smallest low to the largest high. Raises ValueError for none."""
    every = list(intervals)
    return Interval(min(one.low for one in every), max(one.high for one in every))


def total(terms: Iterable[tuple[float, Interval]]) -> Interval:
    """All values of the sum of weight x interval; exact, because each interval occurs once."""
    low = high = 0.0
    for weight, interval in terms:
        part = interval.times(weight)
        low, high = low + part.low, high + part.high
    return Interval(low, high)
