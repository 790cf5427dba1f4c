"""Axes of the pictures that are drawn by hand."""

from __future__ import annotations

import pytest

from steelyard.report.draw.plot import Axis


@pytest.mark.parametrize("high", [0.0003, 0.45, 1.0, 4.6, 9.9, 11.0, 19.0, 24.0, 49.9, 99.0, 460.0, 1e7])
@pytest.mark.parametrize("most", [2, 4, 8])
def test_an_axis_from_0_has_a_second_number(high: float, most: int) -> None:
    axis = Axis(0.0, high, 100.0, 0.0)
    ticks = axis.ticks(most)
    assert ticks[0] == 0
    assert 2 <= len(ticks) <= most + 3
    assert all(0 <= tick <= high * (1 + 1e-9) for tick in ticks)
