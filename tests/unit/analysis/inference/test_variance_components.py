"""Variance components against textbook formulas, statsmodels' mixed model, and planted truths."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.inference.variance_components import advice, as_cv, components
from steelyard.analysis.statistics.variance import variance_components
from tests.unit.analysis.made import cell, drawn, frame

TIME = "execution_time_ms"


def nested(rng: np.random.Generator, starts: int, trials: int, between: float, within: float):
    label = np.repeat(np.arange(starts), trials)
    return 100 + rng.normal(0, between, starts)[label] + rng.normal(0, within, len(label)), label


def test_equal_numbers_as_the_textbook_has_them():
    y, label = nested(np.random.default_rng(3), 6, 4, 3, 1)
    found = components(list(y), list(label), unit="ms")
    groups = y.reshape(6, 4)
    between, within = 4 * groups.mean(axis=1).var(ddof=1), groups.var(axis=1, ddof=1).mean()
    assert found.within_starts is not None
    assert found.between_starts is not None
    assert found.icc is not None
    assert found.within_starts.value == pytest.approx(math.sqrt(within))
    assert found.between_starts.value == pytest.approx(math.sqrt((between - within) / 4))
    low, high = (math.sqrt(18 * within / stats.chi2.ppf(p, 18)) for p in (0.975, 0.025))
    assert (found.within_starts.low, found.within_starts.high) == pytest.approx((low, high))
    f = between / within
    assert found.icc.value == pytest.approx((f - 1) / (f + 3))
    ratio = f / stats.f.ppf(0.975, 5, 18)
    assert found.icc.low == pytest.approx((ratio - 1) / (ratio + 3))
    assert (found.n, found.starts, found.blocks, found.between_blocks) == (24, 6, 1, None)


def test_restricted_maximum_likelihood_agrees_where_numbers_are_equal():
    """REML is the same as mean squares in a balanced design whose components are above 0."""
    pd = pytest.importorskip("pandas")
    import statsmodels.formula.api as smf

    y, label = nested(np.random.default_rng(8), 8, 5, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = smf.mixedlm("y ~ 1", pd.DataFrame({"y": y, "g": label}), groups=label).fit(reml=True)
    found = components(list(y), list(label))
    assert found.between_starts is not None
    assert found.within_starts is not None
    assert found.between_starts.value**2 == pytest.approx(float(oracle.cov_re.iloc[0, 0]), rel=1e-3)
    assert found.within_starts.value**2 == pytest.approx(float(oracle.scale), rel=1e-3)


def test_blocks_and_starts_are_told_apart_by_several_treatments_of_a_block():
    """Six blocks of four treatments, one start each, three trials a start: textbook mean squares."""
    rng = np.random.default_rng(5)
    b, t, _ = (one.ravel() for one in np.meshgrid(range(6), range(4), range(3), indexing="ij"))
    y = 10 * t + rng.normal(0, 3, 6)[b] + rng.normal(0, 2, 24)[4 * b + t] + rng.normal(0, 1, len(b))
    found = components(list(y), list(4 * b + t), blocks=list(b), treatments=list(t))
    cells = y.reshape(6, 4, 3).mean(axis=2)
    ms_block = 12 * cells.mean(axis=1).var(ddof=1)
    rest = cells - cells.mean(axis=1, keepdims=True) - cells.mean(axis=0) + cells.mean()
    ms_start = 3 * (rest**2).sum() / 15
    assert found.between_blocks is not None
    assert found.between_starts is not None
    assert found.between_blocks.value == pytest.approx(math.sqrt((ms_block - ms_start) / 12))
    assert found.within_starts is not None
    assert found.between_starts.value == pytest.approx(math.sqrt((ms_start - found.within_starts.value**2) / 3))


@pytest.mark.parametrize("between", [0.0, 1.0])
def test_intervals_hold_what_was_planted(between):
    rng, held = np.random.default_rng(11), []
    for _ in range(150):
        y, label = nested(rng, 5, 4, between, 1)
        found = components(list(y), list(label))
        assert found.between_starts is not None
        assert found.within_starts is not None
        held.append(
            [one.low <= truth <= one.high for one, truth in ((found.between_starts, between), (found.within_starts, 1))]
        )
    assert min(np.mean(held, axis=0)) >= 0.91


def test_advice_says_what_helps():
    rng = np.random.default_rng(2)
    far = components(*nested(rng, 6, 5, 5, 0.5))
    assert "more starts help, more trials hardly do" in advice(far, 5, 6)
    near = components(*nested(rng, 6, 2, 0.0, 1))
    assert "help" in advice(near, 2, 6) or "more starts are safe" in advice(near, 2, 6)
    assert advice(components([5.0] * 6, [1, 1, 2, 2, 3, 3]), 2, 3) == "nothing varies: more trials add nothing"
    assert advice(components([5.0, 6.0], [1, 2]), 1, 2) == ""


@pytest.mark.parametrize(("starts", "narrower"), [(3, "58%"), (4, "47%"), (5, "42%"), (10, "35%")])
def test_doubling_the_starts_narrows_the_error_and_its_quantile(starts, narrower):
    spread = components(*nested(np.random.default_rng(2), 6, 5, 5, 0.5))
    n = np.array([starts, 2 * starts])
    low, high = stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    assert f"{1 - high / low:.0%}" == narrower
    assert f"doubling the {starts} starts narrows the interval of a mean by {narrower}," in advice(spread, 5, starts)


def test_two_starts_have_no_interval_to_narrow():
    spread = components(*nested(np.random.default_rng(2), 6, 2, 1, 1))
    assert advice(spread, 2, 2).startswith("doubling the 2 starts gives a mean its interval, doubling the trials")


def test_a_store_gives_a_row_for_all_together_and_one_for_each_treatment():
    records = drawn(np.random.default_rng(4), {1: 4000.0, 3: 6000.0}, starts=6, trials=5, start_cv=0.04, trial_cv=0.01)
    together, one, three = variance_components(frame(records), [TIME])
    assert (together.together, one.together, one.treatment) == (True, False, {"nodes": 1, "workload": "A"})
    assert together.between_starts is not None
    assert together.between_starts.low < 0.04 < together.between_starts.high
    assert "coefficient of variation" in together.between_starts.method
    assert three.within_starts is not None
    assert "coefficient of variation" in three.within_starts.method
    assert "each block has one start" in three.note
    assert together.between_blocks is not None


@pytest.mark.parametrize(
    ("values", "note"),
    [([[5.0, 6.0, 7.0]], "one start"), ([[5.0], [6.0], [7.0]], "one trial per start"), ([[5.0, 5.0], [5.0, 5.0]], "")],
)
def test_what_cannot_be_estimated_is_said(values, note):
    (found,) = variance_components(frame(cell(values)), [TIME])
    assert found.note.startswith(note) if note else found.within_starts.value == 0
    assert found.n == sum(len(one) for one in values)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="0 values"):
        components([], [])
    with pytest.raises(ValueError, match="3 values with columns of 2"):
        components([1.0, 2.0, 3.0], [1, 2])


def test_a_small_standard_deviation_of_logarithms_is_the_coefficient_of_variation():
    found = as_cv(components(*nested(np.random.default_rng(1), 4, 3, 0.01, 0.02)).within_starts)
    assert found is not None
    assert found.value == pytest.approx(0.02, rel=0.5)
    assert as_cv(None) is None
