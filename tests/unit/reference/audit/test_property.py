"""Random true tables at 1 to 4 digits: nothing is found in them; whatever is then planted beyond rounding is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from steelyard.reference.audit import csv_input
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.printed import Rounding
from tests.unit.reference import made

ROUNDS = 6
"""Random tables a test; once it was 1,000 of either kind by hand."""

Row = dict[str, str]


def kinds(folder: Path, rows: list[Row], rounding: Rounding, how: Conventions | None = None) -> set[str]:
    found = csv_input.audit(made.write(folder / "table.csv", rows), how or Conventions(), rounding)
    return {one.kind for one in found.findings if one.weight == "contradiction"}


def half(value: float, digits: int) -> float:
    """Half a unit of the last significant digit."""
    return 0.0 if value == 0 else 0.5 * 10.0 ** (np.floor(np.log10(abs(value))) - digits + 1)


def sample(rng: np.random.Generator) -> np.ndarray:
    """8 to 50 values of a random kind and scale, some of them about a power of ten."""
    n, scale = int(rng.integers(8, 50)), 10 ** rng.uniform(-2, 5)
    makes: list[Callable[[], np.ndarray]] = [
        lambda: rng.normal(100, rng.uniform(1, 25), n),
        lambda: rng.lognormal(rng.uniform(0, 9), rng.uniform(0.05, 1), n),
        lambda: rng.uniform(0, scale, n),
        lambda: rng.exponential(scale, n),
        lambda: 10.0 ** rng.integers(-3, 6) * (1 + rng.normal(0, 0.05, n)),
    ]
    return makes[int(rng.integers(len(makes)))]()


def comparison(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Everything that a paper prints of two groups."""
    fit = stats.linregress([0.0] * len(one) + [1.0] * len(other), np.concatenate([one, other]))
    m1, m2, s1, s2 = one.mean(), other.mean(), one.std(ddof=1), other.std(ddof=1)
    return {
        "n_1": len(one), "mean_1": m1, "sd_1": s1, "n_2": len(other), "mean_2": m2, "sd_2": s2,
        "cohens_d": (m2 - m1) / np.sqrt((s1**2 + s2**2) / 2), "ratio": m2 / m1, "difference": m2 - m1,
        "change_percent": 100 * (m2 / m1 - 1), "slope": fit.slope, "intercept": fit.intercept, "r": fit.rvalue,
        "p": fit.pvalue, "std_err": fit.stderr,
    }  # fmt: skip


@pytest.mark.parametrize("decimals", [False, True])
def test_true_tables_are_silent(tmp_path: Path, decimals: bool) -> None:
    """Decimals too, where a small group prints as 0.00 beside a large one: what may be divided by 0 has no end."""
    rng = np.random.default_rng(31 + decimals)
    for _ in range(ROUNDS * 2):
        digits = int(rng.integers(1, 5))
        rounding = Rounding(kind="decimals", digits=digits) if decimals else Rounding(kind="significant", digits=digits)
        cells = [sample(rng) for _ in range(3)]
        every = [*cells, np.concatenate(cells)]
        rows = [
            {"size": size, **text(made.summary(one), digits, decimals)} for size, one in zip("123", every, strict=False)
        ]
        rows.append({"size": "overall", **text(made.summary(every[-1]), digits, decimals)})
        assert kinds(tmp_path, rows, rounding) == set()
        assert kinds(tmp_path, [text(comparison(cells[0], cells[1]), digits, decimals)], rounding) == set()


def text(numbers: dict[str, float], digits: int, decimals: bool) -> Row:
    if not decimals:
        return made.printed(numbers, digits)
    return {name: str(int(value)) if name.partition("_")[0] == "n" else f"{value:.{digits}f}"
            for name, value in numbers.items()}  # fmt: skip


