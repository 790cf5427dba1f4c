"""Printed digits: the interval of a text is every value that prints so, no more and no less."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.reference.printed import Printed, Rounding, parse

TWO = Rounding(kind="significant", digits=2)


@pytest.mark.parametrize(
    ("text", "rounding", "low", "high"),
    [
        ("6.2e+03", Rounding(), 6150, 6250),
        ("79", Rounding(), 78.5, 79.5),
        ("1e+04", Rounding(), 5000, 15000),
        ("2.70", Rounding(), 2.695, 2.705),
        ("-0.51", Rounding(), -0.515, -0.505),
        ("0", Rounding(), -0.5, 0.5),
        (".5", Rounding(), 0.45, 0.55),
        ("6.2e+03", TWO, 6150, 6250),
        ("1e+04", TWO, 9950, 10500),
        ("-1e+04", TWO, -10500, -9950),
        ("2e+06", TWO, 1.95e6, 2.05e6),
        ("0.06", TWO, 0.0595, 0.0605),
        ("1", TWO, 0.995, 1.05),
        ("1.3e-57", TWO, 1.25e-57, 1.35e-57),
        ("126", TWO, 125.5, 126.5),
        ("0", TWO, 0, 0),
        ("2.7", Rounding(kind="decimals", digits=2), 2.695, 2.705),
        ("58430", Rounding(kind="step", digits=10), 58425, 58435),
        ("21", Rounding(kind="exact"), 21, 21),
    ],
)
def test_intervals(text: str, rounding: Rounding, low: float, high: float) -> None:
    printed = parse(text, rounding)
    assert printed.text == text
    assert (printed.low, printed.high) == pytest.approx((low, high), rel=1e-12)


@settings(max_examples=500, deadline=None)
@given(st.floats(-1e9, 1e9).filter(lambda x: abs(x) > 1e-9), st.integers(1, 5))
def test_what_was_rounded_to_significant_digits_lies_inside(value: float, digits: int) -> None:
    interval = parse(f"{value:.{digits}g}", Rounding(kind="significant", digits=digits)).interval
    assert interval is not None
    slack = 1e-12 * abs(value)
    assert interval.low - slack <= value <= interval.high + slack
    inside = (
        interval.low + (interval.high - interval.low) * 0.001,
        interval.high - (interval.high - interval.low) * 0.001,
    )
    assert {f"{end:.{digits}g}" for end in inside} == {f"{value:.{digits}g}"}


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_what_was_rounded_to_decimals_lies_inside(value: float, decimals: int) -> None:
    interval = parse(f"{value:.{decimals}f}").interval
    assert interval is not None
    assert interval.low - 1e-9 <= value <= interval.high + 1e-9


@pytest.mark.parametrize("text", ["", " ", "nan", "inf", "NaN"])
def test_no_number(text: str) -> None:
    printed = parse(text)
    assert (printed.value, printed.interval, printed.whole) == (None, None, None)
    assert printed.counted() == printed


@pytest.mark.parametrize("text", ["1,234", "79%", "12 ms", "1e", "--1", "1e9999", "1" * 50, "0x10", "½"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a number|beyond"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "rounding", "whole"),
    [
        ("21", TWO, 21),
        ("63", TWO, 63),
        ("1.3e+02", TWO, None),
        ("100", TWO, None),
        ("21.0", Rounding(), 21),
        ("2.5", TWO, None),
    ],
)
def test_counts(text: str, rounding: Rounding, whole: int | None) -> None:
    printed = parse(text, rounding)
    assert printed.whole == whole
    exact = Printed(text=text, value=whole, low=whole, high=whole)
    assert printed.counted() == (printed if whole is None else exact)
