"""Analysis of variance against certified digits (NIST), a published split plot (Yates 1935), and statsmodels."""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from steelyard.analysis.inference.variance_table import crossed, table
from steelyard.analysis.statistics.anova import anova, interactions
from steelyard.analysis.statistics.one_way import one_ways
from tests.unit.analysis.made import cell, frame, record

TIME = "execution_time_ms"
NIST = Path(__file__).resolve().parents[3] / "fixtures" / "nist"

OATS = {
    1: [111, 130, 157, 174, 117, 114, 161, 141, 105, 140, 118, 156],
    2: [61, 91, 97, 100, 70, 108, 126, 149, 96, 124, 121, 144],
    3: [68, 64, 112, 86, 60, 102, 89, 96, 89, 129, 132, 124],
    4: [74, 89, 81, 122, 64, 103, 132, 133, 70, 89, 104, 117],
    5: [62, 90, 100, 116, 80, 82, 94, 126, 63, 70, 109, 99],
    6: [53, 74, 118, 113, 89, 82, 86, 104, 97, 99, 119, 121],
}
"""Yates 1935: block to yields of three varieties (whole plots), each at four levels of nitrogen; MASS's `oats`."""


def certified(name: str):
    """(groups, values, degrees of freedom, sums of squares, F) as NIST prints them."""
    text = (NIST / f"{name}.dat").read_text(encoding="ascii")
    lines = text.splitlines()
    between = next(line for line in lines if line.startswith("Between"))
    within = next(line for line in lines if line.startswith("Within"))
    df_b, ss_b, _, f = re.findall(r"[\d.]+(?:E[-+]\d+)?", between)
    df_w, ss_w, _ = re.findall(r"[\d.]+(?:E[-+]\d+)?", within)
    start = next(place for place, line in enumerate(lines) if line.startswith("Data:") and place > 40)
    rows = [line.split() for line in lines[start + 1 :] if line.split()]
    return (
        [row[0] for row in rows],
        [float(row[1]) for row in rows],
        (int(df_b), int(df_w)),
        (float(ss_b), float(ss_w)),
        float(f),
    )


# Digits that can be right: 13 constant leading digits of SmLs07 leave three of the data's own in a double.
@pytest.mark.parametrize(
    ("name", "close"),
    [("SiRstv", 1e-12), ("AtmWtAg", 1e-9), ("SmLs01", 1e-13), ("SmLs04", 1e-8), ("SmLs07", 1e-2)],
)
def test_certified_values_of_one_way_analysis(name, close):
    groups, values, (df_b, df_w), (ss_b, ss_w), f = certified(name)
    found = table(values, {"instrument": groups}, [("instrument",)])
    (line,) = found.lines
    assert (found.n, line.df, found.error_df) == (len(values), df_b, df_w)
    assert line.squares == pytest.approx(ss_b, rel=close)
    assert found.error_squares == pytest.approx(ss_w, rel=close)
    assert line.f == pytest.approx(f, rel=close)


def oats():
    records = []
    for block, yields in OATS.items():
        for variety, nitrogen in itertools.product(range(3), range(4)):
            value = float(yields[4 * variety + nitrogen])
            records.append(record(value, nodes=variety + 1, workload="ABCD"[nitrogen], start=block, order=nitrogen + 1))
    return frame(records)