def planted_in_cells(rng: np.random.Generator, digits: int) -> Iterator[tuple[str, list[Row], str]]:
    """(what was planted, the table, kinds of which one must be found). Every planted number is beyond all rounding."""
    cells = [sample(rng) for _ in range(3)]
    summaries = [made.summary(one) for one in cells]
    whole = made.summary(np.concatenate(cells))
    at = int(rng.integers(3))
    s = summaries[at]
    unit, spread = max(half(s["max"], digits), half(s["min"], digits)), s["range"]
    means = max(half(one["mean"], digits) for one in summaries)

    def table(row: int, **changed: float) -> list[Row]:
        rows = [{"size": str(k), **made.printed(one, digits)} for k, one in enumerate(summaries)]
        rows.append({"size": "overall", **made.printed(whole, digits)})
        rows[row] |= {name: f"{value:.{digits}g}" for name, value in changed.items()}
        return rows

    yield "mean above max", table(at, mean=s["max"] + 3 * unit + 0.3 * abs(s["max"])), "mean"
    yield "mean below min", table(at, mean=s["min"] - 3 * unit - 0.3 * abs(s["min"])), "mean"
    yield "range too large", table(at, range=1.3 * spread + 6 * unit), "range"
    yield "deviation above the range", table(at, sd=spread + 4 * unit + 2 * half(spread, digits)), "deviation"
    yield "standard error", table(at, se=3 * s["se"]), "standard error"
    yield "variation", table(at, cv_percent=3 * s["cv_percent"]), "variation"
    yield "overall mean", table(3, mean=1.5 * whole["mean"] + 4 * means), "pooled mean"
    yield "overall deviation", table(3, sd=4 * whole["sd"]), "pooled deviation"
    yield "overall min", table(3, min=1.5 * whole["min"] + 4 * half(whole["min"], digits)), "pooled order"
    if s["q3"] - s["q1"] > 6 * unit:
        yield "quartiles swapped", table(at, q1=s["q3"], q3=s["q1"]), "order"
    if spread > 20 * unit:
        yield "range too small", table(at, range=0.3 * spread), "range"
        yield "deviation below the least", table(at, sd=0.5 * (spread - 4 * unit) / (2 * s["n"]) ** 0.5), "deviation"


def test_what_is_planted_in_cells_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(41)
    for _ in range(ROUNDS):
        digits = int(rng.integers(2, 5))
        for what, rows, kind in planted_in_cells(rng, digits):
            assert kind in kinds(tmp_path, rows, Rounding(kind="significant", digits=digits)), (what, digits, rows)


def planted_in_comparisons(rng: np.random.Generator, digits: int) -> Iterator[tuple[Row, str]]:
    one, other = sample(rng), sample(rng)
    true = comparison(one, other)
    m1, m2, sd = true["mean_1"], true["mean_2"], min(true["sd_1"], true["sd_2"])
    unit, fine = half(m1, digits) + half(m2, digits), 1 + 2 * 10.0 ** (1 - digits)
    sign, ratio = np.sign(m2 - m1), max(m2 / m1, m1 / m2)
    for name, value, kind in (
        ("cohens_d", 2.5 * (abs(m2 - m1) + 2 * unit) / sd * fine, "effect size"),
        ("ratio", 3 * ratio * fine, "ratio"),
        ("difference", 1.6 * (m2 - m1) + 4 * unit * sign * fine, "difference"),
        ("change_percent", 500 * ratio * fine, "percentage"),
        ("slope", 2 * true["slope"] + 6 * unit * sign, "slope"),
        ("intercept", 1.5 * m1 + 6 * half(m1, digits), "intercept"),
        ("std_err", 4 * true["std_err"], "slope's error"),
        ("r", 1.2, "bounds"),
    ):
        yield {**made.printed(true, digits), name: f"{value:.{digits}g}"}, kind


def test_what_is_planted_in_comparisons_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(51)
    for _ in range(ROUNDS):
        digits = int(rng.integers(3, 5))
        for row, kind in planted_in_comparisons(rng, digits):
            assert kind in kinds(tmp_path, [row], Rounding(kind="significant", digits=digits)), (kind, row)


def test_a_divisor_that_may_be_0_allows_large_quotients_only(tmp_path: Path) -> None:
    """0.00 may have been 0.004: ratios from 99.985 / 0.005 on are possible, smaller ones are not."""
    row = {"mean_1": "0.00", "mean_2": "99.99"}
    for ratio, found in (("100292.35", set()), ("0.00", set()), ("3.00", {"ratio"})):
        assert kinds(tmp_path, [{**row, "ratio": ratio}], Rounding()) == found
    row = {"mean_1": "6.1", "sd_1": "6.0", "mean_2": "0.1", "sd_2": "0.0"}
    for size, found in (("-173.2", set()), ("1.41", set()), ("0.5", {"effect size"})):
        assert kinds(tmp_path, [{**row, "cohens_d": size}], Rounding()) == found


def test_two_heaps_are_remarked_and_one_is_not(tmp_path: Path) -> None:
    """Half of the values about a tenth of the others: a remark, at any number of digits."""
    rng = np.random.default_rng(61)
    for heaps in (True, False):
        told = 0
        for _ in range(ROUNDS):
            n = int(rng.integers(20, 60))
            values = rng.normal(100, 2, n)
            if heaps:
                values[: n // 2 - 1] = rng.normal(10, 0.2, n // 2 - 1)
            row = made.printed(made.summary(values), int(rng.integers(2, 5)))
            found = csv_input.audit(
                made.write(tmp_path / "t.csv", [row]), Conventions(), Rounding(kind="significant", digits=2)
            )
            assert not [one for one in found.findings if one.weight == "contradiction"]
            told += any(one.kind == "two groups" for one in found.findings)
        assert told >= ROUNDS - 2 if heaps else told == 0
