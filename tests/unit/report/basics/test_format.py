"""Numbers carry as many digits as they deserve."""

from __future__ import annotations

import pytest

from steelyard.model.estimate import Estimate
from steelyard.report.basics import format as shown


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (1234.5678, 12.0, "1,235"),
        (12.3456, 0.31, "12.35"),
        (0.000123, None, "0.0001230"),
        (1234.5678, None, "1,235"),
        (-3.25, 0.5, "−3.25"),
        (5.0, None, "5"),
        (0.0, None, "0"),
        (None, None, "–"),
        (float("nan"), None, "–"),
    ],
)
def test_number(value: float | None, spread: float | None, text: str) -> None:
    assert shown.number(value, spread=spread) == text


def test_a_number_that_stands_alone_has_no_zeros_at_its_end() -> None:
    assert shown.number(7.2, trim=True) == "7.2"


def test_an_estimate_shows_its_interval_with_the_same_digits() -> None:
    estimate = Estimate(value=15.6123, low=14.88, high=16.34, n=4, unit="s", method="t")
    assert shown.with_interval(estimate) == "15.61 [14.88, 16.34]"


def test_an_estimate_without_interval_shows_none() -> None:
    assert shown.with_interval(Estimate(value=15.6123, n=3, unit="s", method="median")) == "15.61"


def test_large_milliseconds_become_seconds() -> None:
    scale = shown.scale_for("ms", 63_000.0)
    estimate = scale.estimate(Estimate(value=63_000.0, low=62_000.0, high=64_000.0, n=9, unit="ms", method="t"))
    assert (estimate.value, estimate.low, estimate.high, estimate.unit) == (63.0, 62.0, 64.0, "s")
    assert shown.scale_for("ms", 900.0).unit == "ms"


def test_p_values_are_never_zero() -> None:
    assert shown.p_value(0.0) == "< 0.0001"
    assert shown.p_value(0.034) == "0.034"
