from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.laws import fit_law, law_points, laws

from .made import drawn, frame

SIZES = (1, 2, 3, 4, 6, 8)
SIGMA, KAPPA = 0.08, 0.01


def factor(n: float, sigma: float = SIGMA, kappa: float = KAPPA) -> float:
    return 1 + sigma * (n - 1) + kappa * n * (n - 1)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("load", ["single", "saturated"])
def test_a_law_without_noise_is_found_exactly(load):
    value = {"single": lambda n: 2.5 * factor(n), "saturated": lambda n: 900 * n / factor(n)}[load]
    fit = fit_law([(n, value(n)) for n in SIZES], "usl", load, rng=rng())
    found = {name: one.value for name, one in fit.parameters.items()}
    assert found == pytest.approx({"base": 2.5 if load == "single" else 900, "sigma": SIGMA, "kappa": KAPPA}, rel=1e-6)
    assert fit.peak_nodes is not None
    assert fit.peak_nodes.value == pytest.approx(np.sqrt((1 - SIGMA) / KAPPA), rel=1e-5)
    assert fit.curve[0].value == pytest.approx(value(1), rel=1e-6)
    assert fit.curve[-1].value == pytest.approx(value(8), rel=1e-6)


def test_it_agrees_with_linear_least_squares_where_errors_are_small():
    """s(n) = a + b (n - 1) + c n (n - 1) with relative weights; sigma = b / a, kappa = c / a."""
    noise = rng(4).normal(0, 1e-4, len(SIZES))
    points = [(float(n), 3.0 * factor(n) * (1 + e)) for n, e in zip(SIZES, noise, strict=True)]
    fit = fit_law(points, "usl", "single", rng=rng())
    n, y = np.array(points).T
    a, b, c = np.linalg.lstsq(
        np.column_stack([np.ones_like(n), n - 1, n * (n - 1)]) / y[:, None], np.ones_like(n), rcond=None
    )[0]
    assert fit.parameters["sigma"].value == pytest.approx(b / a, rel=1e-4)
    assert fit.parameters["kappa"].value == pytest.approx(c / a, rel=1e-4)


@pytest.mark.parametrize("load", ["single", "saturated"])
def test_the_planted_law_lies_within_its_own_intervals_as_often_as_promised(load):
    """Five sizes, two starts each, 3% between starts: 250 studies; 95% less two standard errors is 92%."""
    random, covered, peaks = rng(12), [], []
    for _ in range(250):
        points = []
        for n in (1, 2, 3, 4, 6):
            for error in random.normal(0, 0.03, 2):
                value = 2.5 * factor(n) if load == "single" else 900 * n / factor(n)
                points.append((float(n), value * float(np.exp(error))))
        fit = fit_law(points, "usl", load, rng=random)
        truth = {"base": 2.5 if load == "single" else 900.0, "sigma": SIGMA, "kappa": KAPPA}
        covered.append([one.low <= truth[name] <= one.high for name, one in fit.parameters.items()])
        if fit.peak_nodes is not None:
            low, high = fit.peak_nodes.low, fit.peak_nodes.high
            peaks.append((low is None or low <= 9.59) and (high is None or high >= 9.59))
    assert min(np.mean(covered, axis=0)) >= 0.92
    assert np.mean(peaks) >= 0.9


def test_the_planted_law_is_recovered_from_trials():
    records = drawn(
        rng(2), {n: 4000.0 * factor(n) for n in (1, 2, 3, 4, 6)}, starts=3, trials=4, start_cv=0.01, trial_cv=0.02
    )
    fits = {one.law: one for one in laws(frame(records), "nodes", "single", rng())}
    usl = fits["usl"]
    assert (usl.n, usl.sizes, usl.unit) == (15, 5, "ms/operation")
    for name, truth in {"base": 4.0, "sigma": SIGMA, "kappa": KAPPA}.items():
        assert usl.parameters[name].low <= truth <= usl.parameters[name].high
    assert usl.aicc < fits["amdahl"].aicc < fits["linear"].aicc


def test_amdahl_and_linear_are_their_special_cases():
    points = [(float(n), 100 * n / (1 + 0.1 * (n - 1))) for n in SIZES]
    assert fit_law(points, "amdahl", "saturated", rng=rng()).parameters["sigma"].value == pytest.approx(0.1)
    straight = fit_law([(float(n), 100.0 * n) for n in SIZES], "linear", "saturated", rng=rng())
    assert straight.parameters["base"].value == pytest.approx(100)


def test_fewer_than_five_sizes_are_refused_in_words():
    fit = fit_law([(n, 100.0 * n) for n in (1, 1, 2, 2, 3, 3, 6, 6)], "usl", "saturated", rng=rng())
    assert fit.refusal == "A scalability law needs at least 5 sizes; there are 4."
    assert fit.parameters == {}


def test_more_than_linear_is_allowed_and_has_no_peak():
    """sigma below 0 (more memory for caches, say) is a finding, not an error."""
    fit = fit_law([(float(n), 100 * n / factor(n, -0.03, 0.0)) for n in SIZES], "usl", "saturated", rng=rng())
    assert fit.parameters["sigma"].value == pytest.approx(-0.03, abs=1e-6)


def test_the_same_seed_gives_the_same_interval_of_the_peak():
    noise = rng(6).normal(0, 0.01, len(SIZES))
    points = [(float(n), 100 * n / factor(n) * (1 + float(e))) for n, e in zip(SIZES, noise, strict=True)]
    assert fit_law(points, "usl", "saturated", rng=rng(3)) == fit_law(points, "usl", "saturated", rng=rng(3))


def test_points_are_start_means_per_operation():
    records = drawn(rng(2), {1: 4000.0, 2: 5000.0}, starts=2, trials=3, start_cv=0, trial_cv=0)
    single = law_points(frame(records), "single", "nodes", {"workload": "A"})
    assert sum(sorted(single), ()) == pytest.approx((1, 4.0, 1, 4.0, 2, 5.0, 2, 5.0))
    saturated = law_points(frame(records), "saturated", "nodes", {"workload": "A"})
    assert sum(sorted(saturated), ()) == pytest.approx((1, 250.0, 1, 250.0, 2, 200.0, 2, 200.0))
