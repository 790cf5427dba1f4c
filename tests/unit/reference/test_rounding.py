"""Interval arithmetic: whatever the operands really are, the result is inside."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.reference.rounding import EVERYTHING, Interval, exactly, hull, total

ENDS = st.floats(-1e6, 1e6)


@st.composite
def with_value(draw: st.DrawFn) -> tuple[Interval, float]:
    low, high = sorted((draw(ENDS), draw(ENDS)))
    return Interval(low, high), low + (high - low) * draw(st.floats(0, 1))


def inside(value: float, interval: Interval) -> bool:
    slack = 1e-9 * max(1.0, abs(value))
    return interval.low - slack <= value <= interval.high + slack


@settings(max_examples=300, deadline=None)
@given(with_value(), with_value(), st.floats(-100, 100))
def test_results_are_inside(one: tuple[Interval, float], other: tuple[Interval, float], factor: float) -> None:
    (a, x), (b, y) = one, other
    assert inside(x + y, a.plus(b))
    assert inside(x - y, a.minus(b))
    assert inside(x * y, a.by(b))
    assert inside(x * factor, a.times(factor))
    assert inside(x * x, a.squared())
    assert inside(abs(x), a.size())
    assert inside(math.sqrt(abs(x)), a.size().root())
    if abs(y) > 1e-3:
        assert inside(x / y, a.over(b))
    assert inside(2 * x - 3 * y, total([(2, a), (-3, b)]))
    assert inside(x, hull((a, b)))


def test_ends() -> None:
    assert Interval(1, 2).over(Interval(-1, 1)) == EVERYTHING
    assert Interval(-2, 1).squared() == Interval(0, 4)
    assert Interval(-2, 1).size() == Interval(0, 2)
    assert Interval(1, 2).within(Interval(3, 4)).empty
    assert not Interval(1, 2).within(Interval(2, 4)).empty
    assert Interval(1, 2).meets(Interval(2 * (1 + 1e-12), 3)), "a float's dust is no contradiction"
    assert not Interval(1, 2).meets(Interval(2.001, 3))
    assert Interval(1, 2).gap(Interval(5, 6)) == 3
    assert Interval(5, 6).gap(Interval(1, 2)) == -3
    assert Interval(1, 3).gap(Interval(2, 6)) == 0
    assert exactly(3) == Interval(3, 3)
    assert not EVERYTHING.finite
