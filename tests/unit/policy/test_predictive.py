"""Policy `predictive`: its forecasts, and what it makes of them."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.model.scaling import Desired, Supply
from steelyard.policy.base import Bounds
from steelyard.policy.predictive import Settings, forecast, holt_winters, without_gaps
from tests.unit.policy.series import history, points, policy_named, sizes

SEASON = 12
WINTERS = {"model": "holt-winters", "seasonal_periods": SEASON, "target": 60, "horizon_s": 60, "period_s": 10}


def seasons(count: int, slope: float = 0.0) -> list[float]:
    """A sine about 50 with an amplitude of 20, and perhaps a trend."""
    return [50 + 20 * math.sin(2 * math.pi * place / SEASON) + slope * place for place in range(count)]


def test_a_constant_stays() -> None:
    linear, seasonal = Settings(target=60, horizon_s=120, period_s=10), Settings(**WINTERS)
    assert forecast(points([42.0] * 40, 10.0), linear, 400.0) == pytest.approx(42.0)
    assert forecast(points([42.0] * 40, 10.0), seasonal, 400.0) == pytest.approx(42.0)


@pytest.mark.parametrize("horizon_s", [10.0, 95.0, 300.0])
def test_a_line_is_continued(horizon_s: float) -> None:
    """0.1 a second: the last value and 0.1 times the horizon."""
    values = [10 + 0.1 * 10 * (place + 1) for place in range(30)]
    settings = Settings(target=60, horizon_s=horizon_s, period_s=10)
    assert forecast(points(values, 10.0), settings, 300.0) == pytest.approx(40 + 0.1 * horizon_s)


def test_the_greatest_value_until_the_horizon_counts() -> None:
    falling = [100.0 - place for place in range(30)]
    settings = Settings(target=60, horizon_s=600, period_s=10)
    assert forecast(points(falling, 10.0), settings, 300.0) == pytest.approx(71.0)


def test_only_the_last_points_make_the_line() -> None:
    values = [90.0] * 50 + [10.0 + place for place in range(20)]
    settings = Settings(target=60, horizon_s=10, period_s=10, history_size=20)
    assert forecast(points(values, 10.0), settings, 700.0) == pytest.approx(30.0)


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=2, max_size=30), st.integers(1, 50))
def test_gaps_lie_on_the_line_between(values: list[float | None], period_s: int) -> None:
    real = [value for value in values if value is not None]
    settings = Settings(target=60, horizon_s=10, period_s=period_s)
    if len(real) < 2:
        assert forecast(points(values, period_s), settings, 1000.0) is None
        return
    filled = without_gaps(points(values, period_s))
    begin = next(place for place, value in enumerate(values) if value is not None)
    assert len(filled) == len(values) - begin
    assert all(value is None or filled[place - begin] == value for place, value in enumerate(values) if place >= begin)
    assert min(real) - 1e-9 <= min(filled) <= max(filled) <= max(real) + 1e-9
    assert without_gaps(points([4.0, None, None, 10.0, None], 1.0)) == [4.0, 6.0, 8.0, 10.0, 10.0]


@pytest.mark.parametrize("fit", [False, True])
@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_seasons_are_continued(fit: bool, slope: float) -> None:
    """After three seasons the error of the next one, scaled by that of the naive forecast (MASE), is below a half."""
    whole = seasons(4 * SEASON, slope)
    seen, ahead = whole[: 3 * SEASON], whole[3 * SEASON :]
    foreseen = holt_winters(seen, Settings(**WINTERS, fit=fit), SEASON)
    error = statistics.fmean(abs(one - other) for one, other in zip(foreseen, ahead, strict=True))
    naive = statistics.fmean(abs(after - before) for before, after in pairwise(seen))
    assert error / naive < 0.5


def test_seasons_are_seen_before_they_come() -> None:
    """At the foot of the wave its crest is within the horizon."""
    values = seasons(3 * SEASON + 1)
    policy = policy_named("predictive", **WINTERS)
    assert sizes(policy, values)[-1] == 4
    assert sizes(policy_named("predictive", **{**WINTERS, "horizon_s": 10}), [*values[:-1], 30.0])[-1] == 3


def test_too_little_is_no_forecast() -> None:
    settings = Settings(**WINTERS)
    assert settings.least_points == 24
    assert forecast(points(seasons(23), 10.0), settings, 230.0) is None
    assert forecast(points(seasons(24), 10.0), settings, 240.0) is not None
    policy = policy_named("predictive", **WINTERS, reactive=False)
    assert policy.desired(history(policy, [99.0] * 20), 200.0).nodes == 3


def test_the_larger_of_forecast_and_last_point() -> None:
    rising = [50.0 + place for place in range(20)]
    falling = rising[::-1]
    linear = {"target": 60, "horizon_s": 200, "period_s": 10}
    assert sizes(policy_named("predictive", **linear), rising)[-1] == math.ceil(3 * (69 + 20) / 60)
    spike = [50.0] * 19 + [110.0]
    assert sizes(policy_named("predictive", **{**linear, "horizon_s": 10}), spike)[-1] == math.ceil(3 * 110 / 60)
    assert sizes(policy_named("predictive", **{**linear, "horizon_s": 10}, reactive=False), spike)[-1] == 4
    assert sizes(policy_named("predictive", **linear, disable_scale_in=False), falling)[-1] == 3


def test_it_removes_nodes_only_if_allowed_and_all_are_warm() -> None:
    bounds, low = Bounds(6, 1, 20), {"target": 60, "horizon_s": 60, "period_s": 10}
    assert sizes(policy_named("predictive", bounds, **low), [20.0] * 5) == [6] * 5
    policy = policy_named("predictive", bounds, **low, disable_scale_in=False)
    assert sizes(policy, [20.0] * 5) == [2] * 5
    joining = history(policy, [20.0] * 5, (Supply(0.0, 5), Supply(45.0, 6)), (Desired(10.0, 6, ""),))
    assert policy.desired(joining, 50.0).nodes == 6


def test_it_counts_what_it_ordered() -> None:
    policy = policy_named("predictive", target=60, horizon_s=60, period_s=10)
    seen = history(policy, [90.0] * 5, (Supply(0.0, 3), Supply(30.0, 3, 2)), (Desired(30.0, 5, ""),))
    assert policy.desired(seen, 50.0).nodes == 5


def test_it_says_why() -> None:
    policy = policy_named("predictive", target=60, horizon_s=100, period_s=10)
    values = [10 + 0.5 * 10 * (place + 1) for place in range(10)]
    assert policy.desired(history(policy, values), 100.0) == Desired(
        100.0, 6, "cpu_percent_mean: linear forecast 110 within 100 s, target 60"
    )


MADE = """
import sys
{before}
from steelyard.policy import predictive
from steelyard.policy.base import Bounds
settings = predictive.Settings(target=60, horizon_s=60, model="holt-winters", seasonal_periods=4)
predictive.create(settings, Bounds(3, 1, 9))
print(sorted({{"statsmodels", "numpy", "scipy", "pandas"}} & set(sys.modules)))
"""


def fresh(before: str = "") -> subprocess.CompletedProcess[str]:
    """A process that makes the policy, and prints which large libraries it has loaded."""
    argv = [sys.executable, "-c", MADE.format(before=before)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_statsmodels_is_loaded_by_a_forecast_only() -> None:
    assert fresh().stdout.strip() == "[]"


def test_without_statsmodels_it_says_what_to_install() -> None:
    done = fresh("sys.modules['statsmodels'] = None")
    assert "StudyError: policy predictive with model holt-winters needs statsmodels" in done.stderr
    assert "steelyard[predict]" in done.stderr
