"""Texts of changes: per cent from half to double, a ratio beyond, and no end that says nothing."""

from __future__ import annotations

import pytest

from steelyard.analysis.wording import capital, change_text, quantities
from steelyard.model.estimate import Estimate

TIME, RATE, P99 = "execution_time_ms", "throughput_per_s", "response_ms_p99"


def ratio(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=6, unit="", method="made")


@pytest.mark.parametrize(
    ("change", "response", "text"),
    [
        (ratio(1.18, 1.03, 1.35), TIME, "+18% [3, 35]"),
        (ratio(0.59, 0.48, 0.72), RATE, "−41% [−52, −28]"),
        (ratio(3.1, 2.2, 4.4), TIME, "3.1 times as long [2.2, 4.4]"),
        (ratio(11.5, 9.8, 13.4), P99, "12 times as high [9.8, 13]"),
        (ratio(0.257, 0.25, 0.264), TIME, "0.257 times as long [0.250, 0.264]"),
        (ratio(1.0234, 1.0201, 1.0268), TIME, "+2.34% [2.01, 2.68]"),
        (ratio(1.44), TIME, "+44%"),
        (ratio(2.505), TIME, "2.5 times as long"),
        (ratio(1.0), TIME, "0%"),
        (ratio(0.35, 0.0001, 2693.0), TIME, "0.35 times as long [wider than a hundredfold]"),
        (ratio(6536.0, 5010.0, 8525.0), P99, "more than a thousand times as high [more than a thousandfold]"),
        (ratio(1400.0, 700.0, 2800.0), P99, "more than a thousand times as high [700, more than a thousandfold]"),
        (ratio(600.0, 300.0, 1200.0), P99, "600 times as high [300, more than a thousandfold]"),
        (ratio(0.0), P99, "0 times as high"),
        (ratio(0.0002, 0.0001, 0.0004), TIME, "less than a thousandth as long [less than a thousandth]"),
        (ratio(0.9, 0.2, 14.0), TIME, "−10% [−80, more than tenfold]"),
        (ratio(0.6, 0.04, 0.9), TIME, "−40% [less than a tenth, −10]"),
        (ratio(0.5, 0.4, 0.6), TIME, "−50% [−60, −40]"),
        (ratio(2.0, 1.9, 2.1), TIME, "+100% [90, 110]"),
    ],
)
def test_a_change_is_in_per_cent_from_half_to_double(change: Estimate, response: str, text: str) -> None:
    assert change_text(change, response) == text


@pytest.mark.parametrize("exponent", range(-9, 10))
def test_no_change_is_written_with_an_exponent(exponent: int) -> None:
    value = 10.0**exponent
    for wide in (1.001, 1.5, 30.0):
        text = change_text(ratio(value, value / wide, value * wide), TIME)
        assert "e+" not in text
        assert "e-" not in text


def test_quantities_share_a_unit() -> None:
    assert quantities([318.0, 902.0], "ms") == ["318 ms", "902 ms"]
    assert quantities([1180.0, 36_000.0], "ms") == ["1.18 s", "36.0 s"]
    assert quantities([257.0, 12_000.0], "ms") == ["0.257 s", "12.0 s"]
    assert quantities([4753.0, 2799.0], "operations/s") == ["4,753 operations/s", "2,799 operations/s"]
    assert quantities([], "ms") == []
    assert quantities([0.8766, 12.0], "s", 1.0) == ["0.9 s", "12.0 s"], "of whole seconds"


@pytest.mark.parametrize(
    ("name", "text"), [("cluster size", "Cluster size"), ("vmGB", "VmGB"), ("load.rate_per_s", "load.rate_per_s")]
)
def test_a_capital_lowers_nothing_and_leaves_settings_as_they_are(name: str, text: str) -> None:
    assert capital(name) == text
