"""Contrasts in whole blocks, against statsmodels' least squares, and how often they err."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from steelyard.analysis.inference.gaps import FEWEST_FOR_PLACE, in_blocks

LEVELS, BLOCKS = 3, 6


def long(y: np.ndarray, places: np.ndarray) -> dict[str, np.ndarray]:
    levels, blocks = np.indices(y.shape)
    return {"y": y.ravel(), "level": levels.ravel(), "block": blocks.ravel(), "place": places.ravel()}


def places(rng: np.random.Generator) -> np.ndarray:
    """A Latin square of places, twice."""
    square = np.array([[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    return np.hstack([square, square[:, rng.permutation(LEVELS)]])


@pytest.mark.parametrize("weights", [(-1, 1, 0), (-0.5, -0.5, 1), (-1, 0.25, 0.75)])
def test_a_contrast_is_that_of_least_squares_with_blocks_and_place(weights: tuple[float, ...]) -> None:
    rng = np.random.default_rng(4)
    at = places(rng)
    y = rng.normal(0, 1, (1, BLOCKS)) + np.array([[0.0], [0.3], [1.0]]) + 0.4 * at + rng.normal(0, 0.2, at.shape)
    for formula, given in (
        ("y ~ C(level) - 1 + C(block, Sum)", None),
        ("y ~ C(level) - 1 + C(block, Sum) + place", at),
    ):
        fit = smf.ols(formula, long(y, at)).fit()
        row = np.zeros(len(fit.params))
        row[:LEVELS] = weights
        wanted = fit.t_test(row)
        gap = in_blocks(y.tolist(), weights, None if given is None else given.tolist())
        assert gap.place == (given is not None)
        assert gap.value == pytest.approx(float(wanted.effect[0]))
        assert gap.error() == pytest.approx((float(wanted.sd.item()), fit.df_resid))
        assert gap.p() == pytest.approx(float(wanted.pvalue))


def test_the_place_stays_in_the_error_where_taking_it_out_would_move_the_contrast() -> None:
    rng = np.random.default_rng(5)
    always_second = [[1] * BLOCKS, [2] * BLOCKS]
    once_more = [[1, 2, 1, 2, 1, 2, 1], [2, 1, 2, 1, 2, 1, 2]]
    turns = [[1, 2] * 3, [2, 1] * 3]
    for at, taken in ((always_second, False), (once_more, False), (turns, True), ([one[:4] for one in turns], False)):
        y = rng.normal(0, 1, np.shape(at))
        gap = in_blocks(y.tolist(), [-1, 1], at)
        assert gap.place == taken
        assert gap.value == pytest.approx(float(np.mean(y[1] - y[0])))
    assert FEWEST_FOR_PLACE == BLOCKS


def test_values_that_do_not_vary_have_no_error() -> None:
    assert in_blocks([[0.1, 0.7, 0.3], [0.3, 0.9, 0.5]], [-1, 1]).error() == (0.0, 2.0)


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize(("shock", "place"), [(0.0, 0.0), (0.05, 0.0), (0.05, 0.06)])
def test_false_alarms_and_power_do_not_depend_on_what_blocks_and_places_add(n: int, shock: float, place: float) -> None:
    """Starts differ by 2%, levels take turns: at most 5% false alarms; +5% is found as by pairs without any of it."""
    rng = np.random.default_rng(40 + n)
    at = np.array([1 + np.arange(n) % 2, 2 - np.arange(n) % 2])
    studies = rng.normal(0, shock, (2000, 1, n)) + rng.normal(0, 0.02, (2000, 2, n)) + place * (at - 1)
    effect = np.array([[0.0], [np.log(1.05)]])
    null, found = (np.mean([in_blocks(one, [-1, 1], at).p() < 0.05 for one in studies + add]) for add in (0, effect))
    assert null <= 0.06
    if not place or n == 10:
        shift, critical = np.log(1.05) / (0.02 * np.sqrt(2 / n)), stats.t.ppf(0.975, n - 1)
        assert found == pytest.approx(float(stats.nct.sf(critical, n - 1, shift)), abs=0.03)
    assert not (n == 10 and found < 0.99)
