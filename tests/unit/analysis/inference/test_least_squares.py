"""Least squares to the certified digits of NIST's eleven linear regressions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

from steelyard.analysis.inference.least_squares import Coefficients, Dependent, least_squares

SETS = json.loads(
    (Path(__file__).resolve().parents[3] / "fixtures" / "nist" / "regression.json").read_text(encoding="ascii")
)
LONG = np.finfo(np.longdouble).eps < 1e-18
"""Whether numpy's longest float is longer than a double, as on x86; elsewhere some three digits fewer are reached."""

# Digits reached of coefficients and of standard errors, out of 15 certified, with a float of 64 bits of mantissa.
REACHED = {
    "norris": (13, 13), "pontius": (13, 13), "noint1": (14, 14), "noint2": (14, 14), "filip": (10, 10),
    "longley": (14, 14), "wampler1": (12, 12), "wampler2": (12, 14), "wampler3": (12, 14), "wampler4": (11, 14),
    "wampler5": (9, 14),
}  # fmt: skip


def digits(found: float, certified: str) -> float:
    """-log10 of the relative error (of the absolute error where 0 is certified): NIST's LRE."""
    truth = float(certified)
    off = abs(found - truth) / (abs(truth) or 1.0)
    return 15.0 if off == 0 else min(15.0, -math.log10(off))


def polynomial(x: list[float], y: list[float], degree: int, constant: bool = True) -> Coefficients:
    """y over the powers of x, which are taken in the longest float: those of Filip and Wampler need it."""
    base = np.asarray(x, dtype=np.longdouble)
    return least_squares([base**power for power in range(1, degree + 1)], y, constant)


@pytest.mark.parametrize("name", list(SETS))
def test_certified_digits(name):
    one = SETS[name]
    data, constant = one["data"], not one.get("origin", False)
    if "degree" in one:
        found = polynomial(data["x"], data["y"], one["degree"], constant)
    else:
        found = least_squares([data[key] for key in data if key != "y"], data["y"])
    less = 0 if LONG else 4
    values, errors = REACHED[name]
    assert min(digits(*pair) for pair in zip(found.values, one["b"], strict=True)) >= values - less
    # Errors of 0 are certified for data that lie on the curve: an absolute error, of coefficients of up to 1.
    assert min(digits(*pair) for pair in zip(found.std_errors, one["se"], strict=True)) >= errors - less
    assert digits(found.residual_sd, one["rsd"]) >= min(11, errors) - less
    assert found.r_squared is not None
    assert digits(found.r_squared, one["r2"]) >= 11 - less


def test_as_statsmodels_has_it():
    rng = np.random.default_rng(1)
    x, z = rng.normal(0, 1, 30), rng.normal(5, 2, 30)
    y = 3 + 2 * x - z + rng.normal(0, 1, 30)
    oracle = sm.OLS(y, sm.add_constant(np.column_stack([x, z]))).fit()
    found = least_squares([list(x), list(z)], list(y))
    assert found.values == pytest.approx(tuple(oracle.params))
    assert found.std_errors == pytest.approx(tuple(oracle.bse))
    assert (found.r_squared, found.degrees) == (pytest.approx(oracle.rsquared), 27)


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(Dependent, match="column 2"):
        least_squares([[1, 2, 3, 4], [2, 4, 6, 8]], [1, 2, 3, 5])
    with pytest.raises(Dependent, match="column 1"):
        least_squares([[7, 7, 7, 7]], [1, 2, 3, 5])
    with pytest.raises(ValueError, match="3 values are too few for 3 coefficients"):
        polynomial([1, 2, 3], [1, 2, 3], 2)


def test_a_constant_response_has_no_share_explained():
    found = least_squares([[1, 2, 3, 4]], [5, 5, 5, 5])
    assert found.values == pytest.approx((5, 0))
    assert (found.r_squared, found.std_errors[1]) == (None, 0.0)
