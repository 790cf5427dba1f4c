"""The test of a trend against generalised least squares of statsmodels, and what it promises of its power."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

from steelyard.analysis.inference import warming

R = 0.3


def series(rng: np.random.Generator, trials: int = 9, starts: int = 1, change: float = 0.0) -> warming.Series:
    """Starts of trials with 5% noise and correlation `R`, level but for a ramp over their first third."""
    parts = []
    for _ in range(starts):
        at = np.arange(float(trials))
        noise = np.linalg.cholesky(R ** np.abs(at[:, None] - at[None, :])) @ rng.standard_normal(trials)
        logs = 5 + rng.normal(0, 0.1) + 0.05 * noise - change * np.clip(1 - at / (trials / 3), 0, None)
        none = np.zeros(trials, dtype=int)
        parts.append(warming.Series(logs, at, none, none, at, warming.settling_places(trials), True))
    return warming.pooled(parts)


def test_p_slope_and_interval_are_those_of_generalised_least_squares():
    rng = np.random.default_rng(1)
    tested = series(rng, starts=3)
    fit = warming.fit(tested, R)
    assert fit is not None
    together = tested.block[:, None] == tested.block[None, :]
    sigma = np.where(together, R ** np.abs(tested.place[:, None] - tested.place[None, :]), 0.0)
    levels = (tested.level[:, None] == np.unique(tested.level)[None, :]).astype(float)
    by_curve = sm.GLS(tested.logs, np.column_stack([levels, fit.curve.of(tested.at)]), sigma).fit()
    assert fit.p == pytest.approx(min(1.0, fit.curves * by_curve.pvalues[-1]))
    assert fit.change == pytest.approx(-by_curve.params[-1])
    line = sm.GLS(tested.logs, np.column_stack([levels, tested.at]), sigma).fit()
    change = fit.change_percent(False, 0.95)
    low, high = line.conf_int()[-1]
    assert (change.value, change.low, change.high) == pytest.approx(
        tuple(100 * math.expm1(one) for one in (line.params[-1], low, high))
    )


def test_the_least_factor_is_found_with_the_chance_that_it_says():
    """It is found more often by the curve that fits best, and never much less often."""
    rng = np.random.default_rng(2)
    fit = warming.fit(series(rng), R)
    assert fit is not None
    factor = math.exp(math.log(fit.least_factor(6)) * 0.05 / fit.noise)  # with the true noise
    detected = []
    for _ in range(150):
        tested = warming.fit(series(rng, change=math.log(factor)), R)
        assert tested is not None
        detected.append(tested.p < warming.ALPHA / 6)
    assert 0.65 <= np.mean(detected) <= 0.95


def test_curves_settle_at_most_halfway():
    assert warming.settling_places(5) == (1.0, 2.0)
    assert warming.settling_places(9) == (1.0, 2.0, 3.0)
    assert warming.settling_places(30) == (1.0, 2.0, 3.0, 5.0, 8.0, 13.0)


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_too_few_trials_are_not_tested(trials):
    assert warming.fit(series(np.random.default_rng(3), trials), R) is None


def test_values_that_do_not_vary_are_not_tested():
    tested = series(np.random.default_rng(4))
    assert warming.fit(warming.pooled([tested]), R) is not None
    level = warming.Series(
        np.zeros(9), tested.at, tested.level, tested.block, tested.place, tested.settles, tested.steps
    )
    assert warming.fit(level, R) is None
    assert warming.correlation(level) == warming.CORRELATION