def test_the_two_errors_of_a_published_split_plot():
    """R's summary(aov(Y ~ N * V + Error(B / V), oats)), as MASS prints it."""
    found = {(one.stratum, one.term): one for one in anova(oats(), TIME) if one.form == "honest"}
    printed = {  # degrees of freedom, sum of squares over single plots, F, p
        ("starts", "block"): (5, 15875, None, None),
        ("starts", "nodes"): (2, 1786, 1.485, 0.272),
        ("starts", "error"): (10, 6013, None, None),
        ("within starts", "workload"): (3, 20020.4, 37.686, 2.46e-12),
        ("within starts", "nodes x workload"): (6, 322, 0.303, 0.932),
        ("within starts", "error"): (45, 7969, None, None),
    }
    assert found.keys() == printed.keys()
    for key, (df, squares, f, p) in printed.items():
        plots = 4 if key[0] == "starts" else 1  # ours are squares of start means, each over four plots
        assert found[key].df == df
        assert found[key].sum_of_squares * plots == pytest.approx(squares, abs=0.5)
        if f is not None:
            assert found[key].f == pytest.approx(f, abs=5e-4)
            assert found[key].p == pytest.approx(p, rel=2e-3)


PULP = {
    200: [30, 34, 29, 28, 31, 31, 31, 35, 32],
    225: [35, 41, 26, 32, 36, 30, 37, 40, 34],
    250: [37, 38, 33, 40, 42, 32, 41, 39, 39],
    275: [36, 42, 36, 41, 40, 40, 40, 44, 45],
}
"""D. C. Montgomery, Design and Analysis of Experiments, section 14.4: tensile strength of paper by temperature; three
replicates of three methods of preparing pulp (whole plots)."""


def pulp():
    records = []
    for order, (temperature, values) in enumerate(PULP.items(), start=1):
        for place, value in enumerate(values):
            block, method = place // 3 + 1, place % 3 + 1
            records.append(record(float(value), nodes=method, workload=str(temperature), start=block, order=order))
    return frame(records)


def test_montgomerys_split_plot():
    """R's summary(aov(y ~ method * temperature + Error(replicate / method))) of the textbook's data."""
    found = {(one.stratum, one.term): one for one in anova(pulp(), TIME) if one.form == "honest"}
    printed = {  # degrees of freedom, sum of squares over single plots, F, p
        ("starts", "block"): (2, 77.55, None, None),
        ("starts", "nodes"): (2, 128.39, 7.078, 0.0485),
        ("starts", "error"): (4, 36.28, None, None),
        ("within starts", "workload"): (3, 434.08, 36.427, 7.45e-08),
        ("within starts", "nodes x workload"): (6, 75.17, 3.154, 0.0271),
        ("within starts", "error"): (18, 71.50, None, None),
    }
    assert found.keys() == printed.keys()
    for key, (df, squares, f, p) in printed.items():
        plots = 4 if key[0] == "starts" else 1
        assert found[key].df == df
        assert found[key].sum_of_squares * plots == pytest.approx(squares, abs=0.006)
        if f is not None:
            assert found[key].f == pytest.approx(f, abs=6e-4)
            assert found[key].p == pytest.approx(p, rel=2e-3)
            assert "degrees" in found[key].method


def test_an_interaction_is_said_before_main_effects():
    (said,) = interactions(anova(pulp(), TIME))
    assert said.startswith("The effect of nodes depends on workload (F(6, 18) = 3.15, p = 0.027, = 0.054 after Holm")
    assert "level by level" in said
    assert interactions(anova(oats(), TIME)) == []


def test_a_plot_that_is_missing_leaves_whole_starts_out_and_says_so():
    """Start means of other treatments than the rest have would not be comparable."""
    of = pulp()
    short = type(of)(of.data.filter(pl.int_range(pl.len()) > 0), of.factors, of.hard, 0)
    found = [one for one in anova(short, TIME) if one.form == "honest"]
    assert "1 starts without every combination of workload are left out" in found[0].note
    assert "blocks are not complete" in found[0].note
    within = next(one for one in found if one.term == "workload")
    assert (within.n, within.error_df) == (35, 17)


