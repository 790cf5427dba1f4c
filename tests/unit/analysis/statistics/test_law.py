from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.inference.law_fit import Interval, bootstrap, columns, solve
from steelyard.analysis.statistics.law import LAWS, fit_law, law_points, laws, weighed
from steelyard.analysis.statistics.law import drawn as shown
from steelyard.analysis.statistics.law_choice import choices
from steelyard.model.trial import Responses
from tests.unit.analysis.made import cell, drawn, frame

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


def test_the_planted_law_lies_within_its_own_intervals_as_often_as_promised():
    """Five sizes, two starts each, 3% between starts: 60 studies; 95% less two standard errors is 89%."""
    random, covered, peaks = rng(12), [], []
    n = np.repeat((1.0, 2.0, 3.0, 4.0, 6.0), 2)
    design, truth, at = columns("usl", n), (np.log(2.5), SIGMA, KAPPA), (1 - SIGMA) / KAPPA
    for _ in range(60):
        demands = 2.5 * np.array([factor(one) for one in n]) * np.exp(random.normal(0, 0.03, len(n)))
        found = solve("usl", n, demands)
        interval = Interval(found, bootstrap(design, found, random), 0.95)
        ends = [interval.of_parameter(place)[1:] for place in range(3)]
        covered.append([low <= one <= high for one, (low, high) in zip(truth, ends, strict=True)])
        _, low, high = interval.of(
            lambda theta: 1 - theta[..., 1] - at * theta[..., 2], lambda theta: np.array([0, -1, -at])
        )
        peaks.append(low <= 0 <= high)
    assert min(np.mean(covered, axis=0)) >= 0.89
    assert np.mean(peaks) >= 0.89


@pytest.mark.parametrize("load", ["single", "saturated"])
def test_an_interval_has_its_ends_in_order_and_holds_its_value(load):
    value = {"single": lambda n: 2.5 * factor(n), "saturated": lambda n: 900 * n / factor(n)}[load]
    noise = rng(2).normal(0, 0.03, 2 * len(SIZES))
    points = [(float(n), value(n) * float(np.exp(e))) for n, e in zip(2 * SIZES, noise, strict=True)]
    fit = fit_law(points, "usl", load, rng=rng())
    for one in (*fit.parameters.values(), fit.peak_nodes, fit.residual_sd):
        assert one.low < one.value < (one.high or np.inf)
    assert all(one.low <= one.value <= one.high for one in fit.curve)


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


def test_more_than_linear_refuses_laws_and_is_said():
    """A contention told to be below 0 (more memory for caches, say) is no share of work: a finding, but no law."""
    fits, found = chosen(scattered(SIZES, 3, -0.03, 0.0, 0.01))
    assert {fit.law for fit in fits if not fit.refusal} == {"linear"}
    assert "lies below 0, and no share of work does" in fits[0].refusal
    assert fits[0].peak_nodes is None
    assert found.law is None
    assert found.contention is None
    assert "throughput is better than linear: contention would be −0.03" in found.sentence


def plateau(per, noise, seed, top=4200.0):
    random = rng(seed)
    return [
        (float(n), min(1000.0 * n, top) * float(np.exp(random.normal(0, noise))))
        for n in range(1, 9)
        for _ in range(per)
    ]


@pytest.mark.parametrize(("per", "noise"), [(1, 0.02), (2, 0.05)])
def test_a_plateau_is_read_as_a_broken_line_and_not_as_a_peak(per, noise):
    """250 of 250 and 246 of 250 in docs/reference/numbers/size.md; the universal law was preferred in 248 and 250."""
    sentences = [chosen(plateau(per, noise, seed))[1].sentence for seed in range(12)]
    assert sum("prefer a broken line" in one and "would peak" not in one for one in sentences) >= 11


def test_a_broken_line_has_its_two_parts_and_its_knee_with_intervals():
    """Without noise exactly; with noise a and c are the geometric means of their parts."""
    exact, found = chosen(plateau(1, 0.0, 1))
    line = exact[-1]
    assert [one.value for one in line.parameters.values()] == pytest.approx([1000, 4.2, 4200], rel=1e-9)
    assert "the points lie on a broken line exactly" in found.sentence
    points = plateau(2, 0.03, 5)
    line = fit_law(points, "broken", "saturated", rng=rng())
    rising, flat = ([x / n for n, x in points if n < 4.5], [x for n, x in points if n > 4.5])
    assert line.base.value == pytest.approx(np.exp(np.mean(np.log(rising))))
    assert line.ceiling.value == pytest.approx(np.exp(np.mean(np.log(flat))))
    assert line.knee_nodes.low < 4.2 < line.knee_nodes.high
    assert line.curve[-1].value == pytest.approx(line.ceiling.value)
    error = line.residual_sd.value * np.sqrt(1 / len(flat))
    assert np.log(line.ceiling.high / line.ceiling.value) == pytest.approx(stats.t.ppf(0.975, 14) * error)


def test_a_plateau_of_one_size_is_refused():
    assert "stay the same over two sizes" in fit_law(plateau(1, 0, 1, 7500), "broken", "saturated", rng=rng()).refusal
    assert not fit_law(plateau(1, 0, 1, 6500), "broken", "saturated", rng=rng()).refusal


def test_figures_show_the_broken_line_where_it_outweighs_the_universal_law():
    assert [fit.law for fit in shown(chosen(plateau(1, 0.02, 1))[0])] == ["broken"]
    assert [fit.law for fit in shown(chosen(scattered(SIZES, 3, SIGMA, KAPPA, 0.02))[0])] == ["usl"]


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


