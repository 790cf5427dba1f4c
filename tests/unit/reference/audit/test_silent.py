"""No false alarms: whatever was really measured, summarised in any usual way and rounded, nothing is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.reference.audit import csv_input
from steelyard.reference.audit.finding import Audit
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.printed import Rounding
from tests.unit.reference import made
from tests.unit.reference.audit.test_bounds import METHODS

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = st.lists(st.floats(0.01, 1e5), min_size=2, max_size=50)
SKEWED = st.builds(
    lambda seed, n, shape, scale: np.random.default_rng(seed).gamma(shape, scale, n).tolist(),
    st.integers(0, 10**6), st.integers(2, 130), st.floats(0.3, 50), st.floats(0.01, 1e4),
)  # fmt: skip
CELLS = st.lists(st.one_of(VALUES, SKEWED), min_size=1, max_size=6)


def audited(path: Path, rows: list[dict[str, str]], digits: int, **how: object) -> Audit:
    file = made.write(path / "table.csv", rows)
    return csv_input.audit(file, Conventions(**how), Rounding(kind="significant", digits=digits))  # type: ignore[arg-type]


def contradictions(found: Audit) -> list[str]:
    return [
        f"{one.kind} {one.column} {one.printed}: {one.should_be}" for one in found.findings if one.weight != "remark"
    ]


@MANY
@given(CELLS, st.integers(2, 3), st.sampled_from(METHODS), st.integers(0, 1))
def test_cells_and_the_row_that_pools_them(
    tmp_path: Path, samples: list[list[float]], digits: int, method: str, ddof: int
) -> None:
    rows = [
        {"size": str(at), **made.printed(made.summary(sample, method, ddof), digits)}
        for at, sample in enumerate(samples)
    ]
    together = [value for sample in samples for value in sample]
    rows.append({"size": "overall", **made.printed(made.summary(together, method, ddof), digits)})
    assert contradictions(audited(tmp_path, rows, digits)) == []
    if method == "linear" and ddof == 1:
        assert contradictions(audited(tmp_path, rows, digits, quartiles="linear", sd_divisors=(1,))) == []


@MANY
@given(st.one_of(VALUES, SKEWED), st.one_of(VALUES, SKEWED), st.integers(2, 3), st.booleans(), st.integers(0, 1))
def test_comparisons_and_their_regression(
    tmp_path: Path, one: list[float], other: list[float], digits: int, turned: bool, ddof: int
) -> None:
    x, y = [0.0] * len(one) + [1.0] * len(other), [*one, *other]
    sds = float(np.std(one, ddof=1)), float(np.std(other, ddof=1))
    means = float(np.mean(one)), float(np.mean(other))
    if not 4 <= len(y) <= 99 or min(sds) == 0 or means[0] == means[1]:
        return
    fit = stats.linregress(x, y)
    first, second = (means[1], means[0]) if turned else means
    numbers = {
        "n_1": len(one), "mean_1": means[0], "sd_1": float(np.std(one, ddof=ddof)),
        "n_2": len(other), "mean_2": means[1], "sd_2": float(np.std(other, ddof=ddof)),
        "cohens_d": (first - second) / np.sqrt((sds[0] ** 2 + sds[1] ** 2) / 2), "ratio": first / second,
        "difference": first - second, "change_percent": 100 * (first / second - 1), "slope": fit.slope,
        "intercept": fit.intercept, "r": fit.rvalue, "p": fit.pvalue, "std_err": fit.stderr,
    }  # fmt: skip
    pooled = np.sqrt(((len(one) - 1) * sds[0] ** 2 + (len(other) - 1) * sds[1] ** 2) / (len(y) - 2))
    numbers["hedges_g"] = (first - second) / pooled * (1 - 3 / (4 * len(y) - 9))
    row = {name: text for name, text in made.printed(numbers, digits).items() if np.isfinite(numbers[name])}
    found = audited(tmp_path, [row], digits)
    assert contradictions(found) == []
    if "p-value" not in found.made:
        assert min(sds) < 1e-9 * max(means)
        return
    assert {"slope", "intercept", "correlation", "p-value", "effect size", "ratio"} <= set(found.made)


@MANY
@given(st.integers(0, 10**6), st.integers(20, 60), st.sampled_from(("normal", "lognormal", "exponential", "uniform")))
def test_one_heap_is_not_two_groups(tmp_path: Path, seed: int, n: int, kind: str) -> None:
    rng = np.random.default_rng(seed % 60)
    sample = getattr(rng, kind)(size=n)
    found = audited(tmp_path, [made.printed(made.summary(sample), 2)], 2)
    assert [one.kind for one in found.findings] == []
    assert found.made["two groups"] == 1


@MANY
@given(st.lists(st.integers(-20, 200), min_size=2, max_size=40), st.integers(0, 4), st.integers(0, 1))
def test_whole_numbers(tmp_path: Path, sample: list[int], decimals: int, ddof: int) -> None:
    numbers = made.summary(sample, ddof=ddof)
    row = {"n": str(len(sample)), "mean": f"{numbers['mean']:.{decimals}f}", "sd": f"{numbers['sd']:.{decimals}f}"}
    file = made.write(tmp_path / "table.csv", [row])
    assert csv_input.audit(file, Conventions(whole_numbers=True), Rounding()).findings == ()


@pytest.mark.parametrize("digits", [2, 3, 6])
def test_printed_to_the_last_digit_that_stands_there(tmp_path: Path, digits: int) -> None:
    rng = np.random.default_rng(3)
    rows = [
        {
            "n": "21",
            **{
                name: f"{value:.{digits}f}"
                for name, value in made.summary(rng.normal(50, 9, 21)).items()
                if name != "n"
            },
        }
    ]
    assert csv_input.audit(made.write(tmp_path / "t.csv", rows), Conventions(), Rounding()).findings == ()
