from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from steelyard.analysis.inference.least_squares import line
from steelyard.analysis.statistics.regression import regress
from tests.unit.analysis.made import cell, frame

TIME = "execution_time_ms"

# NIST Statistical Reference Datasets, linear regression, Norris: y, x in the order of the data set.
NORRIS_X = [
    0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0,
    447.5, 11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3,
    229.2, 669.1, 448.9, 0.5,
]  # fmt: skip
NORRIS_Y = [
    0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9,
    10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9,
    668.4, 449.2, 0.2,
]  # fmt: skip


def test_certified_values_of_norris():
    fit = line(NORRIS_X, NORRIS_Y, "ms", 0.95, "trials")
    assert fit is not None
    assert fit.slope.value == pytest.approx(1.00211681802045, rel=1e-12)
    assert fit.intercept.value == pytest.approx(-0.262323073774029, rel=1e-9)
    assert fit.std_err == pytest.approx(0.429796848199937e-03, rel=1e-9)
    assert fit.intercept_std_err == pytest.approx(0.232818234301152, rel=1e-9)
    assert fit.r is not None
    assert fit.r**2 == pytest.approx(0.999993745883712, rel=1e-12)


def test_intervals_are_those_of_statsmodels():
    x, y = [1.0, 1, 3, 3, 6, 6], [5.1, 4.8, 6.2, 6.5, 9.0, 8.1]
    fit = line(x, y, "ms", 0.95, "start means")
    oracle = sm.OLS(y, sm.add_constant(x)).fit()
    assert fit is not None
    (intercept, slope) = oracle.conf_int(0.05)
    assert (fit.slope.low, fit.slope.high) == pytest.approx(tuple(slope))
    assert (fit.intercept.low, fit.intercept.high) == pytest.approx(tuple(intercept))
    assert fit.p == pytest.approx(oracle.pvalues[1])


def spread(mean: float, sd: float, n: int = 21) -> list[float]:
    """n values with exactly this mean and standard deviation."""
    z = np.linspace(-1, 1, n)
    return list(mean + sd * z / z.std(ddof=1))


def test_the_published_form_is_richardson2017s():
    """Table 16 (workload A over cluster size, Ethernet) from the means and deviations of table 15.

    Both are printed to two digits, so the numbers agree to what that rounding allows: within 3% (p: a factor of two).
    """
    table15 = {
        1: (46e3, 1.1e3),
        2: (130e3, 3.5e3),
        3: (97e3, 1.6e3),
        4: (94e3, 920),
        5: (96e3, 1.5e3),
        6: (110e3, 1.8e3),
    }
    records = [one for nodes, (mean, sd) in table15.items() for one in cell([spread(mean, sd)], nodes=nodes)]
    found = regress(frame(records), TIME, "nodes", {"workload": "A"})
    assert found.published is not None
    assert found.published.n == 126
    assert found.published.slope.value == pytest.approx(6.0e3, rel=0.08)
    assert found.published.intercept.value == pytest.approx(7.3e4, rel=0.05)
    assert found.published.r == pytest.approx(0.42, abs=0.02)
    assert found.published.std_err == pytest.approx(1.2e3, rel=0.05)
    assert found.published.p == pytest.approx(1.1e-6, rel=0.7)
    assert found.honest is None
    assert "no error term" in found.note


def test_start_means_carry_the_honest_form():
    """Three starts a level that differ by far more than the trials within them."""
    rng = np.random.default_rng(3)
    records = []
    for nodes in (1, 3):
        effects = rng.normal(0, 5, 3)
        records += cell(
            [[100 + effect + float(noise) for noise in rng.normal(0, 0.1, 20)] for effect in effects], nodes=nodes
        )
    found = regress(frame(records), TIME, "nodes", {"workload": "A"})
    assert found.published is not None
    assert found.honest is not None
    assert (found.published.n, found.honest.n) == (120, 6)
    assert found.honest.slope.value == pytest.approx(found.published.slope.value)  # balanced: same line
    assert found.honest.std_err > 3 * found.published.std_err
    assert "4 degrees" in found.honest.slope.method


def test_one_level_is_no_line():
    found = regress(frame(cell([[5.0, 6.0], [5.5, 6.5]])), TIME, "nodes", {"workload": "A"})
    assert found.published is None
    assert "no line" in found.note


def test_a_constant_response_has_no_correlation():
    fit = line([1, 2, 3], [5, 5, 5], "ms", 0.95, "trials")
    assert fit is not None
    assert (fit.slope.value, fit.r, fit.p) == (0, None, None)