def test_trials_of_a_start_do_not_replicate_a_hard_factor():
    """Starts differ by far more than their trials: the published form sees a sure effect where there is none."""
    rng = np.random.default_rng(2)
    records = []
    for nodes, effects in ((1, (-4, 3, 0, 1)), (3, (5, -1, 6, 0))):
        records += cell([[100 + e + z for z in rng.normal(0, 0.1, 15)] for e in effects], nodes=nodes)
    found = {one.form: one for one in anova(frame(records), TIME) if one.term == "nodes"}
    assert found["honest"].error_df == 3  # four complete blocks, two sizes
    assert found["published"].error_df == 118
    assert found["published"].p < 0.001 < found["honest"].p


def test_one_start_has_no_error_term_and_says_so():
    records = [one for nodes in (1, 3) for one in cell([[5.0, 6.0, 7.0 + nodes]], nodes=nodes)]
    found = anova(frame(records), TIME)
    (honest,) = [one for one in found if one.form == "honest"]
    assert (honest.f, honest.p, honest.df) == (None, None, None)
    assert "no error term" in honest.note
    assert any(one.form == "published" and one.f is not None for one in found)
    over_starts = next(one for one in one_ways(frame(records), TIME) if one.over == "start means")
    assert over_starts.f is None
    assert "no error term" in over_starts.note


def test_unequal_cells_as_statsmodels_has_them():
    pytest.importorskip("pandas")
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 3, 40), rng.integers(0, 2, 40)
    y = 3.0 * a + 2 * b + a * b + rng.normal(0, 1, 40)
    found = table(list(y), {"a": list(a), "b": list(b)}, crossed(["a", "b"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = anova_lm(smf.ols("y ~ C(a) * C(b)", data=pd.DataFrame({"y": y, "a": a, "b": b})).fit(), typ=2)
    assert [line.squares for line in found.lines] == pytest.approx(list(oracle["sum_sq"])[:-1])
    assert [line.p for line in found.lines] == pytest.approx(list(oracle["PR(>F)"])[:-1])
    assert found.error_squares == pytest.approx(float(oracle["sum_sq"].iloc[-1]))


def test_partial_eta_squared_holds_its_value_and_the_corrected_p_is_never_smaller():
    for one in anova(oats(), TIME):
        if one.eta_squared is not None:
            assert one.eta_squared.low <= one.eta_squared.value <= one.eta_squared.high
        if one.p_holm is not None:
            assert one.p <= one.p_holm <= 1


def test_ranks_stand_beside_the_analysis_of_variance():
    rng = np.random.default_rng(1)
    groups = [[float(v) for v in rng.normal(10 + nodes, 1, 5)] for nodes in (1, 2, 3)]
    records = [one for nodes, values in enumerate(groups, 1) for one in cell([[v] for v in values], nodes=nodes)]
    found = next(one for one in one_ways(frame(records), TIME) if one.over == "start means")
    assert found.rank_test == "Kruskal-Wallis"
    assert found.rank_p == pytest.approx(stats.kruskal(*groups).pvalue)
    assert found.p == pytest.approx(stats.f_oneway(*groups).pvalue)


def test_levels_that_share_their_starts_are_ranked_within_them():
    values = {"A": [5.0, 9.0, 7.0, 6.0], "C": [6.0, 9.5, 8.0, 6.5], "E": [7.0, 11.0, 8.5, 9.0]}
    records = [one for name, starts in values.items() for one in cell([[v] for v in starts], workload=name)]
    made = frame(records)
    assert one_ways(made, TIME) == ()  # workloads are different questions while another factor exists
    made = type(made)(made.data.drop("nodes"), {"workload": ("A", "C", "E")}, (), 0)
    found = next(one for one in one_ways(made, TIME) if one.over == "start means")
    assert found.rank_test == "Friedman"
    assert found.rank_p == pytest.approx(stats.friedmanchisquare(*values.values()).pvalue)
    assert (found.df, found.error_df) == (2, 6)


def test_nothing_to_analyse_is_nothing():
    assert anova(frame(cell([[5.0, 6.0]])), TIME) == ()
    assert one_ways(frame(cell([[5.0, 6.0]])), TIME) == ()
