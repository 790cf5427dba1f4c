"""Bands of mean curves: the quantile over signs by hand, and what their kind depends on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.inference.curve_bands import MOST_SIGNS, band, largest_t


def drawn(n: int, seconds: int = 40) -> np.ndarray:
    return np.random.default_rng(n).normal(0.0, 0.1, (n, seconds)) + np.sin(np.arange(seconds) / 5)


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def test_the_factor_is_the_quantile_of_the_largest_t_over_all_signs() -> None:
    curves = drawn(6)
    deviations = curves - curves.mean(axis=0)
    largest = sorted(
        max(abs(stats.ttest_1samp(np.array(signs)[:, None] * deviations, 0.0).statistic))
        for signs in itertools.product((1, -1), repeat=6)
        if signs[0] == 1
    )
    assert largest_t(deviations, 0.95, generator()) == pytest.approx(largest[30], rel=1e-6), "the 31st of 32"
    made = band(curves, 0.95, generator())
    assert made.kind == "simultaneous"
    assert made.half == pytest.approx(largest[30] * stats.sem(curves, axis=0))
    assert made.centre == pytest.approx(curves.mean(axis=0))


@pytest.mark.parametrize(
    ("n", "confidence", "kind"),
    [
        (1, 0.95, "none"), (4, 0.95, "none"), (5, 0.95, "pointwise"), (6, 0.95, "simultaneous"),
        (6, 0.975, "pointwise"), (7, 0.975, "simultaneous"), (5, 0.9, "simultaneous"), (4, 0.5, "none"),
    ],
)  # fmt: skip
def test_a_band_is_simultaneous_where_enough_signs_exist(n: int, confidence: float, kind: str) -> None:
    made = band(drawn(n), confidence, generator())
    assert made.kind == kind
    assert np.isfinite(made.half).all() == (kind != "none")


def test_five_curves_have_the_t_interval_of_each_second() -> None:
    curves = drawn(5)
    assert band(curves, 0.95, generator()).half == pytest.approx(stats.t.ppf(0.975, 4) * stats.sem(curves, axis=0))


def test_seconds_in_which_nothing_varies_have_no_band_and_leave_the_others_theirs() -> None:
    curves = drawn(6)
    whole = band(curves, 0.95, generator())
    fixed = np.column_stack([np.full(6, 0.1 + 0.2), curves])
    made = band(fixed, 0.95, generator())
    assert math.isnan(made.half[0])
    assert made.half[1:] == pytest.approx(whole.half)
    assert np.isnan(band(fixed[:, :1], 0.95, generator()).half).all()
    with pytest.raises(ValueError, match="no curves"):
        band(fixed[:0], 0.95, generator())


def test_many_curves_have_a_draw_of_signs_that_a_seed_gives() -> None:
    curves = drawn(14, 300)
    first, again = (band(curves, 0.95, generator()).half for _ in range(2))
    assert (first == again).all()
    assert MOST_SIGNS < 2**13
    assert first == pytest.approx(band(curves, 0.95, np.random.default_rng(2)).half, rel=0.1)
