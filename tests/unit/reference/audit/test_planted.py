"""Each kind of contradiction, planted one at a time in a table that is otherwise right, is found, and only it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from steelyard.reference.audit import csv_input
from steelyard.reference.audit.finding import KINDS, Audit, Ledger, Place, figure
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.audit.two_groups import check_copies, check_percent
from steelyard.reference.printed import Rounding, parse
from tests.unit.reference import made

THREE = Rounding(kind="significant", digits=3)
STRICT = Conventions(quartiles="linear", sd_divisors=(1,), design_count=21)


def table() -> list[dict[str, str]]:
    """Three cells of 21 and the row that pools them, to three digits."""
    rng = np.random.default_rng(11)
    samples = [rng.normal(100 * size, 8, 21) for size in (1, 2, 3)]
    rows = [{"size": str(at + 1), **made.printed(made.summary(one), 3)} for at, one in enumerate(samples)]
    return [*rows, {"size": "overall", **made.printed(made.summary(np.concatenate(samples)), 3)}]


def pair() -> dict[str, str]:
    """Two groups of 21 with effect size, ratio, change and regression."""
    from scipy import stats

    rng = np.random.default_rng(12)
    one, other = rng.normal(100, 8, 21), rng.normal(120, 9, 21)
    fit = stats.linregress([0.0] * 21 + [1.0] * 21, np.concatenate([one, other]))
    m1, m2, s1, s2 = one.mean(), other.mean(), one.std(ddof=1), other.std(ddof=1)
    numbers = {
        "n_1": 21, "mean_1": m1, "sd_1": s1, "n_2": 21, "mean_2": m2, "sd_2": s2, "ratio": m2 / m1,
        "cohens_d": (m2 - m1) / np.sqrt((s1**2 + s2**2) / 2), "difference": m2 - m1,
        "change_percent": 100 * (m2 / m1 - 1), "slope": fit.slope, "intercept": fit.intercept, "r": fit.rvalue,
        "p": fit.pvalue, "std_err": fit.stderr,
    }  # fmt: skip
    return made.printed(numbers, 3)


def audited(folder: Path, rows: list[dict[str, str]], how: Conventions = STRICT) -> Audit:
    return csv_input.audit(made.write(folder / "table.csv", rows), how, THREE)


def test_nothing_is_planted(tmp_path: Path) -> None:
    assert audited(tmp_path, table()).findings == ()
    assert audited(tmp_path, [pair()]).findings == ()


@pytest.mark.parametrize(
    ("row", "column", "text", "kind"),
    [
        (0, "n", "42", "count"),
        (0, "q1", "200", "order"),
        (1, "median", "150", "order"),
        (1, "max", "100", "order"),
        (0, "mean", "150", "mean"),
        (0, "mean", "107", "mean"),
        (2, "range", "90", "range"),
        (2, "sd", "60", "deviation"),
        (2, "sd", "0.1", "deviation"),
        (0, "se", "8", "standard error"),
        (0, "cv_percent", "80", "variation"),
        (3, "n", "60", "pooled count"),
        (3, "mean", "210", "pooled mean"),
        (3, "sd", "70", "pooled deviation"),
        (3, "min", "95", "pooled order"),
        (3, "median", "250", "pooled order"),
        (3, "q3", "250", "pooled order"),
    ],
)
def test_in_a_cell(tmp_path: Path, row: int, column: str, text: str, kind: str) -> None:
    rows = table()
    assert rows[row][column] != text
    rows[row][column] = text
    found = audited(tmp_path, rows)
    hit = next(one for one in found.findings if one.kind == kind)
    assert hit.weight == "contradiction"
    assert hit.line == row + 2
    assert hit.cell == {"size": rows[row]["size"]}
    assert hit.off_by
    if kind != "order":
        assert (hit.column, hit.printed) == (column, text)
        assert hit.should_be
        assert hit.because


@pytest.mark.parametrize(
    ("column", "text", "kinds"),
    [
        ("cohens_d", "4.5", {"effect size"}),
        ("ratio", "1.3", {"ratio"}),
        ("difference", "25", {"difference"}),
        ("change_percent", "31", {"percentage"}),
        ("slope", "25", {"slope", "slope's error"}),
        ("intercept", "120", {"intercept"}),
        ("r", "0.5", {"correlation", "slope's error"}),
        ("r", "1.2", {"correlation", "bounds"}),
        ("std_err", "5", {"slope's error"}),
        ("p", "0.03", {"p-value"}),
        ("p", "1.5", {"bounds"}),
    ],
)
def test_in_a_comparison(tmp_path: Path, column: str, text: str, kinds: set[str]) -> None:
    row = {**pair(), column: text}
    found = audited(tmp_path, [row])
    assert {one.kind for one in found.findings} == kinds
    assert all(one.off_by for one in found.findings)


def test_a_sign(tmp_path: Path) -> None:
    row = {name: text for name, text in pair().items() if not name.endswith(("_1", "_2"))} | {"n": "42"}
    assert audited(tmp_path, [row], Conventions()).findings == ()
    found = audited(tmp_path, [{**row, "r": f"-{row['r']}"}], Conventions())
    assert [one.kind for one in found.findings] == ["sign"]


def test_two_groups_are_a_remark(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    sample = np.concatenate([rng.normal(10, 0.2, 14), rng.normal(50, 0.4, 13)])
    found = audited(tmp_path, [made.printed(made.summary(sample), 3)], Conventions())
    assert [(one.kind, one.weight, one.column) for one in found.findings] == [("two groups", "remark", "sd")]


def test_whole_numbers(tmp_path: Path) -> None:
    whole = Conventions(whole_numbers=True)
    for row, kind in (
        ({"n": "10", "mean": "5.23", "sd": "2.1"}, "mean"),
        ({"n": "10", "mean": "5.20", "sd": "2.101"}, "sd"),
    ):
        (finding,) = csv_input.audit(made.write(tmp_path / "t.csv", [row]), whole, Rounding()).findings
        assert (finding.kind, finding.column) == ("whole numbers", kind)
        assert csv_input.audit(made.write(tmp_path / "t.csv", [row]), Conventions(), Rounding()).findings == ()


def test_the_same_file_as_a_long_table(tmp_path: Path) -> None:
    rows = table()
    rows[2]["sd"] = "60"
    path = tmp_path / "long.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("size", "statistic", "value_ms"))
        writer.writerows((row["size"], name, text) for row in rows for name, text in row.items() if name != "size")
    long, wide = csv_input.audit(path, STRICT, THREE), audited(tmp_path, rows)
    assert long.made == wide.made
    assert [one.model_dump(exclude={"table", "line"}) for one in long.findings] == [
        one.model_dump(exclude={"table", "line"}) for one in wide.findings
    ]
    assert {one.kind for one in long.findings} >= {"deviation"}


def test_shares_and_copies() -> None:
    ledger, place = Ledger(), Place("t", 2, {"size": "1"})
    check_percent(place, ("mean", parse("101")), None, ledger)
    check_percent(place, ("mean", parse("99")), ("sd", parse("30")), ledger)
    numbers = [(place, "ms", parse(text)) for text in ("3.07", "3.29", "1.38", "1.49")]
    check_copies({"write": numbers, "read": numbers, "mixed": [(place, "ms", parse("3.07"))] * 3}, ledger)
    found = ledger.audit("t")
    assert [one.kind for one in found.findings] == ["deviation", "bounds", "copied"]
    assert found.made == {"deviation": 1, "bounds": 2, "copied": 1}
    assert set(found.made) <= set(KINDS)


@pytest.mark.parametrize(
    ("value", "text"),
    [(700121.3, "700100"), (0.33441, "0.3344"), (1.8e6, "1800000"), (6.7e10, "6.7e+10"), (2e-57, "2e-57"), (21, "21")],
)
def test_figures(value: float, text: str) -> None:
    assert figure(value) == text
