from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.statistics.shape import modes, shapes, two_modes
from tests.unit.analysis.made import cell, frame

TIME = "execution_time_ms"


def test_an_outlier_is_named_and_stays():
    values = [10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 10.1, 9.9, 10.05, 9.95, 30.0]
    made = frame(cell([values]))
    (found,) = shapes(made, TIME, np.random.default_rng(1))
    assert (found.n, found.outliers) == (11, 1)
    assert found.outlying == "A-1-s1-t11 (30)"
    assert "1 beyond the fences" in found.verdict
    assert made.values(TIME).height == 11
    assert found.normality_p == pytest.approx(stats.shapiro(values).pvalue)


def test_two_heaps_are_two_modes():
    rng = np.random.default_rng(1)
    values = [*rng.normal(10, 0.3, 20), *rng.normal(14, 0.3, 20)]
    assert list(modes(np.asarray([values]), 0.5)) == [2]
    (found,) = shapes(frame(cell([values[:20], values[20:]])), TIME, rng)
    assert found.unimodality_p is not None
    assert found.unimodality_p < 0.01
    assert "more than one mode" in found.verdict


def test_one_heap_is_seldom_called_two():
    rng = np.random.default_rng(2)
    said = sum(float(two_modes(list(rng.normal(10, 1, 30)), rng) or 0.0) < 0.01 for _ in range(60))
    assert said <= 3


def test_too_few_or_equal_values_say_nothing_of_modes():
    rng = np.random.default_rng(2)
    assert two_modes([1.0, 2, 3], rng) is None
    assert two_modes([5.0] * 20, rng) is None
    (found,) = shapes(frame(cell([[5.0] * 12])), TIME, rng)
    assert (found.outliers, found.skewness, found.normality_p) == (0, None, None)