def scattered(sizes, per, sigma, kappa, noise, seed=3):
    random = rng(seed)
    return [
        (float(n), 900 * n / factor(n, sigma, kappa) * float(np.exp(random.normal(0, noise))))
        for n in sizes
        for _ in range(per)
    ]


def chosen(points, load="saturated"):
    fits = weighed([fit_law(points, law, load, rng=rng(), others={"workload": "A"}) for law in LAWS])
    (found,) = choices(fits)
    return fits, found


def test_every_draw_of_the_bootstrap_is_the_fit_of_its_sample():
    """The fits of all samples at once against scipy's, one by one."""
    points = scattered(SIZES, 2, SIGMA, KAPPA, 0.03)
    n, x = np.array(points).T
    design, found = columns("usl", n), solve("usl", n, n / x)
    draws = bootstrap(design, found, rng(5))
    assert draws is not None
    left = found.residuals / np.sqrt(1 - found.leverage)
    random = rng(5).choice(left - left.mean(), (1999, len(n)))
    fitted = found.theta[0] + np.log(1 + design @ found.theta[1:])
    for place in (0, 7, 1998):
        again = solve("usl", n, np.exp(fitted + random[place]))
        assert draws.theta[place] == pytest.approx(again.theta, abs=1e-6)
        assert draws.covariance[place] == pytest.approx(again.covariance, rel=1e-4, abs=1e-9)


def test_the_bootstrap_is_close_to_t_where_errors_are_normal_and_many():
    points = scattered(SIZES, 10, SIGMA, KAPPA, 0.02)
    n, x = np.array(points).T
    found = solve("usl", n, n / x)
    _, *by_draws = Interval(found, bootstrap(columns("usl", n), found, rng()), 0.95).of_parameter(2)
    _, *by_t = Interval(found, None, 0.95).of_parameter(2)
    width = by_t[1] - by_t[0]
    assert by_draws == pytest.approx(by_t, abs=0.15 * width)


def test_the_method_says_how_the_interval_was_made():
    fit = fit_law(scattered(SIZES, 2, SIGMA, KAPPA, 0.02), "usl", "saturated", rng=rng())
    assert "bootstrap-t interval of 1999 draws of residuals (9 degrees of freedom)" in fit.parameters["kappa"].method
    exact = fit_law(scattered(SIZES, 1, SIGMA, KAPPA, 0), "usl", "saturated", rng=rng())
    assert "the points lie on the law" in exact.parameters["kappa"].method


def test_the_law_that_was_planted_is_preferred():
    fits, found = chosen(scattered(SIZES, 3, SIGMA, KAPPA, 0.02))
    assert found.law == "usl"
    assert sum(fit.weight for fit in fits) == pytest.approx(1)
    assert "prefer the universal scalability law (AICc weights: the universal" in found.sentence
    assert "beyond the 8 nodes tried: an extrapolation" in found.sentence


def test_few_points_do_not_decide_against_what_their_interval_shows():
    """AICc forbids a third parameter to six points, while the interval of kappa leaves out 0."""
    _, found = chosen(scattered(SIZES, 1, 0.05, 0.03, 0.01))
    assert found.law is None
    assert "leaves out 0" in found.sentence


@pytest.mark.parametrize(
    ("points", "load", "said"),
    [
        ([(n, 500.0) for n in SIZES], "saturated", "every size has the same throughput"),
        ([(n, 2.5) for n in SIZES], "single", "every size takes the same time"),
        (scattered(SIZES, 1, SIGMA, KAPPA, 0), "saturated", "lie on the universal scalability law exactly"),
        (scattered((1, 2, 3, 4, 6), 1, SIGMA, KAPPA, 0.02), "saturated", "cannot be weighed with 5 points"),
        ([(n, 2.5) for n in (1, 2, 3)], "single", "needs at least 5 sizes; there are 3"),
        (
            scattered((1, 2, 3, 4, 6, 8, 12), 3, 0.02, 0.06, 0.02),
            "saturated",
            "would peak at 4.06 nodes [3.98, 4.14]; contention 0.0",
        ),
        (scattered((1, 2, 3, 4, 6), 3, 0.08, 0.002, 0.03), "saturated", "no upper end"),
        (
            [(n, v * f) for f in (1, 1.001) for n, v in zip(SIZES, (100, 190, 100, 350, 120, 700), strict=True)],
            "saturated",
            "but no law describes the sizes",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_odd_data_are_told_in_words(points, load, said):
    _, found = chosen(points, load)
    assert said in found.sentence


def test_lack_of_fit_is_the_textbooks_f():
    """Against statsmodels: the law without kappa on the demand's own scale is a straight line in n - 1."""
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.anova import anova_lm

    points = scattered(SIZES, 3, 0.0, 0.0, 0.02)
    n, x = np.array(points).T
    y = np.log(n / x)
    sizes = (n[:, None] == np.asarray(SIZES)).astype(float)
    whole, one = OLS(y, sizes).fit(), OLS(y, np.ones(len(y))).fit()
    oracle = anova_lm(one, whole)["Pr(>F)"].iloc[1]
    assert fit_law(points, "linear", "saturated", rng=rng()).lack_of_fit_p == pytest.approx(oracle)


def test_capacity_of_named_sizes_is_over_their_numbers():
    trials = [
        one.model_copy(update={"responses": Responses(capacity_per_s=value)})
        for level, value in (("small", 100.0), ("large", 180.0))
        for one in cell([[1.0], [1.0]], nodes=level)
    ]
    over = frame(trials)
    over = replace(over, numbers={"nodes": {"small": 1.0, "large": 2.0}})
    assert (
        sorted(law_points(over, "saturated", "nodes", {"workload": "A"}, capacity=True))
        == [(1.0, 100.0)] * 2 + [(2.0, 180.0)] * 2
    )
