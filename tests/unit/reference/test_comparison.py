"""Own results beside published ones: agreement by overlap, differences with both roundings in them, and reasons."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steelyard.model.estimate import Estimate
from steelyard.reference import comparison
from steelyard.reference.comparison import lay
from steelyard.reference.printed import Rounding, parse

TWO = Rounding(kind="significant", digits=2)


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=21, unit="ms", method="made")


def test_agrees_where_intervals_meet() -> None:
    found = lay("t", {"size": "1"}, "mean", parse("4.6e+04", TWO), estimate(45_000, 44_000, 45_600))
    assert (found.verdict, found.published_low, found.published_high) == ("agrees", 45_500, 46_500)
    assert found.sentence().startswith("agrees")


def test_differs_by() -> None:
    found = lay("t", {}, "mean", parse("4.6e+04", TWO), estimate(23_000, 22_000, 24_000))
    assert found.verdict == "differs"
    assert found.change_percent == pytest.approx(-50)
    assert found.low == pytest.approx(100 * (22_000 / 46_500 - 1))
    assert found.high == pytest.approx(100 * (24_000 / 45_500 - 1))
    assert found.sentence() == "differs by −50.0% [−52.7, −47.3]%"
    without = lay("t", {}, "mean", parse("4.6e+04", TWO), estimate(23_000))
    assert (without.verdict, without.low, without.reasons) == ("differs", None, ("our value has no interval",))
    assert (
        lay("t", {}, "r", parse("-0.5", TWO), estimate(0.5)).sentence()
        == "differs by a quantity that has no ratio to 0"
    )


def test_not_comparable_says_why_and_still_shows_the_scale() -> None:
    reasons = ("platform network namespaces, published raspberry-pi-2", "n 1: too few trials of ours")
    found = lay("t", {}, "mean", parse("4.6e+04", TWO), estimate(46_000, 45_000, 47_000), reasons)
    assert found.verdict == "not comparable"
    assert "platform network namespaces" in found.sentence()
    assert found.sentence().endswith("(ours is +0% [−3.23, +3.30]%)")


@pytest.mark.parametrize(("text", "ours"), [("nan", estimate(3)), ("4", None)])
def test_no_number(text: str, ours: Estimate | None) -> None:
    assert lay("t", {}, "mean", parse(text), ours).verdict == "no number"


def test_the_published_forms() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(100, 5, 21).tolist(), rng.normal(150, 9, 21).tolist()
    ours = comparison.summary(one)
    assert ours["range"] == ours["max"] - ours["min"]
    assert ours["std"] == pytest.approx(np.std(one, ddof=1))
    ratios = comparison.speedup(one, other)
    assert ratios["ratio_max_to_min"] == max(one) / min(other)
    assert ratios["ratio_min_to_max"] == min(one) / max(other)
    assert ratios["ratio_of_the_medians"] == np.median(one) / np.median(other)
    fit = comparison.regression([0.0] * 21 + [1.0] * 21, [*one, *other])
    assert fit["intercept"] == pytest.approx(np.mean(one))
    assert fit["slope"] == pytest.approx(np.mean(other) - np.mean(one))
    assert fit["p_value"] == pytest.approx(stats.ttest_ind(one, other).pvalue)
    assert all(math.isnan(value) for value in comparison.regression([0.0] * 21, one).values())
    assert all(math.isnan(value) for value in comparison.speedup(one, []).values())
    assert comparison.summary([])["count"] == 0
